"""The servers of an ODCS contract: where the data is, and their SQL dialect."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.dialects.addresses import check_address, check_location
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.dcs.servers import (
    DATABASE_SQL,
    STORED_FORMATS,
    endpoint_options,
)
from dqx_airflow.contracts.model import Server
from dqx_airflow.contracts.source.yaml_document import Mapping

FILES = ("local", "s3", "azure", "sftp", "custom")
"""Servers whose data Spark reads itself, so that its types are those of Spark."""

SPARK = ("databricks", "hive", "iceberg", "glue")

_SQL = {
    **DATABASE_SQL,
    # Several databases, or one that sqlglot does not read: only what they have in common.
    **dict.fromkeys(("cloudsql", "db2", "denodo", "informix", "vertica", "zen"), "ansi"),
    "dremio": "dremio",
    "duckdb": "duckdb",
    "exasol": "exasol",
    "hive": "hive",
    "impala": "hive",
    "postgresql": "postgres",
    "presto": "presto",
    "synapse": "tsql",
    "teradata": "teradata",
    # The Data Contract CLI queries files with DuckDB, and rules about them are written so.
    **dict.fromkeys(("azure", "local", "s3", "sftp"), "duckdb"),
}
_PLACES = ("location", "path")
_TABLE_PARTS = ("project", "catalog", "database", "namespace", "dataset", "schema")


def read_servers(reading: ClauseReader) -> Iterator[Server]:
    """The servers; data cannot violate anything about them."""
    reading.documented_keys(reading.root, "servers", reason="the location of the data")
    for server in reading.mappings(reading.root, "servers"):
        kind = (reading.text(server, "type") or "").lower()
        reading.one_of(server, "format", STORED_FORMATS)
        check_address(reading, server, "endpointUrl", "uri")
        check_location(reading, server, kind)
        yield Server(
            reading.text(server, "server") or kind,
            kind,
            server.span,
            location=_location(reading, server, kind),
            format="iceberg" if kind == "iceberg" else reading.text(server, "format"),
            environment=reading.text(server, "environment"),
            options=(*_options(reading, server), *endpoint_options(reading, server)),
            sql_dialect=_SQL.get(kind),
        )


def _location(reading: ClauseReader, server: Mapping, kind: str) -> str | None:
    for key in _PLACES:
        if (place := reading.text(server, key)) is not None:
            return place
    if kind not in _SQL and kind != "iceberg":
        return None
    parts = [reading.text(server, key) for key in _TABLE_PARTS]
    return ".".join([*filter(None, parts), "{model}"])


def _options(reading: ClauseReader, server: Mapping) -> Iterator[tuple[str, str]]:
    """Reader options for the files: JSON in a single array spans several lines."""
    delimiter, file_format = (reading.text(server, key) for key in ("delimiter", "format"))
    if file_format == "json" and delimiter == "array":
        yield "multiLine", "true"
    elif file_format == "csv" and delimiter is not None:
        yield "sep", delimiter
    if file_format in ("csv", "json") and (encoding := reading.text(server, "encoding")):
        yield "encoding", encoding
