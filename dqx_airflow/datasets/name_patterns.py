"""The patterns with which users choose tables and gates by their names, such as `sales*`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import did_you_mean, slip_of
from dqx_airflow.errors import RequestError

_WILDCARDS = re.compile(r"[*?\[]")

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


def is_match(names: Iterable[str], patterns: Collection[str]) -> bool:
    """Whether one of the names of a table or a gate matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def unmatched(
    problem: str,
    patterns: Iterable[str],
    names: Collection[Collection[str]],
    *,
    is_for_more: bool = False,
) -> list[str]:
    """A message for each pattern that matches nothing, with the name or the pattern that was meant.

    :param problem: the beginning of the message, such as "no gate matches only".
    :param names: the names of each table or gate.
    :param is_for_more: the patterns may be for tables or gates to come, as in a list of exclusions:
        only one without wildcards must match.
    """
    messages = []
    for pattern in dict.fromkeys(patterns):
        has_wildcards = _WILDCARDS.search(pattern) is not None
        if (is_for_more and has_wildcards) or any(is_match(own, (pattern,)) for own in names):
            continue
        every = dict.fromkeys(name for own in names for name in own if name)
        if has_wildcards:
            near = slip_of(pattern, list(dict.fromkeys(_patterns_like(pattern, every))))
            hint = f"did you mean '{near}'?" if near else "change it, or remove it"
        else:
            hint = did_you_mean(pattern, every) or "change it, or remove it"
        messages.append(f"{problem}={pattern!r}: {hint}")
    return messages


def _patterns_like(pattern: str, names: Iterable[str]) -> Iterator[str]:
    """Patterns of the form of one with a single `*`, each of which matches one of the names: as
    many characters before and after it, or one more or less."""
    before, _, after = pattern.partition("*")
    if _WILDCARDS.search(before + after) is not None:
        return
    for name in names:
        for head in _lengths_near(before):
            for tail in _lengths_near(after):
                if head + tail <= len(name):
                    yield f"{name[:head]}*{name[len(name) - tail :]}"


def _lengths_near(part: str) -> tuple[int, ...]:
    """The lengths that a part of a pattern may have been meant to have, its own first."""
    return (len(part), len(part) + 1, len(part) - 1) if part else (0,)
