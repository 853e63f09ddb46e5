"""Locations in object stores, in the notation of Hadoop file systems."""

from __future__ import annotations

import re

from dqx_airflow.errors import RequestError

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

    :param has_endpoint: whether an S3 endpoint is set, which only S3A supports; without one, `s3`
        is left to the cluster.
    :raises RequestError: it does not name the account of the data, or nothing can read it.
    """
    if match := _AZURE.fullmatch(location) or _WITH_ACCOUNT.fullmatch(location):
        form = "abfss://{container}@{account}.dfs.core.windows.net/{path}"
        return form.format(**match.groupdict())
    parts = _SCHEME.fullmatch(location)
    if parts is None:
        return location
    scheme, rest = parts["scheme"].lower(), parts["rest"]
    if scheme == "az":
        container, _, path = rest.partition("/")
        raise RequestError(
            f"the location {location} names no account",
            f"write abfss://{container}@ACCOUNT.dfs.core.windows.net/{path}",
        )
    if scheme in ("http", "https"):
        raise RequestError(
            f"the location {location} is a web address, which Spark does not read",
            "write the location in the store, such as s3a://BUCKET/PATH",
        )
    if scheme == "s3n" or (scheme == "s3" and has_endpoint):
        return f"s3a://{rest}"
    return f"gs://{rest}" if scheme == "gcs" else location
