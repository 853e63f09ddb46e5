"""Names of data without what tells one delivery from the next: dates, partitions, globs.

The rules are those of the trimmers that OpenLineage's Spark listener applies by default
(`io.openlineage.client.dataset.partition.trimmer`), so that the names of both agree. A glob is
ours: the listener sees the files, and a gate the pattern. Needs nothing but the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

_GLOB = re.compile(r"[*?\[\]{}]")
_DATES = (
    (re.compile(r"\d{4}-\d{2}-\d{2}"), "%Y-%m-%d"),
    (re.compile(r"\d{2}\.\d{2}\.\d{4}"), "%d.%m.%Y"),
    (re.compile(r"\d{8}"), "%Y%m%d"),
)
# What may stand beside a date in the name of a folder: a time.
_TIME = re.compile(r"[\d\s:.TZ-]*")


def trimmed(name: str) -> str:
    """The name without dates, partitions and globs at its end; its first part always stays.

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
            # Without any part before it, a glob is all that there is to name.
            return parts[: max(number, 1)]
    return parts


def _surplus(parts: Sequence[str]) -> int:
    """How many parts at the end tell one delivery from the next."""
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
    if len(text) != length:
        return False
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True
