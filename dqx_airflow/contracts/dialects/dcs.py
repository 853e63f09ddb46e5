"""The dialect of the Data Contract Specification, 0.9.3 to 1.2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeAlias

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.demands import Arrives, Fresh, OnlyColumns, Prompt, Retained, Unique
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader, status_of, with_examples
from dqx_airflow.contracts.dialects.durations import DAY_S, duration_s
from dqx_airflow.contracts.dialects.frequencies import Frequency, frequency_of
from dqx_airflow.contracts.dialects.quality import read_older_quality, read_quality
from dqx_airflow.contracts.dialects.rule_names import RuleOfModel, with_rules, with_unique_names
from dqx_airflow.contracts.dialects.servers import read_servers
from dqx_airflow.contracts.document import NOTHING, Entry, Mapping, Node, Scalar, show_path
from dqx_airflow.contracts.example_rows import example_rows
from dqx_airflow.contracts.field_types import spark_type_of, types_named, with_type
from dqx_airflow.contracts.model import (
    Clause,
    Contract,
    Dialect,
    Field,
    Lifecycle,
    Model,
    Promise,
    Rule,
    Server,
    column_path,
    dotted_path,
)
from dqx_airflow.diagnostics.diagnostic import slip_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, family_of
from dqx_airflow.values import FieldSource

VERSIONS = ("0.9.0", "0.9.1", "0.9.2", "0.9.3", "1.1.0", "1.2.0", "1.2.1")

_LEEWAY = 0.1
"""The allowed difference, as a share, between an interval in words and the interval of a cron
expression: months vary."""
_OF_OPERATIONS = {
    "availability": "concerns the system, not the data",
    "support": "concerns people, not the data",
    "backup": "concerns copies of the data",
}
"""Service levels that data cannot violate, and why."""
_SPARK = ("databricks", "dataframe", "spark")
_NO_FIELD = "field not found"
_NO_INTERVAL = "not an interval"

Place: TypeAlias = "tuple[Model, str]"
"""A column of a model."""
Keys: TypeAlias = "tuple[str, ...]"
PlacedColumn: TypeAlias = "tuple[Model, str | None]"
"""A column of a model; None if the model has to determine it."""


@dataclass(frozen=True, slots=True)
class _Levels:
    """The context for reading a service level."""

    reading: ClauseReader
    models: tuple[Model, ...]

    def place(self, level: Mapping, key: str) -> Place:
        """The column of `model.field`.

        :raises NoCounterpartError: there is none.
        """
        written = level.text(key)
        if written is None:
            raise NoCounterpartError(f"needs a {key} to be checked")
        name, _, path = written.partition(".")
        for model in self.models:
            if model.name == name and model.field_at(path) is not None:
                return model, path
        # The name of a model may be left out if only one has such a field.
        having = [model for model in self.models if model.field_at(written) is not None]
        if len(having) != 1:
            raise NoCounterpartError(f"{_NO_FIELD} {written}")
        return having[0], written

    def timed(self, level: Mapping) -> PlacedColumn:
        """The column of the timestampField. Without one, the column of the only model (None: the
        model determines it), or the only timestamp of all models.

        :raises NoCounterpartError: the column does not exist.
        """
        if level.text("timestampField") is not None:
            return self.place(level, "timestampField")
        if len(self.models) == 1:
            return self.models[0], None
        columns = [
            (model, item.path)
            for model in self.models
            for item in model.fields
            if (item.type or "").startswith("timestamp")
        ]
        if len(columns) != 1:
            raise NoCounterpartError("the model is ambiguous: add a timestampField")
        return columns[0]

    def refuse(self, level: Mapping, keys: Iterable[str], reason: str) -> None:
        codes = {_NO_FIELD: "E420", _NO_INTERVAL: "E422"}
        code = next((codes[start] for start in codes if reason.startswith(start)), None)
        path = show_path(level.path)
        dimension = "conformity" if path.endswith("retention") else "timeliness"
        promise = Promise(path, path, dimension=dimension)
        for key in keys:
            self.reading.unsupported(level.get(key), reason, code, promise=promise)


def text_duration_s(reading: ClauseReader, node: Node | None) -> float | None:
    """The seconds of a duration. The schema reports a value that is not a string."""
    is_text = isinstance(node, Scalar) and isinstance(node.value, str)
    return duration_s(node, reading.report) if node is not None and is_text else None


def _service_levels(levels: _Levels, node: Mapping) -> Iterator[RuleOfModel]:
    """The rules of the service levels."""
    reading = levels.reading
    for name, entry in node.entries.items():
        level = reading.mapping(node, name)
        if level is NOTHING:
            reading.documented(entry.node, "in words alone")
            continue
        if name in _OF_OPERATIONS:
            reading.documented(level, _OF_OPERATIONS[name])
        reading.documented_keys(level, "description", reason="in words alone")
        if name == "frequency":
            yield from _frequency(levels, level)
        elif name in _READERS:
            keys, read = _READERS[name]
            try:
                yield from read(levels, level, keys)
            except NoCounterpartError as error:
                levels.refuse(level, keys, str(error))


def _retention(levels: _Levels, level: Mapping, keys: Keys) -> Iterator[RuleOfModel]:
    if level.truth("unlimited"):
        levels.reading.documented_keys(
            level, "unlimited", *keys, reason="unlimited: the data is never deleted"
        )
        return
    levels.reading.documented_keys(level, "unlimited", reason="demands nothing")
    yield from _age(levels, level, keys, "retention", Retained)


def _age(
    levels: _Levels,
    level: Mapping,
    keys: Keys,
    name: str = "freshness",
    demand_of: Callable[[str | None, float], Fresh | Retained] = Fresh,
) -> Iterator[RuleOfModel]:
    """A limit on the age of a column: the keys of the duration and of the column."""
    seconds = text_duration_s(levels.reading, level.get(keys[0]))
    model, column = levels.timed(level)
    demand = demand_of(column, _stated(seconds, level, keys[0]))
    yield model.name, None, levels.reading.rule(name, demand, *map(level.get, keys))


def _latency(levels: _Levels, level: Mapping, keys: Keys) -> Iterator[RuleOfModel]:
    seconds = text_duration_s(levels.reading, level.get(keys[0]))
    (model, source), (other, processed) = (levels.place(level, key) for key in keys[1:])
    demand = Prompt(source, processed, _stated(seconds, level, keys[0]))
    if model is not other:
        raise NoCounterpartError("the two fields belong to different models")
    yield model.name, None, levels.reading.rule("latency", demand, *map(level.get, keys))


def _stated(seconds: float | None, level: Mapping, key: str) -> float:
    """The duration at a key.

    :raises NoCounterpartError: there is none.
    """
    if seconds is None:
        is_missing = level.get(key) is None
        wrong = f"needs a {key} to be checked" if is_missing else f"the {key} is not a duration"
        raise NoCounterpartError(wrong)
    return seconds


def _frequency(levels: _Levels, level: Mapping) -> Iterator[RuleOfModel]:
    """New rows in every model at the interval of `interval` and `cron`, which must agree."""
    reading = levels.reading
    reading.documented_keys(level, "type", reason="how the data is processed")
    stated = {key: _frequency_at(level, key) for key in ("interval", "cron")}
    if stated["interval"] is None:
        wanted = "write daily, hourly, `15 minutes` or a cron expression"
        levels.refuse(level, ["interval"], f"{_NO_INTERVAL}: {wanted}")
    if stated["cron"] is None:
        wanted = "a cron expression with five fields that sets an interval"
        levels.refuse(level, ["cron"], f"not {wanted}")
    understood = {key: found for key, found in stated.items() if found is not None}
    intervals = [found.interval_s for found in understood.values()]
    if intervals and max(intervals) - min(intervals) > _LEEWAY * intervals[0]:
        reason = "the interval and the cron expression contradict each other"
        levels.refuse(level, ["interval", "cron"], reason)
        return
    for found in list(understood.values())[-1:]:  # the cron expression is more precise
        for model in levels.models:
            demand = Arrives(None, found.interval_s, found.schedule)
            nodes = (level.get(key) for key in understood)
            yield model.name, None, reading.rule("frequency", demand, *nodes)


def _frequency_at(level: Mapping, key: str) -> Frequency | None:
    return frequency_of(level.text(key) or "")


_READERS: dict[str, tuple[Keys, Callable[[_Levels, Mapping, Keys], Iterator[RuleOfModel]]]] = {
    "freshness": (("threshold", "timestampField"), _age),
    "retention": (("period", "timestampField"), _retention),
    "latency": (("threshold", "sourceTimestampField", "processedTimestampField"), _latency),
}


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


def read_field(
    reading: ClauseReader, name: str, path: str, entry: Entry, key_nodes: tuple[Node, ...] = ()
) -> Field:
    """A field of a model or of a struct. `key_nodes` declare that it belongs to the primary key."""
    item = _with_properties(reading, Field(name, path, None, entry.span), entry.node, key_nodes)
    clause = Clause(show_path(entry.node.path), "", entry.span)
    if not (isinstance(entry.node, Mapping) and entry.node.entries):  # a leaf of the document
        clause = replace(reading.clause(entry.node), span=entry.span)
    exists = Rule("exists", demands.Presence(), (clause,))
    return replace(item, rules=with_unique_names((exists, *item.rules)), is_key=bool(key_nodes))


def _with_properties(
    reading: ClauseReader, item: Field, written: Node, key_nodes: tuple[Node, ...] = ()
) -> Field:
    """The field with all of its properties."""
    if not isinstance(written, Mapping):
        return item
    node = reading.resolved(written)
    reading.remarks(node, "DCS: field")
    item = _typed(reading, node, _described(reading, node, item))
    family = None  # the field may contain any value
    if item.type not in (None, "any"):
        family = Family.NUMBER if item.type == "number" else family_of(str(item.type))
    rules = (
        *_type_rules(reading, node, item),
        *_keys(reading, node, item, key_nodes),
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


# Types -------------------------------------------------------------------------------------------


def _typed(reading: ClauseReader, node: Mapping, item: Field) -> Field:
    """The field with its type and its nested fields."""
    physical = _physical_type(reading, node)
    if physical is not None:
        written = reading.mapping(node, "config").text("databricksType")
        return with_type(replace(item, written_type=written), physical)
    written = node.text("type")
    field_type = types_named("DCS").get(written.lower()) if written is not None else None
    if field_type is None and "fields" in node.entries:
        field_type = "struct"
    fields_node = node.get("fields")
    has_fields = isinstance(fields_node, Mapping) and bool(fields_node.entries)
    if field_type == "struct" and not has_fields and "$ref" not in node.entries:
        field_type = "any"  # a struct, a map, or a JSON string
    item = replace(item, type=field_type, written_type=written)
    for kind, keys in _NESTED.items():
        for key in keys if kind != field_type else ():
            reading.unsupported(node.get(key), f"belongs to a field of type {kind}")
    match field_type:
        case "struct":
            inner = reading.mapping(node, "fields").entries.items()
            fields = (
                read_field(reading, name, f"{item.path}.{column_path(name)}", entry)
                for name, entry in inner
            )
            return replace(item, fields=tuple(fields))
        case "array":
            return replace(item, items=_part(reading, node, item, "items", "[]"))
        case "map":
            return replace(
                item,
                keys=_part(reading, node, item, "keys", "{key}"),
                values=_part(reading, node, item, "values", "{value}"),
            )
    return item


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
        reading.unsupported(config.get("databricksType"), "not a Spark type")
    return spark_type


def _part(reading: ClauseReader, node: Mapping, item: Field, key: str, mark: str) -> Field | None:
    """The items of an array, or the keys or values of a map."""
    entry = node.entries.get(key)
    if entry is None or not isinstance(entry.node, Mapping):
        return None
    return _with_properties(reading, Field(mark, item.path + mark, None, entry.span), entry.node)


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


# Keys --------------------------------------------------------------------------------------------


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
    written, clause = node.text("references"), node.get("references")
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


# Values ------------------------------------------------------------------------------------------


def _enum(reading: ClauseReader, node: Mapping) -> Iterator[Rule]:
    clause = node.get("enum")
    accepted = tuple(value for value in node.values("enum") if value is not None)
    if accepted:
        yield reading.rule("enum", demands.OneOf(accepted), clause)
    else:
        reading.unsupported(clause, "permits no value: list the values")


def _text_rules(reading: ClauseReader, node: Mapping, family: Family | None) -> Iterator[Rule]:
    clause, name = node.get("format"), (node.text("format") or "").lower()
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
    precision, scale = node.number("precision"), node.number("scale")
    if precision is not None or scale is not None:
        digits = demands.Digits(int(precision or LONGEST_DECIMAL), int(scale or 0))
        yield reading.rule("digits", digits, node.get("precision"), node.get("scale"))


def _refuse_keys(reading: ClauseReader, node: Mapping, keys: Iterable[str], of_what: str) -> None:
    for key in keys:
        reading.unsupported(node.get(key), f"the specification defines it only for {of_what}")


_VERSION_KEY = "dataContractSpecification"
_STATUSES = ("proposed", "in development", "draft", "active", "deprecated", "retired")


def _read(reading: ClauseReader) -> Contract:
    root = reading.root
    reading.remarks(root, "DCS: document")
    reason = "deprecated, and not in the language of the specification: write models"
    reading.unsupported(root.get("schema"), reason)
    info = reading.mapping(root, "info")
    reading.one_of(info, "status", _STATUSES)
    contact = reading.mapping(info, "contact")
    reading.check_address(contact, "url", "uri")
    reading.check_address(contact, "email", "email")
    servers = tuple(read_servers(reading, reading.mapping(root, "servers")))
    models = tuple(_models(reading, servers))
    return Contract(
        dialect=Dialect.DCS,
        dialect_version=root.text(_VERSION_KEY),
        id=root.text("id") or "",
        version=info.text("version"),
        span=root.span_of(_VERSION_KEY),
        name=info.text("title"),
        description=info.text("description"),
        owner=info.text("owner"),
        contacts=reading.texts(contact, "name", "email", "url"),
        models=_with_promises(reading, models),
        servers=servers,
        lifecycle=_lifecycle(reading, info),
        tags=reading.texts(root, "tags"),
    )


def _lifecycle(reading: ClauseReader, info: Mapping) -> Lifecycle:
    written = info.text("status")
    terms = reading.mapping(reading.root, "terms")
    seconds = text_duration_s(reading, terms.get("noticePeriod"))
    return Lifecycle(
        status=status_of(written, _STATUSES),
        written_status=written,
        notice_days=ceil(seconds / DAY_S) if seconds is not None else None,
    )


# Models ------------------------------------------------------------------------------------------


def _models(reading: ClauseReader, servers: tuple[Server, ...]) -> Iterator[Model]:
    entries = reading.mapping(reading.root, "models").entries
    if servers:
        reading.sql_dialect = servers[0].sql_dialect
        reading.is_spark = any(server.type in _SPARK for server in servers)
    for name, entry in entries.items():
        if isinstance(entry.node, Mapping):
            with reading.of_model(name):
                model = _model(reading, name, entry, reading.resolved(entry.node))
            yield model


def _model(reading: ClauseReader, name: str, entry: Entry, node: Mapping) -> Model:
    reading.remarks(node, "DCS: model")
    keys = _key_nodes(reading, node)
    fields = reading.mapping(node, "fields")
    columns = tuple(
        read_field(reading, column, column_path(column), column_node, keys.get(column, ()))
        for column, column_node in fields.entries.items()
    )
    if not columns:
        reading.documented(node.get("fields"), "does not name a field")
    paths = tuple(column.path for column in columns)
    placed = tuple(read_quality(reading, node, None, paths))
    rules = []
    if keys:
        nodes = [node for of_column in keys.values() for node in of_column]
        demand = Unique(tuple(map(column_path, keys)))
        rules.append(reading.rule("primary_key", demand, *nodes))
    closing, is_closed = node.get("additionalFields"), node.truth("additionalFields") is False
    if is_closed:
        rules.append(reading.rule("only_columns", OnlyColumns(), closing))
    else:
        reading.documented(closing, "demands nothing")
    examples = node.get("examples")
    is_text = isinstance(examples, Scalar) and isinstance(examples.value, str)
    # The examples of a model in the document, as in 0.9.
    older = (
        item.get("data")
        for item in reading.mappings(reading.root, "examples")
        if item.text("model") == name
    )
    written = (examples if is_text else None, *node.items("examples"), *older)
    model = Model(
        name=name,
        span=entry.span,
        fields=columns,
        rules=tuple(rules),
        description=node.text("description"),
        title=node.text("title"),
        is_closed=is_closed,
        tags=reading.texts(node, "tags"),
        examples=tuple(example_rows(item) for item in written if item is not None),
    )
    return with_rules(model, placed)


def _key_nodes(reading: ClauseReader, model: Mapping) -> dict[str, tuple[Node, ...]]:
    """The columns of the primary key, with the leaves that declare it: of the model, or of the
    fields.

    Several key fields form a compound key, as in SQL.
    """
    nodes: dict[str, tuple[Node, ...]] = {}
    for item in model.scalars("primaryKey"):
        nodes[item.text] = (item,)
    fields = reading.mapping(model, "fields")
    for name, entry in fields.entries.items():
        node = reading.resolved(entry.node) if isinstance(entry.node, Mapping) else NOTHING
        for key in ("primaryKey", "primary"):
            if node.truth(key) and (key_node := node.get(key)):
                nodes[name] = (*nodes.get(name, ()), key_node)
    return nodes


def _with_promises(reading: ClauseReader, models: tuple[Model, ...]) -> tuple[Model, ...]:
    """The models, with the rules about them outside of `models`."""
    levels = reading.mapping(reading.root, "servicelevels")
    stated = _service_levels(_Levels(reading, models), levels)
    promises = (*read_older_quality(reading, models), *stated)
    return tuple(
        with_rules(model, ((path, rule) for name, path, rule in promises if name == model.name))
        for model in models
    )


READER = DialectReader(
    Dialect.DCS,
    _read,
    sign="`dataContractSpecification: 1.2.1`",
    version_key=_VERSION_KEY,
    versions=VERSIONS,
    is_open=True,
)
