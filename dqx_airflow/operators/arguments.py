"""Single arguments of an operator: whether a value is known before the run, and is a valid word."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def is_open(value: object) -> bool:
    """True for a value that is only known when the task runs: a template, or the output of a
    task."""
    if isinstance(value, os.PathLike):
        return False
    if isinstance(value, str):
        return "{{" in value or "{%" in value or "{#" in value
    return hasattr(value, "iter_references")


def has_open(value: object) -> bool:
    """True for a value that is only known when the task runs, or contains one."""
    if isinstance(value, Mapping):
        return any(map(has_open, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return any(map(has_open, value))
    return is_open(value)


def one_of(name: str, value: object, words: Sequence[str]) -> Iterator[str]:
    """Yields a mistake if the value of an argument is not one of its words."""
    if value not in words:
        from dqx_airflow.diagnostics.nearest import slip_of

        listed = f"{', '.join(words[:-1])} or {words[-1]}"
        near = slip_of(value, words) if isinstance(value, str) else None
        yield f"{name}={value!r}: write {listed}{f'; did you mean {near!r}?' if near else ''}"


def as_written(given: list[Any]) -> Any:
    """A string that Airflow has turned into a list of its characters; any other list unchanged."""
    is_split = len(given) > 1 and all(isinstance(item, str) and len(item) == 1 for item in given)
    return "".join(given) if is_split else given
