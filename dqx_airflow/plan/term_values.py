"""The values of terms, from the measured values and the dates that have data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime

from dqx_airflow.metrics.derived import apply, is_infinite, takes_none
from dqx_airflow.metrics.spark_values import plain
from dqx_airflow.plan.model import (
    Applied,
    Claimed,
    ConstantTerm,
    Measured,
    MetricRequest,
    Now,
    Plan,
    PlannedAssertion,
    Scanned,
    Term,
    requests_of,
    row_count,
)
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import NUMBERS


@dataclass(frozen=True, slots=True)
class DataGap:
    """Too few of the dates that a value needs have data. `is_asked_for` is set if the request skips
    one of them."""

    reason: str
    is_asked_for: bool


@dataclass(frozen=True, slots=True)
class KnownValues:
    """The values and dates for evaluating terms."""

    values: Mapping[MetricRequest, MetricValue]
    now: datetime | None
    plan: Plan
    skip_dates: frozenset[date]

    def has_data(self, request: MetricRequest) -> bool:
        """False if the date of a request is unavailable.

        A target date without data is not unavailable: it is a failure.
        """
        on = request.date
        if on is None:
            return True
        if on in self.skip_dates:
            return False
        return on == self.plan.date or bool(self.values.get(row_count(request.dataset, on)))

    def value(self, request: MetricRequest) -> MetricValue:
        """The value of a request; None for another date without data, even for counts: a zero there
        would widen a band, or be the base of a change."""
        if request.date in (None, self.plan.date) or self.has_data(request):
            return self.values.get(request)
        return None

    def gap(self, requests: Iterable[MetricRequest]) -> DataGap | None:
        """What is missing if too few of the dates that the requests need have data, else None."""
        least = self.plan.availability_threshold
        needed = {(request.dataset, request.date): request for request in requests}
        missing = [key for key, request in needed.items() if not self.has_data(request)]
        if not missing:
            return None
        share = (len(needed) - len(missing)) / len(needed)
        if share >= least:
            return None
        dataset, first = min(missing, key=lambda key: (key[1], key[0]))
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return DataGap(
            f"data is available for {share:.0%} of the dates it needs, at least {least:.0%} are "
            f"required: no data of {dataset} on {first}{more}",
            any(on in self.skip_dates for _, on in missing),
        )


def value_of(term: Term, measured: KnownValues) -> MetricValue:
    """The value of a term, or None."""
    match term:
        case ConstantTerm(value=value):
            return plain(value)
        case Now():
            return measured.now.isoformat(sep=" ", timespec="seconds") if measured.now else None
        case Measured(request=request):
            return measured.value(request)
        case Applied(function=function, terms=terms):
            if function in ("age", "deadline") and hours_ahead(term, measured) > most_ahead(
                measured
            ):
                return None  # one wrong clock must not make stale data fresh
            return apply(function, tuple(value_of(inner, measured) for inner in terms))
        case Claimed():
            return None  # `_judge_parts` counts those that hold


def most_ahead(measured: KnownValues) -> float:
    """By how many hours a timestamp may be in the future and still count."""
    return measured.plan.max_clock_skew_hours


def hours_ahead(term: Term, measured: KnownValues) -> float:
    """By how many hours the newest timestamp of a term, on which its age depends, is in the future;
    0 if none is."""
    match term:
        case Measured(request=request) if request.metric == "commit_age":
            age = measured.value(request)
        case Applied(function="age", terms=terms):
            age = apply("age", tuple(value_of(inner, measured) for inner in terms))
        case Applied(function="deadline", terms=(newest, _, zone)):
            age = apply("age", tuple(value_of(part, measured) for part in (Now(), newest, zone)))
        case Applied(terms=terms):
            return max((hours_ahead(inner, measured) for inner in terms), default=0)
        case _:
            return 0
    return max(0.0, -float(age) / 3600) if isinstance(age, NUMBERS) else 0


def hides_overflow(term: Term, measured: KnownValues) -> bool:
    """True if a term may have a value although arithmetic in it overflows. Operands after the one
    that answers a `coalesce` do not count."""
    return _takes_none(term) and _overflows(term, measured)


def _takes_none(term: Term) -> bool:
    return isinstance(term, Applied) and (
        takes_none(term.function) or any(map(_takes_none, term.terms))
    )


def _overflows(term: Term, measured: KnownValues) -> bool:
    if not isinstance(term, Applied):
        return False
    for operand in term.terms:
        if _overflows(operand, measured):
            return True
        if term.function == "coalesce" and _answers(operand, measured):
            return False
    if takes_none(term.function):
        return False
    return is_infinite(
        term.function, tuple(value_of(argument, measured) for argument in term.terms)
    )


def _answered(term: Term, measured: KnownValues) -> Term:
    """The term, with each `coalesce` replaced by the operand that answers it.

    That is the first operand that has enough dates with data, and a value, or else the last one.
    """
    if not isinstance(term, Applied):
        return term
    operands = tuple(_answered(inner, measured) for inner in term.terms)
    if term.function != "coalesce":
        return Applied(term.function, operands)
    for operand in operands[:-1]:
        if _answers(operand, measured):
            return operand
    return operands[-1]


def _answers(operand: Term, measured: KnownValues) -> bool:
    return not measured.gap(requests_of(operand)) and value_of(operand, measured) is not None


def _has_default(term: Term) -> bool:
    if not isinstance(term, Applied):
        return False
    return term.function == "coalesce" or any(map(_has_default, term.terms))


def with_answers(assertion: PlannedAssertion, measured: KnownValues) -> PlannedAssertion:
    """The assertion without `coalesce`, on both sides, which leaves what it needs."""
    term, condition = assertion.term, assertion.condition
    if not any(map(_has_default, (term, *condition.bounds))):
        return assertion
    bounds = tuple(_answered(bound, measured) for bound in condition.bounds)
    return replace(
        assertion, term=_answered(term, measured), condition=replace(condition, bounds=bounds)
    )


def sides_of(
    assertion: PlannedAssertion,
    plan: Plan,
    scanned: Scanned,
    skip_dates: Collection[date],
    now: datetime | None,
) -> tuple[MetricValue, tuple[MetricValue, ...]]:
    """The scaled value and the bounds that are compared."""
    measured = KnownValues(scanned.values, now, plan, frozenset(skip_dates))
    answered = with_answers(assertion, measured)
    return scaled_sides(answered, value_of(answered.term, measured), measured)


def scaled_sides(
    assertion: PlannedAssertion, value: MetricValue, measured: KnownValues
) -> tuple[MetricValue, tuple[MetricValue, ...]]:
    bounds = tuple(value_of(bound, measured) for bound in assertion.condition.bounds)
    if assertion.multiplier == 1 or isinstance(value, str):  # a date has no multiple
        return value, bounds
    return apply("*", (value, assertion.multiplier)), bounds
