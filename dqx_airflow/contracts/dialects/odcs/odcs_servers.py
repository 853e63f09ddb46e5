"""Servers of an ODCS document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.servers import DATABASES, read_server
from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.model import Server

FILES = ("local", "s3", "azure", "sftp", "custom")
"""The types of servers with files that Spark reads itself, so that physical types are Spark types.
"""
SPARK = ("databricks", "hive", "iceberg", "glue")
# Several databases, or one that sqlglot does not read.
_LOCATED = (*DATABASES, *FILES[:-1], "cloudsql", "db2", "denodo", "informix", "vertica", "zen")
_PLACES = ("location", "path")
_TABLE_PARTS = ("project", "catalog", "database", "namespace", "dataset", "schema")


def read_servers(reading: ClauseReader) -> Iterator[Server]:
    """Reads `servers`. They are never checked against data."""
    for server in reading.mappings(reading.root, "servers"):
        named = server.text("server")
        read = read_server(reading, server, named, server.span, _location, _options)
        yield replace(read, format="iceberg") if read.type == "iceberg" else read


def _location(server: Mapping, kind: str) -> str | None:
    for key in _PLACES:
        if (place := server.text(key)) is not None:
            return place
    if kind not in (*_LOCATED, "iceberg"):
        return None
    parts = [server.text(key) for key in _TABLE_PARTS]
    return ".".join([*filter(None, parts), "{model}"])


def _options(server: Mapping) -> Iterator[tuple[str, str]]:
    """Reader options for the files: JSON in a single array spans several lines."""
    delimiter = server.text("delimiter")
    file_format = server.text("format")
    if file_format == "json" and delimiter == "array":
        yield "multiLine", "true"
    elif file_format == "csv" and delimiter is not None:
        yield "sep", delimiter
    if file_format in ("csv", "json") and (encoding := server.text("encoding")):
        yield "encoding", encoding
