"""The past of a gate: measurements, verdicts and labels by day, from one run for each day and
instance of a mapped gate. Alerts, labels, backtests and comparisons with shadow suites use it.
`results` is a root, or results with their storage options.

Users' labels of verdicts say whether there was a real issue. Append-only; the last one counts. Any
number of processes may write concurrently, and be killed: a label is stored once, or not at all.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from functools import reduce
from importlib.resources import files
from operator import or_
from typing import Any, TypeAlias

from dqx_airflow.errors import RequestError
from dqx_airflow.plan.measurements import Measurements, measurements_from
from dqx_airflow.results import query, schema
from dqx_airflow.results.query import RunsWanted, StoredResults, map_index_of, opened
from dqx_airflow.results.report_rows import value_from_row
from dqx_airflow.results.schema import as_utc
from dqx_airflow.values import (
    DatasetSnapshot,
    MetricValue,
    Severity,
    ShadowReport,
    Status,
    from_json,
)

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


_OF_RUNS = (
    *("run_id", "gate", "dataset_date", "scheduler_run", "attempt_id", "started_at", "outcome"),
    *("failed", "fail_on", query.PARTIAL),
)

_MAP_INDEX = "regexp_match(\"scheduler_run\", '\\[([0-9]{1,9})\\]$')[1]"
"""The map index at the end of a scheduler run, as SQL; NULL if it is not of a mapped task."""
_VIEW = files(__package__).joinpath("dql_results.sql").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that counts for a gate, a date and a map index, -1 if the gate is not mapped. `rows`
    are the rows of its assertions in `results`, `attempt_id` is the id of the scheduler's attempt.
    """

    run_id: str
    gate: str
    date: date
    map_index: int
    attempt_id: str
    started_at: datetime
    rows: tuple[schema.Row, ...]
    fail_on: Severity = Severity.P1


def past_runs(
    results: StoredResults | str,
    wanted: RunsWanted,
    columns: Sequence[str],
    *,
    row_conditions: Sequence[str] = (),
) -> tuple[PastRun, ...]:
    """The last run of each gate, date and map index, oldest first, with these columns of the rows
    of its assertions. A missing store has no runs.

    Attempts that a later attempt supersedes do not count. If several scheduler runs had the same
    date, the last started run counts, separately for each instance of a mapped gate. A partial run
    counts if there is no complete run, or if it was blocked or broken.

    :param wanted: if `failing`, the runs in which no assertion failed are left out.
    :param row_conditions: conditions on the rows, as SQL.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    order = 'ORDER BY "dataset_date", "gate", "started_at", "run_id"'
    last: dict[tuple[date, str, int], schema.Row] = {}
    for row in results.run_rows(wanted, _OF_RUNS, order, last=True):
        key = row["dataset_date"], row["gate"], query.map_index_of(row)
        if not (_is_weak(row) and key in last and not _is_weak(last[key])):
            last[key] = row
    counting = {key: row for key, row in last.items() if not wanted.failing or row["failed"] != 0}
    if not counting:
        return ()
    ids = [row["run_id"] for row in counting.values()]
    days = query.of_dates(wanted.since, wanted.until)
    of_runs = [query.is_in("run_id", ids), *days, *row_conditions]
    rows: dict[str, dict[int, schema.Row]] = defaultdict(dict)
    for row in results.select(schema.RESULTS, ("run_id", "position", *columns), of_runs):
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
            Severity(row["fail_on"]),
        )
        for (on, gate, index), row in sorted(counting.items())
    )


def _is_weak(row: schema.Row) -> bool:
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
    stored = results.select(
        schema.RUNS, ("suite", "gate"), [], 'ORDER BY "finished_at" DESC LIMIT 1000'
    )
    known = dict.fromkeys(f"{row['suite']} (gate {row['gate']})" for row in stored)
    if not known:
        raise RequestError(f"no results under {results.root}", "check the path, or --results-root")
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
    for row in results.select(
        schema.RUNS, ["datasets"], [], 'ORDER BY "finished_at" DESC LIMIT 200'
    ):
        snapshots = from_json(tuple[DatasetSnapshot, ...], row["datasets"])
        names.update(dict.fromkeys(snapshot.name for snapshot in snapshots))
    return tuple(names)


def query_results(results: StoredResults | str, sql: str) -> list[dict[str, Any]]:
    """The rows of a SELECT over `dql_results`, the verdicts of the last run for each gate, date and
    map index; none if there is no store yet.

    :raises StoreError: the store cannot be read, or the SQL is invalid.
    """
    results = opened(results)
    runs = results.table(schema.RUNS)
    stored = results.table(schema.RESULTS)
    if runs is None or stored is None:
        return []
    is_counted = query.SHADOW in results.columns(schema.RESULTS)
    counting = f'AND stored."{query.SHADOW}" IS NULL' if is_counted else ""
    last = query.last_first(results.columns(schema.RUNS))
    view = _VIEW.format(last=last, counting=counting, index=_MAP_INDEX)
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
    return PastDay(run.date, measured, now, verdicts, labels, run.map_index, run.fail_on)


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
        for row in results.select(schema.RUNS, ("run_id", "shadow_run"), of_runs)
        if row.get("shadow_run")
    }
    others: dict[str, list[schema.Row]] = defaultdict(list)
    for row in results.select(schema.RESULTS, ("run_id", *_COMPARED), of_runs, shadows=True):
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


def _statuses(rows: Iterable[schema.Row]) -> dict[AssertionKey, Status]:
    return {(row["check"], row["name"]): Status(row["status"]) for row in rows}


LabelKey: TypeAlias = tuple[str, date, int, str, str]
"""A gate, a date of its data, a map index, a check, and the name of an assertion."""


@dataclass(frozen=True, slots=True)
class Label:
    """Whether there was a real issue in what an assertion of a gate checked on a date.

    With `ground_truth` False, a failure was a false alarm; with True, a pass missed an issue.
    `run_id` is the run whose verdict the author saw, `map_index` the index of the instance of a
    mapped gate, -1 if the gate is not mapped. `at` is in UTC.
    """

    gate: str
    date: date
    check: str
    name: str
    ground_truth: bool
    author: str
    reason: str | None = None
    suite: str = ""
    run_id: str | None = None
    map_index: int = -1
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def key(self) -> LabelKey:
        """The labelled verdict: the gate, the date, the instance, the check and the assertion."""
        return self.gate, self.date, self.map_index, self.check, self.name

    @property
    def content(self) -> tuple[bool, str, str | None]:
        """The content of the label, its author, and the reason."""
        return self.ground_truth, self.author, self.reason

    @property
    def row(self) -> dict[str, Any]:
        """The row of the label in the table `labels`."""
        return {
            "run_id": self.run_id,
            "label_id": self.id,
            "gate": self.gate,
            "dataset_date": self.date,
            "map_index": self.map_index,
            "suite": self.suite,
            "check": self.check,
            "name": self.name,
            "ground_truth": self.ground_truth,
            "reason": self.reason,
            "author": self.author,
            "labelled_at": as_utc(self.at),
        }


def write_labels(results: StoredResults | str, labels: Iterable[Label]) -> tuple[Label, ...]:
    """Appends labels in one commit, and returns those that were appended.

    A label that repeats the last label of the same verdict is not appended. So an interrupted call
    can be repeated safely.

    :raises StoreError: the store cannot be written.
    """
    wanted = list(labels)
    results = opened(results)
    stored = {
        label.key: label.content
        for label in read_labels(results, gates={label.gate for label in wanted})
    }
    new = []
    for label in wanted:
        if stored.get(label.key) != label.content:
            new.append(label)
            stored[label.key] = label.content
    if new:
        results.write(schema.LABELS, {label.id: label.row for label in new})
    return tuple(new)


def read_labels(
    results: StoredResults | str,
    *,
    gates: Collection[str] | None = None,
    since: date | None = None,
    until: date | None = None,
    all_versions: bool = False,
) -> tuple[Label, ...]:
    """The labels of some gates on data of some days, oldest label first.

    A label of an older version has no map index: it belongs to the instance of the labelled run.

    :param all_versions: also labels that a later label replaces.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    wanted = RunsWanted(gates, since=since, until=until)
    if wanted.is_nothing:
        return ()
    order = 'ORDER BY "labelled_at", "label_id"'
    rows = results.select(schema.LABELS, schema.LABELS_SCHEMA.names, wanted.conditions, order)
    instances: Mapping[str, int] = {}
    if any(row.get("map_index") is None for row in rows):
        instances = _mapped_runs(results, wanted)
    unique = {label.id: label for label in (_label(row, instances) for row in rows)}
    if all_versions:
        return tuple(unique.values())
    last: dict[LabelKey, Label] = {}
    for label in unique.values():
        last.pop(label.key, None)
        last[label.key] = label
    return tuple(last.values())


def contradictions(
    results: StoredResults | str,
    gates: Collection[str],
    *,
    since: date | None = None,
    until: date | None = None,
) -> tuple[tuple[Label, Label], ...]:
    """The labels that count and contradict the label of another person for the same verdict, each
    with the last label of that person.

    :raises StoreError: the store exists and cannot be read.
    """
    by_verdict: defaultdict[LabelKey, list[Label]] = defaultdict(list)
    for label in read_labels(results, gates=gates, since=since, until=until, all_versions=True):
        by_verdict[label.key].append(label)
    found = []
    for *earlier, last in by_verdict.values():
        others = [label for label in earlier if label.author != last.author]
        if others and others[-1].ground_truth != last.ground_truth:
            found.append((last, others[-1]))
    return tuple(found)


def _mapped_runs(results: StoredResults, wanted: RunsWanted) -> dict[str, int]:
    """The map indexes of runs of mapped gates, by their ids."""
    mapped = [*wanted.conditions, "right(\"scheduler_run\", 1) = ']'"]
    rows = results.select(schema.RUNS, ("run_id", "gate", "dataset_date", "scheduler_run"), mapped)
    return {row["run_id"]: map_index_of(row) for row in rows}


def _label(row: schema.Row, instances: Mapping[str, int]) -> Label:
    """The label of a row of the table `labels`.

    :param instances: the map indexes of mapped runs, for a label that has none.
    """
    run_id = row.get("run_id")
    map_index = row.get("map_index")
    if map_index is None:
        map_index = instances.get(run_id or "", -1)
    return Label(
        gate=row["gate"],
        date=row["dataset_date"],
        check=row["check"],
        name=row["name"],
        ground_truth=bool(row["ground_truth"]),
        author=row["author"],
        reason=row.get("reason"),
        suite=row.get("suite") or "",
        run_id=run_id,
        map_index=map_index,
        at=as_utc(row["labelled_at"]),
        id=row["label_id"],
    )
