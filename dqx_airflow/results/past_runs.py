"""The runs of a gate that count: one for each day and instance of a mapped gate.

`results` is a root, or results with their storage options.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from dqx_airflow.errors import RequestError
from dqx_airflow.results import query, schema
from dqx_airflow.results.query import RunsWanted, StoredResults, opened
from dqx_airflow.results.report_rows import gate_without_suite
from dqx_airflow.results.stored_labels import RunPlace
from dqx_airflow.values import DatasetSnapshot, Severity, from_json

_OF_RUNS = (
    "run_id",
    "gate",
    "dataset_date",
    "scheduler_run",
    "attempt_id",
    "started_at",
    "outcome",
    "failed",
    "fail_on",
    "suite",
    "job",
    query.PARTIAL,
)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that counts for a gate, a date and a map index, -1 if the gate is not mapped. `rows`
    are the rows of its assertions in `results`, `attempt_id` is the id of the scheduler's attempt,
    and `job` the name of the gate without a suite."""

    run_id: str
    gate: str
    date: date
    map_index: int
    attempt_id: str
    started_at: datetime
    rows: tuple[schema.Row, ...]
    fail_on: Severity = Severity.P1
    scheduler_run: str = ""
    job: str = ""

    @property
    def place(self) -> RunPlace:
        """The place that the run has."""
        return self.gate, self.date, self.map_index


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
    last = _counting(results, wanted)
    counting = {key: row for key, row in last.items() if not wanted.failing or row["failed"] != 0}
    if not counting:
        return ()
    ids = [row["run_id"] for row in counting.values()]
    conditions = [_of_runs(wanted, ids), *query.of_dates(wanted.since, wanted.until)]
    return _with_rows(results, counting, columns, [*conditions, *row_conditions])


def counting_runs(results: StoredResults | str, wanted: RunsWanted) -> dict[RunPlace, str]:
    """The ids of the runs that count, as in `past_runs`, by their places.

    :raises StoreError: the store exists and cannot be read.
    """
    counting = _counting(opened(results), wanted)
    return {(gate, on, index): row["run_id"] for (on, gate, index), row in counting.items()}


def with_runs_instead(
    results: StoredResults | str,
    runs: Sequence[PastRun],
    instead: Mapping[RunPlace, str],
    columns: Sequence[str],
) -> tuple[PastRun, ...]:
    """These runs with others in the places of some of them, as far as the store has these.

    :param instead: the ids of the other runs by their places.
    :raises StoreError: the store exists and cannot be read.
    """
    if not instead:
        return tuple(runs)
    results = opened(results)
    of_ids = [query.is_in("run_id", instead.values())]
    rows = {
        (row["dataset_date"], row["gate"], query.map_index_of(row)): row
        for row in results.select(schema.RUNS, _OF_RUNS, of_ids)
    }
    others = {run.place: run for run in _with_rows(results, rows, columns, of_ids)}
    return tuple(others.get(run.place, run) for run in runs)


def _counting(
    results: StoredResults, wanted: RunsWanted
) -> dict[tuple[date, str, int], schema.Row]:
    """The rows of the runs that count, by date, gate and map index."""
    order = 'ORDER BY "dataset_date", "gate", "started_at", "run_id"'
    last: dict[tuple[date, str, int], schema.Row] = {}
    for row in results.run_rows(wanted, _OF_RUNS, order, last=True):
        key = row["dataset_date"], row["gate"], query.map_index_of(row)
        is_overruled = _is_weak(row) and key in last and not _is_weak(last[key])
        if not is_overruled:
            last[key] = row
    return last


def _with_rows(
    results: StoredResults,
    counting: Mapping[tuple[date, str, int], schema.Row],
    columns: Sequence[str],
    conditions: Sequence[str],
) -> tuple[PastRun, ...]:
    """Runs, oldest first, with columns of the rows of their assertions.

    :param counting: the rows of the runs by date, gate and map index.
    :param conditions: conditions on the rows of assertions, as SQL.
    """
    rows: dict[str, dict[int, schema.Row]] = defaultdict(dict)
    for row in results.select(schema.RESULTS, ("run_id", "position", *columns), conditions):
        rows[row["run_id"]][row["position"]] = row
    past = []
    for (on, gate, map_index), chosen in sorted(counting.items()):
        by_position = rows[chosen["run_id"]]
        run = PastRun(
            run_id=chosen["run_id"],
            gate=gate,
            date=on,
            map_index=map_index,
            attempt_id=chosen["attempt_id"],
            started_at=chosen["started_at"],
            rows=tuple(by_position[position] for position in sorted(by_position)),
            fail_on=Severity(chosen["fail_on"]),
            scheduler_run=chosen["scheduler_run"],
            job=gate_without_suite(gate, chosen["suite"], chosen.get("job")),
        )
        past.append(run)
    return tuple(past)


def _of_runs(wanted: RunsWanted, run_ids: Sequence[str]) -> str:
    """The condition on the rows of these runs. Where the runs are wanted by their gates, it is a
    condition on the gates if these are fewer: it also matches rows of superseded runs, and takes
    half the time."""
    is_by_gates = replace(wanted, since=None, until=None) == RunsWanted(wanted.gates)
    if wanted.gates is not None and is_by_gates and len(wanted.gates) < len(run_ids):
        return query.is_in("gate", wanted.gates)
    return query.is_in("run_id", run_ids)


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
    missing = f"suite '{wanted.suite}'"
    for gate in wanted.gates or ():
        missing += f" by gate '{gate}'"
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
