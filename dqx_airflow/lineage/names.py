"""The names of datasets in OpenLineage: the same as those of the Spark listener, so that both meet.

The rules are those of the OpenLineage specification, "Naming" (`Naming.md`). Standard library only.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import quote

from dqx_airflow.lineage import sanitize
from dqx_airflow.lineage.trimming import trimmed

_URI = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>.*)", re.S
)
# s3a and s3n are other clients of the same store, and so on: one store, one name.
_OBJECT_STORES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "wasb": "wasbs",
    "wasbs": "wasbs",
}
# The tables of a database have names with dots, and no path.
_DATABASES = {"postgres", "mysql", "mssql"}
# In these the part before the @ is the container. In all others it is a user with a password.
_CONTAINER_FIRST = {"abfs", "abfss", "wasb", "wasbs"}


@dataclass(frozen=True, slots=True)
class DatasetName:
    """A dataset in lineage. `uri` is None if the name is that of a catalog table."""

    namespace: str
    name: str
    uri: str | None = None


def is_path(location: str) -> bool:
    """True for a path or a URI, False for the name of a catalog table (`sales.orders`)."""
    return "/" in location or bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location))


def name_of_data(location: str) -> DatasetName:
    """The name of the data that is delivered below a path or URI, day after day.

    Trailing dates, partitions and globs are dropped, as by the Spark listener.

    >>> name_of_data("s3a://lake/landing/orders/2026-11-23/*.csv").name
    'landing/orders'
    """
    dataset_name = name_of_path(location)
    name = trimmed(dataset_name.name)
    if name == dataset_name.name:
        return dataset_name
    uri = None
    if dataset_name.uri is not None and dataset_name.uri.endswith(_quoted(dataset_name.name)):
        uri = dataset_name.uri.removesuffix(_quoted(dataset_name.name)) + _quoted(name)
    return DatasetName(dataset_name.namespace, name, uri)


def name_of_path(location: str) -> DatasetName:
    """The name of the data at a path or URI, without credentials.

    >>> name_of_path("s3a://lake/warehouse/orders/")
    DatasetName(namespace='s3://lake', name='warehouse/orders', uri='s3://lake/warehouse/orders')
    """
    match = _URI.fullmatch(location)
    # A single letter is a drive, not a scheme.
    if match is None or len(match["scheme"]) == 1:
        return _local(location)
    scheme, authority = match["scheme"].lower(), match["authority"] or ""
    # The query of a URI carries signatures (`?sig=...`), never the name of the data.
    path = re.sub(r"\?[^/?=]+=.*", "", match["path"], flags=re.S)
    authority = _without_credentials(scheme, authority)
    if scheme == "file":
        return _local(path, authority)
    if store := _OBJECT_STORES.get(scheme):
        namespace, name = f"{store}://{authority}", path.strip("/") or "/"
        return _named(namespace, name, f"{namespace}/{_quoted(name.lstrip('/'))}")
    if scheme in _DATABASES:
        name = path.strip("/")
        return _named(f"{scheme}://{authority}", name, f"{scheme}://{authority}/{_quoted(name)}")
    name = path.rstrip("/") or "/"
    if not authority:
        return _named(scheme, name, f"{scheme}:{_quoted(name)}")
    return _named(f"{scheme}://{authority}", name, f"{scheme}://{authority}{_quoted(name)}")


def name_of_table(table: str, catalog: str) -> DatasetName:
    """The name of a catalog table in the namespace of its catalog, such as `hive://host:9083`."""
    return _named(catalog, table.replace("`", ""), None)


def _local(path: str, host: str = "") -> DatasetName:
    # Spark resolves a relative path against the working directory of the driver: this process.
    path = os.path.abspath(path) if path else "/"
    path = "/" + path.strip("/")
    if host and host != "localhost":
        return _named(f"file://{host}", path, f"file://{host}{_quoted(path)}")
    return _named("file", path, f"file://{_quoted(path)}")


def _named(namespace: str, name: str, uri: str | None) -> DatasetName:
    return DatasetName(
        sanitize.text(namespace, sanitize.NAME),
        sanitize.text(name, sanitize.CONTENT),
        sanitize.optional_uri(uri),
    )


def _without_credentials(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if scheme in _CONTAINER_FIRST:
        return user.partition(":")[0] + at + host
    return host


def _quoted(path: str) -> str:
    return quote(path, safe="/:=,+@", errors="replace")
