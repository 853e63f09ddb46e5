"""Servers, schemas and service levels of the Data Contract Specification."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from dqx_airflow.contracts.demands import Arrives, Fresh, Prompt, Retained
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.extensions import RuleOfModel, check_address, check_location
from dqx_airflow.contracts.dialects.periods import (
    cron_interval_s,
    duration_s,
    interval_s,
    schedule_of,
)
from dqx_airflow.contracts.model import Model, Promise, Server
from dqx_airflow.contracts.source.yaml_document import Mapping, Node, Scalar, show_path
from dqx_airflow.values import FORMATS

DATABASES = {
    **{name: name for name in ("bigquery", "clickhouse", "databricks", "dremio", "duckdb")},
    **{name: name for name in ("exasol", "hive", "presto", "redshift", "snowflake")},
    **{name: name for name in ("athena", "mysql", "oracle", "postgres", "teradata", "trino")},
    **dict.fromkeys(("sqlserver", "synapse", "tsql", "mssql"), "tsql"),
    **{"glue": "athena", "impala": "hive", "mariadb": "mysql", "sqlite": "sqlite"},
    **dict.fromkeys(("postgresql", "pg", "pgsql"), "postgres"),
}
"""The SQL of databases, by its name in sqlglot."""
SQL_DIALECTS = {
    **DATABASES,
    **dict.fromkeys(("spark", "dataframe", "kafka", "iceberg", "unity", "table")),
    # The Data Contract CLI queries files with DuckDB, and rules about them are written so.
    **dict.fromkeys(("azure", "gcs", "local", "s3", "sftp"), "duckdb"),
}
"""The SQL dialects, with their names in sqlglot; None for Spark's own."""
_TABLES = {
    "bigquery": ("project", "dataset"),
    "databricks": ("catalog", "schema"),
    "glue": ("database",),
    "oracle": ("schema",),
    "postgres": ("schema",),
    "redshift": ("database", "schema"),
    "snowflake": ("database", "schema"),
    "sqlserver": ("database", "schema"),
    "trino": ("catalog", "schema"),
}
_STREAMS = ("pubsub", "kinesis", "sqs", "api", "custom", "table", "unity", "fabric")
STORED_FORMATS = (*FORMATS, "text", "xml", "excel", "protobuf", "hudi")
"""The formats of files and messages."""
_PLACES = ("location", "path", "topic", "stream")


def read_servers(reading: ClauseReader, servers: Mapping | None) -> Iterator[Server]:
    """The servers; data cannot violate anything about them."""
    reading.documented(servers, "the location of the data")
    for name, entry in servers.entries.items() if servers is not None else ():
        if not isinstance(entry.node, Mapping):
            continue
        server = reading.resolved(entry.node)
        kind = (reading.text(server, "type") or "").strip().lower()
        reading.one_of(server, "type", (*SQL_DIALECTS, *_STREAMS), is_open=True)
        reading.one_of(server, "format", STORED_FORMATS)
        check_address(reading, server, "endpointUrl", "uri")
        check_location(reading, server, kind)
        yield Server(
            name,
            kind,
            entry.span,
            location=_location(reading, server, kind),
            format=reading.text(server, "format"),
            environment=reading.text(server, "environment"),
            options=(*_reader_options(reading, server), *endpoint_options(reading, server)),
            sql_dialect=server_sql(kind),
        )


def server_sql(kind: str) -> str | None:
    """The SQL of rules about a server. If its database is unknown, it is what all have in
    common."""
    return SQL_DIALECTS.get(re.sub(r"[\s_-]", "", kind), "ansi") if kind else None


def sql_dialect_of(word: str) -> str | None:
    """The name in sqlglot for a `dialect`, None for Spark's own.

    :raises KeyError: the dialect does not exist.
    """
    return SQL_DIALECTS[word.strip().lower()]


def _location(reading: ClauseReader, server: Mapping, kind: str) -> str | None:
    for key in _PLACES:
        if (place := reading.text(server, key)) is not None:
            return place
    parts = [reading.text(server, key) for key in _TABLES.get(kind, ())]
    return ".".join([*filter(None, parts), "{model}"]) if all(parts) and parts else None


def _reader_options(reading: ClauseReader, server: Mapping) -> tuple[tuple[str, str], ...]:
    """Reader options for the files: JSON in a single array spans several lines."""
    delimiter = reading.text(server, "delimiter")
    if delimiter == "array":
        return (("multiLine", "true"),)
    if delimiter not in (None, "new_line") and reading.text(server, "format") == "csv":
        return (("sep", delimiter),)
    return ()


def endpoint_options(reading: ClauseReader, server: Mapping) -> Iterator[tuple[str, str]]:
    """Hadoop settings for an S3-compatible store that is not AWS."""
    endpoint = reading.text(server, "endpointUrl")
    if endpoint is not None:
        yield "fs.s3a.endpoint", endpoint
        # In MinIO and similar stores a bucket is part of the path, not of the host name.
        yield "fs.s3a.path.style.access", "true"
        if endpoint.lower().startswith("http:"):
            yield "fs.s3a.connection.ssl.enabled", "false"


VERSIONS = ("0.9.0", "0.9.1", "0.9.2", "0.9.3", "1.1.0", "1.2.0", "1.2.1")

_LEEWAY = 0.1
"""The allowed difference between an interval in words and that of a cron expression: months
vary."""
_OF_OPERATIONS = {
    "availability": "concerns the system, not the data",
    "support": "concerns people, not the data",
    "backup": "concerns copies of the data",
}
_NO_FIELD = "field not found"
_NO_INTERVAL = "not an interval"

Place: TypeAlias = "tuple[Model, str]"
"""A column of a model."""
PlacedColumn: TypeAlias = "tuple[Model, str | None]"
"""A column of a model; None if the model has to determine it."""


@dataclass(frozen=True, slots=True)
class _Levels:
    """The context for reading a service level."""

    reading: ClauseReader
    models: tuple[Model, ...]

    def place(self, level: Mapping, key: str) -> Place | str:
        """The column of `model.field`, or why there is none."""
        written = self.reading.text(level, key)
        if written is None:
            return f"needs a {key} to be checked"
        name, _, path = written.partition(".")
        for model in self.models:
            if model.name == name and model.field_at(path) is not None:
                return model, path
        # The name of a model may be left out if only one has such a field.
        having = [model for model in self.models if model.field_at(written) is not None]
        return (having[0], written) if len(having) == 1 else f"{_NO_FIELD} {written}"

    def timed(self, level: Mapping) -> PlacedColumn | str:
        """The column of the timestampField. Without one it is that of the only model, or the only
        timestamp of all models."""
        if self.reading.text(level, "timestampField") is not None:
            return self.place(level, "timestampField")
        if len(self.models) == 1:
            return self.models[0], None
        columns = [
            (model, item.path)
            for model in self.models
            for item in model.fields
            if (item.type or "").startswith("timestamp")
        ]
        return columns[0] if len(columns) == 1 else "the model is ambiguous: add a timestampField"

    def seconds(self, level: Mapping, key: str) -> float | str:
        """The duration at a key, or why there is none."""
        if level.get(key) is None:
            return f"needs a {key} to be checked"
        seconds = text_duration_s(self.reading, level.get(key))
        return seconds if seconds is not None else f"the {key} is not a duration"

    def refuse(self, level: Mapping, keys: Iterable[str], reason: str) -> None:
        path = show_path(level.path)
        codes = {_NO_FIELD: "E420", _NO_INTERVAL: "E422"}
        code = next((codes[start] for start in codes if reason.startswith(start)), None)
        for key in keys:
            dimension = "conformity" if path.endswith("retention") else "timeliness"
            promise = Promise(path, path, dimension=dimension)
            self.reading.unsupported(level.get(key), reason, code, promise=promise)


def text_duration_s(reading: ClauseReader, node: Node | None) -> float | None:
    """The seconds of a duration. The schema reports a value that is not a string."""
    is_text = isinstance(node, Scalar) and isinstance(node.value, str)
    return duration_s(node, reading.report) if node is not None and is_text else None


def read_service_levels(
    reading: ClauseReader, node: Mapping | None, models: tuple[Model, ...]
) -> Iterator[RuleOfModel]:
    """The rules of the service levels."""
    levels = _Levels(reading, models)
    for name, entry in node.entries.items() if node is not None else ():
        level = reading.mapping(node, name)
        if level is None:
            reading.documented(entry.node, "in words alone")
            continue
        if name in _OF_OPERATIONS:
            reading.documented(level, _OF_OPERATIONS[name])
        reading.documented_keys(level, "description", reason="in words alone")
        if name in _READERS:
            yield from _READERS[name](levels, level)


def _freshness(levels: _Levels, level: Mapping) -> Iterator[RuleOfModel]:
    yield from _age(levels, level, ("threshold", "timestampField"), "freshness", Fresh)


def _retention(levels: _Levels, level: Mapping) -> Iterator[RuleOfModel]:
    keys = ("period", "timestampField")
    if levels.reading.truth(level, "unlimited"):
        levels.reading.documented_keys(
            level, "unlimited", *keys, reason="unlimited: the data is never deleted"
        )
        return
    levels.reading.documented_keys(level, "unlimited", reason="demands nothing")
    yield from _age(levels, level, keys, "retention", Retained)


def _age(
    levels: _Levels,
    level: Mapping,
    keys: tuple[str, str],
    name: str,
    demand_of: Callable[[str | None, float], Fresh | Retained],
) -> Iterator[RuleOfModel]:
    """A limit on the age of a column: the keys of the duration and of the column."""
    seconds, place = levels.seconds(level, keys[0]), levels.timed(level)
    if isinstance(place, str):
        levels.refuse(level, keys, place)
    elif isinstance(seconds, str):
        levels.refuse(level, keys, seconds)
    else:
        demand = demand_of(place[1], seconds)
        yield place[0].name, None, levels.reading.rule(name, demand, *map(level.get, keys))


def _latency(levels: _Levels, level: Mapping) -> Iterator[RuleOfModel]:
    keys = ("threshold", "sourceTimestampField", "processedTimestampField")
    seconds = levels.seconds(level, keys[0])
    source, processed = (levels.place(level, key) for key in keys[1:])
    if isinstance(source, str):
        levels.refuse(level, keys, source)
    elif isinstance(processed, str):
        levels.refuse(level, keys, processed)
    elif isinstance(seconds, str):
        levels.refuse(level, keys, seconds)
    elif source[0] is not processed[0]:
        levels.refuse(level, keys, "the two fields belong to different models")
    else:
        demand = Prompt(source[1], processed[1], seconds)
        yield source[0].name, None, levels.reading.rule("latency", demand, *map(level.get, keys))


def _frequency(levels: _Levels, level: Mapping) -> Iterator[RuleOfModel]:
    """New rows in every model at the interval of `interval` and `cron`, which must agree."""
    reading = levels.reading
    reading.documented_keys(level, "type", reason="how the data is processed")
    written, cron = reading.text(level, "interval"), reading.text(level, "cron")
    seconds = interval_s(written) if written is not None else None
    of_cron = cron_interval_s(cron) if cron is not None else None
    if seconds is None:
        levels.refuse(level, ["interval"], f"{_NO_INTERVAL}: write daily, hourly or `15 minutes`")
    if of_cron is None:
        levels.refuse(
            level, ["cron"], "not a cron expression with five fields that sets an interval"
        )
    elif seconds is not None and abs(seconds - of_cron) > _LEEWAY * seconds:
        levels.refuse(
            level,
            ["interval", "cron"],
            "the interval and the cron expression contradict each other",
        )
        return
    nodes = (
        level.get("interval") if seconds is not None else None,
        level.get("cron") if of_cron is not None else None,
    )
    every_s = seconds if of_cron is None else of_cron
    schedule = None if cron is None or of_cron is None else schedule_of(cron)
    if every_s is not None:
        for model in levels.models:
            demand = Arrives(None, every_s, schedule)
            yield model.name, None, reading.rule("frequency", demand, *nodes)


_READERS = {
    "freshness": _freshness,
    "retention": _retention,
    "latency": _latency,
    "frequency": _frequency,
}
