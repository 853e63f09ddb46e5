"""The groups of an assertion with their values, and the groups that clearly pass.

Most groups of an assertion clearly pass, and are found without judging each in full: a metric
compared with a constant clearly passes if both are exact, or if they are too far apart for rounding
to matter. Every other group, and every one that does not pass, is judged in full.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from dqx_airflow.metrics.spark_values import COMPARATORS, metric_value
from dqx_airflow.plan import model
from dqx_airflow.plan.condition import EvaluatedCondition
from dqx_airflow.plan.number_comparison import CLEARLY
from dqx_airflow.values import MetricValue, Status
from dqx_airflow.values.exact import NUMBERS, Number, nearest_float


@dataclass(frozen=True)
class GroupView:
    """The results of a scan for the groups of an assertion."""

    assertion: model.PlannedAssertion
    found: model.Scanned

    @property
    def column_types(self) -> dict[str, tuple[str, ...]]:
        """By dataset, the types of the grouping columns, if known."""
        types = {}
        for request in self.assertion.requests:
            group_values = self.found.groups.get(request)
            if group_values is not None and group_values.types:
                types[request.dataset] = group_values.types
        return types

    @cached_property
    def groups(self) -> tuple[model.Group, ...]:
        """The groups that the assertion is judged for, in a stable order: those that it lists, or
        those that have rows on any of its dates."""
        judged = self.assertion.groups
        if judged is not None and judged.listed is not None:
            return judged.listed
        seen: set[model.Group] = set()
        for request in self.assertion.requests:
            if request in self.found.groups:
                seen.update(self.found.groups[request].values)
        if all(type(value) is str for group in seen for value in group):
            return tuple(sorted(seen))
        return tuple(sorted(seen, key=_order))

    def key(self, group: model.Group) -> tuple[object, ...]:
        """A key for a group, equal if everything that `of` returns is equal."""
        key = []
        for _, group_values, empty in self._known:
            value = group_values.values.get(group, empty)
            # 1 and 1.0 are equal, but are not judged alike.
            key.append((type(value), value, group_values.details.get(group)))
        return tuple(key)

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
        limits = _constant_limits(self.assertion.condition)
        if limits is None or not _is_of_one_metric(self.assertion, on, skip_dates):
            return {}
        _, found, empty = self._known[0]
        judged: dict[model.Group, EvaluatedCondition] = {}
        # Groups with the same value, such as no NULL, share their judgement.
        by_value: dict[tuple[type, MetricValue], EvaluatedCondition | None] = {}
        for group in self.groups:
            value = found.values.get(group, empty)
            key = (type(value), value)
            if key not in by_value:
                by_value[key] = self._clear_pass(value, limits)
            judgement = by_value[key]
            if judgement is not None:
                judged[group] = judgement
        return judged

    def _clear_pass(
        self, value: MetricValue, limits: tuple[Number, ...]
    ) -> EvaluatedCondition | None:
        """The judgement of a value that clearly passes; None for any other value."""
        if not isinstance(value, NUMBERS):
            return None
        condition = self.assertion.condition
        clear = [
            _clearly_holds(value, op, limit)
            for op, limit in zip(condition.comparators, limits, strict=True)
        ]
        if not condition.holds(clear):
            return None
        return EvaluatedCondition(Status.PASSED, value=value, scaled=value, bounds=limits)


def _order(group: model.Group) -> tuple[tuple[int, float, str], ...]:
    """A sort key for groups: numbers by size, then strings, NULL last."""
    return tuple(_order_of_value(value) for value in group)


def _order_of_value(value: MetricValue) -> tuple[int, float, str]:
    if value is None:
        return (2, 0.0, "")
    if isinstance(value, str):
        return (1, 0.0, value)
    return (0, nearest_float(value), "")


def _is_of_one_metric(
    assertion: model.PlannedAssertion, on: date, skip_dates: Collection[date]
) -> bool:
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


def _constant_limits(condition: model.PlannedCondition) -> tuple[Number, ...] | None:
    """The limits of a condition, if all of them are constant numbers."""
    limits = []
    for bound in condition.bounds:
        limit = metric_value(bound.value) if isinstance(bound, model.ConstantTerm) else None
        if not isinstance(limit, NUMBERS):
            return None
        limits.append(limit)
    return tuple(limits)


def _clearly_holds(number: Number, op: str, limit: Number) -> bool:
    """True if `number op limit` holds, and rounding cannot change that."""
    holds = COMPARATORS[op]
    if isinstance(number, int) and not isinstance(limit, float):
        return holds((number > limit) - (number < limit), 0)
    value = nearest_float(number)
    near = nearest_float(limit)
    is_clear = abs(value - near) > CLEARLY * max(abs(value), abs(near))
    return is_clear and holds((value > near) - (value < near), 0)
