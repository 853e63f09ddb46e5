"""Names of data without the parts that vary between deliveries: dates, partitions, globs.

The rules are those of the trimmers that OpenLineage's Spark listener applies by default
(`io.openlineage.client.dataset.partition.trimmer`), so that the names of both agree. The rule for
globs is ours: the listener sees the files, and a gate the pattern. Standard library only.
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
# A time may accompany a date in the name of a folder.
_TIME = re.compile(r"[\d\s:.TZ-]*")


def trimmed(name: str) -> str:
    """The name without trailing dates, partitions and globs; its first part always stays.

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
    """The number of trailing parts that vary between deliveries."""
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
