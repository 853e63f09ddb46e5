"""The values of terms, from the measured values and the dates that have data; and the metric
values behind a verdict, as stored, so that it can be judged again.

The key of a request is valid on other days too: the dataset, the metric, its arguments, and the
number of days before the date of the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from hashlib import sha256
from typing import Any, TypeAlias

from dqx_airflow.dql.printer import show
from dqx_airflow.metrics import derived
from dqx_airflow.metrics.drift import DRIFT, DRIFT_SUMMARY, LONGEST_REPEATED
from dqx_airflow.metrics.spark_values import metric_value
from dqx_airflow.metrics.usual_limits import FEWEST_KNOWN, UsualLimits, known_text
from dqx_airflow.plan import model
from dqx_airflow.plan.masks import reveals
from dqx_airflow.values import DatasetRef, MetricValue
from dqx_airflow.values.exact import NUMBERS, exact_text, parse_exact

ComparedSides: TypeAlias = tuple[MetricValue, tuple[MetricValue, ...]]
"""A value, and the bounds of its condition."""


@dataclass(frozen=True, slots=True)
class Measurements:
    """The results of requests on one day, by their keys.

    `failures` are the reasons for missing values, `details` explain values. `skipped` are the days
    before the date whose data was known to be missing. `reads` identify by dataset how it was read.
    `groups` are the values of grouped requests, `hidden` the keys of values that are not stored
    because they reveal masked columns.
    """

    values: Mapping[str, MetricValue] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()
    reads: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, model.GroupValues] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    def __or__(self, other: Measurements) -> Measurements:
        """The union of both; for the same day they agree."""
        names = (part.name for part in fields(self))
        return Measurements(*(getattr(self, name) | getattr(other, name) for name in names))

    def gap(self, key: str) -> str:
        """The reason why a key, `null_count(email) of 'orders', 7 days before`, has no value."""
        dataset, metric, arguments, lag, *_ = json.loads(key)
        shown = ", ".join(one if isinstance(one, str) else json.dumps(one) for one in arguments)
        before = f", {lag} day{'' if lag == 1 else 's'} before" if lag else ""
        text = f"{metric}({shown}) of '{dataset}'{before}"
        if key in self.hidden:
            return f"{text} is hidden: it derives from masked columns"
        return f"no stored value of {text}"

    def scanned(self, keys: Mapping[model.MetricRequest, str]) -> model.Scanned:
        """The stored results of some requests, in the form that a scan returns."""
        requests = [(key, request) for request, key in keys.items()]
        return model.Scanned(
            model.renamed(self.values, requests),
            model.renamed(self.failures, requests),
            details=model.renamed(self.details, requests),
            groups=model.renamed(self.groups, requests),
        )


def request_key(request: model.MetricRequest, on: date) -> str:
    """The key of a request in a plan for a date."""
    lag = None if request.date is None else (on - request.date).days
    arguments = [*map(_argument, request.arguments)]
    if request.where is not None:
        arguments.append({"where": show(request.where.node)})
    parts: list[Any] = [request.dataset, request.metric, arguments, lag]
    if request.grouping is not None:
        parts.append([*request.grouping.columns])
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"), default=str)


def requests_behind(
    assertion: model.PlannedAssertion, *, with_history: bool = False
) -> tuple[model.MetricRequest, ...]:
    """The requests of an assertion, and the row counts that show whether other dates had data.

    :param with_history: also the requests for usual values, which are stored with their own days.
    """
    requests = (*assertion.requests, *(assertion.history if with_history else ()))
    counts = (
        model.row_count(request.dataset, request.date) for request in requests if request.date
    )
    return tuple(dict.fromkeys((*requests, *counts)))


def measurements_of(
    assertion: model.PlannedAssertion,
    plan: model.Plan,
    scanned: model.Scanned,
    skip_dates: Collection[date] = (),
) -> Measurements:
    """The results of the requests of an assertion, except for masked ones."""
    behind = {
        request: request_key(request, plan.date)
        for request in requests_behind(assertion)
        # Summaries of groups, and long ones of many days, would be larger than all other results.
        if request.metric not in DRIFT_SUMMARY.values()
        or (
            request.grouping is None
            and (
                request.date == plan.date
                or len(str(scanned.values.get(request))) <= LONGEST_REPEATED
            )
        )
    }
    keys = {request: key for request, key in behind.items() if not reveals(request, plan.masked)}
    dates = {request.date for request in keys}
    return Measurements(
        model.renamed(scanned.values, keys.items()),
        model.renamed(scanned.failures, keys.items()),
        model.renamed(scanned.details, keys.items()),
        frozenset((plan.date - day).days for day in skip_dates if day in dates),
        {name: plan.reads[name] for name in assertion.datasets if name in plan.reads},
        model.renamed(scanned.groups, keys.items()),
        frozenset(behind.values()) - frozenset(keys.values()),
    )


def measured_json(
    assertion: model.PlannedAssertion,
    plan: model.Plan,
    scanned: model.Scanned,
    skip_dates: Collection[date] = (),
) -> str | None:
    """The measurements of an assertion as JSON; None if there are none, as for a disabled one."""
    measured = measurements_of(assertion, plan, scanned, skip_dates)
    if not (measured.values or measured.failures or measured.groups or measured.hidden):
        return None
    parts = {
        "values": dict(measured.values),
        "failures": dict(measured.failures),
        "details": dict(measured.details),
        "skipped": sorted(measured.skipped),
        "reads": dict(measured.reads),
        "groups": {key: _groups_as_lists(groups) for key, groups in measured.groups.items()},
        "group_types": {key: groups.types for key, groups in measured.groups.items()},
        "hidden": sorted(measured.hidden),
    }
    kept = {name: part for name, part in parts.items() if part}
    separators = (",", ":")
    return json.dumps(
        kept, ensure_ascii=False, separators=separators, allow_nan=False, default=_plain
    )


def measurements_from(text: str | None) -> Measurements:
    """The measurements from their JSON; empty if it is None, or cannot be read."""
    try:
        parts = json.loads(text or "{}")
        return Measurements(
            {key: _exactly(value) for key, value in parts.get("values", {}).items()},
            parts.get("failures", {}),
            parts.get("details", {}),
            frozenset(parts.get("skipped", ())),
            parts.get("reads", {}),
            {
                key: _read_groups(rows, parts.get("group_types", {}).get(key, ()))
                for key, rows in parts.get("groups", {}).items()
            },
            frozenset(parts.get("hidden", ())),
        )
    except (ValueError, AttributeError, TypeError, KeyError):
        return Measurements()


def reading_of(ref: DatasetRef, on: date) -> str:
    """A short hash of how a dataset is read: location, filter, columns, options. A date in a path,
    or in a filter, does not matter."""
    place = (ref.path, ref.table, ref.query, ref.filter, *filter(None, (ref.conn_id,)))
    days = (ref.date_column, ref.date_format, ref.time_zone)
    parts = (*place, *days, ref.format, ref.schema, str(sorted(ref.options)))
    text = "\0".join(part or "" for part in parts)
    for day in (on, on - timedelta(days=1), on + timedelta(days=1)):
        for form in ("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d"):
            text = text.replace(day.strftime(form), "{date}")
    text = re.sub(r"year=\d+/month=\d+/day=\d+", "{date}", text)
    return sha256(text.encode()).hexdigest()[:12]


def _argument(argument: Any) -> Any:
    match argument:
        case model.RowPredicate(node=node):
            return {"rows": show(node)}
        case tuple():
            return [*map(_argument, argument)]
        case Fraction():
            return exact_text(argument)
        case _:
            return argument


def _groups_as_lists(groups: model.GroupValues) -> list[list[Any]]:
    """For each group its values, then the value of the metric, then its details if known."""
    details = groups.details
    return [
        [group, value, details[group]] if group in details else [group, value]
        for group, value in groups.values.items()
    ]


def _read_groups(rows: Iterable[Any], types: Iterable[str]) -> model.GroupValues:
    groups = model.GroupValues(types=tuple(types))
    for key, value, *detail in rows:
        group = tuple(map(_exactly, key))
        groups.values[group] = _exactly(value)
        if detail:
            groups.details[group] = str(detail[0])
    return groups


def _plain(value: Any) -> Any:
    """A value that a JSON number cannot hold exactly, as an object.

    :raises TypeError: it is another one.
    """
    if not isinstance(value, Fraction):
        raise TypeError(f"no value of a metric: {value!r}")
    return {"=": exact_text(value)}


def _exactly(value: Any) -> MetricValue:
    if isinstance(value, dict):
        return parse_exact(value["="])
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"no value of a metric: {value!r}")


def keys_of(requests: Iterable[model.MetricRequest], on: date) -> dict[model.MetricRequest, str]:
    """The requests of a plan for a date, each with its key."""
    return {request: request_key(request, on) for request in requests}


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

    def values_of(self, terms: Iterable[model.Term]) -> tuple[MetricValue, ...]:
        return tuple(map(self.value_of, terms))

    def usual_behind_bounds(self, assertion: model.PlannedAssertion) -> UsualBehind | None:
        """The usual limits, if the assertion is compared with any."""
        for bound in assertion.condition.bounds:
            for limit in model.usual_limits_in(bound):
                values = self.values_of(limit.terms)
                before = values[len(derived.USUAL_OPERANDS) :]
                known = sum(value is not None for value in before)
                gap = (
                    f"{known} of the {len(before)} days before have a value, at least "
                    f"{FEWEST_KNOWN} are needed to know what is usual"
                    f"{', without issues and too large values' if known >= FEWEST_KNOWN else ''}"
                )
                is_of_subject = limit.terms[len(derived.USUAL_OPERANDS) - 1] == assertion.term
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
        return next(filter(self._answers, operands[:-1]), operands[-1])

    def _answers(self, operand: model.Term) -> bool:
        return not self.gap(model.requests_of(operand)) and self.value_of(operand) is not None

    def with_answers(self, assertion: model.PlannedAssertion) -> model.PlannedAssertion:
        """The assertion without `coalesce`, on both sides, which leaves what it needs."""
        term, condition = assertion.term, assertion.condition
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
