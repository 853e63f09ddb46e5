"""Fields of the Data Contract Specification: their types, keys and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingType
from dataclasses import replace
from typing import TypeAlias

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader, with_examples
from dqx_airflow.contracts.dialects.quality import read_quality
from dqx_airflow.contracts.dialects.rule_names import with_unique_names
from dqx_airflow.contracts.document import NOTHING, Entry, Mapping, Node, Scalar, show_path
from dqx_airflow.contracts.field_types import is_spark_type, spark_type_of, types_named, with_type
from dqx_airflow.contracts.mistyped_types import meant_type, with_hint
from dqx_airflow.contracts.model import Clause, Field, Rule, column_path, dotted_path
from dqx_airflow.diagnostics.diagnostic import slip_of
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, family_of
from dqx_airflow.values import FieldSource

_NESTED = {"array": ("items",), "map": ("keys", "values"), "struct": ("fields",)}
_FORMATS = {"date-time": "timestamp", "datetime": "timestamp", "guid": "uuid"}
_BOUNDS = (
    ("minimum", "minimum", ">="),
    ("exclusiveMinimum", "exclusive_minimum", ">"),
    ("maximum", "maximum", "<="),
    ("exclusiveMaximum", "exclusive_maximum", "<"),
)
_LENGTHS = (("minLength", "min_length", ">="), ("maxLength", "max_length", "<="))
_SUBTYPES = (
    "IDENTITY",
    "TRANSFORMATION",
    "AGGREGATION",
    "JOIN",
    "GROUP_BY",
    "FILTER",
    "SORT",
    "WINDOW",
    "CONDITIONAL",
)
"""The kinds of derivation of a field from another field, in the terms of OpenLineage."""


_KeyNodes: TypeAlias = "MappingType[str, tuple[Node, ...]]"
"""The nodes that declare the primary key of a model, by the paths of its fields."""


def read_field(reading: ClauseReader, name: str, path: str, entry: Entry, keys: _KeyNodes) -> Field:
    """A field of a model or of a struct."""
    item = _with_properties(reading, Field(name, path, None, entry.span), entry.node, keys)
    clause = Clause(show_path(entry.node.path), "", entry.span)
    if not (isinstance(entry.node, Mapping) and entry.node.entries):  # a leaf of the document
        clause = replace(reading.clause(entry.node), span=entry.span)
    exists = Rule("exists", demands.Presence(), (clause,))
    return replace(item, rules=with_unique_names((exists, *item.rules)), is_key=path in keys)


def _with_properties(reading: ClauseReader, item: Field, written: Node, keys: _KeyNodes) -> Field:
    """The field with all of its properties."""
    if not isinstance(written, Mapping):
        return item
    node = reading.resolved(written)
    reading.remarks(node, "DCS: field")
    item = _typed(reading, node, _described(reading, node, item), keys)
    family = None  # the field may contain any value
    if item.type not in (None, "any"):
        family = Family.NUMBER if item.type == "number" else family_of(str(item.type))
    rules = (
        *_type_rules(reading, node, item),
        *_keys(reading, node, item, keys.get(item.path, ())),
        *_enum(reading, node),
        *_text_rules(reading, node, family),
        *_number_rules(reading, node, family),
        *(rule for _, rule in read_quality(reading, node, item.path)),
    )
    return replace(item, rules=with_unique_names(rules))


def _described(reading: ClauseReader, node: Mapping, item: Field) -> Field:
    nodes = (*node.items("examples"), node.get("example"))
    examples = (example for example in nodes if isinstance(example, Scalar))
    inputs = tuple(_inputs(reading, reading.mapping(node, "lineage")))
    described = Field(
        name=item.name,
        path=item.path,
        type=None,
        span=item.span,
        semantic=node.text("description"),
        title=node.text("title"),
        is_sensitive=node.truth("pii") is True,
        classification=node.text("classification"),
        tags=reading.texts(node, "tags"),
        inputs=inputs,
    )
    return with_examples(described, examples)


def _inputs(reading: ClauseReader, lineage: Mapping) -> Iterator[FieldSource]:
    """The fields that a field derives from; one entry for each kind of derivation."""
    for source in reading.mappings(lineage, "inputFields"):
        for transformation in [*reading.mappings(source, "transformations")] or [NOTHING]:
            reading.one_of(transformation, "type", ("DIRECT", "INDIRECT"))
            reading.one_of(transformation, "subtype", _SUBTYPES)
            yield FieldSource(
                namespace=source.text("namespace") or "",
                name=source.text("name") or "",
                field=source.text("field") or "",
                type=transformation.text("type"),
                subtype=transformation.text("subtype"),
                description=transformation.text("description"),
                masking=transformation.truth("masking") is True,
            )


def _typed(reading: ClauseReader, node: Mapping, item: Field, keys: _KeyNodes) -> Field:
    """The field with its type and its nested fields."""
    physical = _physical_type(reading, node)
    if physical is not None:
        written = reading.mapping(node, "config").text("databricksType")
        return with_type(replace(item, written_type=written), physical)
    field_type = _type_of(node)
    item = replace(item, type=field_type, written_type=node.text("type"))
    for kind, parts in _NESTED.items():
        if kind == field_type:
            continue
        for key in parts:
            reading.unsupported(node.get(key), f"belongs to a field of type {kind}")
    match field_type:
        case "struct":
            inner = reading.mapping(node, "fields").entries.items()
            fields = (
                read_field(reading, name, f"{item.path}.{column_path(name)}", entry, keys)
                for name, entry in inner
            )
            return replace(item, fields=tuple(fields))
        case "array":
            return replace(item, items=_part(reading, node, item, "items", "[]", keys))
        case "map":
            return replace(
                item,
                keys=_part(reading, node, item, "keys", "{key}", keys),
                values=_part(reading, node, item, "values", "{value}", keys),
            )
    return item


def _type_of(node: Mapping) -> str | None:
    """The type of a field by its `type`; without one, a struct if it has `fields`."""
    written = node.text("type")
    field_type = types_named("DCS").get(written.lower()) if written is not None else None
    if field_type is None and "fields" in node.entries:
        field_type = "struct"
    fields = node.get("fields")
    has_fields = isinstance(fields, Mapping) and bool(fields.entries)
    if field_type == "struct" and not has_fields and "$ref" not in node.entries:
        return "any"  # a struct, a map, or a JSON string
    return field_type


def _physical_type(reading: ClauseReader, node: Mapping) -> str | None:
    """The Databricks type of a field; its nested fields, if any, are more precise."""
    config = reading.mapping(node, "config")
    written = config.text("databricksType")
    if written is None or not reading.is_spark:
        return None
    if any(key in node.entries for keys in _NESTED.values() for key in keys):
        return None
    spark_type = spark_type_of(written)
    if spark_type is None:
        reason = with_hint("not a Spark type", meant_type(written, is_spark_type))
        reading.unsupported(config.get("databricksType"), reason)
    return spark_type


def _part(
    reading: ClauseReader, node: Mapping, item: Field, key: str, mark: str, keys: _KeyNodes
) -> Field | None:
    """The items of an array, or the keys or values of a map."""
    entry = node.entries.get(key)
    if entry is None or not isinstance(entry.node, Mapping):
        return None
    part = Field(mark, item.path + mark, None, entry.span)
    return _with_properties(reading, part, entry.node, keys)


def _type_rules(reading: ClauseReader, node: Mapping, item: Field) -> Iterator[Rule]:
    clause = node.get("type")
    config = reading.mapping(node, "config")
    if config is not NOTHING and item.written_type == config.text("databricksType"):
        yield reading.rule("type", demands.OfType(), config.get("databricksType"), clause)
        return
    match (item.written_type or "").lower():
        case "":
            return
        case "null":
            nothing = demands.MetricRule("count", (item.path,), demands.NONE)
            yield reading.rule("type", nothing, clause)
        case "object" | "record" | "struct" if item.type == "any":
            reason = "an object with arbitrary fields: a struct, a map or JSON can contain it"
            reading.documented(clause, reason)
        case "variant":
            reading.documented(clause, "a column of any type can contain it")
        case "json":
            reason = "may be a string, a struct or a variant, so no type can be checked"
            reading.unsupported(clause, reason)
        case "time":
            yield reading.rule("type", demands.OfType(), clause)
            yield reading.rule("format", demands.OfFormat("time"), clause)
        case _ if item.type is None or clause is None:
            reading.unsupported(clause, "unknown type")
        case _:
            yield reading.rule("type", demands.OfType(), clause)


def _keys(
    reading: ClauseReader, node: Mapping, item: Field, key_nodes: tuple[Node, ...]
) -> Iterator[Rule]:
    demanded = [node.get("required")] if node.truth("required") else []
    if demanded or key_nodes:
        yield reading.rule("required", demands.Required(), *demanded, *key_nodes)
    for key in ("required", "unique", "primaryKey", "primary"):
        if node.truth(key) is False:
            reading.documented(node.get(key), "demands nothing")
    if node.truth("unique"):
        yield reading.rule("unique", demands.Unique((item.path,)), node.get("unique"))
    yield from _references(reading, node, item)


def _references(reading: ClauseReader, node: Mapping, item: Field) -> Iterator[Rule]:
    written = node.text("references")
    clause = node.get("references")
    if written is None or clause is None:
        return
    first, _, rest = written.partition(".")
    # A model of this contract may have nested fields; elsewhere, a name may have several parts.
    own = reading.mapping(reading.root, "models").entries
    dataset, _, other = (first, ".", rest) if first in own else written.rpartition(".")
    if not dataset or not other:
        reading.unsupported(clause, "does not name a model and a field: write `model.field`")
        return
    demand = demands.Refers((item.path,), dataset, (dotted_path(other),))
    yield reading.rule("references", demand, clause)


def _enum(reading: ClauseReader, node: Mapping) -> Iterator[Rule]:
    clause = node.get("enum")
    accepted = tuple(value for value in node.values("enum") if value is not None)
    if accepted:
        yield reading.rule("enum", demands.OneOf(accepted), clause)
    else:
        reading.unsupported(clause, "permits no value: list the values")


def _text_rules(reading: ClauseReader, node: Mapping, family: Family | None) -> Iterator[Rule]:
    clause = node.get("format")
    name = (node.text("format") or "").lower()
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
        _refuse_keys(reading, node, ("pattern", *(key for key, *_ in _LENGTHS)), "texts")
        return
    if (expression := node.text("pattern")) is not None:
        yield reading.rule("pattern", demands.Pattern(expression), node.get("pattern"))
    for key, rule_name, op in _LENGTHS:
        count = node.number(key)
        if count is not None and count == int(count):
            yield reading.rule(rule_name, demands.Length(op, int(count)), node.get(key))
        else:
            reading.unsupported(node.get(key), "not a whole number")


def _number_rules(reading: ClauseReader, node: Mapping, family: Family | None) -> Iterator[Rule]:
    if family not in (None, Family.NUMBER):
        keys = (*(key for key, *_ in _BOUNDS), "precision", "scale")
        _refuse_keys(reading, node, keys, "numbers")
        return
    for key, rule_name, op in _BOUNDS:
        bound = node.number(key)
        if bound is not None:
            yield reading.rule(rule_name, demands.Bound(op, bound), node.get(key))
    precision = node.number("precision")
    scale = node.number("scale")
    if precision is not None or scale is not None:
        digits = demands.Digits(int(precision or LONGEST_DECIMAL), int(scale or 0))
        yield reading.rule("digits", digits, node.get("precision"), node.get("scale"))


def _refuse_keys(reading: ClauseReader, node: Mapping, keys: Iterable[str], of_what: str) -> None:
    for key in keys:
        reading.unsupported(node.get(key), f"the specification defines it only for {of_what}")
