"""The dialect of the Data Contract Specification, 0.9.3 to 1.2.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from dqx_airflow.contracts.demands import OnlyColumns
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.dcs.dcs_fields import read_field
from dqx_airflow.contracts.dialects.dcs.dcs_quality_section import read_quality_section
from dqx_airflow.contracts.dialects.dcs.dcs_service_levels import (
    ServiceLevels,
    read_service_levels,
    text_duration_s,
)
from dqx_airflow.contracts.dialects.durations import DAY_S
from dqx_airflow.contracts.dialects.primary_key import KeyMark, key_rules, primary_key
from dqx_airflow.contracts.dialects.quality import read_quality
from dqx_airflow.contracts.dialects.rule_names import with_rules
from dqx_airflow.contracts.dialects.servers import read_servers
from dqx_airflow.contracts.document import NOTHING, Entry, Mapping, Scalar
from dqx_airflow.contracts.example_rows import example_rows
from dqx_airflow.contracts.model import Contract, Dialect, Lifecycle, Model, Server, column_path

VERSIONS = ("0.9.0", "0.9.1", "0.9.2", "0.9.3", "1.1.0", "1.2.0", "1.2.1")
_SPARK = ("databricks", "dataframe", "spark")
_VERSION_KEY = "dataContractSpecification"
_STATUSES = ("proposed", "in development", "draft", "active", "deprecated", "retired")


def _read(reading: ClauseReader) -> Contract:
    root = reading.root
    reading.remarks(root, "DCS: document")
    reason = "deprecated, and not in the language of the specification: write models"
    reading.unsupported(root.get("schema"), reason)
    info = reading.mapping(root, "info")
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
    terms = reading.mapping(reading.root, "terms")
    seconds = text_duration_s(reading, terms.get("noticePeriod"))
    return Lifecycle(
        status=reading.status(info, "status", _STATUSES),
        written_status=info.text("status"),
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
    key = primary_key(reading, _key_marks(reading, node))
    keys = {mark.path: mark.nodes for mark in key}
    fields = reading.mapping(node, "fields")
    columns = tuple(
        read_field(reading, column, column_path(column), column_node, keys)
        for column, column_node in fields.entries.items()
    )
    if not columns:
        reading.documented(node.get("fields"), "does not name a field")
    paths = tuple(column.path for column in columns)
    placed = tuple(read_quality(reading, node, None, paths))
    rules = [*key_rules(reading, key, columns)]
    closing = node.get("additionalFields")
    is_closed = node.truth("additionalFields") is False
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


def _key_marks(reading: ClauseReader, model: Mapping) -> tuple[KeyMark, ...]:
    """The marks of the primary key: of the model, and of its fields.

    Several key fields form a compound key, as in SQL.
    """
    marks: dict[str, KeyMark] = {}
    listed = (KeyMark(column_path(item.text), "", (item,)) for item in model.scalars("primaryKey"))
    for mark in (*listed, *_marks_below(reading, model)):
        before = marks.get(mark.path)
        marks[mark.path] = replace(mark, nodes=(*before.nodes, *mark.nodes)) if before else mark
    return tuple(marks.values())


def _marks_below(
    reading: ClauseReader, owner: Mapping, parent: str = "", *, is_repeated: bool = False
) -> Iterator[KeyMark]:
    """The marks of the fields of a model or a struct, and of what is nested in them."""
    for name, entry in reading.mapping(owner, "fields").entries.items():
        if isinstance(entry.node, Mapping):
            step = column_path(name)
            path = f"{parent}.{step}" if parent else step
            node = reading.resolved(entry.node)
            yield from _marks_of(reading, node, path, parent, is_repeated=is_repeated)


def _marks_of(
    reading: ClauseReader, node: Mapping, path: str, parent: str, *, is_repeated: bool
) -> Iterator[KeyMark]:
    marks = (node.get(key) for key in ("primaryKey", "primary") if node.truth(key))
    nodes = tuple(mark for mark in marks if mark is not None)
    if nodes:
        yield KeyMark(path, parent, nodes, is_repeated=is_repeated)
    yield from _marks_below(reading, node, path, is_repeated=is_repeated)
    for key in ("items", "keys", "values"):
        part = reading.mapping(node, key)
        if part is not NOTHING:
            yield from _marks_of(reading, part, f"{path}[{key}]", path, is_repeated=True)


def _with_promises(reading: ClauseReader, models: tuple[Model, ...]) -> tuple[Model, ...]:
    """The models, with the rules about them outside of `models`."""
    levels = reading.mapping(reading.root, "servicelevels")
    stated = read_service_levels(ServiceLevels(reading, models), levels)
    promises = (*read_quality_section(reading, models), *stated)
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
