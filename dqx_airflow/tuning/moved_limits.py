"""Whether assertions differ only in the numbers that they compare with."""

from __future__ import annotations

from dqx_airflow.exact import NUMBERS
from dqx_airflow.metrics.derived import apply, takes_none
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.plan.model import (
    Applied,
    ConstantTerm,
    Measured,
    PlannedAssertion,
    Term,
)
from dqx_airflow.values import MetricValue

_KINDS = frozenset({"<", "<=", ">", ">=", "==", "!=", "between"})


def only_limits_differ(one: PlannedAssertion, other: PlannedAssertion) -> bool:
    """True if the same is measured and compared, with other numbers."""
    return (
        has_limits(one)
        and has_limits(other)
        and one.disabled_by is None
        and one.condition.kind == other.condition.kind
        and one.multiplier == other.multiplier
        and one.term == other.term
        and one.requests == other.requests
    )


def has_limits(planned: PlannedAssertion) -> bool:
    """True if one number is compared with numbers: with fixed ones, or ones from the data."""
    condition = planned.condition
    return (
        condition.kind in _KINDS
        and planned.groups is None
        and condition.tolerance is None
        and all(map(_is_number, condition.bounds))
    )


def _is_number(term: Term) -> bool:
    """True where a term is a number, or computed of numbers and of metrics that were measured.

    A `coalesce` of what another constant may take beyond the range of floating-point numbers is
    none: a gate sees the overflow behind its answer.
    """
    match term:
        case Measured():
            return True
        case Applied(function=function, terms=terms) if takes_none(function) and any(
            isinstance(one, Applied) and _has_constant(one) for one in terms
        ):
            return False
        case Applied(terms=terms):
            return all(map(_is_number, terms))
        case _:
            return isinstance(number_of(term), NUMBERS)


def _has_constant(term: Term) -> bool:
    if isinstance(term, Applied):
        return any(map(_has_constant, term.terms))
    return isinstance(term, ConstantTerm)


def number_of(term: Term) -> MetricValue:
    """The value of a term without metrics; None if it has none, or contains metrics."""
    match term:
        case ConstantTerm(value=value):
            return plain(value)
        case Applied(function=function, terms=terms):
            return apply(function, tuple(map(number_of, terms)))
        case _:
            return None
