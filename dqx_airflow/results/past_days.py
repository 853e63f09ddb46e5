"""The verdicts of past days, one run for each day and instance of a mapped gate: the input of
alerts and labels; of backtests, with the stored metric values; and of comparisons with shadow
suites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from deltalake import QueryBuilder

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.plan.measured import Measurements, measurements_from
from dqx_airflow.results import query
from dqx_airflow.results.column import Row, as_utc, value_from_row
from dqx_airflow.results.labels import labels_from, read_labels
from dqx_airflow.results.schema import RESULTS, RUNS
from dqx_airflow.results.tables import locate, open_table, store_errors
from dqx_airflow.tuning.past_days import PastDay, StoredVerdict
from dqx_airflow.values import DatasetSnapshot, ShadowReport, Status, from_json

_OF_RUNS = (
    *("run_id", "gate", "dataset_date", "scheduler_run", "attempt_id", "started_at", "outcome"),
    *("datasets", "failed", query.PARTIAL),
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
    outcome: str
    datasets: str
    rows: tuple[Row, ...]


def past_runs(
    root: str,
    suite: str,
    since: date,
    until: date,
    columns: Sequence[str],
    *,
    gate: str | None = None,
    map_index: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[PastRun, ...]:
    """The runs of a suite on data of some days, oldest first, with these columns of their rows.

    Attempts that a later one supersedes do not count. If several scheduler runs were about one
    date, the one that was started last counts: for each instance of a mapped gate its own. A
    missing store has no runs.

    :param suite: the name of the suite, as in its file.
    :param map_index: only this instance of a mapped gate.
    :raises StoreError: the store exists and cannot be read.
    """
    conditions = query.of_suite(suite, gate, map_index)
    return runs_that_count(
        query.selecting(root, storage_options), conditions, since, until, columns
    )


def runs_that_count(
    select: query.Select,
    conditions: Sequence[str],
    since: date,
    until: date,
    columns: Sequence[str],
    *,
    row_conditions: Sequence[str] = (),
    only_failed: bool = False,
) -> tuple[PastRun, ...]:
    """The last run of each gate, date and map index, oldest first, among those that conditions
    select. A partial run counts if there is no other, or if it was blocked or broken.

    :param conditions: those on runs, as SQL.
    :param row_conditions: those on the rows of their assertions.
    :param only_failed: leaves out the runs in which no assertion failed: their rows are not read.
    :raises StoreError: the store exists and cannot be read.
    """
    days = query.of_dates(since, until)
    order = 'ORDER BY "dataset_date", "gate", "started_at", "run_id"'
    runs = select(RUNS, _OF_RUNS, [*conditions, *days], order, last_attempts=True)
    last: dict[tuple[date, str, int], Row] = {}
    for row in runs:
        key = row["dataset_date"], row["gate"], query.map_index_of(row)
        if not (_is_weak(row) and key in last and not _is_weak(last[key])):
            last[key] = row
    counting = {key: row for key, row in last.items() if not only_failed or row["failed"] != 0}
    if not counting:
        return ()
    ids = [row["run_id"] for row in counting.values()]
    of_runs = [query.is_in("run_id", ids), *days, *row_conditions]
    rows: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in select(RESULTS, ("run_id", "position", *columns), of_runs):
        rows[row["run_id"]][row["position"]] = row
    return tuple(
        PastRun(
            row["run_id"],
            row["gate"],
            row["dataset_date"],
            index,
            row["attempt_id"],
            row["started_at"],
            row["outcome"],
            row["datasets"],
            tuple(verdict_row for _, verdict_row in sorted(rows[row["run_id"]].items())),
        )
        for (_, _, index), row in sorted(counting.items())
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


def newest_date(
    root: str,
    suite: str,
    *,
    gate: str | None = None,
    map_index: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> date:
    """The newest date for which a suite has results.

    :param suite: the name of the suite, as in its file.
    :param map_index: only of this instance of a mapped gate.
    :raises RequestError: it has none.
    :raises StoreError: the store exists and cannot be read.
    """
    select, conditions = (
        query.selecting(root, storage_options),
        query.of_suite(suite, gate, map_index),
    )
    rows = select(RUNS, ("dataset_date",), conditions, 'ORDER BY "dataset_date" DESC LIMIT 1')
    if rows:
        newest: date = rows[0]["dataset_date"]
        return newest
    stored = select(RUNS, ("suite", "gate"), [], 'ORDER BY "finished_at" DESC LIMIT 1000')
    known = dict.fromkeys(f"{row['suite']} (gate {row['gate']})" for row in stored)
    if not known:
        raise RequestError(f"no results under {root}", "check the path, or --results")
    wanted = f"suite '{suite}'" + (f" by gate '{gate}'" if gate is not None else "")
    if map_index is not None:
        wanted += f", instance {map_index},"
    raise RequestError(f"{wanted} has no results under {root}", f"results of: {', '.join(known)}")


def dataset_names(
    root: str, *, storage_options: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The names of the datasets of the newest 200 runs.

    :raises StoreError: there is no store, or it cannot be read.
    """
    location = locate(root, storage_options)
    runs = open_table(location, RUNS)
    if runs is None:
        raise StoreError(f"no results under {location.root}", "check the path")
    order = 'ORDER BY "finished_at" DESC LIMIT 200'
    names: dict[str, None] = {}
    for row in query.select_rows(location, runs, ["datasets"], [], order):
        snapshots = from_json(tuple[DatasetSnapshot, ...], row["datasets"])
        names.update(dict.fromkeys(snapshot.name for snapshot in snapshots))
    return tuple(names)


def query_results(
    root: str, sql: str, *, storage_options: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The rows of a SELECT over `dql_results`, the verdicts of the last run for each gate, date and
    map index; none if there is no store yet.

    :raises StoreError: the store cannot be read, or the SQL is invalid.
    """
    location = locate(root, storage_options)
    runs, results = open_table(location, RUNS), open_table(location, RESULTS)
    if runs is None or results is None:
        return []
    columns = {column.name for column in results.schema().fields}
    counting = f'AND stored."{query.SHADOW}" IS NULL' if query.SHADOW in columns else ""
    last = query.last_first({column.name for column in runs.schema().fields})
    last_runs = _LAST.format(last=last, index=_MAP_INDEX)
    text = _VIEW.format(last_runs=last_runs, counting=counting, index=_MAP_INDEX) + sql
    with store_errors(location, "read"):
        builder = QueryBuilder().register("stored", results).register("runs", runs)
        return query.rows_of(builder.execute(text).read_all())


_COLUMNS = ("name", "check", "status", "expression", "measured")
_OF_VALUE = ("value", "value_text", "value_kind")


def past_days(
    root: str,
    suite: str,
    since: date,
    until: date,
    *,
    gate: str | None = None,
    map_index: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[PastDay, ...]:
    """The days for which a gate left results, oldest first, with their labels: one for each
    instance of a mapped gate.

    :param suite: the name of the suite, as in its file.
    :param map_index: only this instance of a mapped gate.
    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    runs = past_runs(
        root,
        suite,
        since,
        until,
        (*_COLUMNS, *_OF_VALUE),
        gate=gate,
        map_index=map_index,
        storage_options=storage_options,
    )
    name = one_gate(runs)
    if name is None:
        return ()
    labels: dict[tuple[date, int], dict[tuple[str, str], bool]] = {}
    stored = read_labels(
        root, gates={name}, since=since, until=until, storage_options=storage_options
    )
    for label in stored:
        of_run = labels.setdefault((label.date, label.map_index), {})
        of_run[label.check, label.name] = label.ground_truth
    return tuple(_day(run, labels.get((run.date, run.map_index), {})) for run in runs)


def _day(run: PastRun, labels: Mapping[tuple[str, str], bool]) -> PastDay:
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


_AssertionKey: TypeAlias = tuple[str, str]
_COMPARED = ("name", "check", "status")


@dataclass(frozen=True, slots=True)
class ShadowDay:
    """A day on which a gate, or an instance of a mapped gate, had a shadow. Statuses and labels are
    by check and name; a label is True if there was a real issue. `problem` says why the shadow was
    not judged."""

    date: date
    shadow: str
    own: Mapping[_AssertionKey, Status] = field(default_factory=dict)
    other: Mapping[_AssertionKey, Status] = field(default_factory=dict)
    labels: Mapping[_AssertionKey, bool] = field(default_factory=dict)
    problem: str | None = None
    map_index: int = -1


def shadow_days(
    root: str,
    suite: str,
    since: date,
    until: date,
    *,
    gate: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[ShadowDay, ...]:
    """The days on which a gate had a shadow, oldest first: one for each instance of a mapped gate.

    :param suite: the name of the suite of the gate, as in its file.
    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    select = query.selecting(root, storage_options)
    runs = runs_that_count(select, query.of_suite(suite, gate), since, until, _COMPARED)
    name = one_gate(runs)
    if name is None:
        return ()
    of_runs = [query.is_in("run_id", [run.run_id for run in runs]), *query.of_dates(since, until)]
    reports = {
        row["run_id"]: from_json(ShadowReport, row["shadow_run"])
        for row in select(RUNS, ("run_id", "shadow_run"), of_runs)
        if row.get("shadow_run")
    }
    others: dict[str, dict[_AssertionKey, Status]] = {}
    for row in select(RESULTS, ("run_id", *_COMPARED), of_runs, shadows=True):
        by_key = others.setdefault(row["run_id"], {})
        by_key[row["check"], row["name"]] = Status(row["status"])
    labels: dict[tuple[date, int], dict[_AssertionKey, bool]] = {}
    for label in labels_from(select, [name], since, until):
        of_run = labels.setdefault((label.date, label.map_index), {})
        of_run[label.check, label.name] = label.ground_truth
    return tuple(
        ShadowDay(
            run.date,
            reports[run.run_id].name,
            {(row["check"], row["name"]): Status(row["status"]) for row in run.rows},
            others.get(run.run_id, {}),
            labels.get((run.date, run.map_index), {}),
            reports[run.run_id].problem,
            run.map_index,
        )
        for run in runs
        if run.run_id in reports
    )
