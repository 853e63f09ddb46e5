"""The servers of a data contract: where the data is, and their SQL dialect."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.dialects.addresses import check_address, check_location
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.model import Server
from dqx_airflow.contracts.source.yaml_document import Mapping
from dqx_airflow.values import FORMATS

DATABASE_SQL = {
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
}
"""The SQL of databases that both standards name, by its name in sqlglot."""
# The Data Contract CLI queries files with DuckDB, and rules about them are written so.
_SQL = {**DATABASE_SQL, **dict.fromkeys(("azure", "gcs", "local", "s3", "sftp"), "duckdb")}
SQL_DIALECTS = {
    **_SQL,
    **dict.fromkeys(("spark", "dataframe", "kafka")),
    **dict.fromkeys(("tsql", "mssql"), "tsql"),
    **{"duckdb": "duckdb", "mariadb": "mysql", "postgresql": "postgres", "sqlite": "sqlite"},
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
            sql_dialect=_SQL.get(kind),
        )


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
