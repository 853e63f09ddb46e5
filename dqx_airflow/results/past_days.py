"""The past of a gate: its days with what was measured, judged and labelled on them, one run for
each day and instance of a mapped gate. Alerts, labels and backtests begin here, and comparisons
with shadow suites. `results` is a root, or results with their storage options."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from dqx_airflow.errors import RequestError
from dqx_airflow.plan.term_values import Measurements, measurements_from
from dqx_airflow.results import query
from dqx_airflow.results.labels import read_labels
from dqx_airflow.results.query import RunsWanted, StoredResults, opened
from dqx_airflow.results.schema import RESULTS, RUNS, Row, as_utc, value_from_row
from dqx_airflow.values import DatasetSnapshot, MetricValue, ShadowReport, Status, from_json

AssertionKey: TypeAlias = tuple[str, str]
"""A check, and the name of an assertion in it."""


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A gate's verdict on an assertion on a day. `expression` is what it measured, and `value` the
    result, before profiles."""

    status: Status
    expression: str
    value: MetricValue


@dataclass(frozen=True, slots=True)
class PastDay:
    """The facts about one day, or about an instance of a mapped gate on it, by its map index. `now`
    is when the gate ran. Verdicts and labels are by check and name; a label is True if there was a
    real issue."""

    date: date
    measured: Measurements
    now: datetime | None = None
    verdicts: Mapping[AssertionKey, StoredVerdict] = field(default_factory=dict)
    labels: Mapping[AssertionKey, bool] = field(default_factory=dict)
    run_id: str | None = None
    map_index: int = -1

    @property
    def instance(self) -> Hashable:
        """What identifies an instance of a mapped gate on all days: the data that it reads. Its map
        index may belong to other data on another day."""
        if self.map_index < 0:
            return None
        return frozenset(self.measured.reads.items()) or self.map_index


@dataclass(frozen=True, slots=True)
class ShadowDay:
    """A day on which a gate, or an instance of a mapped gate, had a shadow. Statuses and labels are
    by check and name; a label is True if there was a real issue. `problem` says why the shadow was
    not judged."""

    date: date
    shadow: str
    own: Mapping[AssertionKey, Status] = field(default_factory=dict)
    other: Mapping[AssertionKey, Status] = field(default_factory=dict)
    labels: Mapping[AssertionKey, bool] = field(default_factory=dict)
    problem: str | None = None
    map_index: int = -1


_OF_RUNS = (
    *("run_id", "gate", "dataset_date", "scheduler_run", "attempt_id", "started_at", "outcome"),
    *("failed", query.PARTIAL),
)

_MAP_INDEX = "regexp_match(\"scheduler_run\", '\\[([0-9]{1,9})\\]$')[1]"
"""The map index at the end of a scheduler run, as SQL; NULL if it is not of a mapped task."""
_VIEW = """
WITH dql_results AS (
    SELECT stored."dataset_date" AS date, stored."name" AS assertion_name,
           stored."status" = 'passed' AS passed, stored."status" AS status, stored."check",
           stored."gate", stored."suite", stored."severity", stored."value",
           coalesce(CAST({index} AS BIGINT), -1) AS map_index
    FROM stored JOIN ({last_runs}) AS last_runs ON stored."run_id" = last_runs.run
    WHERE stored."status" IN ('passed', 'failed') {counting}
)
"""
_LAST = """
    SELECT "run_id" AS run FROM (
        SELECT "run_id", row_number() OVER (
            PARTITION BY "gate", "dataset_date", {index} ORDER BY {last}, "run_id"
        ) AS later FROM runs
    ) WHERE later = 1
"""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that counts for a gate, a date and a map index, -1 if the gate is not mapped. `rows`
    are those of its assertions, `attempt_id` is the scheduler's."""

    run_id: str
    gate: str
    date: date
    map_index: int
    attempt_id: str
    started_at: datetime
    rows: tuple[Row, ...]


def past_runs(
    results: StoredResults | str,
    wanted: RunsWanted,
    columns: Sequence[str],
    *,
    row_conditions: Sequence[str] = (),
    only_failed: bool = False,
) -> tuple[PastRun, ...]:
    """The last run of each gate, date and map index, oldest first, with these columns of the rows
    of its assertions. A missing store has no runs.

    Attempts that a later one supersedes do not count. If several scheduler runs were about one
    date, the one that was started last counts: for each instance of a mapped gate its own. A
    partial run counts if there is no other, or if it was blocked or broken.

    :param row_conditions: conditions on the rows, as SQL.
    :param only_failed: leaves out the runs in which no assertion failed: their rows are not read.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    order = 'ORDER BY "dataset_date", "gate", "started_at", "run_id"'
    last: dict[tuple[date, str, int], Row] = {}
    for row in results.run_rows(wanted, _OF_RUNS, order, last=True):
        key = row["dataset_date"], row["gate"], query.map_index_of(row)
        if not (_is_weak(row) and key in last and not _is_weak(last[key])):
            last[key] = row
    counting = {key: row for key, row in last.items() if not only_failed or row["failed"] != 0}
    if not counting:
        return ()
    ids = [row["run_id"] for row in counting.values()]
    days = query.of_dates(wanted.since, wanted.until)
    of_runs = [query.is_in("run_id", ids), *days, *row_conditions]
    rows: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in results.select(RESULTS, ("run_id", "position", *columns), of_runs):
        rows[row["run_id"]][row["position"]] = row
    return tuple(
        PastRun(
            row["run_id"],
            gate,
            on,
            index,
            row["attempt_id"],
            row["started_at"],
            tuple(verdict_row for _, verdict_row in sorted(rows[row["run_id"]].items())),
        )
        for (on, gate, index), row in sorted(counting.items())
    )


def _is_weak(row: Row) -> bool:
    """True for a partial run that stopped nothing: any other of the same date takes precedence."""
    return bool(row.get(query.PARTIAL)) and row["outcome"] not in ("blocked", "broken")


def one_gate(runs: Sequence[PastRun]) -> str | None:
    """The single gate of all runs; None if there are no runs.

    :raises RequestError: there are several.
    """
    gates = sorted({run.gate for run in runs})
    if len(gates) > 1:
        listed = ", ".join(gates)
        raise RequestError(f"several gates run this suite: {listed}", "add --gate NAME")
    return gates[0] if gates else None


def newest_date(results: StoredResults | str, wanted: RunsWanted) -> date:
    """The newest date for which a suite has results, whatever days are wanted.

    :raises RequestError: it has none.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    newest = results.newest_date(replace(wanted, since=None, until=None))
    if newest is not None:
        return newest
    stored = results.select(RUNS, ("suite", "gate"), [], 'ORDER BY "finished_at" DESC LIMIT 1000')
    known = dict.fromkeys(f"{row['suite']} (gate {row['gate']})" for row in stored)
    if not known:
        raise RequestError(f"no results under {results.root}", "check the path, or --results")
    missing = f"suite '{wanted.suite}'" + "".join(
        f" by gate '{gate}'" for gate in wanted.gates or ()
    )
    if wanted.map_index is not None:
        missing += f", instance {wanted.map_index},"
    hint = f"results of: {', '.join(known)}"
    raise RequestError(f"{missing} has no results under {results.root}", hint)


def dataset_names(results: StoredResults | str) -> tuple[str, ...]:
    """The names of the datasets of the newest 200 runs.

    :raises StoreError: there is no store, or it cannot be read.
    """
    results = opened(results)
    results.require_some("check the path")
    names: dict[str, None] = {}
    for row in results.select(RUNS, ["datasets"], [], 'ORDER BY "finished_at" DESC LIMIT 200'):
        snapshots = from_json(tuple[DatasetSnapshot, ...], row["datasets"])
        names.update(dict.fromkeys(snapshot.name for snapshot in snapshots))
    return tuple(names)


def query_results(results: StoredResults | str, sql: str) -> list[dict[str, Any]]:
    """The rows of a SELECT over `dql_results`, the verdicts of the last run for each gate, date and
    map index; none if there is no store yet.

    :raises StoreError: the store cannot be read, or the SQL is invalid.
    """
    results = opened(results)
    runs, stored = results.table(RUNS), results.table(RESULTS)
    if runs is None or stored is None:
        return []
    is_counted = query.SHADOW in results.columns(RESULTS)
    counting = f'AND stored."{query.SHADOW}" IS NULL' if is_counted else ""
    last_runs = _LAST.format(last=query.last_first(results.columns(RUNS)), index=_MAP_INDEX)
    view = _VIEW.format(last_runs=last_runs, counting=counting, index=_MAP_INDEX)
    return results.rows(view + sql, stored=stored, runs=runs)


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
) -> tuple[PastDay, ...]:
    """The days for which a gate left results, oldest first, with their labels: one for each
    instance of a mapped gate.

    :param suite: the name of the suite, as in its file.
    :param map_index: only this instance of a mapped gate.
    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    wanted = runs_of_suite(suite, since, until, gate, map_index)
    runs = past_runs(results, wanted, _OF_DAYS)
    labels = _labels_of(results, runs, wanted)
    return tuple(_day(run, labels[run.date, run.map_index]) for run in runs)


def runs_of_suite(
    suite: str,
    since: date | None,
    until: date | None,
    gate: str | None = None,
    map_index: int | None = None,
) -> RunsWanted:
    """The runs of a suite on data of some days, in any gate or in one, or in an instance of it."""
    gates = None if gate is None else [gate]
    return RunsWanted(gates, suite=suite, since=since, until=until, map_index=map_index)


def _labels_of(
    results: StoredResults, runs: Sequence[PastRun], wanted: RunsWanted
) -> Mapping[tuple[date, int], Mapping[AssertionKey, bool]]:
    """The labels of the only gate of some runs, by date and map index.

    :raises RequestError: the runs are of several gates.
    """
    labels: dict[tuple[date, int], dict[AssertionKey, bool]] = defaultdict(dict)
    if (gate := one_gate(runs)) is not None:
        for label in read_labels(results, gates=[gate], since=wanted.since, until=wanted.until):
            labels[label.date, label.map_index][label.check, label.name] = label.ground_truth
    return labels


def _day(run: PastRun, labels: Mapping[AssertionKey, bool]) -> PastDay:
    measured = reduce(
        or_, (measurements_from(row.get("measured")) for row in run.rows), Measurements()
    )
    verdicts = {
        (row["check"], row["name"]): StoredVerdict(
            Status(row["status"]), row["expression"], value_from_row(row, "value")
        )
        for row in run.rows
    }
    now = as_utc(run.started_at)
    return PastDay(run.date, measured, now, verdicts, labels, run.run_id, run.map_index)


def shadow_days(results: StoredResults | str, wanted: RunsWanted) -> tuple[ShadowDay, ...]:
    """The days on which the gate of a suite had a shadow, oldest first: one for each instance of a
    mapped gate.

    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    runs = past_runs(results, wanted, _COMPARED)
    labels = _labels_of(results, runs, wanted)
    if not runs:
        return ()
    days = query.of_dates(wanted.since, wanted.until)
    of_runs = [query.is_in("run_id", [run.run_id for run in runs]), *days]
    reports = {
        row["run_id"]: from_json(ShadowReport, row["shadow_run"])
        for row in results.select(RUNS, ("run_id", "shadow_run"), of_runs)
        if row.get("shadow_run")
    }
    others: dict[str, list[Row]] = defaultdict(list)
    for row in results.select(RESULTS, ("run_id", *_COMPARED), of_runs, shadows=True):
        others[row["run_id"]].append(row)
    return tuple(
        ShadowDay(
            run.date,
            reports[run.run_id].name,
            _statuses(run.rows),
            _statuses(others[run.run_id]),
            labels[run.date, run.map_index],
            reports[run.run_id].problem,
            run.map_index,
        )
        for run in runs
        if run.run_id in reports
    )


def _statuses(rows: Iterable[Row]) -> dict[AssertionKey, Status]:
    return {(row["check"], row["name"]): Status(row["status"]) for row in rows}
