"""Whether a condition holds for a value, and if not, why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any, NamedTuple

from dqx_airflow.diagnostics.listing import listed
from dqx_airflow.diagnostics.verdicts import format_value, show_in_full
from dqx_airflow.metrics.type_compatibility import misfits
from dqx_airflow.plan.model import Measured, PlannedAssertion, Term, requests_of
from dqx_airflow.plan.number_comparison import NEARLY_EQUAL, Compared, Side, compare, is_within
from dqx_airflow.values import MetricValue, Status

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


_PART_OF_SECOND = re.compile(r"(?<=:[0-9]{2})[.,]([0-9]+)")


_NOT_A_DATE = (
    "a date or timestamp cannot be compared with any other string: write dates as 2024-03-02, "
    'timestamps as "2024-03-02T06:00:00"'
)


class ConditionResult(NamedTuple):
    """Whether a condition holds, and if not, why, with an optional note."""

    status: Status
    reason: str | None = None
    note: str | None = None


def compare_value(
    assertion: PlannedAssertion,
    value: MetricValue,
    bounds: tuple[MetricValue, ...],
    voids: str | None,
) -> ConditionResult:
    """:param voids: why metrics have no value, if more is known than that they have none."""
    condition = assertion.condition
    if condition.kind == "is None":
        return _passed(value is None)
    if condition.kind == "is not None":
        return _passed(True) if value is not None else _failed(voids or _no_value(assertion.term))
    if value is None:
        return _failed(f"the metric has no value ({voids or _no_value(assertion.term)})")
    if any(bound is None for bound in bounds):
        return _failed("the right-hand side has no value")
    if condition.kind == "fits":
        column = next(requests_of(assertion.term)).arguments[0]
        differences = tuple(misfits(str(value), str(bounds[0]), column))
        return _failed(listed(differences, "; ")) if differences else _passed(True)
    if any(isinstance(bound, str) != isinstance(value, str) for bound in bounds):
        return ConditionResult(Status.ERROR, "a string or date cannot be compared with a number")
    if isinstance(value, str) and any(_has_no_order(value, str(bound)) for bound in bounds):
        return ConditionResult(Status.ERROR, _NOT_A_DATE)
    tests = ((">=", 0), ("<=", 1)) if condition.kind == "between" else ((condition.kind, 0),)
    return _all_hold(assertion, value, [(op, number, bounds[number]) for op, number in tests])


def _all_hold(
    assertion: PlannedAssertion, value: MetricValue, tests: Iterable[tuple[str, int, MetricValue]]
) -> ConditionResult:
    """Whether `value op bound` for each test, each with the index of its bound."""
    tolerance, decided = assertion.condition.tolerance, None
    for op, number, bound in tests:
        if isinstance(value, str) or isinstance(bound, str):
            left, right = _comparable(str(value), str(bound))
            order = (left > right) - (left < right)
            holds = Compared(order, order).holds(op)
        elif tolerance is not None:
            assert value is not None
            assert bound is not None
            holds = is_within(value, bound, tolerance) == (op == "==")
        else:
            assert value is not None
            assert bound is not None
            is_scaled = assertion.multiplier != 1
            subject = Side.of(assertion.term, value, is_scaled=is_scaled)
            comparison = compare(subject, Side.of(assertion.condition.bounds[number], bound))
            holds = comparison.holds(op)
            if comparison.is_decided_by_tolerance(op):
                decided = f"the two are {NEARLY_EQUAL}"
        if not holds:
            return _failed(decided or _in_full(value, bound))
    return _passed(True, decided)


def _in_full(value: MetricValue, bound: MetricValue) -> str | None:
    """All digits of two numbers that look equal in a few digits, else None."""
    if value == bound or format_value(value) != format_value(bound):
        return None
    return f"in full, the value is {show_in_full(value)} and the limit {show_in_full(bound)}"


def _no_value(term: Term) -> str:
    if isinstance(term, Measured):
        return term.request.definition.no_value
    return "no rows, only NULL, or a division by zero"


def _comparable(*values: str) -> tuple[Any, ...]:
    """The values as timestamps if all of them are dates or timestamps, else unchanged."""
    timestamps = tuple(map(_timestamp, values))
    return values if None in timestamps else timestamps


def _has_no_order(*values: str) -> bool:
    """True for a date or timestamp next to a string that is neither: `2024-11-29` and `2024-3-2`.

    Compared as strings, the day in November would be the earlier one.
    """
    return None in map(_timestamp, values) and any(
        _DAY.match(value) and _timestamp(value) for value in values
    )


def _timestamp(text: str) -> tuple[datetime, str] | None:
    """The seconds and their fraction, which Python would truncate; None for other strings.

    So `2024-11-29`, `2024-11-29 00:00` and `2024-11-29T01:00:00+01:00` are equal: a timestamp
    without a time zone is in UTC.
    """
    if not _DAY.match(text):
        return None  # Python also parses `20241129` and `2024-W48-5`, which may be any codes
    part = _PART_OF_SECOND.search(text)
    try:
        second = datetime.fromisoformat(_PART_OF_SECOND.sub("", text).removesuffix("Z"))
    except ValueError:
        return None
    zoned = second if second.tzinfo else second.replace(tzinfo=timezone.utc)
    return zoned, part[1].rstrip("0") if part else ""


def _passed(holds: bool, note: str | None = None) -> ConditionResult:
    return ConditionResult(Status.PASSED, note=note) if holds else _failed(None)


def _failed(reason: str | None) -> ConditionResult:
    return ConditionResult(Status.FAILED, reason)
