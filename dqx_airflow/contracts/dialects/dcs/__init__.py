"""The dialect of the Data Contract Specification, 0.9.3 to 1.2.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from dqx_airflow.contracts.column_paths import column_path
from dqx_airflow.contracts.demands import OnlyColumns, Unique
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.dcs.fields import FieldContext, read_field
from dqx_airflow.contracts.dialects.dcs.quality import read_older_quality, read_quality
from dqx_airflow.contracts.dialects.dcs.service_levels import (
    VERSIONS,
    read_servers,
    read_service_levels,
    text_duration_s,
)
from dqx_airflow.contracts.dialects.extensions import (
    check_address,
    rules_of_no_field,
    with_rules,
    with_unique_names,
)
from dqx_airflow.contracts.dialects.periods import DAY_S
from dqx_airflow.contracts.model import (
    Contract,
    Dialect,
    ExampleRows,
    Lifecycle,
    Model,
    Rule,
    Server,
)
from dqx_airflow.contracts.source.yaml_document import Entry, Mapping, Node, Scalar, example_rows

_VERSION_KEY = "dataContractSpecification"
_DESCRIBED = ("info", "terms", "links", "tags", "id", _VERSION_KEY)
_STATUS = {
    "proposed": "draft",
    "in development": "draft",
    "draft": "draft",
    "active": "active",
    "deprecated": "deprecated",
    "retired": "sunset",
}
_MODEL_REMARKS = (
    "type",
    "title",
    "description",
    "examples",
    "config",
    "tags",
    "links",
    "namespace",
)


def _read(reading: ClauseReader) -> Contract:
    root = reading.root
    reading.documented_keys(root, *_DESCRIBED)
    reading.documented(
        root.get("definitions"), "a definition: applies wherever a field refers to it"
    )
    reading.documented(root.get("examples"), "example data")
    reading.unsupported(
        root.get("schema"), "deprecated, and not in the language of the specification: write models"
    )
    info = reading.mapping(root, "info")
    reading.one_of(info, "status", _STATUS)
    contact = reading.mapping(info, "contact")
    check_address(reading, contact, "url", "uri")
    check_address(reading, contact, "email", "email")
    servers = tuple(read_servers(reading, reading.mapping(root, "servers")))
    models = tuple(_models(reading, servers))
    return Contract(
        Dialect.DCS,
        dialect_version=reading.text(root, _VERSION_KEY),
        id=reading.text(root, "id") or "",
        version=reading.text(info, "version"),
        span=root.span_of(_VERSION_KEY),
        name=reading.text(info, "title"),
        description=reading.text(info, "description"),
        owner=reading.text(info, "owner"),
        contacts=tuple(_contacts(reading, contact)),
        models=_with_promises(reading, models),
        servers=servers,
        lifecycle=_lifecycle(reading, info),
        tags=reading.texts(root, "tags"),
    )


def _contacts(reading: ClauseReader, contact: Mapping | None) -> Iterator[str]:
    texts = (reading.text(contact, key) for key in ("name", "email", "url"))
    return (text for text in texts if text is not None)


def _lifecycle(reading: ClauseReader, info: Mapping | None) -> Lifecycle:
    written = reading.text(info, "status")
    terms = reading.mapping(reading.root, "terms")
    seconds = text_duration_s(reading, reading.node(terms, "noticePeriod"))
    return Lifecycle(
        status=_STATUS.get(written.lower()) if written is not None else None,
        written_status=written,
        notice_days=ceil(seconds / DAY_S) if seconds is not None else None,
    )


# Models ------------------------------------------------------------------------------------------


def _models(reading: ClauseReader, servers: tuple[Server, ...]) -> Iterator[Model]:
    models = reading.mapping(reading.root, "models")
    entries = models.entries if models is not None else {}
    kinds = {server.type for server in servers}
    around = FieldContext(
        reading,
        tuple(entries),
        servers[0].sql_dialect if servers else None,
        is_spark=not kinds or bool(kinds & {"databricks", "dataframe", "spark"}),
    )
    for name, entry in entries.items():
        if isinstance(entry.node, Mapping):
            with reading.of_model(name):
                model = _model(around, name, entry, reading.resolved(entry.node))
            yield model


def _model(around: FieldContext, name: str, entry: Entry, node: Mapping) -> Model:
    reading = around.reading
    reading.documented_keys(node, *_MODEL_REMARKS)
    keys = _key_nodes(reading, node)
    fields = reading.mapping(node, "fields")
    columns = tuple(
        read_field(around, column, column_path(column), column_node, keys.get(column, ()))
        for column, column_node in (fields.entries.items() if fields is not None else ())
    )
    if not columns:
        reading.documented(node.get("fields"), "does not name a field")
    paths = tuple(column.path for column in columns)
    placed = tuple(read_quality(reading, node, None, around.sql_dialect, paths))
    rules = (*_primary_key(reading, keys), *_closed(reading, node))
    return Model(
        name,
        entry.span,
        with_rules(columns, placed),
        with_unique_names((*rules, *rules_of_no_field(columns, placed))),
        description=reading.text(node, "description"),
        title=reading.text(node, "title"),
        is_closed=reading.truth(node, "additionalFields") is False,
        tags=reading.texts(node, "tags"),
        examples=(*_examples(reading, node), *_older_examples(reading, name)),
    )


def _examples(reading: ClauseReader, model: Mapping) -> Iterator[ExampleRows]:
    examples = model.get("examples")
    if isinstance(examples, Scalar) and isinstance(examples.value, str):
        yield example_rows(examples)
    for item in reading.items(model, "examples"):
        yield example_rows(item)


def _older_examples(reading: ClauseReader, model: str) -> Iterator[ExampleRows]:
    """The examples of a model in the document, as in 0.9."""
    for item in reading.mappings(reading.root, "examples"):
        data = item.get("data")
        if reading.text(item, "model") == model and data is not None:
            yield example_rows(data)


def _key_nodes(reading: ClauseReader, model: Mapping) -> dict[str, tuple[Node, ...]]:
    """The columns of the primary key, with the leaves that declare it: of the model, or of the
    fields.

    Several key fields form a compound key, as in SQL.
    """
    nodes: dict[str, tuple[Node, ...]] = {}
    for item in reading.scalars(model, "primaryKey"):
        nodes[item.text] = (item,)
    fields = reading.mapping(model, "fields")
    for name, entry in fields.entries.items() if fields is not None else ():
        node = reading.resolved(entry.node) if isinstance(entry.node, Mapping) else None
        for key in ("primaryKey", "primary"):
            if node is not None and reading.truth(node, key) and (key_node := node.get(key)):
                nodes[name] = (*nodes.get(name, ()), key_node)
    return nodes


def _primary_key(reading: ClauseReader, keys: dict[str, tuple[Node, ...]]) -> Iterator[Rule]:
    if keys:
        nodes = [node for of_column in keys.values() for node in of_column]
        yield reading.rule("primary_key", Unique(tuple(map(column_path, keys))), *nodes)


def _closed(reading: ClauseReader, node: Mapping) -> Iterator[Rule]:
    clause = node.get("additionalFields")
    if reading.truth(node, "additionalFields") is False:
        yield reading.rule("only_columns", OnlyColumns(), clause)
    else:
        reading.documented(clause, "demands nothing")


def _with_promises(reading: ClauseReader, models: tuple[Model, ...]) -> tuple[Model, ...]:
    """The models, with the rules about them outside of `models`."""
    levels = reading.mapping(reading.root, "servicelevels")
    promises = (*read_older_quality(reading, models), *read_service_levels(reading, levels, models))
    kept = []
    for model in models:
        placed = tuple((column, rule) for name, column, rule in promises if name == model.name)
        rules = with_unique_names((*model.rules, *rules_of_no_field(model.fields, placed)))
        kept.append(replace(model, fields=with_rules(model.fields, placed), rules=rules))
    return tuple(kept)


READER = DialectReader(
    Dialect.DCS,
    _read,
    sign="`dataContractSpecification: 1.2.1`",
    version_key=_VERSION_KEY,
    versions=VERSIONS,
    is_open=True,
)
