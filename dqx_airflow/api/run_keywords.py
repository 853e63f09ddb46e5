"""The options of a run as keywords: one list for all functions that run from Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from datetime import date
from typing import Any, TypedDict, TypeVar, cast

from dqx_airflow.errors import RequestError
from dqx_airflow.values import RunOptions, Severity

Function = TypeVar("Function", bound=Callable[..., Any])


class RunKeywords(TypedDict, total=False):
    """What `RunOptions` has, as it may be given: `fail_on` also as `"P1"`, dates in any order."""

    fail_on: Severity | str
    allow_empty: bool
    require_history: bool
    skip_dates: Collection[date]


def options_of(given: RunKeywords) -> RunOptions:
    """The options that are given, the others by default.

    :raises RequestError: a value makes no sense.
    :raises TypeError: there is no such option.
    """
    keywords = cast("dict[str, Any]", {**given})
    if "fail_on" in keywords:
        keywords["fail_on"] = _severity(keywords["fail_on"])
    if "skip_dates" in keywords:
        keywords["skip_dates"] = tuple(keywords["skip_dates"])
    return RunOptions(**keywords)


def with_run_keywords(function: Function) -> Function:
    """The function, its `**options` shown as keywords of their own: in `help` and in notebooks."""
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    options = (
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=RunKeywords.__annotations__[field.name].__forward_arg__,
        )
        for field in fields(RunOptions)
    )
    shown = signature.replace(parameters=(*own, *options))
    function.__signature__ = shown  # type: ignore[attr-defined]
    return function


def _severity(given: Severity | str) -> Severity:
    try:
        return Severity(given)
    except ValueError:
        raise RequestError(f"fail_on={given!r}: write P0, P1, P2 or P3") from None
