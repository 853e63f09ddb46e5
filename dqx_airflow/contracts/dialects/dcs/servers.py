"""The servers of a data contract: where the data is, and which SQL is spoken there."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.model import Server
from dqx_airflow.contracts.reading import Reading

_SQL = {
    "athena": "athena",
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "databricks": "databricks",
    "glue": "athena",
    "mysql": "mysql",
    "oracle": "oracle",
    "postgres": "postgres",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "sqlserver": "tsql",
    "trino": "trino",
    # Files are asked with DuckDB by the Data Contract CLI, and rules about them are written so.
    **dict.fromkeys(("azure", "gcs", "local", "s3", "sftp"), "duckdb"),
}
_DIALECTS = {**_SQL, "spark": None, "dataframe": None, "kafka": None, "duckdb": "duckdb"}
_DIALECTS |= {"postgresql": "postgres", "tsql": "tsql", "mssql": "tsql", "databricks": "databricks"}
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
_PLACES = ("location", "path", "topic", "stream")


def read_servers(reading: Reading, servers: Mapping | None) -> Iterator[Server]:
    """The servers; nothing that is said about them can be broken by data."""
    reading.documented(servers, "where the data is found")
    for name, entry in servers.entries.items() if servers is not None else ():
        if not isinstance(entry.node, Mapping):
            continue
        server = reading.resolved(entry.node)
        kind = (reading.text(server, "type") or "").lower()
        yield Server(
            name,
            kind,
            entry.span,
            location=_location(reading, server, kind),
            format=reading.text(server, "format"),
            environment=reading.text(server, "environment"),
            options=_reader_options(reading, server),
            sql_dialect=_SQL.get(kind),
        )


def sql_dialect_of(word: str) -> str | None:
    """The name that sqlglot has for a `dialect`, None for Spark's own.

    :raises KeyError: there is no such dialect.
    """
    return _DIALECTS[word.strip().lower()]


def _location(reading: Reading, server: Mapping, kind: str) -> str | None:
    for key in _PLACES:
        if (place := reading.text(server, key)) is not None:
            return place
    parts = [reading.text(server, key) for key in _TABLES.get(kind, ())]
    return ".".join([*filter(None, parts), "{model}"]) if all(parts) and parts else None


def _reader_options(reading: Reading, server: Mapping) -> tuple[tuple[str, str], ...]:
    """What Spark has to know to read the files: JSON in one array takes several lines."""
    delimiter = reading.text(server, "delimiter")
    if delimiter == "array":
        return (("multiLine", "true"),)
    if delimiter not in (None, "new_line") and reading.text(server, "format") == "csv":
        return (("sep", delimiter),)
    return ()
