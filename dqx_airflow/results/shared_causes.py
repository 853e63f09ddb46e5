"""Which incidents of the gates of a DAG have one cause: a later gate was stopped by nothing but the
movement that had stopped an earlier one on the same date, such as too few rows of all datasets.

Nothing is dropped: each gate has an incident of its own, which names the earlier one. Where a
failure could be another thing, it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import groupby

from dqx_airflow.results import schema
from dqx_airflow.results.causes import Failure, dag_in_name, says_nothing_new
from dqx_airflow.results.incidents import Incident, rows_in, stored_incidents
from dqx_airflow.results.query import RunsWanted, StoredResults, is_in, of_dates
from dqx_airflow.results.report_rows import RunRow, gate_without_suite, verdict_from_row
from dqx_airflow.values import Status, Verdict

_OF_VERDICTS = tuple(name for name in schema.RESULTS_SCHEMA.names if name not in ("month",))


def gate_of(incident: Incident) -> str:
    """The name of the gate of an incident, without a suite."""
    last = incident.last
    return gate_without_suite(last.run_key.gate, last.suite, last.job)


def _dag_of(incident: Incident) -> str:
    return dag_in_name(gate_of(incident))


def first_incidents(
    results: StoredResults,
    incidents: Iterable[Incident],
    dag_of: Callable[[Incident], Hashable] = _dag_of,
) -> Mapping[str, Incident]:
    """For each incident that says nothing new the incident that came first, by its id: of another
    gate of its DAG, on the same date, map index and rows, and still open when it began.

    :param incidents: all those of the DAGs on these dates.
    :param dag_of: the key of the DAG of an incident; by default from the name of its gate.
    :raises StoreError: the store exists and cannot be read.
    """
    candidates = _candidates(incidents, dag_of)
    stopped_by = _stopping_verdicts(results, candidates)
    first: dict[str, Incident] = {}
    for together in candidates:
        for number, own in enumerate(together):
            for earlier in together[:number]:
                if _says_nothing_new(own, earlier, stopped_by):
                    first[own.id] = earlier
                    break
    return first


def first_of_dates(results: StoredResults, incidents: Sequence[Incident]) -> Mapping[str, Incident]:
    """The same for some incidents among all those of their dates in the store.

    :raises StoreError: the store exists and cannot be read.
    """
    dates = {one.date for one in incidents}
    if not dates:
        return {}
    stored = stored_incidents(results, RunsWanted(since=min(dates), until=max(dates)))
    first = first_incidents(results, [one for one in stored if one.date in dates])
    return {one.id: first[one.id] for one in incidents if one.id in first}


def count_causes(incidents: Sequence[Incident], first: Mapping[str, Incident]) -> int:
    """The number of causes of incidents.

    :param first: those that say nothing new, as from `first_incidents`.
    """
    return len({first[one.id].id if one.id in first else one.id for one in incidents})


def _candidates(
    incidents: Iterable[Incident], dag_of: Callable[[Incident], Hashable]
) -> list[list[Incident]]:
    """The incidents of several gates of a DAG on a date, a map index and rows, in the order in
    which they began."""
    by_place: dict[Hashable, list[Incident]] = {}
    for one in incidents:
        rows = frozenset((name, str(value)) for name, value in rows_in(one.last.slice).items())
        by_place.setdefault((dag_of(one), one.date, one.map_index, rows), []).append(one)
    found = []
    for together in by_place.values():
        if len({gate_of(one) for one in together}) > 1:
            found.append(sorted(together, key=lambda one: (one.detected_at, one.id)))
    return found


def _stopping_verdicts(
    results: StoredResults, candidates: Sequence[Sequence[Incident]]
) -> dict[str, list[Verdict]]:
    """The verdicts that stopped each bad run, by its id."""
    runs = {run.run_id: run for group in candidates for one in group for run in one.runs}
    if not runs:
        return {}
    days = [run.run_key.date for run in runs.values()]
    where = [
        is_in("run_id", runs),
        "\"status\" IN ('failed', 'error')",
        *of_dates(min(days), max(days)),
    ]
    rows = results.select(schema.RESULTS, _OF_VERDICTS, where, 'ORDER BY "run_id", "position"')
    found: dict[str, list[Verdict]] = {}
    for run_id, of_run in groupby(rows, key=lambda row: str(row["run_id"])):
        verdicts = map(verdict_from_row, of_run)
        found[run_id] = [one for one in verdicts if one.can_block(runs[run_id].fail_on)]
    return found


def _says_nothing_new(
    own: Incident, earlier: Incident, stopped_by: Mapping[str, Sequence[Verdict]]
) -> bool:
    if gate_of(own) == gate_of(earlier):
        return False
    if earlier.ended_at is not None and earlier.ended_at <= own.detected_at:
        return False
    known = [run for run in earlier.runs if run.finished_at <= own.last.finished_at]
    stopped = _failures(own, own.runs, stopped_by)
    before = _failures(earlier, known, stopped_by)
    return stopped is not None and before is not None and says_nothing_new(stopped, before)


def _failures(
    incident: Incident, runs: Iterable[RunRow], stopped_by: Mapping[str, Sequence[Verdict]]
) -> list[Failure] | None:
    """The failures that stopped the last of some runs of an incident, in each suite; None if one of
    them was stopped by anything else.

    :param runs: the last one first.
    """
    last: dict[str, RunRow] = {}
    for run in runs:
        last.setdefault(run.run_key.gate, run)
    found = []
    for gate, run in last.items():
        verdicts = stopped_by.get(run.run_id, ())
        if not verdicts or any(one.status is not Status.FAILED for one in verdicts):
            return None
        # The incidents are of one DAG and map index.
        found += [Failure.of(one, gate=gate, dag=None, on=incident.date) for one in verdicts]
    return found
