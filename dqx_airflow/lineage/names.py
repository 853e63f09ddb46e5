"""The names of datasets in OpenLineage, equal to the names that its Spark listener reports.
Segments that vary between deliveries (dates, partitions, globs) are left out.

The rules follow the OpenLineage specification, "Naming" (`Naming.md`). Standard library only.

Many suites call a dataset `orders`, and mean different tables. Its location is unique, whatever its
name is. Segments are left out by the rules of the trimmers that OpenLineage's Spark listener
applies by default (`io.openlineage.client.dataset.partition.trimmer`), so that the names of both
agree. The rule for globs is ours: the listener sees the files, and a gate the pattern.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

from dqx_airflow.lineage import sanitize
from dqx_airflow.values import DatasetSnapshot
from dqx_airflow.values.files import local_path

_GLOB = re.compile(r"[*?\[\]{}]")
_DATES = (
    (re.compile(r"\d{4}-\d{2}-\d{2}"), "%Y-%m-%d"),
    (re.compile(r"\d{2}\.\d{2}\.\d{4}"), "%d.%m.%Y"),
    (re.compile(r"\d{8}"), "%Y%m%d"),
)
# A time may accompany a date in the name of a folder.
_TIME = re.compile(r"[\d\s:.TZ-]*")


def trimmed(name: str) -> str:
    """The name without trailing dates, partitions and globs; its first segment always stays.

    >>> trimmed("/landing/orders/2026/11/23")
    '/landing/orders'
    >>> trimmed("/landing/*/2026-11-23/*.csv")
    '/landing'
    """
    root = "/" if name.startswith("/") else ""
    parts = _before_glob(name.strip("/").split("/"))
    while (surplus := _surplus(parts)) and len(parts) > surplus:
        parts = parts[:-surplus]
    return root + "/".join(parts)


def _before_glob(parts: Sequence[str]) -> Sequence[str]:
    for number, part in enumerate(parts):
        if _GLOB.search(part):
            # Without a part before it, the glob is the only name.
            return parts[: max(number, 1)]
    return parts


def _surplus(parts: Sequence[str]) -> int:
    """The number of trailing segments that vary between deliveries."""
    last = parts[-1]
    if last.count("=") == 1 or _is_date(last) or _is(last, "%Y%m", 6) or _is(last, "%Y-%m", 7):
        return 1
    if _is("".join(parts[-2:]), "%Y%m", 6) and len(parts) > 2:
        return 2
    return 3 if len(parts) > 3 and _is("".join(parts[-3:]), "%Y%m%d", 8) else 0


def _is_date(part: str) -> bool:
    """True for a date, alone or with a time."""
    for pattern, form in _DATES:
        for match in pattern.finditer(part):
            if _is(match[0], form, len(match[0])):
                return _TIME.fullmatch(part[: match.start()] + part[match.end() :]) is not None
    return False


def _is(text: str, form: str, length: int) -> bool:
    """True for a text of this length with this date format."""
    if len(text) != length:
        return False
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True


_URI = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>.*)", re.S
)
# Schemes of several clients of the same store, such as s3a and s3n: one store, one name.
_OBJECT_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **{"gs": "gs", "wasb": "wasbs", "wasbs": "wasbs"},
}
# The tables of a database have names with dots, and no path.
_DATABASES = {"postgres", "mysql", "mssql"}
# In these the part before the @ is the container. In all others it is a user with a password.
_CONTAINER_FIRST = {"abfs", "abfss", "wasb", "wasbs"}


@dataclass(frozen=True, slots=True)
class DatasetName:
    """The name of a dataset in lineage. `uri` is None for a catalog table."""

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
    location = local_path(location)
    match = _URI.fullmatch(location)
    # A single letter is a drive, not a scheme.
    if match is None or len(match["scheme"]) == 1:
        return _local(location)
    scheme = match["scheme"].lower()
    authority = match["authority"] or ""
    # The query of a URI carries signatures (`?sig=...`), never the name of the data.
    path = re.sub(r"\?[^/?=]+=.*", "", match["path"], flags=re.S)
    authority = _without_credentials(scheme, authority)
    if scheme == "file":
        return _local(path, authority)
    if store := _OBJECT_STORES.get(scheme):
        namespace = f"{store}://{authority}"
        name = path.strip("/") or "/"
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
    return DatasetName(sanitize.name(namespace), sanitize.content(name), sanitize.optional_uri(uri))


def _without_credentials(scheme: str, authority: str) -> str:
    """The authority of a URI without user and password; a container before the @ stays."""
    user, at, host = authority.rpartition("@")
    if scheme in _CONTAINER_FIRST:
        return user.partition(":")[0] + at + host
    return host


def _quoted(path: str) -> str:
    return quote(path, safe="/:=,+@", errors="replace")


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_LONGEST_BYTES = 1000


def location_of(snapshot: DatasetSnapshot) -> str | None:
    """The location of a dataset without its dates, partitions and globs; None for a query, and for
    a location that is too long for the address of a page.

    >>> location_of(DatasetSnapshot("orders", "s3a://lake/orders/2026-11-23/", "csv"))
    's3://lake/orders'
    """
    if snapshot.lineage_name is None and snapshot.format == "query":
        return None
    named = snapshot.location if snapshot.lineage_name is None else snapshot.lineage_name
    place = trimmed_location(named)
    return place if len(place.encode(errors="replace")) <= _LONGEST_BYTES else None


@lru_cache(maxsize=10_000)
def trimmed_location(location: str) -> str:
    """The location of a path, a URI or a table, without trailing dates, partitions and globs.

    A relative path stays relative: its meaning depends on the reader.

    >>> trimmed_location("file:///landing/*/2026-11-23/*.csv")
    '/landing'
    >>> trimmed_location("sales.`orders`")
    'sales.orders'
    """
    if not is_path(location):
        return location.replace("`", "")
    if not _SCHEME.match(location):
        return trimmed(location.rstrip("/")) or "/"
    named = name_of_data(location)
    if named.namespace == "file":
        return named.name
    joint = "/" if "://" in named.namespace else ":"
    return f"{named.namespace}{joint}{named.name.lstrip('/') if joint == '/' else named.name}"
