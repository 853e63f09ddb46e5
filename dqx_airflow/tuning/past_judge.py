"""An assertion judged on past days from what is stored of them.

Values of earlier days complete a day as its lagged values. Assertions that differ only in the
numbers that they compare with need no new measurement.

If an assertion is new, no past gate stored the value of a week ago that it compares with. It is
taken from the day on which it was measured, if the dataset was read in the same way on both days:
an instance of a mapped gate takes its own. What no gate measured stays unknown.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.walk import parts_of
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.calls import USUAL_LIMITS
from dqx_airflow.metrics.derived import apply, as_float, takes_none
from dqx_airflow.metrics.spark_values import metric_value
from dqx_airflow.metrics.usual_limits import Kind, UsualLimits, day_before, known_text, usual_limits
from dqx_airflow.plan import measurements, model
from dqx_airflow.plan.evaluate import Judge
from dqx_airflow.plan.measurements import requests_behind
from dqx_airflow.plan.term_values import KnownValues
from dqx_airflow.values import DatasetRef, MetricValue, Severity, Status, Verdict
from dqx_airflow.values.exact import NUMBERS

if TYPE_CHECKING:  # it reads Delta, which a suite in Python needs only for its past
    from dqx_airflow.results.past_days import AssertionKey, PastDay


@dataclass(frozen=True, slots=True)
class _Lagged:
    """The key of a lagged value, and its key on the day on which it was measured."""

    key: str
    own_key: str
    dataset: str
    lag: int


def with_earlier_values(days: Sequence[PastDay], keys: Iterable[str]) -> tuple[PastDay, ...]:
    """The days, completed by the values of earlier days that they lack.

    :param keys: the keys of requests (`plan.measurements.request_key`).
    """
    lagged = [lagged_value for key in dict.fromkeys(keys) if (lagged_value := _lagged(key))]
    if not lagged:
        return tuple(days)
    by_date: dict[date, list[PastDay]] = {}
    for day in days:
        by_date.setdefault(day.date, []).append(day)
    return tuple(_filled(day, lagged, by_date) for day in days)


def _lagged(key: str) -> _Lagged | None:
    parts = json.loads(key)
    dataset, lag = parts[0], parts[3]
    if not isinstance(lag, int) or lag < 1:
        return None
    parts[3] = 0
    own_key = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return _Lagged(key, own_key, dataset, lag)


def with_history(
    day: PastDay, planned: model.PlannedAssertion, plan: model.Plan, days: PastDays
) -> PastDay:
    """The day with the values of the days before it from which usual limits are computed."""
    requests = requests_behind(planned, with_history=True)
    keys = (measurements.request_key(request, plan.date) for request in requests)
    lagged = [lagged_value for key in keys if (lagged_value := _lagged(key))]
    return _filled(day, lagged, days)


PastDays: TypeAlias = "Mapping[date, Sequence[PastDay]]"
"""The days of each date: one, or an instance of a mapped gate each."""


def _filled(day: PastDay, lagged: Sequence[_Lagged], by_date: PastDays) -> PastDay:
    measured = day.measured
    if not (measured.values or measured.groups):  # of an older version, or nothing is known
        return day
    values, details = dict(measured.values), dict(measured.details)
    groups = dict(measured.groups)
    for lagged_value in lagged:
        if any(lagged_value.key in keys for keys in (values, measured.failures, measured.groups)):
            continue
        for earlier in by_date.get(day.date - timedelta(days=lagged_value.lag), ()):
            stored = earlier.measured
            if not _is_same(lagged_value.dataset, day, earlier):
                continue
            own_key, key = lagged_value.own_key, lagged_value.key
            if own_key in stored.values:
                values[key] = stored.values[own_key]
            if own_key in stored.details:
                details[key] = stored.details[own_key]
            if own_key in stored.groups:
                groups[key] = stored.groups[own_key]
            break
    return replace(day, measured=replace(measured, values=values, details=details, groups=groups))


def _is_same(dataset: str, day: PastDay, earlier: PastDay) -> bool:
    """Whether a dataset was read in the same way on both days."""
    reading = day.measured.reads.get(dataset)
    if reading is None and day.map_index != earlier.map_index:
        return False
    return reading == earlier.measured.reads.get(dataset)


def depends_on_now(term: model.Term) -> bool:
    if isinstance(term, model.Claimed):
        sides = (side for part in term.parts for side in (part.term, *part.condition.bounds))
        return any(map(depends_on_now, sides))
    if isinstance(term, model.Applied):
        return any(map(depends_on_now, term.terms))
    return isinstance(term, model.Now)


def is_plain(node: nodes.Assertion, constants: Collection[str]) -> bool:
    """True if the measured expression contains no constant, and has no filter around it."""
    claim = node.claim
    if not isinstance(claim, nodes.Measure) or node.where is not None:
        return False
    names = (part.text for part in parts_of(claim.expression) if isinstance(part, nodes.Name))
    return not any(name in constants for name in names)


def refs_of(suite: nodes.Suite, days: Sequence[PastDay]) -> tuple[DatasetRef, ...]:
    """The datasets of the suite, with a date column unless they were read without one."""
    undated = {name for day in days[-1:] for key in day.measured.values for name in _undated(key)}
    return tuple(
        DatasetRef(name, table=name, date_column=None if name in undated else "?")
        for name in datasets_of(suite.checks)
    )


def _undated(key: str) -> Iterator[str]:
    """The dataset of a key, if it was read without dates."""
    dataset, metric, _, lag = json.loads(key)
    if lag is None and metric in METRICS and METRICS[metric].scan.has_dates:
        yield dataset


_KINDS = frozenset({"<", "<=", ">", ">=", "==", "!=", "between", "not between"})


def only_limits_differ(planned: model.PlannedAssertion, other: model.PlannedAssertion) -> bool:
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


def has_limits(planned: model.PlannedAssertion) -> bool:
    """True if one number is compared with numbers: with fixed ones, or ones from the data."""
    condition = planned.condition
    return (
        condition.kind in _KINDS
        and planned.groups is None
        and condition.tolerance is None
        and all(map(_is_number, condition.bounds))
    )


def _is_number(term: model.Term) -> bool:
    """True where a term is a number, or computed of numbers and of metrics that were measured.

    A `coalesce` of a computation with a constant does not count: with another value of the constant
    the computation may overflow, and only a gate notices that behind the answer of `coalesce`.
    """
    match term:
        case model.Measured():
            return True
        case model.Applied(function=function) if function in USUAL_LIMITS:
            return True
        case model.Applied(function=function, terms=terms) if takes_none(function) and any(
            isinstance(part, model.Applied) and _has_constant(part) for part in terms
        ):
            return False
        case model.Applied(terms=terms):
            return all(map(_is_number, terms))
        case _:
            return isinstance(number_of(term), NUMBERS)


def _has_constant(term: model.Term) -> bool:
    if isinstance(term, model.Applied):
        return any(map(_has_constant, term.terms))
    return isinstance(term, model.ConstantTerm)


def number_of(term: model.Term) -> MetricValue:
    """The value of a term without metrics; None if it has none, or contains metrics."""
    match term:
        case model.ConstantTerm(value=value):
            return metric_value(value)
        case model.Applied(function=function, terms=terms):
            return apply(function, tuple(map(number_of, terms)))
        case _:
            return None


_MOST_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class AssertionKeys:
    """The keys of the requests of an assertion, and of all requests that its verdict depends on."""

    planned: model.PlannedAssertion
    needed: tuple[str, ...]
    behind: Mapping[model.MetricRequest, str]


class PastJudge:
    """Judges assertions, each planned for the day on which it is judged.

    :param days: the last days show how each dataset is read now.
    :param is_plain: for each assertion of the suite whether it measures the same as ever.
    :param datasets: the datasets of each assertion.
    """

    def __init__(
        self,
        days: Sequence[PastDay],
        is_plain: Sequence[bool],
        datasets: Mapping[AssertionKey, Collection[str]],
    ) -> None:
        self._days = tuple(days)
        self._by_date: dict[date, list[PastDay]] = {}
        self._labels: dict[Hashable, dict[str, dict[date, bool]]] = {}
        for day in days:
            self._by_date.setdefault(day.date, []).append(day)
            for key, is_issue in day.labels.items():
                for dataset in datasets.get(key, ()):
                    of_dataset = self._labels.setdefault(day.instance, {}).setdefault(dataset, {})
                    of_dataset[day.date] = is_issue or of_dataset.get(day.date, False)
        self._reads = _current_reads(days)
        self._is_plain = is_plain
        self._known_keys: dict[int, AssertionKeys] = {}

    def labels_of(self, day: PastDay) -> dict[str, dict[date, bool]]:
        """By dataset, the labelled days of the instance of a day: whether there was an issue.
        Metrics of one dataset on one day share a label, since they share the cause."""
        return self._labels.get(day.instance, {})

    def limits_of(
        self, limit: model.Applied, planned: model.PlannedAssertion, plan: model.Plan, first: date
    ) -> list[UsualLimits | None]:
        """The usual limits of each day, computed for all days together; None before the first."""
        known, kind, country, today, *before = limit.terms
        dataset = known.dataset if isinstance(known, model.KnownDay) else ""
        is_age = depends_on_now(today)
        series: dict[Hashable, dict[date, float | None]] = {}
        for day, value in zip(self._days, self._known_values(today, planned, plan), strict=True):
            number = as_float(value)
            if is_age and number is not None and day.now is not None:
                number -= _clock(day)
            series.setdefault(_place(day, dataset), {})[day.date] = number
        days = []
        wanted = [day for day in self._days if day.date >= first]
        for day in wanted:
            of_instance = series[_place(day, dataset)]
            values = [of_instance.get(on) for on in _dates_before(day.date, len(before))]
            if is_age and day.now is not None:
                values = [None if value is None else value + _clock(day) for value in values]
            for lag in day.measured.skipped:
                if 1 <= lag <= len(values):
                    values[-lag] = None
            text = known_text(day.date, self.labels_of(day).get(dataset, {}))
            days.append(day_before(text, values))
        of_country = number_of(country)
        name = None if of_country is None else str(of_country)
        limits = usual_limits(days, Kind(str(number_of(kind))), name)
        return [*[None] * (len(self._days) - len(wanted)), *limits]

    def _known_values(
        self, term: model.Term, planned: model.PlannedAssertion, plan: model.Plan
    ) -> Iterator[MetricValue]:
        """Yields the value of a term on each day, None for a day without data."""
        requests = tuple(model.requests_of(term))
        rows = [model.row_count(name, plan.date) for name in {one.dataset for one in requests}]
        columns = [self.values(one, planned, plan, self._days) for one in (*requests, *rows)]
        for day, *of_day in zip(self._days, *columns, strict=True):
            given = dict(zip((*requests, *rows), of_day, strict=True))
            has_data = all(given[count] != 0 for count in rows)
            known = KnownValues(given, day.now, plan, frozenset())
            yield known.value_of(term) if has_data else None

    def why_unknown(
        self, row: int, planned: model.PlannedAssertion, plan: model.Plan, day: PastDay
    ) -> str | None:
        """The reason why the stored data is insufficient for an assertion; None if it suffices."""
        if planned.disabled_by is not None:
            return None
        measured = day.measured
        for key in self.keys(planned, plan).needed:
            if not any(
                key in by_key for by_key in (measured.values, measured.groups, measured.failures)
            ):
                if self._is_judged_by_value(row, planned, day):
                    return None
                has_values = day.verdicts or measured.values
                return measured.gap(key) if has_values else "no results of this day"
        if day.now is None and any(map(depends_on_now, (planned.term, *planned.condition.bounds))):
            return "it depends on when a gate runs, but no gate ran on this day"
        for name in planned.datasets:
            reading = measured.reads.get(name)
            if reading is not None and reading not in self._reads[name]:
                return f"dataset '{name}' was different, or was read differently"
        return None

    def _is_judged_by_value(self, row: int, planned: model.PlannedAssertion, day: PastDay) -> bool:
        """True if the value of the assertion is sufficient, which is all that older versions
        stored: it measures the same, without constants, and is compared with numbers."""
        stored = day.verdicts.get((planned.check, planned.name))
        return (
            stored is not None
            and not day.measured.values
            and self._is_plain[row]
            and stored.expression == planned.expression
            and stored.status in (Status.PASSED, Status.FAILED)
            and (stored.value is None or isinstance(stored.value, NUMBERS))
            and has_limits(planned)
            and all(isinstance(number_of(bound), NUMBERS) for bound in planned.condition.bounds)
        )

    def verdict(
        self, row: int, planned: model.PlannedAssertion, plan: model.Plan, day: PastDay
    ) -> Verdict | None:
        """The verdict by what is stored of the day; None if that is insufficient."""
        if self.why_unknown(row, planned, plan, day) is not None:
            return None
        if not day.measured.values and self._is_judged_by_value(row, planned, day):
            request = replace(planned.requests[0], date=None)
            if not isinstance(planned.term, model.Measured):
                request = replace(request, metric="average")  # as computed as that
            scanned = model.Scanned({request: day.verdicts[planned.check, planned.name].value})
            known = KnownValues(scanned.values, day.now, plan, frozenset())
            return Judge(known, scanned).verdict(replace(planned, term=model.Measured(request)))
        behind = self.keys(planned, plan).behind
        if planned.history:
            day = with_history(day, planned, plan, self._by_date)
            behind = measurements.keys_of(requests_behind(planned, with_history=True), plan.date)
            plan = replace(plan, labels=self.labels_of(day))
        scanned = day.measured.scanned(behind)
        skipped = _skipped(plan, day)
        known = KnownValues(scanned.values, day.now, plan, skipped, day.date)
        return Judge(known, scanned).verdict(planned)

    def values(
        self,
        request: model.MetricRequest,
        planned: model.PlannedAssertion,
        plan: model.Plan,
        days: Iterable[PastDay],
    ) -> tuple[MetricValue, ...]:
        """The value of a request on each day, as `verdict` uses it."""
        behind = self.keys(planned, plan).behind
        needed = (request, model.row_count(request.dataset, request.date))
        keys = {needed_request: behind.get(needed_request) for needed_request in needed}

        def value(day: PastDay) -> MetricValue:
            stored = {item: day.measured.values.get(key) for item, key in keys.items() if key}
            return KnownValues(stored, day.now, plan, _skipped(plan, day)).value(request)

        return tuple(map(value, days))

    def keys(self, planned: model.PlannedAssertion, plan: model.Plan) -> AssertionKeys:
        keys = self._known_keys.get(id(planned))
        if keys is None or keys.planned is not planned:
            behind = measurements.keys_of(requests_behind(planned), plan.date)
            needed = tuple(behind[request] for request in planned.requests)
            if len(self._known_keys) > _MOST_REMEMBERED:
                self._known_keys.clear()
            keys = self._known_keys[id(planned)] = AssertionKeys(planned, needed, behind)
        return keys


@lru_cache(maxsize=1_000)
def _dates_before(on: date, days: int) -> tuple[date, ...]:
    """The dates of a number of days before a date, the earliest first."""
    return tuple(on - timedelta(days=lag) for lag in range(days, 0, -1))


def _clock(day: PastDay) -> float:
    """The seconds from the beginning of a day until the gate ran, which are part of an age."""
    assert day.now is not None
    begin = datetime.combine(day.date, time(), timezone.utc)
    return (day.now - begin).total_seconds()


def _place(day: PastDay, dataset: str) -> Hashable:
    """A key that days have in common if their values of a dataset are comparable."""
    return day.instance, day.measured.reads.get(dataset)


def _skipped(plan: model.Plan, day: PastDay) -> frozenset[date]:
    """The skipped dates of a day, shifted to the date of the plan."""
    return frozenset(plan.date - timedelta(days=lag) for lag in day.measured.skipped)


def _current_reads(days: Sequence[PastDay]) -> dict[str, frozenset[str]]:
    """The current readings of each dataset: on the last day; for a mapped gate, on the last day of
    each map index."""
    last = {
        (name, day.map_index): reading
        for day in days
        for name, reading in day.measured.reads.items()
    }
    is_mapped = next((day.map_index >= 0 for day in reversed(days) if day.measured.reads), False)
    reads: dict[str, frozenset[str]] = {name: frozenset() for name, _ in last}
    for (name, index), reading in last.items():
        if (index >= 0) == is_mapped:
            reads[name] |= {reading}
    return reads


@dataclass(frozen=True, slots=True)
class TunedAssertion:
    """An assertion of the suite. `tunables` are the names of the tunables that its verdict depends
    on."""

    check: str
    name: str
    severity: Severity
    cost: model.Cost
    is_required: bool
    is_experimental: bool
    is_volume: bool
    tunables: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        return self.check, self.name


@dataclass(frozen=True, slots=True)
class JudgedDays:
    """The verdicts of all days for some values of the tunables.

    `statuses` has a row for each assertion of the backtest, with one status for each day; None if
    it is unknown.
    """

    values: Mapping[str, float]
    statuses: tuple[tuple[Status | None, ...], ...]

    def count(self, status: Status | None) -> int:
        return sum(row.count(status) for row in self.statuses)
