"""The options and the selection of a run as keywords: one list for all functions that run from
Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from datetime import date
from typing import Any, TypedDict, TypeVar

from dqx_airflow.errors import RequestError
from dqx_airflow.selection import Words, selection_of
from dqx_airflow.values import RunOptions, Selection, Severity

Function = TypeVar("Function", bound=Callable[..., Any])


class RunKeywords(TypedDict, total=False):
    """The fields of `RunOptions` in their accepted forms: `fail_on` also as `"P1"`, dates in any
    order."""

    fail_on: Severity | str
    allow_empty: bool
    require_history: bool
    skip_dates: Collection[date]
    ansi: bool
    max_clock_skew_hours: float


class SelectionKeywords(TypedDict, total=False):
    """The fields of `Selection`, in the forms accepted by `selection_of`."""

    only: Words
    tags: Words
    exclude_tags: Words
    severity: Severity | str | None
    dimensions: Words


class SelectedRunKeywords(RunKeywords, SelectionKeywords, total=False):
    """The keywords of a run with an optional selection."""


def options_of(given: RunKeywords) -> RunOptions:
    """The given options, with defaults for the others; a selection is ignored.

    :raises RequestError: a value is invalid.
    :raises TypeError: the option does not exist.
    """
    selecting = SelectionKeywords.__annotations__
    keywords: dict[str, Any] = {
        name: value for name, value in given.items() if name not in selecting
    }
    if "fail_on" in keywords:
        keywords["fail_on"] = _severity(keywords["fail_on"])
    if "skip_dates" in keywords:
        keywords["skip_dates"] = tuple(keywords["skip_dates"])
    return RunOptions(**keywords)


def selection_in(given: SelectionKeywords) -> Selection | None:
    """The given selection; None if everything is selected.

    :raises RequestError: a value is invalid.
    """
    selecting = SelectionKeywords.__annotations__
    keywords: dict[str, Any] = {name: value for name, value in given.items() if name in selecting}
    return selection_of(**keywords)


def with_keywords_of(keywords: type) -> Callable[[Function], Function]:
    """The function, with its `**options` displayed as separate keywords: in `help` and in
    notebooks."""
    defaults = {field.name: field.default for field in fields(RunOptions)}

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        options = (
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(name),
                annotation=annotation.__forward_arg__,
            )
            for name, annotation in keywords.__annotations__.items()
        )
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=(*own, *options)
        )
        return function

    return shown


def _severity(given: Severity | str) -> Severity:
    try:
        return Severity(given)
    except ValueError:
        raise RequestError(f"fail_on={given!r}: write P0, P1, P2 or P3") from None
