"""The values of terms, from the measured values and the dates that have data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TypeAlias

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.metrics import calls, derived
from dqx_airflow.metrics.drift import DRIFT, MOST_STEPS, drift_bounds
from dqx_airflow.metrics.spark_values import metric_value
from dqx_airflow.metrics.usual_limits import FEWEST_KNOWN, UsualLimits, known_text
from dqx_airflow.plan import model
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import NUMBERS

ComparedSides: TypeAlias = tuple[MetricValue, tuple[MetricValue, ...]]
"""A value, and the bounds of its condition."""


@dataclass(frozen=True, slots=True)
class DataGap:
    """Too few of the dates that a value needs have data. `is_requested` is set if the request skips
    one of them."""

    reason: str
    is_requested: bool


@dataclass(frozen=True, slots=True)
class UsualBehind:
    """The usual limits for the value of a condition; None, and a `gap`, if too little is known."""

    limits: UsualLimits | None
    gap: str
    is_of_subject: bool

    def repeats(self, value: MetricValue) -> bool:
        """True if the value is exactly yesterday's, and no other day repeated the day before."""
        last = self.limits.repeated if self.limits is not None else None
        return self.is_of_subject and last is not None and derived.as_float(value) == last


_DIGITS = 10_000
"""Bounds of drift are shown to this part of 1, rounded outwards."""

REPEATED = "exactly the value of the day before: was the same delivery read again?"


@dataclass(frozen=True, slots=True)
class KnownValues:
    """The values and dates for evaluating terms."""

    values: Mapping[model.MetricRequest, MetricValue]
    now: datetime | None
    plan: model.Plan
    skip_dates: frozenset[date]
    on: date | None = None
    """The date that counts for the calendar, if it is not the date of the plan."""

    def has_data(self, request: model.MetricRequest) -> bool:
        """False if the date of a request is unavailable.

        A target date without data is not unavailable: it is a failure.
        """
        on = request.date
        if on is None:
            return True
        if on in self.skip_dates:
            return False
        return on == self.plan.date or bool(self.values.get(model.row_count(request.dataset, on)))

    def value(self, request: model.MetricRequest) -> MetricValue:
        """The value of a request; None for another date without data, even for counts: a zero there
        would widen a band, or be the base of a change."""
        if request.date in (None, self.plan.date) or self.has_data(request):
            return self.values.get(request)
        return None

    def gap(self, requests: Iterable[model.MetricRequest]) -> DataGap | None:
        """The missing dates if too few of the dates that the requests need have data, else None."""
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

    def _fine(self, days: Sequence[model.Term]) -> Sequence[model.Term]:
        """The values of earlier days without the days labelled as issues, unless all are."""

        def is_fine(term: model.Term) -> bool:
            request = next(model.requests_of(term))
            labels = self.plan.labels.get(request.dataset, {})
            return request.date is None or not labels.get(request.date)

        return [*filter(is_fine, days)] or days

    def value_of(self, term: model.Term) -> MetricValue:
        """The value of a term, or None."""
        match term:
            case model.ConstantTerm(value=value):
                return metric_value(value)
            case model.Now():
                return self.now.isoformat(sep=" ", timespec="seconds") if self.now else None
            case model.KnownDay(dataset=dataset):
                return known_text(self.on or self.plan.date, self.plan.labels.get(dataset, {}))
            case model.Measured(request=request):
                return self.value(request)
            case model.Applied(function="age" | "deadline") if (
                self.hours_ahead(term) > self.plan.max_clock_skew_hours
            ):
                return None  # one wrong clock must not make stale data fresh
            case model.Applied(function=function, terms=(day, *earlier)) if function in DRIFT:
                return derived.apply(function, self.values_of((day, *self._fine(earlier))))
            case model.Applied(function=function, terms=terms):
                return derived.apply(function, self.values_of(terms))
            case model.Claimed():
                return None  # the judge of claims counts those that hold

    def notes_on_steps(self, term: model.Term) -> Iterator[str]:
        """Notes on drift that is approximate, each with the values between which the exact one is.
        The days behind usual limits have none."""
        if not isinstance(term, model.Applied) or term.function in calls.USUAL_LIMITS:
            return
        if term.function not in DRIFT:
            for operand in term.terms:
                yield from self.notes_on_steps(operand)
            return
        day, *earlier = term.terms
        bounds = drift_bounds(term.function, self.values_of((day, *self._fine(earlier))))
        if bounds is not None:
            low, high = bounds
            column = next(model.requests_of(day)).arguments[0]
            yield (
                f"{term.function}({column}) is approximate, since a day has more than "
                f"{MOST_STEPS:,} different numbers: the exact value is from "
                f"{format_value(math.floor(low * _DIGITS) / _DIGITS)} to "
                f"{format_value(math.ceil(high * _DIGITS) / _DIGITS)}"
            )

    def values_of(self, terms: Iterable[model.Term]) -> tuple[MetricValue, ...]:
        return tuple(map(self.value_of, terms))

    def usual_behind_bounds(self, assertion: model.PlannedAssertion) -> UsualBehind | None:
        """The usual limits, if the assertion is compared with any."""
        for bound in assertion.condition.bounds:
            for limit in model.usual_limits_in(bound):
                values = self.values_of(limit.terms)
                before = values[len(calls.USUAL_OPERANDS) :]
                known = sum(value is not None for value in before)
                gap = (
                    f"{known} of the {len(before)} days before have a value, at least "
                    f"{FEWEST_KNOWN} are needed to know what is usual"
                    f"{', without issues and too large values' if known >= FEWEST_KNOWN else ''}"
                )
                is_of_subject = limit.terms[len(calls.USUAL_OPERANDS) - 1] == assertion.term
                return UsualBehind(derived.usual_behind(values), gap, is_of_subject)
        return None

    def hours_ahead(self, term: model.Term) -> float:
        """By how many hours the newest timestamp of a term, on which its age depends, is in the
        future; 0 if none is."""
        match term:
            case model.Measured(request=request) if request.metric == "commit_age":
                age = self.value(request)
            case model.Applied(function="age", terms=terms):
                age = derived.apply("age", self.values_of(terms))
            case model.Applied(function="deadline", terms=(newest, _, zone)):
                age = derived.apply("age", self.values_of((model.Now(), newest, zone)))
            case model.Applied(terms=terms):
                return max(map(self.hours_ahead, terms), default=0)
            case _:
                return 0
        return max(0.0, -float(age) / 3600) if isinstance(age, NUMBERS) else 0

    def hides_overflow(self, term: model.Term) -> bool:
        """True if a term may have a value although arithmetic in it overflows. Operands after the
        one that answers a `coalesce` do not count."""
        return _takes_none(term) and self._overflows(term)

    def _overflows(self, term: model.Term) -> bool:
        if not isinstance(term, model.Applied):
            return False
        for operand in term.terms:
            if self._overflows(operand):
                return True
            if term.function == "coalesce" and self._answers(operand):
                return False
        if derived.takes_none(term.function):
            return False
        return derived.is_infinite(term.function, self.values_of(term.terms))

    def _answered(self, term: model.Term) -> model.Term:
        """The term, with each `coalesce` replaced by the operand that answers it.

        That is the first operand that has enough dates with data, and a value, or else the last
        one.
        """
        if not isinstance(term, model.Applied):
            return term
        operands = tuple(map(self._answered, term.terms))
        if term.function != "coalesce":
            return model.Applied(term.function, operands)
        for operand in operands[:-1]:
            if self._answers(operand):
                return operand
        return operands[-1]

    def _answers(self, operand: model.Term) -> bool:
        return not self.gap(model.requests_of(operand)) and self.value_of(operand) is not None

    def with_answers(self, assertion: model.PlannedAssertion) -> model.PlannedAssertion:
        """The assertion without `coalesce`, on both sides, which leaves what it needs."""
        term = assertion.term
        condition = assertion.condition
        if not any(map(_has_default, (term, *condition.bounds))):
            return assertion
        condition = replace(condition, bounds=tuple(map(self._answered, condition.bounds)))
        return replace(assertion, term=self._answered(term), condition=condition)

    def sides_of(self, assertion: model.PlannedAssertion) -> ComparedSides:
        """The scaled value and the bounds that are compared."""
        answered = self.with_answers(assertion)
        return self.scaled_sides(answered, self.value_of(answered.term))

    def scaled_sides(self, assertion: model.PlannedAssertion, value: MetricValue) -> ComparedSides:
        bounds = self.values_of(assertion.condition.bounds)
        if assertion.multiplier == 1 or isinstance(value, str):  # a date has no multiple
            return value, bounds
        return derived.apply("*", (value, assertion.multiplier)), bounds


def _takes_none(term: model.Term) -> bool:
    return isinstance(term, model.Applied) and (
        derived.takes_none(term.function) or any(map(_takes_none, term.terms))
    )


def _has_default(term: model.Term) -> bool:
    if not isinstance(term, model.Applied):
        return False
    return term.function == "coalesce" or any(map(_has_default, term.terms))
