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


def only_limits_differ(planned: PlannedAssertion, other: PlannedAssertion) -> bool:
    """True if two plans measure and compare the same, with other numbers."""
    return (
        has_limits(planned)
        and has_limits(other)
        and planned.disabled_by is None
        and planned.condition.kind == other.condition.kind
        and planned.multiplier == other.multiplier
        and planned.term == other.term
        and planned.requests == other.requests
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

    A `coalesce` of a computation with a constant does not count: with another value of the constant
    the computation may overflow, and only a gate notices that behind the answer of `coalesce`.
    """
    match term:
        case Measured():
            return True
        case Applied(function=function, terms=terms) if takes_none(function) and any(
            isinstance(part, Applied) and _has_constant(part) for part in terms
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
