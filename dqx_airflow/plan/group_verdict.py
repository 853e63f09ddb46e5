"""The verdict on an assertion that is judged for each group, from the judgements of its groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from math import inf

from dqx_airflow.diagnostics.verdicts import format_like_limit
from dqx_airflow.metrics.spark_values import timestamp_of
from dqx_airflow.plan import model
from dqx_airflow.plan.condition import EvaluatedCondition, expected_text
from dqx_airflow.plan.groupings import show_group
from dqx_airflow.plan.masks import is_masked, reveals_comparison
from dqx_airflow.values import MASK, FailingRow, MetricValue, Status
from dqx_airflow.values.exact import nearest_float

_EPOCH = datetime(1970, 1, 1)
_NO_GROUP = "no groups to check: no rows"


@dataclass(frozen=True, slots=True)
class GroupsVerdict:
    """The verdict on all groups. `worst` is the judgement on the group that fails by the largest
    margin, or else is nearest to its limit; `rows` is a sample of the failed groups, worst first.
    `failed_values` are the lowest and the highest value of a failed group.
    """

    status: Status
    reason: str | None
    worst: EvaluatedCondition
    groups: int = 0
    failed_groups: int = 0
    worst_group: str | None = None
    failed_values: tuple[MetricValue, ...] = ()
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
        if not self.judged:
            nothing = EvaluatedCondition(Status.FAILED, _NO_GROUP)
            return GroupsVerdict(Status.FAILED, _NO_GROUP, nothing)
        failed = sorted(self._with(Status.FAILED), key=self._excess_of, reverse=True)
        errors = self._with(Status.ERROR)
        if errors:
            return self._on_error(errors[0], failed)
        passed = self._with(Status.PASSED)
        skipped = self._with(Status.SKIPPED)
        if self._suffices(len(passed)):
            return self._on_pass(passed, skipped, failed)
        if skipped and self._suffices(len(passed) + len(skipped)):
            verdict = self._verdict(Status.SKIPPED, skipped[0], failed)
            return replace(verdict, reason=self.judged[skipped[0]].reason)
        verdict = self._verdict(Status.FAILED, failed[0], failed)
        rows = tuple(self._row(group, self.judged[group]) for group in failed[:most_rows])
        return replace(verdict, reason=self._reason(failed), rows=rows)

    def _with(self, status: Status) -> list[model.Group]:
        """The groups whose judgement has a status."""
        return [group for group, judgement in self.judged.items() if judgement.status is status]

    def _on_error(self, error: model.Group, failed: Sequence[model.Group]) -> GroupsVerdict:
        judgement = self.judged[error]
        return GroupsVerdict(
            Status.ERROR,
            reason=f"{self._name(error)}: {judgement.reason}",
            worst=judgement,
            groups=len(self.judged),
            failed_groups=len(failed),
        )

    def _on_pass(
        self,
        passed: Sequence[model.Group],
        skipped: Sequence[model.Group],
        failed: Sequence[model.Group],
    ) -> GroupsVerdict:
        """The verdict if enough groups have passed: the failed ones are in its note."""
        if failed:
            worst = failed[0]
        elif passed:
            worst = self._nearest(passed)
        else:
            worst = skipped[0]
        verdict = self._verdict(Status.PASSED, worst, failed)
        notes = [verdict.note, self._count(failed) if failed else None]
        return replace(verdict, note="; ".join(filter(None, notes)) or None)

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
            failed_values=self._range_of(failed),
            note=judgement.note,
        )

    def _range_of(self, failed: Sequence[model.Group]) -> tuple[MetricValue, ...]:
        """The lowest and the highest value of some groups; None among them if one has no number."""
        values = {self.judged[group].scaled for group in failed}
        numbers = [one for one in values if one is not None and not isinstance(one, str)]
        ends = (min(numbers), max(numbers)) if numbers else ()
        return ends if len(numbers) == len(values) else (*ends, None)

    def _suffices(self, passed: int) -> bool:
        return Fraction(passed, len(self.judged)) >= self.requirement.share

    def _nearest(self, groups: Sequence[model.Group]) -> model.Group:
        """The group that is nearest to its limit."""
        # Groups with the same value share their judgement.
        judgements = {id(self.judged[group]): self.judged[group] for group in groups}
        excess = {key: self._excess(judgement) for key, judgement in judgements.items()}
        return max(groups, key=lambda group: excess[id(self.judged[group])])

    def _excess_of(self, group: model.Group) -> float:
        return self._excess(self.judged[group])

    def _excess(self, judged: EvaluatedCondition) -> float:
        """The distance of a value beyond its limit; negative within it, infinite without a
        value."""
        value = _float_of(judged.scaled)
        bounds = [_float_of(bound) for bound in judged.bounds]
        if value is None or None in bounds:
            return inf if judged.status is Status.FAILED else -inf
        limits = [bound for bound in bounds if bound is not None] or [0.0]
        low = limits[0]
        high = limits[-1]
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
                return max(low - value, value - high)
            case "not between":
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
        """The number of failed groups, and the reason of the worst."""
        count = self._count(failed)
        reason = self.judged[failed[0]].reason
        return f"{count}: {reason}" if reason and not self._hides_values else count

    def _count(self, failed: Sequence[model.Group]) -> str:
        """The number of failed groups, and the worst with its value."""
        text = f"{len(failed)} of {len(self.judged)} groups failed"
        if self.requirement.share != 1:
            text += f", at least {100 * float(self.requirement.share):.6g}% have to pass"
        if self._hides_groups:
            return text
        text += f", the worst is {self._name(failed[0])}"
        worst = self.judged[failed[0]]
        if worst.scaled is not None and not self._hides_values:
            text += f" with {self._value(worst)}"
        return text

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


def _float_of(value: MetricValue) -> float | None:
    if isinstance(value, str):
        timestamp = timestamp_of(value)
        return None if timestamp is None else (timestamp - _EPOCH).total_seconds()
    return None if value is None else nearest_float(value)


def _cell(value: MetricValue) -> int | float | str | None:
    return nearest_float(value) if isinstance(value, Fraction) else value
