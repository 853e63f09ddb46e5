"""Whether a condition holds for a value, and if not, why. Its numbers are compared exactly, or with
the single tolerance for floats.

Exact numbers (counts, integers, decimals, and results computed from them) are compared exactly. A
float carries rounding errors, so two numbers, at least one of them a float, are equal if they
differ by at most a billionth of the larger one, for all six comparators alike. A float that was not
computed but taken from a column, such as an extreme, has no such error and no tolerance.

Most groups of an assertion clearly pass, and are found without judging each in full.

A metric compared with a constant clearly passes if both are exact, or if they are too far apart for
rounding to matter. Every other group, and every one that does not pass, is judged in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timezone
from fractions import Fraction
from typing import Any, NamedTuple

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.verdicts import format_value, show_in_full
from dqx_airflow.metrics.spark_values import COMPARATORS, plain
from dqx_airflow.metrics.types import misfits
from dqx_airflow.plan.group_verdicts import EvaluatedCondition
from dqx_airflow.plan.model import (
    Applied,
    Claimed,
    ConstantTerm,
    Group,
    GroupValues,
    Measured,
    Now,
    PlannedAssertion,
    Scanned,
    Term,
    requests_of,
)
from dqx_airflow.values import MetricValue, Status
from dqx_airflow.values.exact import NUMBERS, Number, nearest_float


def clear_passes(
    assertion: PlannedAssertion,
    scanned: Scanned,
    groups: Iterable[Group],
    on: date,
    skip_dates: Collection[date],
) -> dict[Group, EvaluatedCondition]:
    """The judgements of the groups that clearly pass, equal to full ones.

    :param on: the date of the plan. For other dates it is not enough to compare values, because
        they may have no data.
    """
    bounds = tuple(number for bound in assertion.condition.bounds for number in _number(bound))
    if len(bounds) < len(assertion.condition.bounds) or not _is_plain(assertion, on, skip_dates):
        return {}
    (request,) = assertion.requests
    ops = (">=", "<=") if assertion.condition.kind == "between" else (assertion.condition.kind,)
    tests = [_passes(op, bound) for op, bound in zip(ops, bounds, strict=True)]
    values, empty = scanned.groups.get(request, GroupValues()).values, request.definition.empty
    judged: dict[Group, EvaluatedCondition] = {}
    # Groups with the same value, such as no NULL, share their judgement.
    by_value: dict[tuple[type, MetricValue], EvaluatedCondition | None] = {}
    for group in groups:
        value = values.get(group, empty)
        key = type(value), value
        if key not in by_value:
            holds = isinstance(value, NUMBERS) and all(test(value) for test in tests)
            by_value[key] = (
                EvaluatedCondition(Status.PASSED, None, value, value, bounds) if holds else None
            )
        if (judgement := by_value[key]) is not None:
            judged[group] = judgement
    return judged


def _is_plain(assertion: PlannedAssertion, on: date, skip_dates: Collection[date]) -> bool:
    """True for a single metric on the date, compared without a tolerance and without a profile."""
    condition, requests = assertion.condition, assertion.requests
    return (
        isinstance(assertion.term, Measured)
        and len(requests) == 1
        and requests[0].date in (None, on)
        and requests[0].date not in skip_dates
        # A filter that no row satisfies gets a note.
        and (requests[0].where is None or requests[0].metric != "num_rows")
        and assertion.multiplier == 1
        and condition.tolerance is None
        and (condition.kind in COMPARATORS or condition.kind == "between")
    )


def _number(term: Term) -> Iterator[Number]:
    """The number of a constant term."""
    if isinstance(term, ConstantTerm):
        value = plain(term.value)
        if isinstance(value, NUMBERS):
            yield value


def _passes(op: str, bound: Number) -> Callable[[Number], bool]:
    """Whether `number op bound` clearly holds."""
    holds, near = COMPARATORS[op], nearest_float(bound)
    is_exact, size = not isinstance(bound, float), abs(near)

    def passes(number: Number) -> bool:
        if is_exact and isinstance(number, int):
            return holds((number > bound) - (number < bound), 0)
        value = nearest_float(number)
        is_clear = abs(value - near) > CLEARLY * max(abs(value), size)
        return is_clear and holds((value > near) - (value < near), 0)

    return passes


FLOAT_TOLERANCE = Fraction(1, 10**9)
"""Floats that differ by at most this much, relative to the larger one, are equal."""

CLEARLY = 1e-8
"""Floats that differ by more, relative to the larger one, are never near."""

NEARLY_EQUAL = "equal within the tolerance of floating-point numbers (relative 1e-9)"


_PICKS = frozenset({"min", "max", "coalesce", "abs", "negative"})
"""Functions whose value is one of their operands, except for the sign."""


@dataclass(frozen=True, slots=True)
class Side:
    """A number in a comparison.

    `is_picked`: it was not computed, but taken from a column or written by the user.
    """

    value: Number
    is_picked: bool = False
    is_written: bool = False

    @classmethod
    def of(cls, term: Term, value: Number, *, is_scaled: bool = False) -> Side:
        """The value of a term, or the multiple of it that is compared."""
        is_written = next(requests_of(term), None) is None
        return cls(value, not is_scaled and _picks(term), is_written)

    def beside(self, other: Side) -> Side:
        """The side as the other one can be compared with it.

        A number written with a decimal point is replaced by the nearest float: no column of floats
        holds 0.1 itself.
        """
        if self.is_written and isinstance(self.value, Fraction) and isinstance(other.value, float):
            return Side(float(self.value), is_picked=True)
        return self


@dataclass(frozen=True, slots=True)
class Compared:
    """`order` is negative, 0 or positive if the left number is smaller, equal or larger;
    `exact_order` is the same without the tolerance."""

    order: int
    exact_order: int

    def holds(self, op: str) -> bool:
        """Whether `left op right`, with op one of < <= > >= == !=."""
        return COMPARATORS[op](self.order, 0)

    def is_decided_by_tolerance(self, op: str) -> bool:
        return self.holds(op) != COMPARATORS[op](self.exact_order, 0)


def compare(left: Side, right: Side) -> Compared:
    left, right = left.beside(right), right.beside(left)
    a, b = left.value, right.value
    order = (a > b) - (a < b)  # Python compares floats with integers and fractions exactly
    is_exact = not (isinstance(a, float) or isinstance(b, float))
    if order == 0 or is_exact or (left.is_picked and right.is_picked):
        return Compared(order, order)
    p, q = nearest_float(a), nearest_float(b)
    if abs(p - q) > CLEARLY * max(abs(p), abs(q)):
        return Compared(order, order)
    exact_a, exact_b = Fraction(a), Fraction(b)
    is_near = abs(exact_a - exact_b) <= FLOAT_TOLERANCE * max(abs(exact_a), abs(exact_b))
    return Compared(0 if is_near else order, order)


def is_within(left: Number, right: Number, tolerance: Number) -> bool:
    """Whether two numbers differ by at most the tolerance, inclusive.

    Floats also if they miss it only by binary rounding: |1.05 - 1| <= 0.05.
    """
    difference, most = abs(Fraction(left) - Fraction(right)), Fraction(tolerance)
    is_exact = not (isinstance(left, float) or isinstance(right, float))
    return difference <= (most if is_exact else most * (1 + FLOAT_TOLERANCE))


def _picks(term: Term) -> bool:
    """True if the value of a term is a value of a column."""
    match term:
        case Measured(request=request):
            return request.definition.is_picked
        case Applied(function=function, terms=terms):
            return function in _PICKS and all(map(_picks, terms))
        case ConstantTerm() | Now():
            return True
        case Claimed():
            return False


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
