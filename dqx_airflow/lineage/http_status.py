"""Reads only the status of a lineage server's response, whatever else it sends.

A body may be endless, arrive byte by byte, or be a gigabyte of zeros in a megabyte of gzip. Imports
requests and the OpenLineage client.
"""

from __future__ import annotations

from typing import Any

import requests
import urllib3
from openlineage.client.transport import Transport
from openlineage.client.transport.http import HttpTransport
from requests.adapters import HTTPAdapter

_MOST_REDIRECTS = 3
_LOSE_THE_EVENT = (301, 302, 303)
"""Redirects after which a POST is followed by a GET, without the event."""


class StatusOnly(HTTPAdapter):
    """Reads the status and the headers of a response, and closes the connection."""

    def send(self, request: Any, **settings: Any) -> Any:  # type: ignore[override]
        answer = super().send(request, **{**settings, "stream": True})
        answer._content = b""
        answer._content_consumed = True
        answer.raw.close()
        if answer.status_code in _LOSE_THE_EVENT:
            place = answer.headers.get("location", "nowhere")
            raise requests.HTTPError(
                f"{answer.status_code} redirects to {place}, and the event would be lost: "
                f"configure the target address",
                response=answer,
            )
        return answer


def bounded(transport: Transport) -> Transport:
    """A transport that reads no bodies, if it is one over HTTP; any other unchanged."""
    # A transform transport contains another one, that of Datadog one over HTTP.
    inner = (getattr(transport, name, None) for name in ("transport", "http"))
    for part in (transport, *inner):
        if isinstance(part, HttpTransport) and part.config.adapter is None:
            session = part.session
            retries = urllib3.util.Retry(**part.config.retry)
            # A redirect may lead to another host.
            for prefix in ("http://", "https://", part.url):
                session.mount(prefix, StatusOnly(max_retries=retries))
            session.max_redirects = _MOST_REDIRECTS
    return transport
