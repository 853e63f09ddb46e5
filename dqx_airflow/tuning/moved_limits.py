"""Whether assertions differ in nothing but the numbers that they compare with."""

from __future__ import annotations

from dqx_airflow.exact import NUMBERS
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.plan.model import (
    Applied,
    Constant,
    PlannedAssertion,
    Term,
)
from dqx_airflow.values import MetricValue

_KINDS = frozenset({"<", "<=", ">", ">=", "==", "!=", "between"})


def only_limits_differ(one: PlannedAssertion, other: PlannedAssertion) -> bool:
    """True where the same is measured and compared, with other numbers."""
    return (
        has_limits(one)
        and has_limits(other)
        and one.disabled_by is None
        and one.condition.kind == other.condition.kind
        and one.multiplier == other.multiplier
        and one.term == other.term
    )


def has_limits(planned: PlannedAssertion) -> bool:
    """True where one number is compared with numbers that no data decides."""
    condition = planned.condition
    return (
        condition.kind in _KINDS
        and planned.groups is None
        and condition.tolerance is None
        and all(isinstance(number_of(bound), NUMBERS) for bound in condition.bounds)
    )


def number_of(term: Term) -> MetricValue:
    """The value of a term without metrics; None where it has none, or has metrics."""
    match term:
        case Constant(value=value):
            return plain(value)
        case Applied(function=function, terms=terms):
            return apply(function, tuple(map(number_of, terms)))
        case _:
            return None
