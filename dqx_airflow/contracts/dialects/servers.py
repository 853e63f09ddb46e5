"""Servers of the two standards, DCS and ODCS: their SQL dialects, and the location of the data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from dqx_airflow.contracts import document
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.model import Server
from dqx_airflow.values import FORMATS, Span

DATABASES: dict[str, str] = {
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "databricks": "databricks",
    "dremio": "dremio",
    "duckdb": "duckdb",
    "exasol": "exasol",
    "hive": "hive",
    "presto": "presto",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "athena": "athena",
    "mysql": "mysql",
    "oracle": "oracle",
    "postgres": "postgres",
    "teradata": "teradata",
    "trino": "trino",
    "sqlserver": "tsql",
    "synapse": "tsql",
    "tsql": "tsql",
    "mssql": "tsql",
    "glue": "athena",
    "impala": "hive",
    "mariadb": "mysql",
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "pg": "postgres",
    "pgsql": "postgres",
}
"""The SQL dialect of each database, as sqlglot names it, by the type of the server."""
SQL_DIALECTS: dict[str, str | None] = {
    **DATABASES,
    "spark": None,
    "dataframe": None,
    "kafka": None,
    "iceberg": None,
    "unity": None,
    "table": None,
    # The Data Contract CLI queries files with DuckDB, and rules about them are written for it.
    "azure": "duckdb",
    "gcs": "duckdb",
    "local": "duckdb",
    "s3": "duckdb",
    "sftp": "duckdb",
}
"""The SQL dialect of each server, as sqlglot names it, by its type; None for Spark's own."""
_TABLE_PARTS = {
    "bigquery": ("project", "dataset"),
    "databricks": ("catalog", "schema"),
    "redshift": ("database", "schema"),
    "snowflake": ("database", "schema"),
    "oracle": ("schema",),
    "postgres": ("schema",),
    "trino": ("catalog", "schema"),
    "sqlserver": ("database", "schema"),
    "glue": ("database",),
}
"""The keys of a server that qualify the names of its tables, by its type."""
_SCHEMES = {
    "s3": ("s3", "s3a", "s3n"),
    "azure": ("abfss", "abfs", "az", "adl", "wasbs", "wasb", "https"),
    "gcs": ("gs", "gcs"),
    "local": ("file",),
}
"""The schemes of locations on file servers, by their type; a hint suggests the first."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_STREAMS = ("pubsub", "kinesis", "sqs", "api", "custom", "table", "unity", "fabric")
"""The other types of servers that DCS allows: streams, APIs and catalogs."""
STORED_FORMATS = (*FORMATS, "text", "xml", "excel", "protobuf", "hudi")
"""The formats of files and messages."""
_PLACES = ("location", "path", "topic", "stream")
"""The keys for the location of a server of DCS; the first one that is present counts."""


def read_servers(reading: ClauseReader, servers: document.Mapping) -> Iterator[Server]:
    """Reads the servers of DCS. Their clauses are documented: no data is checked against them."""
    reading.documented(servers, "the location of the data")
    for name, entry in servers.entries.items():
        if not isinstance(entry.node, document.Mapping):
            continue
        server = reading.resolved(entry.node)
        reading.one_of(server, "type", (*SQL_DIALECTS, *_STREAMS), is_open=True)
        yield read_server(reading, server, name, entry.span, _location, _reader_options)


def read_server(
    reading: ClauseReader,
    server: document.Mapping,
    name: str | None,
    span: Span,
    location: Callable[[document.Mapping, str], str | None],
    options: Callable[[document.Mapping], Iterable[tuple[str, str]]],
) -> Server:
    """Reads a server of either standard; without a name, its type is its name.

    :param location: the function that returns the location of a server, given its type.
    :param options: the function that returns the options for reading the files of a server.
    """
    kind = (server.text("type") or "").strip().lower()
    reading.one_of(server, "format", STORED_FORMATS)
    reading.check_address(server, "endpointUrl", "uri")
    _check_location(reading, server, kind)
    return Server(
        name or kind,
        kind,
        span,
        location=location(server, kind),
        format=server.text("format"),
        environment=server.text("environment"),
        options=(*options(server), *_endpoint_options(server)),
        sql_dialect=sql_dialect_of_server(kind) if kind else None,
        keys=tuple(
            (key, entry.node.value)
            for key, entry in server.entries.items()
            if isinstance(entry.node, document.Scalar)
        ),
    )


def sql_dialect_of_server(kind: str) -> str | None:
    """The SQL dialect of a type of servers, as sqlglot names it; None for Spark's own. An unknown
    database gets the syntax that all databases share."""
    return SQL_DIALECTS.get(re.sub(r"[\s_-]", "", kind), "ansi")


def _check_location(reading: ClauseReader, server: document.Mapping, kind: str) -> None:
    """Reports the location of a file server that does not fit its type."""
    schemes = _SCHEMES.get(kind)
    if schemes is None:
        return
    for key in ("location", "path"):
        written = server.text(key)
        if written is None or written.lstrip().startswith(("{", "$")):
            continue
        match = _SCHEME.match(written.strip())
        scheme = match[1].lower() if match else None
        if scheme in schemes or (kind == "local" and scheme is None):
            continue
        found = f"begins with {scheme}://" if scheme else "has no scheme"
        wanted = "a path" if kind == "local" else f"{schemes[0]}://..."
        reason = f"the location of a server of type {kind} {found}"
        reading.mistaken(server.get(key), "E426", reason, f"write {wanted}, or another type")


def sql_dialect_of(word: str) -> str | None:
    """The name in sqlglot for the value of a `dialect` in a contract; None for Spark's own.

    :raises KeyError: the dialect is unknown.
    """
    return SQL_DIALECTS[word.strip().lower()]


def _location(server: document.Mapping, kind: str) -> str | None:
    """The location of a server of DCS. In a database it is the qualified name of a table, with
    `{model}` for the name of a model; None if a key for it is missing."""
    for key in _PLACES:
        if (place := server.text(key)) is not None:
            return place
    parts = [server.text(key) for key in _TABLE_PARTS.get(kind, ())]
    return ".".join([*filter(None, parts), "{model}"]) if all(parts) and parts else None


def _reader_options(server: document.Mapping) -> Iterator[tuple[str, str]]:
    """Reader options for the files: JSON in a single array spans several lines.

    An encoding is not a key of the specification, but some servers state one.
    """
    delimiter, file_format = server.text("delimiter"), server.text("format")
    if delimiter == "array":
        yield "multiLine", "true"
    elif delimiter not in (None, "new_line") and file_format == "csv":
        yield "sep", delimiter
    if file_format in ("csv", "json") and (encoding := server.text("encoding")):
        yield "encoding", encoding


def _endpoint_options(server: document.Mapping) -> Iterator[tuple[str, str]]:
    """Hadoop settings for an S3-compatible store that is not AWS."""
    endpoint = server.text("endpointUrl")
    if endpoint is not None:
        yield "fs.s3a.endpoint", endpoint
        # In MinIO and similar stores a bucket is part of the path, not of the host name.
        yield "fs.s3a.path.style.access", "true"
        if endpoint.lower().startswith("http:"):
            yield "fs.s3a.connection.ssl.enabled", "false"
