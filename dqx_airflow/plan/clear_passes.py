"""Finds the groups that clearly pass, without judging each of them in full.

A metric compared with a constant clearly passes if both are exact, or if they are too far apart for
rounding to matter. Every other group, and every one that does not pass, is judged in full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date

from dqx_airflow.metrics.comparison import COMPARATORS
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.plan.condition import CLEARLY
from dqx_airflow.plan.group_verdicts import EvaluatedCondition
from dqx_airflow.plan.model import (
    ConstantTerm,
    Group,
    GroupValues,
    Measured,
    PlannedAssertion,
    Scanned,
    Term,
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
