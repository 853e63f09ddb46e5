"""Lists the runs of gates, and reads their reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from arro3.core import DataType

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results import schema
from dqx_airflow.results.query import (
    OF_A_RUN,
    RunsWanted,
    StoredResults,
    equals,
    is_in,
    literal,
    of_dates,
    opened,
)
from dqx_airflow.results.report_rows import RunRow, run_from_row
from dqx_airflow.results.tables import store_errors
from dqx_airflow.values import GateReport, RunKey

_LAST_CHARACTER = "\U0010ffff"

_SHOWN_MATCHES = 5

_SHOWN_RUNS = 20

_WITHOUT_ZONE = DataType.timestamp("us")

_NEWEST_FIRST = 'ORDER BY "finished_at" DESC, "run_id"'

_MOST_LOOKED_AT = 5_000


def read_report(
    results: StoredResults | str, run_key: RunKey, attempt_id: str
) -> GateReport | None:
    """The complete report of exactly this attempt; None if there is none (yet), or no store yet.

    If two jobs have reported for one attempt, the one that finished first counts.

    :param attempt_id: the id of the scheduler's attempt.
    :raises StoreError: the store exists and cannot be read.
    """
    reports = read_reports(results, [run_key], attempt_id)
    return None if reports is None else reports[0]


def read_reports(
    results: StoredResults | str,
    run_keys: Sequence[RunKey],
    attempt_id: str,
    answered: str | None = None,
) -> tuple[GateReport, ...] | None:
    """The complete reports of exactly this attempt, one for each run key; None if one of them does
    not exist (yet). Reports that followed an answer replace the earlier ones.

    :param answered: only reports that followed this answer.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    dates = [key.date for key in run_keys]
    of_gates = [is_in("gate", [key.gate for key in run_keys]), *of_dates(min(dates), max(dates))]
    where = [*of_gates, equals("attempt_id", attempt_id)]
    rows: dict[RunKey, schema.Row] = {}
    found = results.select(
        schema.RUNS, schema.RUNS_SCHEMA.names, where, 'ORDER BY "finished_at", "run_id"'
    )
    for row in sorted(found, key=lambda row: row.get("answered") or "", reverse=True):
        if answered not in (None, row.get("answered")):
            continue
        key = RunKey(row["gate"], row["dataset_date"], row["scheduler_run"])
        rows.setdefault(key, row)
    if not rows.keys() >= set(run_keys):
        return None
    return _reports(results, [rows[key] for key in run_keys], of_gates)


def find_report(results: StoredResults | str, run_id_prefix: str) -> GateReport | None:
    """The report of the run whose id starts with `run_id_prefix`; None if there is none.

    :raises RequestError: several runs match, or the prefix is empty.
    :raises StoreError: there is no store, or it cannot be read.
    """
    if not run_id_prefix:
        raise RequestError("the run id is empty", "give the first characters of a run id")
    results = opened(results)
    results.require_some()
    # A range, not LIKE: it skips files, and nothing in the prefix has to be escaped.
    where = [
        f'"run_id" >= {literal(run_id_prefix)}',
        f'"run_id" <= {literal(run_id_prefix + _LAST_CHARACTER)}',
    ]
    # First only a few columns, because this reads every run.
    keys = ["run_id", "gate", "dataset_date"]
    by_id = {
        row["run_id"]: row for row in results.select(schema.RUNS, keys, where, 'ORDER BY "run_id"')
    }
    if len(by_id) > 1 and run_id_prefix not in by_id:
        matches = [*by_id][:_SHOWN_MATCHES]
        if len(by_id) > _SHOWN_MATCHES:
            matches.append("...")
        raise RequestError(
            f"{len(by_id)} runs have an id that starts with {run_id_prefix}",
            f"give more characters: {', '.join(matches)}",
        )
    match = by_id.get(run_id_prefix) or next(iter(by_id.values()), None)
    if match is None:
        return None
    where = [equals(key, match[key]) for key in keys]
    rows = results.select(schema.RUNS, schema.RUNS_SCHEMA.names, where, "LIMIT 1")
    reports = _reports(results, rows, where[1:])
    return reports[0] if reports else None


def list_runs(
    results: StoredResults | str,
    *,
    gate: str | None = None,
    dataset_date: date | None = None,
    limit: int = 20,
    all_attempts: bool = False,
) -> tuple[RunRow, ...]:
    """Runs, the one that finished last first.

        for run in list_runs("s3://lake/dqx", gate="flights.bronze_gate", limit=5):
            print(run.run_key.date, run.outcome)

    For each run key only the last attempt counts, unless `all_attempts` is set. The last attempt is
    the one that was started last, since attempt numbers may begin again at 1. Of two reports for
    one attempt, the first to finish counts, as in `read_report`.

    :param gate: only runs of this gate.
    :param dataset_date: only runs for data of this date.
    :param limit: the maximum number of runs.
    :raises StoreError: there is no store, or it cannot be read.
    """
    results = opened(results)
    results.require_some()
    gates = None if gate is None else [gate]
    where = RunsWanted(gates, since=dataset_date, until=dataset_date).conditions
    if all_attempts:
        rows = _newest(results, OF_A_RUN, where, limit)
    else:
        rows = _not_superseded(results, where, limit)
    with store_errors(results.location, "read"):
        return tuple(run_from_row(row) for row in rows)


def _not_superseded(
    results: StoredResults, where: list[str], limit: int
) -> Sequence[dict[str, Any]]:
    """The newest runs that no later attempt supersedes.

    Whether a run is superseded depends only on the runs with its key. So the newest few runs are
    read first, some of which may be superseded, and then all runs with their keys, rather than all
    runs in the store.
    """
    looked_at = 2 * limit + _SHOWN_RUNS
    while looked_at <= _MOST_LOOKED_AT:
        keys = ["run_id", "dataset_date", "scheduler_run", "finished_at"]
        newest = _newest(results, keys, where, looked_at)
        if not newest:
            return ()
        dates = [row["dataset_date"] for row in newest]
        of_keys = [
            *where,
            *of_dates(min(dates), max(dates)),
            is_in("scheduler_run", [row["scheduler_run"] for row in newest]),
        ]
        rows = results.select(schema.RUNS, OF_A_RUN, of_keys, _NEWEST_FIRST, last_attempts=True)
        ids = {row["run_id"] for row in newest}
        rows = [row for row in rows if row["run_id"] in ids]
        if len(rows) >= limit or len(newest) < looked_at:
            return rows[:limit]
        looked_at *= 4
    order = f"{_NEWEST_FIRST} LIMIT {limit}"
    return results.select(schema.RUNS, OF_A_RUN, where, order, last_attempts=True)


def _newest(
    results: StoredResults, columns: Iterable[str], where: list[str], limit: int
) -> Sequence[dict[str, Any]]:
    """The newest runs, from the newest files that contain enough of them, or else from all
    files."""
    order = f"{_NEWEST_FIRST} LIMIT {limit}"
    since = _timestamp_before(results, limit)
    if since is not None:
        recent = f"\"finished_at\" >= TIMESTAMP '{since:%Y-%m-%dT%H:%M:%SZ}'"
        rows = results.select(schema.RUNS, columns, [*where, recent], order)
        if len(rows) == limit:
            return rows
    return results.select(schema.RUNS, columns, where, order)


def _timestamp_before(results: StoredResults, limit: int) -> datetime | None:
    """A timestamp since which at least this many runs finished; None without statistics of it."""
    runs = results.table(schema.RUNS)
    if runs is None:
        return None
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
        rows = rows + count
        since = min(since, oldest)
        if rows >= limit:
            # Statistics are in whole milliseconds, and rounded down.
            return since - timedelta(seconds=1)
    return None


def _reports(
    results: StoredResults, runs: Sequence[schema.Row], where: list[str]
) -> tuple[GateReport, ...]:
    """The reports of some runs.

    :param where: conditions that all rows of the runs satisfy, to skip files.
    :raises StoreError: the rows of a run do not form a report.
    """
    reports = []
    for run, report in zip(runs, results.reports_behind(runs, where), strict=True):
        if isinstance(report, Exception):
            root = results.location.root
            raise StoreError(
                f"cannot read run {run['run_id']} in the results store {root}: {report}",
                "rows were deleted or changed, or a newer version of this package wrote them",
            ) from report
        reports.append(report)
    return tuple(reports)
