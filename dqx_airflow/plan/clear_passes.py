"""Which of many groups pass beyond doubt, found without a full judgement of each.

A metric compared with a constant passes so where exact numbers say it, or where the two are too far
apart for any rounding to matter. All else, and every group that does not pass, is judged in full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date

from dqx_airflow.exact import NUMBERS, Number, nearest_float
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.plan.group_verdicts import Judged
from dqx_airflow.plan.model import (
    ConstantTerm,
    Group,
    GroupValues,
    Measured,
    PlannedAssertion,
    Scanned,
    Term,
)
from dqx_airflow.plan.number_comparison import CLEARLY, ORDERS
from dqx_airflow.values import MetricValue, Status


def clear_passes(
    assertion: PlannedAssertion,
    found: Scanned,
    groups: Iterable[Group],
    on: date,
    skip_dates: Collection[date],
) -> dict[Group, Judged]:
    """The judgement of the groups that pass beyond doubt, which is that of a full one.

    :param on: the date of the plan. Of other dates it takes more to know whether there is data.
    """
    bounds = tuple(number for one in assertion.condition.bounds for number in _number(one))
    if len(bounds) < len(assertion.condition.bounds) or not _is_plain(assertion, on, skip_dates):
        return {}
    (request,) = assertion.requests
    ops = (">=", "<=") if assertion.condition.kind == "between" else (assertion.condition.kind,)
    tests = [_passes(op, bound) for op, bound in zip(ops, bounds, strict=True)]
    values, empty = found.groups.get(request, GroupValues()).values, request.definition.empty
    judged: dict[Group, Judged] = {}
    # Groups with the same value, such as no NULL, share their judgement.
    by_value: dict[tuple[type, MetricValue], Judged | None] = {}
    for group in groups:
        value = values.get(group, empty)
        key = type(value), value
        if key not in by_value:
            holds = isinstance(value, NUMBERS) and all(test(value) for test in tests)
            by_value[key] = Judged(Status.PASSED, None, value, value, bounds) if holds else None
        if (one := by_value[key]) is not None:
            judged[group] = one
    return judged


def _is_plain(assertion: PlannedAssertion, on: date, skip_dates: Collection[date]) -> bool:
    """True for one metric of the date that is compared with something."""
    condition, requests = assertion.condition, assertion.requests
    return (
        isinstance(assertion.term, Measured)
        and len(requests) == 1
        and requests[0].date in (None, on)
        and requests[0].date not in skip_dates
        # A filter that no row meets is worth a note.
        and (requests[0].where is None or requests[0].metric != "num_rows")
        and assertion.multiplier == 1
        and condition.tolerance is None
        and (condition.kind in ORDERS or condition.kind == "between")
    )


def _number(term: Term) -> Iterator[Number]:
    """The number that a term stands for, if it is a constant one."""
    if isinstance(term, ConstantTerm):
        value = plain(term.value)
        if isinstance(value, NUMBERS):
            yield value


def _passes(op: str, bound: Number) -> Callable[[Number], bool]:
    """Whether `number op bound` holds beyond doubt."""
    holds, near = ORDERS[op], nearest_float(bound)
    is_exact, size = not isinstance(bound, float), abs(near)

    def passes(number: Number) -> bool:
        if is_exact and isinstance(number, int):
            return holds((number > bound) - (number < bound), 0)
        value = nearest_float(number)
        is_clear = abs(value - near) > CLEARLY * max(abs(value), size)
        return is_clear and holds((value > near) - (value < near), 0)

    return passes
