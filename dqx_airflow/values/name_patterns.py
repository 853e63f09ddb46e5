"""The patterns with which users choose tables and gates by their names, such as `sales*`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from dqx_airflow.errors import RequestError

Patterns: TypeAlias = "str | Sequence[str] | None"


def name_patterns(option: str, given: Patterns) -> tuple[str, ...]:
    """The patterns in an option: one, a list, or several separated by commas.

    :param option: what the option is called in messages.
    :raises RequestError: one is no string, or blank, and would match what has no name.
    """
    if given is None:
        return ()
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Iterable) or not all(isinstance(text, str) for text in texts):
        raise RequestError(f"{option}={given!r}: write a pattern, or a list of patterns")
    patterns = tuple(part.strip() for text in texts for part in text.split(","))
    if not all(patterns):
        raise RequestError(f"{option}={given!r} has a pattern without characters: remove it")
    return patterns
