"""Whether a condition holds for a value, and if not, why. Its numbers are compared exactly, or
with the single tolerance for floats. And the judgements of all groups combined into the verdict of
their assertion.

Exact numbers (counts, integers, decimals, and results computed from them) are compared exactly. A
float carries rounding errors, so two numbers, at least one of them a float, are equal if they
differ by at most a billionth of the larger one, for all six comparators alike. A float that was
not computed but taken from a column, such as an extreme, has no such error and no tolerance.

Most groups of an assertion clearly pass, and are found without judging each in full.

A metric compared with a constant clearly passes if both are exact, or if they are too far apart
for rounding to matter. Every other group, and every one that does not pass, is judged in full.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.verdicts import format_like_limit, format_value, show_in_full
from dqx_airflow.metrics.drift import DRIFT, NO_DRIFT
from dqx_airflow.metrics.metric import NO_VALUE
from dqx_airflow.metrics.spark_values import (
    COMPARATORS,
    metric_value,
    moment_in_metric,
    timestamp_of,
)
from dqx_airflow.metrics.types import misfits
from dqx_airflow.plan import model
from dqx_airflow.plan.groupings import show_group
from dqx_airflow.plan.masks import is_masked, reveals_comparison
from dqx_airflow.values import MASK, FailingRow, MetricValue, Status
from dqx_airflow.values.exact import NUMBERS, Number, nearest_float

_EPOCH = datetime(1970, 1, 1)
_NO_GROUP = "no groups to judge: no rows"


class EvaluatedCondition(NamedTuple):
    """The result of a condition for all rows or a group, its reason, and the compared values."""

    status: Status
    reason: str | None = None
    value: MetricValue = None
    scaled: MetricValue = None
    bounds: tuple[MetricValue, ...] = ()
    note: str | None = None
    factors: str = ""


@dataclass(frozen=True)
class GroupView:
    """The results of a scan for the groups of an assertion."""

    assertion: model.PlannedAssertion
    found: model.Scanned

    @property
    def column_types(self) -> dict[str, tuple[str, ...]]:
        """By dataset, the types of the grouping columns, if known."""
        groups = self.found.groups
        requests = (request for request in self.assertion.requests if request in groups)
        return {one.dataset: groups[one].types for one in requests if groups[one].types}

    @cached_property
    def groups(self) -> tuple[model.Group, ...]:
        """The groups that the assertion is judged for, in a stable order: those that it lists, or
        those that have rows on any of its dates."""
        judged = self.assertion.groups
        if judged is not None and judged.listed is not None:
            return judged.listed
        requests = self.assertion.requests
        found = self.found.groups
        seen = {group for one in requests if one in found for group in found[one].values}
        is_text = all(type(value) is str for group in seen for value in group)
        return tuple(sorted(seen, key=None if is_text else _order))

    def key(self, group: model.Group) -> tuple[object, ...]:
        """A key for a group, equal if everything that `of` returns is equal."""
        return tuple(
            (
                type(value := group_values.values.get(group, empty)),
                value,
                group_values.details.get(group),
            )
            for _, group_values, empty in self._known
        )

    def of(self, group: model.Group) -> model.Scanned:
        """The values of a group: without rows, the values of an empty dataset."""
        values = dict(self._row_counts)
        details: dict[model.MetricRequest, str] = {}
        for request, group_values, empty in self._known:
            values[request] = group_values.values.get(group, empty)
            if group in group_values.details:
                details[request] = group_values.details[group]
        return model.Scanned(values, {}, {}, details, {})

    @cached_property
    def _known(self) -> list[tuple[model.MetricRequest, model.GroupValues, MetricValue]]:
        groups = self.found.groups
        return [
            (request, groups.get(request, model.GroupValues()), request.definition.empty)
            for request in (*self.assertion.requests, *self.assertion.history)
        ]

    @cached_property
    def _row_counts(self) -> dict[model.MetricRequest, MetricValue]:
        """The numbers of rows of the datasets, which show whether there was data."""
        requests = (*self.assertion.requests, *self.assertion.history)
        counts = {model.row_count(request.dataset, request.date) for request in requests}
        return {count: self.found.values.get(count) for count in counts}

    def clear_passes(
        self, on: date, skip_dates: Collection[date]
    ) -> dict[model.Group, EvaluatedCondition]:
        """The judgements of the groups that clearly pass, equal to full ones.

        :param on: the date of the plan. For other dates it is not enough to compare values, because
            they may have no data.
        """
        assertion = self.assertion
        condition = self.assertion.condition
        bounds = tuple(number for bound in condition.bounds for number in _number(bound))
        if len(bounds) < len(condition.bounds) or not _is_plain(assertion, on, skip_dates):
            return {}
        _, found, empty = self._known[0]
        ops = condition.comparators
        tests = [_passes(op, bound) for op, bound in zip(ops, bounds, strict=True)]
        judged: dict[model.Group, EvaluatedCondition] = {}
        # Groups with the same value, such as no NULL, share their judgement.
        by_value: dict[tuple[type, MetricValue], EvaluatedCondition | None] = {}
        for group in self.groups:
            value = found.values.get(group, empty)
            key = type(value), value
            if key not in by_value:
                holds = isinstance(value, NUMBERS) and condition.holds(
                    test(value) for test in tests
                )
                passed = EvaluatedCondition(Status.PASSED, None, value, value, bounds)
                by_value[key] = passed if holds else None
            if (judgement := by_value[key]) is not None:
                judged[group] = judgement
        return judged


@dataclass(frozen=True, slots=True)
class GroupsVerdict:
    """The verdict on all groups. `worst` is the judgement on the group that fails by the largest
    margin, or else is nearest to its limit; `rows` is a sample of the failed groups, worst first.
    """

    status: Status
    reason: str | None
    worst: EvaluatedCondition
    groups: int = 0
    failed_groups: int = 0
    worst_group: str | None = None
    rows: tuple[FailingRow, ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class GroupsJudgement:
    """The judgement on each group of an assertion. Its texts contain no masked values."""

    assertion: model.PlannedAssertion
    plan: model.Plan
    requirement: model.JudgedGroups
    judged: Mapping[model.Group, EvaluatedCondition]

    def verdict(self, most_rows: int) -> GroupsVerdict:
        """The verdict: passed if the required share of the groups has passed.

        If one group could not be evaluated, the assertion could not. A skipped group has not
        passed. Without any group nothing has.

        :param most_rows: the maximum number of groups in the sample.
        """
        judged = self.judged
        if not judged:
            nothing = EvaluatedCondition(Status.FAILED, _NO_GROUP)
            return GroupsVerdict(Status.FAILED, _NO_GROUP, nothing)
        by_status: dict[Status, list[model.Group]] = {status: [] for status in Status}
        for group, judgement in judged.items():
            by_status[judgement.status].append(group)
        failed = sorted(by_status[Status.FAILED], key=lambda group: -self._excess(judged[group]))
        if errors := by_status[Status.ERROR]:
            message = f"{self._name(errors[0])}: {judged[errors[0]].reason}"
            return GroupsVerdict(Status.ERROR, message, judged[errors[0]], len(judged), len(failed))
        passed = by_status[Status.PASSED]
        skipped = by_status[Status.SKIPPED]
        if self._suffices(len(passed)):
            nearest = (failed or self._nearest(passed) or skipped)[0]
            verdict = self._verdict(Status.PASSED, nearest, failed)
            notes = [verdict.note, self._count(failed) if failed else None]
            return replace(verdict, note="; ".join(filter(None, notes)) or None)
        if skipped and self._suffices(len(passed) + len(skipped)):
            verdict = self._verdict(Status.SKIPPED, skipped[0], failed)
            return replace(verdict, reason=self.judged[skipped[0]].reason)
        verdict = self._verdict(Status.FAILED, failed[0], failed)
        rows = tuple(self._row(group, judged[group]) for group in failed[:most_rows])
        return replace(verdict, reason=self._reason(failed), rows=rows)

    def _verdict(
        self, status: Status, worst: model.Group, failed: Sequence[model.Group]
    ) -> GroupsVerdict:
        """A verdict with the value, the name and the note of its worst group."""
        judgement = self.judged[worst]
        return GroupsVerdict(
            status,
            reason=None,
            worst=judgement,
            groups=len(self.judged),
            failed_groups=len(failed),
            worst_group=self._name(worst),
            note=judgement.note,
        )

    def _suffices(self, passed: int) -> bool:
        return Fraction(passed, len(self.judged)) >= self.requirement.share

    def _nearest(self, groups: Sequence[model.Group]) -> list[model.Group]:
        """The group that is nearest to its limit, if there is one."""
        # Groups with the same value share their judgement.
        different = {id(judgement): judgement for judgement in (self.judged[one] for one in groups)}
        excess = {key: self._excess(judgement) for key, judgement in different.items()}
        return [max(groups, key=lambda group: excess[id(self.judged[group])])] if groups else []

    def _excess(self, judged: EvaluatedCondition) -> float:
        """The distance of a value beyond its limit; negative within it, infinite without a
        value."""
        value = _float_of(judged.scaled)
        bounds = [_float_of(bound) for bound in judged.bounds]
        if value is None or None in bounds:
            return float("inf") if judged.status is Status.FAILED else float("-inf")
        low = bounds[0] if bounds and bounds[0] is not None else 0.0
        match self.assertion.condition.kind:
            case "<" | "<=":
                return value - low
            case ">" | ">=":
                return low - value
            case "==":
                return abs(value - low)
            case "!=":
                return -abs(value - low)
            case "between":
                high = bounds[1] if bounds[1] is not None else low
                return max(low - value, value - high)
            case "not between":
                high = bounds[1] if bounds[1] is not None else low
                return min(value - low, high - value)
            case _:
                return 0.0

    @cached_property
    def _hides_groups(self) -> bool:
        masked = self.plan.masked
        return any(
            is_masked(column, masked.get(name, ()))
            for name in self.assertion.datasets
            for column in self.requirement.columns
        )

    @cached_property
    def _hides_values(self) -> bool:
        return reveals_comparison(self.assertion, self.plan.masked)

    @cached_property
    def _measured_name(self) -> str:
        """The name of the value of a group."""
        match self.assertion.term:
            case model.Measured(request=request) if request.definition.is_internal:
                return request.metric
            case _:
                return self.assertion.expression

    def _name(self, group: model.Group) -> str:
        return MASK if self._hides_groups else show_group(group)

    def _reason(self, failed: Sequence[model.Group]) -> str:
        first = self.judged[failed[0]]
        text = self._count(failed)
        return f"{text}: {first.reason}" if first.reason and not self._hides_values else text

    def _count(self, failed: Sequence[model.Group]) -> str:
        """The number of failed groups, and the worst with its value."""
        text = f"{len(failed)} of {len(self.judged)} groups failed"
        if self.requirement.share != 1:
            text += f", at least {100 * float(self.requirement.share):.6g}% have to pass"
        worst = self.judged[failed[0]]
        shown = "" if worst.scaled is None or self._hides_values else f" with {self._value(worst)}"
        name = self._name(failed[0])
        return text if self._hides_groups else f"{text}, the worst is {name}{shown}"

    def _value(self, judged: EvaluatedCondition) -> str:
        """The value of a group in the unit of its limit."""
        limit = judged.bounds[0] if judged.bounds else None
        expected = expected_text(self.assertion.condition, judged.bounds)
        return format_like_limit(judged.scaled, self.assertion.expression, expected, limit)

    def _row(self, group: model.Group, judged: EvaluatedCondition) -> FailingRow:
        """A group with its value, and the limit that it violates."""
        values = [MASK if self._hides_groups and value is not None else value for value in group]
        cells = dict(zip(self.requirement.columns, map(_cell, values), strict=True))
        is_hidden = self._hides_values and judged.scaled is not None
        cells[self._measured_name] = MASK if is_hidden else _cell(judged.scaled)
        limit = expected_text(self.assertion.condition, judged.bounds, is_hidden=self._hides_values)
        text = json.dumps(cells, ensure_ascii=False)
        return FailingRow(self.assertion.datasets[0], f"expected {limit}", text)


def expected_text(
    condition: model.PlannedCondition,
    bounds: tuple[MetricValue, ...],
    *,
    is_hidden: bool = False,
    factors: str = "",
) -> str:
    """The condition as text, with the values of its metrics, if known.

    :param factors: the factors that make the limits usual, such as `Tuesday x 1.02`.
    """
    if not bounds or not any(True for bound in condition.bounds for _ in model.requests_of(bound)):
        return condition.text
    limits = MASK if is_hidden else " and ".join(format_value(bound) for bound in bounds)
    return f"{condition.text} ({limits}{': ' if factors else ''}{factors})"


def _float_of(value: MetricValue) -> float | None:
    if isinstance(value, str):
        timestamp = timestamp_of(value)
        return None if timestamp is None else (timestamp - _EPOCH).total_seconds()
    return None if value is None else nearest_float(value)


def _cell(value: MetricValue) -> int | float | str | None:
    return nearest_float(value) if isinstance(value, Fraction) else value


def _order(group: model.Group) -> tuple[tuple[int, float, str], ...]:
    """A sort key for groups: numbers by size, then strings, NULL last."""
    return tuple(
        (2, 0.0, "")
        if value is None
        else (1, 0.0, value)
        if isinstance(value, str)
        else (0, nearest_float(value), "")
        for value in group
    )


def _is_plain(assertion: model.PlannedAssertion, on: date, skip_dates: Collection[date]) -> bool:
    """True for a single metric on the date, compared without a tolerance and without a profile."""
    condition = assertion.condition
    requests = assertion.requests
    return (
        isinstance(assertion.term, model.Measured)
        and len(requests) == 1
        and requests[0].date in (None, on)
        and requests[0].date not in skip_dates
        # A filter that no row satisfies gets a note.
        and (requests[0].where is None or requests[0].metric != "num_rows")
        and assertion.multiplier == 1
        and condition.tolerance is None
        and (condition.kind in COMPARATORS or condition.kind in ("between", "not between"))
    )


def _number(term: model.Term) -> Iterator[Number]:
    """The number of a constant term."""
    if isinstance(term, model.ConstantTerm):
        value = metric_value(term.value)
        if isinstance(value, NUMBERS):
            yield value


def _passes(op: str, bound: Number) -> Callable[[Number], bool]:
    """Whether `number op bound` clearly holds."""
    holds = COMPARATORS[op]
    near = nearest_float(bound)
    is_exact = not isinstance(bound, float)
    size = abs(near)

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
    def of(cls, term: model.Term, value: Number, *, is_scaled: bool = False) -> Side:
        """The value of a term, or the multiple of it that is compared."""
        is_written = next(model.requests_of(term), None) is None
        return cls(value, not is_scaled and _picks(term), is_written)

    def beside(self, other: Side) -> Side:
        """The side in the form that is compared with the other one.

        A number written with a decimal point is replaced by the nearest float: no column of floats
        holds 0.1 itself.
        """
        if self.is_written and isinstance(self.value, Fraction) and isinstance(other.value, float):
            return Side(float(self.value), is_picked=True)
        return self


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of comparing two numbers: `order` is negative, 0 or positive if the left number is
    smaller, equal or larger; `exact_order` is the same without the tolerance."""

    order: int
    exact_order: int

    def holds(self, op: str) -> bool:
        """Whether `left op right`, with op one of < <= > >= == !=."""
        return COMPARATORS[op](self.order, 0)


def compare(left: Side, right: Side) -> Compared:
    left, right = left.beside(right), right.beside(left)
    a = left.value
    b = right.value
    order = (a > b) - (a < b)  # Python compares floats with integers and fractions exactly
    is_exact = not (isinstance(a, float) or isinstance(b, float))
    if order == 0 or is_exact or (left.is_picked and right.is_picked):
        return Compared(order, order)
    p = nearest_float(a)
    q = nearest_float(b)
    if abs(p - q) > CLEARLY * max(abs(p), abs(q)):
        return Compared(order, order)
    exact_a = Fraction(a)
    exact_b = Fraction(b)
    is_near = abs(exact_a - exact_b) <= FLOAT_TOLERANCE * max(abs(exact_a), abs(exact_b))
    return Compared(0 if is_near else order, order)


def is_within(left: Number, right: Number, tolerance: Number) -> bool:
    """Whether two numbers differ by at most the tolerance, inclusive.

    Floats also if they miss it only by binary rounding: |1.05 - 1| <= 0.05.
    """
    difference = abs(Fraction(left) - Fraction(right))
    most = Fraction(tolerance)
    is_exact = not (isinstance(left, float) or isinstance(right, float))
    return difference <= (most if is_exact else most * (1 + FLOAT_TOLERANCE))


def _picks(term: model.Term) -> bool:
    """True if the value of a term is a value of a column."""
    match term:
        case model.Measured(request=request):
            return request.definition.is_picked
        case model.Applied(function=function, terms=terms):
            return function in _PICKS and all(map(_picks, terms))
        case model.ConstantTerm() | model.Now() | model.KnownDay():
            return True
        case model.Claimed():
            return False


_NOT_A_DATE = (
    "a date or timestamp cannot be compared with any other string: write dates as 2024-03-02, "
    'timestamps as "2024-03-02T06:00:00"'
)


def compare_value(
    assertion: model.PlannedAssertion,
    value: MetricValue,
    bounds: tuple[MetricValue, ...],
    voids: str | None,
) -> EvaluatedCondition:
    """The result of the condition of an assertion for a value.

    :param voids: why metrics have no value, if more is known than that they have none.
    """
    condition = assertion.condition
    if condition.kind == "is None":
        return _passed(value is None)
    if value is None:
        reason = voids or _no_value(assertion.term)
        is_expected = condition.kind == "is not None"
        return _failed(reason if is_expected else f"the metric has no value ({reason})")
    if condition.kind == "is not None":
        return _passed(True)
    if None in bounds:
        return _failed("the right-hand side has no value")
    if condition.kind == "fits":
        return _fitted(assertion, str(value), str(bounds[0]))
    objection = _objection(value, bounds)
    if objection is not None:
        return EvaluatedCondition(Status.ERROR, objection)
    comparisons = [
        _comparison(assertion, op, value, number, bound)
        for number, (op, bound) in enumerate(zip(condition.comparators, bounds, strict=True))
    ]
    holds = condition.holds(comparison.holds for comparison in comparisons)
    # All comparisons that fail are needed to pass `not between`; of `between`, one is enough.
    telling = [comparison for comparison in comparisons if comparison.holds == holds]
    is_by_tolerance = any(comparison.is_by_tolerance for comparison in telling)
    note = f"the two are {NEARLY_EQUAL}" if is_by_tolerance else None
    if holds:
        return _passed(True, note)
    if is_by_tolerance or condition.kind == "not between":
        return _failed(note)
    return _failed(_in_full(value, telling[0].bound))


def _fitted(assertion: model.PlannedAssertion, actual: str, wanted: str) -> EvaluatedCondition:
    """The result of comparing the type of a column with the wanted one."""
    column = next(model.requests_of(assertion.term)).arguments[0]
    differences = tuple(misfits(actual, wanted, column))
    return _failed(listed(differences, "; ")) if differences else _passed(True)


def _objection(value: MetricValue, bounds: Iterable[MetricValue]) -> str | None:
    """The reason why a value cannot be compared with bounds; None if it can."""
    for bound in bounds:
        if isinstance(bound, str) != isinstance(value, str):
            return "a string or date cannot be compared with a number"
    if isinstance(value, str) and any(_has_no_order(value, str(bound)) for bound in bounds):
        return _NOT_A_DATE
    return None


class _BoundComparison(NamedTuple):
    """Whether `value op bound` holds, and whether only the tolerance for floats decided it."""

    holds: bool
    bound: MetricValue
    is_by_tolerance: bool = False


def _comparison(
    assertion: model.PlannedAssertion, op: str, value: MetricValue, number: int, bound: MetricValue
) -> _BoundComparison:
    """The comparison of a value with the bound of this number."""
    if isinstance(value, str) or isinstance(bound, str):
        left, right = _comparable(str(value), str(bound))
        order = (left > right) - (left < right)
        return _BoundComparison(Compared(order, order).holds(op), bound)
    assert value is not None
    assert bound is not None
    tolerance = assertion.condition.tolerance
    if tolerance is not None:
        return _BoundComparison(is_within(value, bound, tolerance) == (op == "=="), bound)
    subject = Side.of(assertion.term, value, is_scaled=assertion.multiplier != 1)
    compared = compare(subject, Side.of(assertion.condition.bounds[number], bound))
    holds = compared.holds(op)
    return _BoundComparison(holds, bound, holds != COMPARATORS[op](compared.exact_order, 0))


def _in_full(value: MetricValue, bound: MetricValue) -> str | None:
    """All digits of two numbers that look equal in a few digits, else None."""
    if value == bound or format_value(value) != format_value(bound):
        return None
    return f"in full, the value is {show_in_full(value)} and the limit {show_in_full(bound)}"


def _no_value(term: model.Term) -> str:
    """The reason why a term has no value."""
    if isinstance(term, model.Measured):
        return term.request.definition.no_value
    if isinstance(term, model.Applied) and term.function in DRIFT:
        return NO_DRIFT
    reasons = dict.fromkeys(request.definition.no_value for request in model.requests_of(term))
    if not reasons or _divides(term):
        reasons[NO_VALUE] = None
    return "; or ".join(reasons)


def _divides(term: model.Term) -> bool:
    if not isinstance(term, model.Applied):
        return False
    return term.function == "/" or any(map(_divides, term.terms))


def _comparable(*values: str) -> tuple[Any, ...]:
    """The values as timestamps if all of them are dates or timestamps, else unchanged."""
    timestamps = tuple(map(moment_in_metric, values))
    return values if None in timestamps else timestamps


def _has_no_order(*values: str) -> bool:
    """True for a date or timestamp next to a string that is neither: `2024-11-29` and `2024-3-2`.

    Compared as strings, the day in November would be the earlier one.
    """
    moments = [moment_in_metric(value) for value in values]
    return None in moments and any(moments)


def _passed(holds: bool, note: str | None = None) -> EvaluatedCondition:
    return EvaluatedCondition(Status.PASSED, note=note) if holds else _failed(None)


def _failed(reason: str | None) -> EvaluatedCondition:
    return EvaluatedCondition(Status.FAILED, reason)
