"""Evaluates the condition of an assertion for a value: whether it holds, and if not, why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.verdicts import format_value, show_in_full
from dqx_airflow.metrics.drift import DRIFT, NO_DRIFT
from dqx_airflow.metrics.metric import NO_VALUE
from dqx_airflow.metrics.spark_values import COMPARATORS, moment_in_metric
from dqx_airflow.metrics.types import misfits
from dqx_airflow.plan import model
from dqx_airflow.plan.number_comparison import NEARLY_EQUAL, Compared, Side, compare, is_within
from dqx_airflow.values import MASK, MetricValue, Status


class EvaluatedCondition(NamedTuple):
    """The result of a condition for all rows or a group, its reason, and the compared values."""

    status: Status
    reason: str | None = None
    value: MetricValue = None
    scaled: MetricValue = None
    bounds: tuple[MetricValue, ...] = ()
    note: str | None = None
    factors: str = ""


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
    has_metrics = any(any(True for _ in model.requests_of(bound)) for bound in condition.bounds)
    if not bounds or not has_metrics:
        return condition.text
    limits = MASK if is_hidden else " and ".join(format_value(bound) for bound in bounds)
    if factors:
        limits += f": {factors}"
    return f"{condition.text} ({limits})"


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

    :param voids: the reason why metrics have no value, if a special one is known.
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
