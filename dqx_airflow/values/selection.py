"""A selection of assertions from user input: single words, lists, or comma-separated words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from dqx_airflow.errors import RequestError
from dqx_airflow.values import Selection, Severity

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
