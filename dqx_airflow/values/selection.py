"""What users select: assertions by their words, and ranges of dates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import TypeAlias

from dqx_airflow.errors import RequestError
from dqx_airflow.values import Selection, Severity

SEPARATOR = ".."
MOST_DATES = 1_000
"""The maximum number of dates in one run."""

_HINT = "write FROM..TO with both dates, such as 2026-01-01..2026-03-31"


def is_range(text: str) -> bool:
    """True for a string that is meant as a range, valid or not."""
    return SEPARATOR in text


def dates_of_range(text: str, read: Callable[[str], date | None]) -> tuple[date, ...]:
    """Every date of a range, in order.

    :param read: returns the date of a bound; None if it is invalid.
    :raises RequestError: it is not a range, ends before it begins, or is too long.
    """
    ends = text.split(SEPARATOR)
    if len(ends) != 2:
        raise RequestError(f"invalid range of dates {text!r}", _HINT)
    for end, name in zip(ends, ("first", "last"), strict=True):
        if not end.strip():
            raise RequestError(f"the range {text!r} has no {name} date", _HINT)
    first, last = (read(end.strip()) for end in ends)
    if first is None or last is None:
        wrong = ends[0] if first is None else ends[1]
        raise RequestError(f"invalid date {wrong.strip()!r} in the range {text!r}", _HINT)
    if last < first:
        raise RequestError(
            f"the range {text!r} ends before it begins",
            f"write the earlier date first: {last.isoformat()}{SEPARATOR}{first.isoformat()}",
        )
    count = (last - first).days + 1
    if count > MOST_DATES:
        raise RequestError(
            f"the range {text!r} has {count:,} dates, at most {MOST_DATES:,} are possible",
            "split it into shorter ranges",
        )
    return tuple(first + timedelta(days=number) for number in range(count))


Words: TypeAlias = "str | Sequence[str] | None"
"""One or several words, also comma-separated."""


def selection_of(
    only: Words = None,
    tags: Words = None,
    exclude_tags: Words = None,
    severity: Severity | str | None = None,
    dimensions: Words = None,
) -> Selection | None:
    """The given selection; None if there is none, which selects everything.

    :raises RequestError: a severity is invalid, or an argument is empty or not of strings.
    """
    selection = Selection(
        _words("only", only),
        _words("tags", tags),
        _words("exclude_tags", exclude_tags),
        _severity(severity),
        tuple(word.lower() for word in _words("dimensions", dimensions)),
    )
    return selection if selection != Selection() else None


def require_whole_run(
    selection: Selection | None, promote_to: Iterable[object], *, promote_partial: bool
) -> None:
    """Refuses to promote rows if only some assertions are judged.

    :raises RequestError: a selection would promote without being allowed to.
    """
    if selection is not None and tuple(promote_to) and not promote_partial:
        raise RequestError(
            f"promote_to promotes rows that satisfy all assertions, but some are selected: "
            f"{selection}",
            "remove the selection, or set promote_partial=True",
        )


def _words(name: str, given: Words) -> tuple[str, ...]:
    if given is None:
        return ()
    texts: tuple[object, ...] = (given,)
    if isinstance(given, Iterable) and not isinstance(given, str):
        texts = tuple(given)
    words: list[str] = []
    for text in texts:
        if not isinstance(text, str):
            raise RequestError(f"{name}={given!r}: write a string, or a list of strings")
        between_commas = [word.strip() for word in text.split(",")]
        if text.strip() and not any(between_commas):
            raise RequestError(
                f"{name}={text!r} names nothing",
                "write a name, or leave it out to select everything",
            )
        words += between_commas
    return tuple(dict.fromkeys(word for word in words if word))


def _severity(given: Severity | str | None) -> Severity | None:
    if given is None or given == "":
        return None
    try:
        return Severity(given)
    except ValueError:
        raise RequestError(f"severity={given!r}: write P0, P1, P2 or P3") from None
