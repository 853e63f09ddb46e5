"""Locations: paths, URIs and names of tables, and whether two of them are the same."""

from __future__ import annotations

import os
import re

from dqx_airflow.errors import RequestError
from dqx_airflow.values.files import local_path

S3A_ENDPOINT = "fs.s3a.endpoint"
_AZURE = re.compile(
    r"(?:az|https|wasbs?|abfss?)://(?P<account>[\w-]+)\.(?:blob|dfs)\.core\.windows\.net/"
    r"(?P<container>[^/]+)/(?P<path>.*)"
)
_WITH_ACCOUNT = re.compile(
    r"(?:az|adl|wasbs?)://(?P<container>[^/@]+)@(?P<account>[\w-]+)\.(?:blob|dfs)"
    r"\.core\.windows\.net/(?P<path>.*)"
)
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)


def spark_location(location: str, *, has_endpoint: bool = False) -> str:
    """A location that Spark can read.

    >>> spark_location("https://shop.blob.core.windows.net/lake/orders")
    'abfss://lake@shop.dfs.core.windows.net/orders'
    >>> spark_location("file:/lake/orders")
    '/lake/orders'

    :param has_endpoint: whether an S3 endpoint is set, which only S3A supports; without one, `s3`
        is left to the cluster.
    :raises RequestError: it does not name the account of the data, or nothing can read it.
    """
    if match := _AZURE.fullmatch(location) or _WITH_ACCOUNT.fullmatch(location):
        form = "abfss://{container}@{account}.dfs.core.windows.net/{path}"
        return form.format(**match.groupdict())
    location = local_path(location)
    parts = _SCHEME.fullmatch(location)
    if parts is None:
        return location
    scheme = parts["scheme"].lower()
    rest = parts["rest"]
    if scheme == "az":
        container, _, path = rest.partition("/")
        raise RequestError(
            f"the location {location} names no account",
            f"write abfss://{container}@ACCOUNT.dfs.core.windows.net/{path}",
        )
    if scheme in ("http", "https"):
        message = f"the location {location} is a web address, which Spark does not read"
        raise RequestError(message, "write the location in the store, such as s3a://BUCKET/PATH")
    if scheme == "s3n" or (scheme == "s3" and has_endpoint):
        return f"s3a://{rest}"
    return f"gs://{rest}" if scheme == "gcs" else location


_S3 = re.compile(r"s3[an]?://", re.IGNORECASE)
_OF_CATALOG = re.compile(r"`|^`?spark_catalog`?\.(`?default`?\.)?|^`?default`?\.", re.IGNORECASE)
"""The optional parts of the name of a table: default catalog, default schema, quotes."""
_ONE_SLASH = re.compile(r"(s3[an]?|gs|az|adl|abfss?|wasbs?):/(?!/)")


def two_slashes(place: str) -> str | None:
    """The correction of an object store URI with one slash, which is a local folder."""
    if _ONE_SLASH.match(place) is None:
        return None
    scheme, _, rest = place.partition(":/")
    return f"{scheme}://{rest}"


def is_table(place: str) -> bool:
    """True for the name of a table, false for a path."""
    return "/" not in place


def overlap(place: str, other_place: str) -> bool:
    """True if two locations are the same, or one lies within the other."""
    if is_table(place) or is_table(other_place):
        return is_same_place(place, other_place)
    return paths_overlap(place, other_place)


def is_same_place(place: str, other_place: str) -> bool:
    """True if two paths, URIs or names of tables are the same, however they are written."""
    if is_table(place) or is_table(other_place):
        first, second = (_OF_CATALOG.sub("", name).casefold() for name in (place, other_place))
        return first == second
    return place_of(place) == place_of(other_place)


def is_inside(path: str, folder: str) -> bool:
    """True if a path or URI is a folder, or lies within it."""
    return place_of(path).startswith(place_of(folder))


def paths_overlap(path: str, other_path: str) -> bool:
    """True if two paths or URIs are the same however they are written, or one is in the other."""
    first = place_of(path)
    second = place_of(other_path)
    return first.startswith(second) or second.startswith(first)


def place_of(path: str) -> str:
    """A path or URI with a trailing slash, so that it is a prefix of everything within it."""
    path = _S3.sub("s3://", local_path(path))
    if "://" not in path:
        path = os.path.realpath(os.path.expanduser(path))
    return path.rstrip("/") + "/"
