"""The app for the case that the pages cannot determine permissions: it rejects every request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

_Message: TypeAlias = MutableMapping[str, Any]

_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
_BODY = (
    b"Closed: this version of Airflow lacks what dqx-airflow needs to see who may read its pages. "
    b"The log of the API server says what is missing.\n"
)


async def closed(
    scope: _Message,
    receive: Callable[[], Awaitable[_Message]],
    send: Callable[[_Message], Awaitable[None]],
) -> None:
    """Answers 403 to every request."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 403, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _BODY})
