"""The past days of a gate: measurements, verdicts and labels, one for each instance of a mapped
gate. Backtests, tuning and comparisons with shadow suites use them.

`results` is a root, or results with their storage options.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TypeAlias

from dqx_airflow.plan.measurements import Measurements, measurements_from
from dqx_airflow.results import query, schema
from dqx_airflow.results.past_runs import (
    PastRun,
    one_gate,
    past_runs,
    runs_of_suite,
    with_runs_instead,
)
from dqx_airflow.results.query import RunsWanted, StoredResults, opened
from dqx_airflow.results.report_rows import value_from_row
from dqx_airflow.results.schema import as_utc
from dqx_airflow.results.stored_labels import labelled_instead, labels_of_runs, read_labels
from dqx_airflow.values import MetricValue, Severity, ShadowReport, Status, from_json

AssertionKey: TypeAlias = tuple[str, str]
"""A check, and the name of an assertion in it."""


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A gate's verdict on an assertion on a day. `expression` is the measured expression, and
    `value` its result, before profiles."""

    status: Status
    expression: str
    value: MetricValue


@dataclass(frozen=True, slots=True)
class PastDay:
    """The measurements, verdicts and labels of one day, or of one instance of a mapped gate on it.

    `map_index` is the index of the instance. `now` is the time at which the gate ran, `fail_on` the
    lowest severity that blocked it. Verdicts and labels are by check and name; a label is True if
    there was a real issue."""

    date: date
    measured: Measurements
    now: datetime | None = None
    verdicts: Mapping[AssertionKey, StoredVerdict] = field(default_factory=dict)
    labels: Mapping[AssertionKey, bool] = field(default_factory=dict)
    map_index: int = -1
    fail_on: Severity = Severity.P1

    @property
    def instance(self) -> Hashable:
        """The identity of an instance of a mapped gate across days: the data that it reads. Its map
        index may belong to other data on another day. None if the gate is not mapped."""
        if self.map_index < 0:
            return None
        return frozenset(self.measured.reads.items()) or self.map_index


@dataclass(frozen=True, slots=True)
class ShadowDay:
    """A day on which a gate, or an instance of a mapped gate, had a shadow. Statuses and labels are
    by check and name; a label is True if there was a real issue. `problem` is the reason why the
    shadow was not judged."""

    date: date
    shadow: str
    own: Mapping[AssertionKey, Status] = field(default_factory=dict)
    other: Mapping[AssertionKey, Status] = field(default_factory=dict)
    labels: Mapping[AssertionKey, bool] = field(default_factory=dict)
    problem: str | None = None
    map_index: int = -1


_COMPARED = ("name", "check", "status")
_OF_DAYS = (*_COMPARED, "expression", "measured", "value", "value_text", "value_kind")


def past_days(
    results: StoredResults | str,
    suite: str,
    since: date,
    until: date,
    *,
    gate: str | None = None,
    map_index: int | None = None,
    as_labelled: bool = False,
) -> tuple[PastDay, ...]:
    """The days for which a gate left results, oldest first, with their labels: one for each
    instance of a mapped gate.

    :param suite: the name of the suite, as in its file.
    :param map_index: only this instance of a mapped gate.
    :param as_labelled: a day as people have labelled it, where its data was repaired since: what
        would have found a known issue is judged by the data that had it.
    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    wanted = runs_of_suite(suite, since, until, gate, map_index)
    runs = past_runs(results, wanted, _OF_DAYS)
    if as_labelled:
        other = labelled_instead(results, {run.place: run.run_id for run in runs})
        runs = with_runs_instead(results, runs, other, _OF_DAYS)
    labels = _labels_of(results, runs)
    return tuple(_day(run, labels[run.date, run.map_index]) for run in runs)


def issues_before(
    results: StoredResults | str, suite: str, first: date, gate: str
) -> tuple[PastDay, ...]:
    """The days before a date on which people have labelled a real issue, oldest first, as they
    labelled them.

    :param suite: the name of the suite, as in its file.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    labels = read_labels(results, gates=[gate])
    dates = [label.date for label in labels if label.ground_truth and label.date < first]
    if not dates:
        return ()
    days = past_days(results, suite, min(dates), max(dates), gate=gate, as_labelled=True)
    return tuple(day for day in days if any(day.labels.values()))


def _labels_of(
    results: StoredResults, runs: Sequence[PastRun]
) -> Mapping[tuple[date, int], Mapping[AssertionKey, bool]]:
    """The labels of the only gate of some runs, by date and map index.

    :raises RequestError: the runs are of several gates.
    """
    labels: dict[tuple[date, int], dict[AssertionKey, bool]] = defaultdict(dict)
    one_gate(runs)
    for label in labels_of_runs(results, {run.place: run.run_id for run in runs}):
        labels[label.date, label.map_index][label.check, label.name] = label.ground_truth
    return labels


def _day(run: PastRun, labels: Mapping[AssertionKey, bool]) -> PastDay:
    measured = Measurements()
    verdicts = {}
    for row in run.rows:
        measured |= measurements_from(row.get("measured"))
        value = value_from_row(row, "value")
        verdict = StoredVerdict(Status(row["status"]), row["expression"], value)
        verdicts[row["check"], row["name"]] = verdict
    return PastDay(
        run.date,
        measured,
        now=as_utc(run.started_at),
        verdicts=verdicts,
        labels=labels,
        map_index=run.map_index,
        fail_on=run.fail_on,
    )


def shadow_days(results: StoredResults | str, wanted: RunsWanted) -> tuple[ShadowDay, ...]:
    """The days on which the gate of a suite had a shadow, oldest first: one for each instance of a
    mapped gate.

    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    runs = past_runs(results, wanted, _COMPARED)
    labels = _labels_of(results, runs)
    if not runs:
        return ()
    days = query.of_dates(wanted.since, wanted.until)
    of_runs = [query.is_in("run_id", [run.run_id for run in runs]), *days]
    reports = {
        row["run_id"]: from_json(ShadowReport, row["shadow_run"])
        for row in results.select(schema.RUNS, ("run_id", "shadow_run"), of_runs)
        if row.get("shadow_run")
    }
    others: dict[str, list[schema.Row]] = defaultdict(list)
    for row in results.select(schema.RESULTS, ("run_id", *_COMPARED), of_runs, shadows=True):
        others[row["run_id"]].append(row)
    return tuple(
        ShadowDay(
            run.date,
            shadow=reports[run.run_id].name,
            own=_statuses(run.rows),
            other=_statuses(others[run.run_id]),
            labels=labels[run.date, run.map_index],
            problem=reports[run.run_id].problem,
            map_index=run.map_index,
        )
        for run in runs
        if run.run_id in reports
    )


def _statuses(rows: Iterable[schema.Row]) -> dict[AssertionKey, Status]:
    return {(row["check"], row["name"]): Status(row["status"]) for row in rows}
