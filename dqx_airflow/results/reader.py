"""Reads reports and lists of runs. Only runs with a row in `runs` exist here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from arro3.core import DataType
from deltalake import DeltaTable

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results.column import Row
from dqx_airflow.results.query import (
    Select,
    equals,
    is_in,
    literal,
    of_dates,
    rows_behind,
    select_rows,
    selecting,
)
from dqx_airflow.results.report_rows import RunRow, report_from_rows, run_from_row
from dqx_airflow.results.schema import RUNS, RUNS_SCHEMA
from dqx_airflow.results.tables import ResultsRoot, locate, open_table, store_errors
from dqx_airflow.values import GateReport, RunKey

_LAST_CHARACTER = "\U0010ffff"
_SHOWN_MATCHES = 5
_SHOWN_RUNS = 20
_WITHOUT_ZONE = DataType.timestamp("us")
_NEWEST_FIRST = 'ORDER BY "finished_at" DESC, "run_id"'
_MOST_LOOKED_AT = 5_000


def read_report(
    root: str, run_key: RunKey, attempt_id: str, *, storage_options: Mapping[str, str] | None = None
) -> GateReport | None:
    """The complete report of exactly this attempt; None if there is none (yet), or no store yet.

    If two jobs have reported for one attempt, the one that finished first counts.

    :param attempt_id: the id of the scheduler's attempt.
    :param storage_options: the credentials and settings of the storage.
    :raises StoreError: the store exists and cannot be read.
    """
    reports = read_reports(root, [run_key], attempt_id, storage_options=storage_options)
    return None if reports is None else reports[0]


def read_reports(
    root: str,
    run_keys: Sequence[RunKey],
    attempt_id: str,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[GateReport, ...] | None:
    """The complete reports of exactly this attempt, one for each run key; None if one of them does
    not exist (yet).

    :raises StoreError: the store exists and cannot be read.
    """
    select = selecting(root, storage_options)
    dates = [key.date for key in run_keys]
    of_gates = [is_in("gate", [key.gate for key in run_keys]), *of_dates(min(dates), max(dates))]
    where = [*of_gates, equals("attempt_id", attempt_id)]
    order = 'ORDER BY "finished_at", "run_id"'
    rows: dict[RunKey, Row] = {}
    for row in select(RUNS, RUNS_SCHEMA.names, where, order):
        key = RunKey(row["gate"], row["dataset_date"], row["scheduler_run"])
        rows.setdefault(key, row)
    if not rows.keys() >= set(run_keys):
        return None
    return _reports(root, select, [rows[key] for key in run_keys], of_gates)


def find_report(
    root: str, run_id_prefix: str, *, storage_options: Mapping[str, str] | None = None
) -> GateReport | None:
    """The report of the run whose id starts with `run_id_prefix`; None if there is none.

    :raises RequestError: several runs match, or the prefix is empty.
    :raises StoreError: there is no store, or it cannot be read.
    """
    if not run_id_prefix:
        raise RequestError("the run id is empty", "give the first characters of a run id")
    location = locate(root, storage_options)
    runs = _existing_runs(location)
    # A range, not LIKE: it skips files, and nothing in the prefix has to be escaped.
    where = [
        f'"run_id" >= {literal(run_id_prefix)}',
        f'"run_id" <= {literal(run_id_prefix + _LAST_CHARACTER)}',
    ]
    # First only a few columns, because this reads every run.
    keys = ["run_id", "gate", "dataset_date"]
    candidates = select_rows(location, runs, keys, where, 'ORDER BY "run_id"')
    by_id = {row["run_id"]: row for row in candidates}
    if len(by_id) > 1 and run_id_prefix not in by_id:
        matches = [*by_id][:_SHOWN_MATCHES] + ["..."] * (len(by_id) > _SHOWN_MATCHES)
        raise RequestError(
            f"{len(by_id)} runs have an id that starts with {run_id_prefix}",
            f"give more characters: {', '.join(matches)}",
        )
    match = by_id.get(run_id_prefix) or next(iter(by_id.values()), None)
    if match is None:
        return None
    where = [equals("gate", match["gate"]), equals("dataset_date", match["dataset_date"])]
    of_run = [equals("run_id", match["run_id"]), *where]
    rows = select_rows(location, runs, RUNS_SCHEMA.names, of_run, "LIMIT 1")
    reports = _reports(location.root, selecting(root, storage_options), rows, where)
    return reports[0] if reports else None


def list_runs(
    root: str,
    *,
    gate: str | None = None,
    dataset_date: date | None = None,
    limit: int = 20,
    all_attempts: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[RunRow, ...]:
    """Runs, the one that finished last first.

        for run in list_runs("s3://lake/dqx", gate="flights.bronze_gate", limit=5):
            print(run.dataset_date, run.outcome)

    For each run key only the last attempt counts, unless `all_attempts` is set. The last attempt is
    the one that was started last, since attempt numbers may begin again at 1. Of two reports for
    one attempt, the first to finish counts, as in `read_report`.

    :param gate: only runs of this gate.
    :param dataset_date: only runs for data of this date.
    :param limit: the maximum number of runs.
    :param storage_options: the credentials and settings of the storage.
    :raises StoreError: there is no store, or it cannot be read.
    """
    location = locate(root, storage_options)
    runs = _existing_runs(location)
    where = []
    if gate is not None:
        where.append(equals("gate", gate))
    if dataset_date is not None:
        where.append(equals("dataset_date", dataset_date))
    columns = [name for name in RUNS_SCHEMA.names if name != "datasets"]
    rows: Sequence[Row]
    if all_attempts:
        rows = _newest(location, runs, columns, where, limit)
    else:
        rows = _not_superseded(location, runs, columns, where, limit)
    with store_errors(location, "read"):
        return tuple(run_from_row(row) for row in rows)


def _not_superseded(
    location: ResultsRoot, runs: DeltaTable, columns: Sequence[str], where: list[str], limit: int
) -> Sequence[Row]:
    """The newest runs that no later attempt supersedes.

    Whether one is superseded depends only on the runs of its key. So the newest few are read first,
    some of which may be superseded, and then all runs of their keys, rather than those of the whole
    store.
    """
    looked_at = 2 * limit + _SHOWN_RUNS
    while looked_at <= _MOST_LOOKED_AT:
        keys = ["run_id", "dataset_date", "scheduler_run", "finished_at"]
        newest = _newest(location, runs, keys, where, looked_at)
        if not newest:
            return ()
        dates = [row["dataset_date"] for row in newest]
        of_keys = [
            *where,
            *of_dates(min(dates), max(dates)),
            is_in("scheduler_run", [row["scheduler_run"] for row in newest]),
        ]
        rows = select_rows(location, runs, columns, of_keys, _NEWEST_FIRST, last_attempts=True)
        ids = {row["run_id"] for row in newest}
        rows = [row for row in rows if row["run_id"] in ids]
        if len(rows) >= limit or len(newest) < looked_at:
            return rows[:limit]
        looked_at *= 4
    return select_rows(
        location, runs, columns, where, f"{_NEWEST_FIRST} LIMIT {limit}", last_attempts=True
    )


def _newest(
    location: ResultsRoot, runs: DeltaTable, columns: Sequence[str], where: list[str], limit: int
) -> list[dict[str, Any]]:
    """The newest runs, from the newest files that contain enough of them, or else from all
    files."""
    order = f"{_NEWEST_FIRST} LIMIT {limit}"
    since = _timestamp_before(runs, limit)
    if since is not None:
        recent = f"\"finished_at\" >= TIMESTAMP '{since:%Y-%m-%dT%H:%M:%SZ}'"
        rows = select_rows(location, runs, columns, [*where, recent], order)
        if len(rows) == limit:
            return rows
    return select_rows(location, runs, columns, where, order)


def _timestamp_before(runs: DeltaTable, limit: int) -> datetime | None:
    """A timestamp since which at least this many runs finished; None if the log does not say."""
    actions = runs.get_add_actions(flatten=True)
    columns = ("max.finished_at", "min.finished_at", "num_records")
    if not {*columns} <= {*actions.schema.names}:
        return None
    *bounds, counts = (actions.column(name) for name in columns)
    moments = [bound.cast(_WITHOUT_ZONE).to_pylist() for bound in bounds]
    files = [file for file in zip(*moments, counts.to_pylist(), strict=True) if None not in file]
    rows = 0
    since: datetime = datetime.max
    for _, oldest, count in sorted(files, reverse=True):
        rows, since = rows + count, min(since, oldest)
        if rows >= limit:
            # Statistics are in whole milliseconds, and rounded down.
            return since - timedelta(seconds=1)
    return None


def _existing_runs(location: ResultsRoot) -> DeltaTable:
    runs = open_table(location, RUNS)
    if runs is None:
        raise StoreError(
            f"no results under {location.root}",
            "check the path; the first gate that finishes creates the store",
        )
    return runs


def _reports(
    root: str, select: Select, runs: Sequence[Row], where: list[str]
) -> tuple[GateReport, ...]:
    """The reports of some runs.

    :param where: conditions that all rows of the runs satisfy, to skip files.
    :raises StoreError: the rows are not those of a report.
    """
    reports = []
    for run, *rows in rows_behind(select, runs, where):
        try:
            reports.append(report_from_rows(run, *rows))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"cannot read run {run['run_id']} in the results store {root}: {error}",
                "rows were deleted or changed, or a newer version of this package wrote them",
            ) from error
    return tuple(reports)
