"""The location of a dataset over time, by which pages and catalogs identify it.

Many suites call a dataset `orders`, and mean different tables. Its location is unique, whatever its
name is.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dqx_airflow.lineage.names import is_path, name_of_data
from dqx_airflow.lineage.trimming import trimmed
from dqx_airflow.values import DatasetSnapshot

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_LONGEST_BYTES = 1000


def location_of(snapshot: DatasetSnapshot) -> str | None:
    """The location of a dataset; None for a query, which has none, and if a page address could not
    contain it.

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
