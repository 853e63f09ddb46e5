"""The format of an assertion's values: durations as such, the ends of a scale with a few digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dqx_airflow.diagnostics.verdicts import (
    format_in_unit,
    format_value,
    is_age,
    unscaled_limit,
)
from dqx_airflow.values import MetricValue, Status, Verdict

Reading: TypeAlias = Callable[[MetricValue], str]


def reading_of(verdict: Verdict) -> Reading:
    """The format of the values and the limits of an assertion."""
    if is_age(verdict.expression) or _is_share(verdict):
        return lambda value: format_in_unit(value, verdict)
    return format_value


def _is_share(verdict: Verdict) -> bool:
    return "%" in verdict.expected


def value_of(verdict: Verdict) -> str:
    """The compared value in readable form."""
    value = verdict.scaled_value
    if value is None:
        return "\N{EN DASH}"
    return value if isinstance(value, str) else reading_of(verdict)(value)


def raw_of(verdict: Verdict) -> str:
    """The value before a profile scales it."""
    value = verdict.value
    return value if isinstance(value, str) else reading_of(verdict)(value)


def limit_of(verdict: Verdict) -> str:
    """The limit, also for the value before a profile scales it."""
    return unscaled_limit(verdict) or reading_of(verdict)(verdict.threshold)


def fault_of(verdict: Verdict) -> str:
    """What is wrong, on one line: `orders.id is 3, expected == 0`, or why it is unknown."""
    if verdict.status is Status.ERROR:
        return f"{verdict.name}: {verdict.reason or 'could not be evaluated'}"
    if verdict.status is Status.SKIPPED:
        return f"{verdict.name}: not evaluated, {verdict.reason}"
    return f"{verdict.name} is {value_of(verdict)}, expected {verdict.expected}"
