"""Judges an assertion on a past day, from what is stored of that day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from dqx_airflow.exact import NUMBERS
from dqx_airflow.plan.evaluate import judge_one
from dqx_airflow.plan.measured import keys_of, requests_behind
from dqx_airflow.plan.model import (
    Measured,
    MetricRequest,
    Plan,
    PlannedAssertion,
    Scanned,
    row_count,
)
from dqx_airflow.plan.term_values import KnownValues
from dqx_airflow.tuning.moved_limits import has_limits, number_of
from dqx_airflow.tuning.past_days import PastDay
from dqx_airflow.tuning.past_suite import asks_for_now
from dqx_airflow.values import MetricValue, Status, Verdict

_MOST_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class AssertionKeys:
    """The keys of the requests of an assertion, and those of everything that its verdict depends
    on."""

    planned: PlannedAssertion
    needed: tuple[str, ...]
    behind: Mapping[MetricRequest, str]


class PastJudge:
    """Judges assertions, each planned for the day on which it is judged.

    :param days: the last ones show how each dataset is read now.
    :param is_plain: for each assertion of the suite whether it measures the same as ever.
    """

    def __init__(self, days: Sequence[PastDay], is_plain: Sequence[bool]) -> None:
        self._reads = _current_reads(days)
        self._is_plain = is_plain
        self._known_keys: dict[int, AssertionKeys] = {}

    def why_unknown(
        self, row: int, planned: PlannedAssertion, plan: Plan, day: PastDay
    ) -> str | None:
        """Why the stored data is insufficient for an assertion; None if it is sufficient."""
        if planned.disabled_by is not None:
            return None
        measured = day.measured
        for key in self.keys(planned, plan).needed:
            if not any(
                key in by_key for by_key in (measured.values, measured.groups, measured.failures)
            ):
                if self._is_judged_by_value(row, planned, day):
                    return None
                return measured.gap(key) if day.verdicts else "no results of this day"
        if day.now is None and any(map(asks_for_now, (planned.term, *planned.condition.bounds))):
            return "it depends on when a gate runs, but no gate ran on this day"
        for name in planned.datasets:
            reading = measured.reads.get(name)
            if reading is not None and reading not in self._reads[name]:
                return f"dataset '{name}' was different, or was read differently"
        return None

    def _is_judged_by_value(self, row: int, planned: PlannedAssertion, day: PastDay) -> bool:
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
        self, row: int, planned: PlannedAssertion, plan: Plan, day: PastDay
    ) -> Verdict | None:
        """The verdict by what is stored of the day; None if that is insufficient."""
        if self.why_unknown(row, planned, plan, day) is not None:
            return None
        if not day.measured.values and self._is_judged_by_value(row, planned, day):
            request = replace(planned.requests[0], date=None)
            if not isinstance(planned.term, Measured):
                request = replace(request, metric="average")  # as computed as that
            scanned = Scanned({request: day.verdicts[planned.check, planned.name].value})
            return judge_one(replace(planned, term=Measured(request)), plan, scanned, now=day.now)
        scanned = day.measured.scanned(self.keys(planned, plan).behind)
        return judge_one(planned, plan, scanned, _skipped(plan, day), now=day.now)

    def values(
        self, request: MetricRequest, planned: PlannedAssertion, plan: Plan, days: Iterable[PastDay]
    ) -> tuple[MetricValue, ...]:
        """The value of a request on each day, as `verdict` uses it."""
        behind = self.keys(planned, plan).behind
        needed = (request, row_count(request.dataset, request.date))
        keys = {needed_request: behind.get(needed_request) for needed_request in needed}

        def value(day: PastDay) -> MetricValue:
            stored = {item: day.measured.values.get(key) for item, key in keys.items() if key}
            return KnownValues(stored, day.now, plan, _skipped(plan, day)).value(request)

        return tuple(map(value, days))

    def keys(self, planned: PlannedAssertion, plan: Plan) -> AssertionKeys:
        keys = self._known_keys.get(id(planned))
        if keys is None or keys.planned is not planned:
            behind = keys_of(requests_behind(planned), plan.date)
            needed = tuple(behind[request] for request in planned.requests)
            if len(self._known_keys) > _MOST_REMEMBERED:
                self._known_keys.clear()
            keys = self._known_keys[id(planned)] = AssertionKeys(planned, needed, behind)
        return keys


def _skipped(plan: Plan, day: PastDay) -> frozenset[date]:
    """The skipped dates of a day, as if it were that of the plan."""
    return frozenset(plan.date - timedelta(days=lag) for lag in day.measured.skipped)


def _current_reads(days: Sequence[PastDay]) -> dict[str, frozenset[str]]:
    """How each dataset is read now: as on the last of the days; by a mapped gate, as on the last
    day of each map index."""
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
