"""The fields of models and definitions, with everything nested in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.column_paths import column_path, dotted_path
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader, spark_type_of, with_type
from dqx_airflow.contracts.dialects.dcs.quality import read_quality
from dqx_airflow.contracts.dialects.extensions import is_sensitive, with_unique_names
from dqx_airflow.contracts.model import Clause, Field, Rule
from dqx_airflow.contracts.source.yaml_document import Entry, Mapping, Node, Scalar, show_path
from dqx_airflow.diagnostics.diagnostic import slip_of
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, family_of
from dqx_airflow.values import FieldSource

_TYPES = {
    **dict.fromkeys(("string", "text", "varchar"), "string"),
    **dict.fromkeys(("number", "decimal", "numeric"), "number"),
    **dict.fromkeys(("int", "integer"), "int"),
    **dict.fromkeys(("long", "bigint"), "bigint"),
    **dict.fromkeys(("timestamp", "timestamp_tz"), "timestamp"),
    **dict.fromkeys(("object", "record", "struct"), "struct"),
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "timestamp_ntz": "timestamp_ntz",
    "date": "date",
    "time": "string",
    "array": "array",
    "map": "map",
    "bytes": "binary",
    "variant": "any",
    "json": "any",
    "null": "any",
}
_NESTED = {"array": ("items",), "map": ("keys", "values"), "struct": ("fields",)}
_FORMATS = {"date-time": "timestamp", "datetime": "timestamp", "guid": "uuid"}
_BOUNDS = {
    "minimum": ("minimum", ">="),
    "exclusiveMinimum": ("exclusive_minimum", ">"),
    "maximum": ("maximum", "<="),
    "exclusiveMaximum": ("exclusive_maximum", "<"),
}
_LENGTHS = {"minLength": ("min_length", ">="), "maxLength": ("max_length", "<=")}
_REMARKS = ("title", "description", "example", "examples", "tags", "links", "lineage", "config")

_SUBTYPES = (
    *("IDENTITY", "TRANSFORMATION", "AGGREGATION"),
    *("JOIN", "GROUP_BY", "FILTER", "SORT", "WINDOW", "CONDITIONAL"),
)
"""How a field derives from another one, in the terms of OpenLineage."""


@dataclass(frozen=True, slots=True)
class FieldContext:
    """The context for reading a field.

    `models` are the names of all models. `sql_dialect` is that of the server. `is_spark`: the
    physical types for Databricks are those of the data.
    """

    reading: ClauseReader
    models: tuple[str, ...]
    sql_dialect: str | None
    is_spark: bool


def read_field(
    around: FieldContext, name: str, path: str, entry: Entry, key_nodes: tuple[Node, ...] = ()
) -> Field:
    """A field of a model or of a struct. `key_nodes` declare that it belongs to the primary key."""
    item = _read(around, Field(name, path, None, entry.span), entry.node, key_nodes)
    exists = Rule("exists", demands.Presence(), (_presence_clause(around.reading, entry),))
    return replace(item, rules=with_unique_names((exists, *item.rules)), is_key=bool(key_nodes))


def _presence_clause(reading: ClauseReader, entry: Entry) -> Clause:
    """The field itself; if it has no properties, it is a leaf of the document."""
    if isinstance(entry.node, Mapping) and entry.node.entries:
        return Clause(show_path(entry.node.path), "", entry.span)
    return replace(reading.clause(entry.node), span=entry.span)


def _read(
    around: FieldContext, item: Field, written: Node, key_nodes: tuple[Node, ...] = ()
) -> Field:
    """The field with all of its properties."""
    if not isinstance(written, Mapping):
        return item
    reading, node = around.reading, around.reading.resolved(written)
    reading.documented_keys(node, *_REMARKS, "domain", "name")
    reading.documented_keys(node, "pii", "classification", reason="determines what is masked")
    item = _typed(around, node, _described(reading, node, item))
    rules = (
        *_type_rules(reading, node, item),
        *_keys(around, node, item, key_nodes),
        *_values(reading, node, item),
        *(rule for _, rule in read_quality(reading, node, item.path, around.sql_dialect)),
    )
    return replace(item, rules=with_unique_names(rules))


def _described(reading: ClauseReader, node: Mapping, item: Field) -> Field:
    classification, tags = reading.text(node, "classification"), reading.texts(node, "tags")
    nodes = (*reading.items(node, "examples"), node.get("example"))
    examples = [example for example in nodes if isinstance(example, Scalar)]
    return replace(
        item,
        semantic=reading.text(node, "description"),
        title=reading.text(node, "title"),
        is_sensitive=reading.truth(node, "pii") is True or is_sensitive(classification, tags),
        classification=classification,
        tags=tags,
        examples=tuple(example.value for example in examples),
        example_spans=tuple(example.span for example in examples),
        inputs=tuple(_inputs(reading, reading.mapping(node, "lineage"))),
    )


def _inputs(reading: ClauseReader, lineage: Mapping | None) -> Iterator[FieldSource]:
    """The fields that this one derives from; one for each kind of derivation."""
    for source in reading.mappings(lineage, "inputFields"):
        origin = FieldSource(
            reading.text(source, "namespace") or "",
            reading.text(source, "name") or "",
            reading.text(source, "field") or "",
        )
        ways = list(reading.mappings(source, "transformations"))
        for transformation in ways:
            reading.one_of(transformation, "type", ("DIRECT", "INDIRECT"))
            reading.one_of(transformation, "subtype", _SUBTYPES)
            yield replace(
                origin,
                type=reading.text(transformation, "type"),
                subtype=reading.text(transformation, "subtype"),
                description=reading.text(transformation, "description"),
                masking=reading.truth(transformation, "masking") is True,
            )
        if not ways:
            yield origin


# Types -------------------------------------------------------------------------------------------


def _typed(around: FieldContext, node: Mapping, item: Field) -> Field:
    """The field with its type and its nested fields."""
    reading = around.reading
    physical = _physical_type(around, node)
    if physical is not None:
        written = reading.text(reading.mapping(node, "config"), "databricksType")
        return with_type(replace(item, written_type=written), physical)
    written = reading.text(node, "type")
    field_type = _TYPES.get(written.lower()) if written is not None else None
    if field_type is None and "fields" in node.entries:
        field_type = "struct"
    if field_type == "struct" and not _has_fields(node):
        field_type = "any"  # a struct, a map, or a JSON string
    item = replace(item, type=field_type, written_type=written)
    for kind, keys in _NESTED.items():
        for key in keys if kind != field_type else ():
            reading.unsupported(node.get(key), f"belongs to a field of type {kind}")
    match field_type:
        case "struct":
            return replace(item, fields=tuple(_nested_fields(around, node, item)))
        case "array":
            return replace(item, items=_part(around, node, item, "items", "[]"))
        case "map":
            return replace(
                item,
                keys=_part(around, node, item, "keys", "{key}"),
                values=_part(around, node, item, "values", "{value}"),
            )
    return item


def _physical_type(around: FieldContext, node: Mapping) -> str | None:
    """The Databricks type of a field; its nested fields, if any, are more precise."""
    config = around.reading.mapping(node, "config")
    written = around.reading.text(config, "databricksType")
    has_fields = any(key in node.entries for keys in _NESTED.values() for key in keys)
    if written is None or not around.is_spark or has_fields:
        return None
    spark_type = spark_type_of(written)
    if spark_type is None and config is not None:
        around.reading.unsupported(config.get("databricksType"), "not a Spark type")
    return spark_type


def _has_fields(node: Mapping) -> bool:
    fields = node.get("fields")
    return "$ref" in node.entries or (isinstance(fields, Mapping) and bool(fields.entries))


def _nested_fields(around: FieldContext, node: Mapping, item: Field) -> Iterator[Field]:
    fields = around.reading.mapping(node, "fields")
    for name, entry in fields.entries.items() if fields is not None else ():
        yield read_field(around, name, f"{item.path}.{column_path(name)}", entry)


def _part(around: FieldContext, node: Mapping, item: Field, key: str, mark: str) -> Field | None:
    """The items of an array, or the keys or values of a map."""
    entry = node.entries.get(key)
    if entry is None or not isinstance(entry.node, Mapping):
        return None
    return _read(around, Field(mark, item.path + mark, None, entry.span), entry.node)


def _type_rules(reading: ClauseReader, node: Mapping, item: Field) -> Iterator[Rule]:
    clause = node.get("type")
    config = reading.mapping(node, "config")
    if config is not None and item.written_type == reading.text(config, "databricksType"):
        yield reading.rule("type", demands.OfType(), config.get("databricksType"), clause)
        return
    match (item.written_type or "").lower():
        case "":
            return
        case "null":
            yield reading.rule(
                "type", demands.MetricRule("count", (item.path,), demands.NONE), clause
            )
        case "object" | "record" | "struct" if item.type == "any":
            reading.documented(
                clause, "an object with arbitrary fields: a struct, a map or JSON can contain it"
            )
        case "variant":
            reading.documented(clause, "a column of any type can contain it")
        case "json":
            reading.unsupported(
                clause, "may be a string, a struct or a variant, so no type can be checked"
            )
        case "time":
            yield reading.rule("type", demands.OfType(), clause)
            yield reading.rule("format", demands.OfFormat("time"), clause)
        case _ if item.type is None or clause is None:
            reading.unsupported(clause, "unknown type")
        case _:
            yield reading.rule("type", demands.OfType(), clause)


# Keys --------------------------------------------------------------------------------------------


def _keys(
    around: FieldContext, node: Mapping, item: Field, key_nodes: tuple[Node, ...]
) -> Iterator[Rule]:
    reading = around.reading
    demanded = [node.get("required")] if reading.truth(node, "required") else []
    if demanded or key_nodes:
        yield reading.rule("required", demands.Required(), *demanded, *key_nodes)
    for key in ("required", "unique", "primaryKey", "primary"):
        if reading.truth(node, key) is False:
            reading.documented(node.get(key), "demands nothing")
    if reading.truth(node, "unique"):
        yield reading.rule("unique", demands.Unique((item.path,)), node.get("unique"))
    yield from _references(around, node, item)


def _references(around: FieldContext, node: Mapping, item: Field) -> Iterator[Rule]:
    written, clause = around.reading.text(node, "references"), node.get("references")
    if written is None or clause is None:
        return
    first, _, rest = written.partition(".")
    # A model of this contract may have nested fields; elsewhere, a name may have several parts.
    dataset, _, other = (first, ".", rest) if first in around.models else written.rpartition(".")
    if not dataset or not other:
        around.reading.unsupported(clause, "does not name a model and a field: write `model.field`")
        return
    demand = demands.Refers((item.path,), dataset, (dotted_path(other),))
    yield around.reading.rule("references", demand, clause)


# Values ------------------------------------------------------------------------------------------


def _values(reading: ClauseReader, node: Mapping, item: Field) -> Iterator[Rule]:
    family = _family(item.type)
    yield from _enum(reading, node)
    yield from _text_rules(reading, node, family)
    yield from _number_rules(reading, node, family)


def _family(field_type: str | None) -> Family | None:
    """The family of a type; None if the field may contain any value."""
    if field_type in (None, "any"):
        return None
    return Family.NUMBER if field_type == "number" else family_of(str(field_type))


def _enum(reading: ClauseReader, node: Mapping) -> Iterator[Rule]:
    clause = node.get("enum")
    accepted = tuple(value for value in reading.values(node, "enum") if value is not None)
    if accepted:
        yield reading.rule("enum", demands.OneOf(accepted), clause)
    else:
        reading.unsupported(clause, "permits no value: list the values")


def _text_rules(reading: ClauseReader, node: Mapping, family: Family | None) -> Iterator[Rule]:
    clause, name = node.get("format"), (reading.text(node, "format") or "").lower()
    name = _FORMATS.get(name, name)
    if family is Family.TIME:
        reading.documented(clause, "repeats the type")
    elif family not in (None, Family.TEXT):
        _refuse_keys(reading, node, ("format",), "texts")
    elif name in TEXT_FORMATS:
        yield reading.rule("format", demands.OfFormat(name), clause)
    else:
        meant = slip_of(name, [*TEXT_FORMATS, *_FORMATS])
        code, hint = ("E422", f"did you mean '{meant}'?") if meant else (None, None)
        reading.unsupported(clause, f"unknown format '{name}' here: write a pattern", code, hint)
    if family not in (None, Family.TEXT):
        _refuse_keys(reading, node, ("pattern", *_LENGTHS), "texts")
        return
    if (expression := reading.text(node, "pattern")) is not None:
        yield reading.rule("pattern", demands.Pattern(expression), node.get("pattern"))
    for key, (rule_name, op) in _LENGTHS.items():
        count = reading.number(node, key)
        if count is not None and count == int(count):
            yield reading.rule(rule_name, demands.Length(op, int(count)), node.get(key))
        else:
            reading.unsupported(node.get(key), "not a whole number")


def _number_rules(reading: ClauseReader, node: Mapping, family: Family | None) -> Iterator[Rule]:
    if family not in (None, Family.NUMBER):
        _refuse_keys(reading, node, (*_BOUNDS, "precision", "scale"), "numbers")
        return
    for key, (rule_name, op) in _BOUNDS.items():
        bound = reading.number(node, key)
        if bound is not None:
            yield reading.rule(rule_name, demands.Bound(op, bound), node.get(key))
        else:
            reading.unsupported(node.get(key), "not a number that values can be compared with")
    precision, scale = reading.number(node, "precision"), reading.number(node, "scale")
    if precision is not None or scale is not None:
        digits = demands.Digits(int(precision or LONGEST_DECIMAL), int(scale or 0))
        yield reading.rule("digits", digits, node.get("precision"), node.get("scale"))


def _refuse_keys(reading: ClauseReader, node: Mapping, keys: Iterable[str], of_what: str) -> None:
    for key in keys:
        reading.unsupported(node.get(key), f"the specification defines it only for {of_what}")
