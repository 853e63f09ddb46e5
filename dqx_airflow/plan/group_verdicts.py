"""Combines the judgements of all groups into the verdict of their assertion."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from dqx_airflow.diagnostics.verdicts import format_like_limit, format_value
from dqx_airflow.metrics.spark_values import timestamp_of
from dqx_airflow.plan.groupings import show_group
from dqx_airflow.plan.masks import is_masked, reveals_comparison
from dqx_airflow.plan.model import (
    Group,
    GroupValues,
    JudgedGroups,
    Measured,
    MetricRequest,
    Plan,
    PlannedAssertion,
    PlannedCondition,
    Scanned,
    requests_of,
    row_count,
)
from dqx_airflow.values import MASK, FailingRow, MetricValue, Status
from dqx_airflow.values.exact import nearest_float

_EPOCH = datetime(1970, 1, 1)
_NO_GROUP = "no groups to judge: no rows"


class EvaluatedCondition(NamedTuple):
    """Whether a condition holds for all rows or a group, if not why, and what was compared."""

    status: Status
    reason: str | None = None
    value: MetricValue = None
    scaled: MetricValue = None
    bounds: tuple[MetricValue, ...] = ()
    note: str | None = None


def seen_in(assertion: PlannedAssertion, scanned: Scanned) -> frozenset[Group]:
    """The groups that have rows on any date of an assertion."""
    return frozenset(
        group
        for request in assertion.requests
        for group in scanned.groups.get(request, GroupValues()).values
    )


def column_types(assertion: PlannedAssertion, scanned: Scanned) -> dict[str, tuple[str, ...]]:
    """By dataset, the types of the grouping columns, if known."""
    return {
        request.dataset: scanned.groups[request].types
        for request in assertion.requests
        if request in scanned.groups and scanned.groups[request].types
    }


def groups_of(assertion: PlannedAssertion, seen: Collection[Group]) -> tuple[Group, ...]:
    """The groups that an assertion is judged for, in a stable order.

    :param seen: those that have rows.
    """
    judged = assertion.groups
    if judged is not None and judged.listed is not None:
        return judged.listed
    if all(type(value) is str for group in seen for value in group):
        return tuple(sorted(seen))
    return tuple(sorted(seen, key=_order))


@dataclass(frozen=True)
class GroupView:
    """The results of a scan for one group of an assertion."""

    assertion: PlannedAssertion
    found: Scanned

    def key(self, group: Group) -> tuple[object, ...]:
        """A key for a group, equal if everything that `of` returns is equal."""
        return tuple(
            (
                type(value := group_values.values.get(group, empty)),
                value,
                group_values.details.get(group),
            )
            for _, group_values, empty in self._known
        )

    def of(self, group: Group) -> Scanned:
        """The values of a group: without rows, those of an empty dataset."""
        values = dict(self._row_counts)
        details: dict[MetricRequest, str] = {}
        for request, group_values, empty in self._known:
            values[request] = group_values.values.get(group, empty)
            if group in group_values.details:
                details[request] = group_values.details[group]
        return Scanned(values, {}, {}, details, {})

    @cached_property
    def _known(self) -> list[tuple[MetricRequest, GroupValues, MetricValue]]:
        groups = self.found.groups
        return [
            (request, groups.get(request, GroupValues()), request.definition.empty)
            for request in self.assertion.requests
        ]

    @cached_property
    def _row_counts(self) -> dict[MetricRequest, MetricValue]:
        """The numbers of rows of the datasets, which tell whether there was data."""
        counts = {row_count(request.dataset, request.date) for request in self.assertion.requests}
        return {count: self.found.values.get(count) for count in counts}


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


def verdict_on_groups(
    assertion: PlannedAssertion,
    plan: Plan,
    judged: Mapping[Group, EvaluatedCondition],
    most_rows: int,
) -> GroupsVerdict:
    """The verdict: passed if the required share of the groups has passed.

    If one group could not be evaluated, the assertion could not. A skipped group has not passed.
    Without any group nothing has.

    :param judged: the judgement on each group.
    :param most_rows: the maximum number of groups in the sample.
    """
    for_each = assertion.groups
    assert for_each is not None
    if not judged:
        return GroupsVerdict(Status.FAILED, _NO_GROUP, EvaluatedCondition(Status.FAILED, _NO_GROUP))
    by_status: dict[Status, list[Group]] = {status: [] for status in Status}
    for group, judgement in judged.items():
        by_status[judgement.status].append(group)
    failed = _worst_first(assertion.condition, by_status[Status.FAILED], judged)
    words = _Words(assertion, plan, for_each)
    if errors := by_status[Status.ERROR]:
        message = f"{words.name(errors[0])}: {judged[errors[0]].reason}"
        return GroupsVerdict(Status.ERROR, message, judged[errors[0]], len(judged), len(failed))
    passed, skipped = len(by_status[Status.PASSED]), by_status[Status.SKIPPED]
    worst = failed[:1] or _worst(assertion.condition, by_status[Status.PASSED], judged)
    worst = worst or skipped[:1]
    note, reason = judged[worst[0]].note, None
    if _suffices(passed, len(judged), for_each):
        status = Status.PASSED
        if failed:
            note = "; ".join(filter(None, (note, words.count(failed, judged))))
    elif skipped and _suffices(passed + len(skipped), len(judged), for_each):
        status, reason = Status.SKIPPED, judged[skipped[0]].reason
        worst = skipped[:1]
    else:
        status, reason = Status.FAILED, words.reason(failed or skipped, judged)
    return GroupsVerdict(
        status,
        reason,
        judged[worst[0]],
        len(judged),
        len(failed),
        words.name(worst[0]),
        tuple(words.row(group, judged[group]) for group in failed[:most_rows])
        if status is Status.FAILED
        else (),
        note,
    )


def _suffices(passed: int, groups: int, for_each: JudgedGroups) -> bool:
    return Fraction(passed, groups) >= for_each.share


@dataclass(frozen=True)
class _Words:
    """Texts about groups, without masked values."""

    assertion: PlannedAssertion
    plan: Plan
    asked: JudgedGroups

    @cached_property
    def _hides_groups(self) -> bool:
        masked = self.plan.masked
        return any(
            is_masked(column, masked.get(name, ()))
            for name in self.assertion.datasets
            for column in self.asked.columns
        )

    @cached_property
    def _hides_values(self) -> bool:
        return reveals_comparison(self.assertion, self.plan.masked)

    @cached_property
    def _measured_name(self) -> str:
        """The name of the value of a group."""
        match self.assertion.term:
            case Measured(request=request) if request.definition.is_internal:
                return request.metric
            case _:
                return self.assertion.expression

    def name(self, group: Group) -> str:
        return MASK if self._hides_groups else show_group(group)

    def reason(self, failed: Sequence[Group], judged: Mapping[Group, EvaluatedCondition]) -> str:
        first = judged[failed[0]]
        text = self.count(failed, judged)
        if first.reason and not self._hides_values:
            text = f"{text}: {first.reason}"
        return text

    def count(self, failed: Sequence[Group], judged: Mapping[Group, EvaluatedCondition]) -> str:
        """The number of failed groups, and the worst with its value."""
        text = f"{len(failed)} of {len(judged)} groups failed"
        if self.asked.share != 1:
            text += f", at least {100 * float(self.asked.share):.6g}% have to pass"
        worst = judged[failed[0]]
        shown = "" if worst.scaled is None or self._hides_values else f" with {self.value(worst)}"
        return text if self._hides_groups else f"{text}, the worst is {self.name(failed[0])}{shown}"

    def value(self, judged: EvaluatedCondition) -> str:
        """The value of a group in the unit of its limit."""
        limit = judged.bounds[0] if judged.bounds else None
        expected = expected_text(self.assertion.condition, judged.bounds)
        return format_like_limit(judged.scaled, self.assertion.expression, expected, limit)

    def row(self, group: Group, judged: EvaluatedCondition) -> FailingRow:
        """A group with its value, and the limit that it violates."""
        values = [MASK if self._hides_groups and value is not None else value for value in group]
        cells = dict(zip(self.asked.columns, map(_cell, values), strict=True))
        is_hidden = self._hides_values and judged.scaled is not None
        cells[self._measured_name] = MASK if is_hidden else _cell(judged.scaled)
        limit = expected_text(self.assertion.condition, judged.bounds, is_hidden=self._hides_values)
        text = json.dumps(cells, ensure_ascii=False)
        return FailingRow(self.assertion.datasets[0], f"expected {limit}", text)


def expected_text(
    condition: PlannedCondition, bounds: tuple[MetricValue, ...], *, is_hidden: bool = False
) -> str:
    """The condition as text, with the values of its metrics, if known."""
    if not bounds or not any(True for bound in condition.bounds for _ in requests_of(bound)):
        return condition.text
    limits = MASK if is_hidden else " and ".join(format_value(bound) for bound in bounds)
    return f"{condition.text} ({limits})"


def _worst_first(
    condition: PlannedCondition, groups: Iterable[Group], judged: Mapping[Group, EvaluatedCondition]
) -> list[Group]:
    return sorted(groups, key=lambda group: -_excess(condition, judged[group]))


def _worst(
    condition: PlannedCondition, groups: Sequence[Group], judged: Mapping[Group, EvaluatedCondition]
) -> list[Group]:
    """The first one of `_worst_first`, if there is one."""
    # Groups with the same value share their judgement.
    different = {id(judgement): judgement for judgement in (judged[group] for group in groups)}
    excess = {key: _excess(condition, judgement) for key, judgement in different.items()}
    return [max(groups, key=lambda group: excess[id(judged[group])])] if groups else []


def _excess(condition: PlannedCondition, judged: EvaluatedCondition) -> float:
    """The distance of a value beyond its limit; negative within it, infinite without a value."""
    value = _number(judged.scaled)
    bounds = [_number(bound) for bound in judged.bounds]
    if value is None or None in bounds:
        return float("inf") if judged.status is Status.FAILED else float("-inf")
    low = bounds[0] if bounds and bounds[0] is not None else 0.0
    match condition.kind:
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
        case _:
            return 0.0


def _number(value: MetricValue) -> float | None:
    if isinstance(value, str):
        timestamp = timestamp_of(value)
        return None if timestamp is None else (timestamp - _EPOCH).total_seconds()
    return None if value is None else nearest_float(value)


def _cell(value: MetricValue) -> int | float | str | None:
    return nearest_float(value) if isinstance(value, Fraction) else value


def _order(group: Group) -> tuple[tuple[int, float, str], ...]:
    """Numbers by size, then strings, NULL last."""
    return tuple(
        (2, 0.0, "")
        if value is None
        else (1, 0.0, value)
        if isinstance(value, str)
        else (0, nearest_float(value), "")
        for value in group
    )
