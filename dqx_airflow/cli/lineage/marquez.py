"""The lineage events that a Marquez has stored, by its API (Marquez 0.29 and later)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dqx_airflow.errors import RequestError, first_line
from dqx_airflow.values.redact import redact

_PATH = "/api/v1/events/lineage"
_PAGE = 500
_TIMEOUT_S = 60
MOST_EVENTS = 20_000
"""The newest events that are read: of more, the older ones are left out."""


def events_of_marquez(address: str) -> Iterator[Any]:
    """Yields the newest events, the last one first.

    :param address: the address of Marquez's API: `http://marquez:5000`.
    :raises RequestError: it does not respond as a Marquez does.
    """
    for offset in range(0, MOST_EVENTS, _PAGE):
        events = _page(address, offset)
        yield from events
        if len(events) < _PAGE:
            return


def _page(address: str, offset: int) -> list[Any]:
    import requests

    asked: dict[str, str | int] = {"limit": _PAGE, "offset": offset, "sortDirection": "desc"}
    try:
        response = requests.get(
            address.rstrip("/") + _PATH, params=asked, timeout=_TIMEOUT_S, allow_redirects=False
        )
        response.raise_for_status()
        events = response.json()["events"]
    except (requests.RequestException, KeyError, TypeError, ValueError) as error:
        problem = redact(first_line(error))
        hint = (
            "give the address of Marquez's API, such as http://marquez:5000, or files with events"
        )
        raise RequestError(f"no events at {redact(address)}: {problem}", hint) from error
    if not isinstance(events, list):
        raise RequestError(f"no events at {redact(address)}: no list of events")
    return events
