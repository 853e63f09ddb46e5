"""Whether the state of a gate has changed since its earlier attempts: a slice begins to block,
blocks for more, or recovers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from dqx_airflow.operators.airflow_versions import last_failure
from dqx_airflow.operators.results_location import results_location_of
from dqx_airflow.values import Outcome, Severity

_BAD = (Outcome.BLOCKED, Outcome.BROKEN)
_MOST_RUNS = 2000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change of the state of a gate since its earlier attempts.

    `on` is the date of the incident that begins, changes or ends; empty if it is unknown. It is
    None for a recovery from runs without a report, which form no incident.
    """

    on: str | None = ""
    is_recovery: bool = False


def change_since(context: Any, report: Mapping[str, Any]) -> StateChange | None:
    """The change of a gate since its earlier attempts; None without any.

    :param report: the summary of its task.
    """
    if not report.get("run_id"):
        return StateChange()
    is_bad = report.get("outcome") in _BAD
    if not is_bad and report.get("partial"):
        return None
    try:
        return _change_in_store(context, report, is_bad=is_bad)
    except Exception:  # a superfluous notification is better than a missing one
        log.exception("the earlier state of gate %s is unknown", report.get("gate"))
        return StateChange()


def _change_in_store(
    context: Any, report: Mapping[str, Any], *, is_bad: bool
) -> StateChange | None:
    select = _store_of(context)
    ti = context["ti"]
    own_ids = _own_runs(report)
    runs = _runs_until(select, ti, report, dates=_dates(report))
    own_runs = [run for run in runs if str(run["run_id"]) in own_ids]
    ended: StateChange | None = None
    for own in sorted(own_runs, key=lambda run: run["dataset_date"]):
        earlier = _bad_before(runs, own, own_ids)
        if own["outcome"] in _BAD:
            if earlier is None or _has_new_faults(select, own, earlier):
                return StateChange(str(own["dataset_date"]))
        elif earlier is not None and ended is None:
            is_good = not _is_let_through(own, earlier)
            ended = StateChange(str(own["dataset_date"]), is_recovery=is_good)
    if is_bad or ended is not None:
        return None if is_bad else ended
    if _failed_without_report(context, report, _runs_until(select, ti, report)):
        return StateChange(None, is_recovery=True)
    return None


def _is_let_through(own: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """True if a run passes only because of a waiver, or because the gate is less strict now."""
    from dqx_airflow.results.incidents import is_let_through
    from dqx_airflow.values import Outcome, Severity

    if own["outcome"] == Outcome.ACCEPTED or not own["failed_severity"]:
        return False
    return is_let_through(Severity(own["failed_severity"]), Severity(earlier["fail_on"]))


def _has_new_faults(select: Any, own: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """True if an assertion stops the gate that did not stop an earlier run."""
    known = stored_faults(select, earlier["run_id"], earlier["fail_on"])
    return bool(stored_faults(select, own["run_id"], own["fail_on"]) - known)


def _dates(report: Mapping[str, Any]) -> list[date]:
    parts = report.get("parts") or [report]
    return sorted({date.fromisoformat(str(part["date"])) for part in parts})


def _store_of(context: Any) -> Any:
    from dqx_airflow.results.query import StoredResults

    task = context.get("task")
    location = results_location_of(
        getattr(task, "results_root", None), getattr(task, "results_conn_id", None)
    )
    if location is None:
        raise LookupError("no results root is known")
    return StoredResults(location.root, location.storage_options).select


def _own_runs(report: Mapping[str, Any]) -> set[str]:
    parts = report.get("parts") or ()
    return {str(report["run_id"]), *(str(part["run_id"]) for part in parts)}


def _runs_until(
    select: Any, ti: Any, report: Mapping[str, Any], dates: Sequence[date] = ()
) -> Sequence[Mapping[str, Any]]:
    """The runs of the gate up to this one, newest first; with several suites, the runs of each.

    :param dates: only runs on the days from the first to the last of these dates.
    """
    from dqx_airflow.results.query import PARTIAL, equals, literal, of_dates, of_instance
    from dqx_airflow.results.schema import RUNS

    gate = str(report.get("gate") or "")
    finished_at = str(report.get("finished_at") or "")
    until = datetime.fromisoformat(finished_at).astimezone(timezone.utc).replace(tzinfo=None)
    is_gate = equals("gate", gate)
    if report.get("parts"):
        is_gate = f'({is_gate} OR starts_with("gate", {literal(f"{gate}/")}))'
    where = [
        is_gate,
        "arrow_cast(\"finished_at\", 'Timestamp(Microsecond, None)') <= "
        f"TIMESTAMP '{until.isoformat()}'",
        *(of_dates(dates[0], dates[-1]) if dates else []),
    ]
    if ti.map_index is not None and ti.map_index >= 0:
        where.append(of_instance(ti.map_index))
    columns = ["run_id", "scheduler_run", "attempt", "attempt_id", "outcome", "finished_at"]
    columns += ["fail_on", "failed_severity", "gate", "dataset_date", "slice", "answered", PARTIAL]
    order = f'ORDER BY "finished_at" DESC LIMIT {_MOST_RUNS}'
    runs: Sequence[Mapping[str, Any]] = select(RUNS, columns, where, order)
    return runs


def _bad_before(
    runs: Sequence[Mapping[str, Any]], own: Mapping[str, Any], own_ids: set[str]
) -> Mapping[str, Any] | None:
    """The previous run on the same slice if it was blocked or broken, else None.

    It belongs to an earlier attempt, or to this attempt before an answer. Partial runs that passed
    are ignored.
    """
    from dqx_airflow.results.incidents import same_slice
    from dqx_airflow.results.query import PARTIAL

    for run in runs:
        is_own = str(run["run_id"]) in own_ids or _judgement_of(run) == _judgement_of(own)
        is_of_slice = (
            run["gate"] == own["gate"]
            and run["dataset_date"] == own["dataset_date"]
            and same_slice(run.get("slice"), own.get("slice"))
        )
        if is_own or not is_of_slice:
            continue
        if run["outcome"] in _BAD:
            return run
        if not run.get(PARTIAL):
            return None
    return None


def _judgement_of(run: Mapping[str, Any]) -> tuple[Any, Any]:
    """The attempt of a run, and the answer after which it judged again, if any."""
    return run["attempt_id"], run.get("answered")


def _failed_without_report(
    context: Any, report: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
) -> bool:
    """True if Airflow recorded a failure of the task after the last report before this one."""
    ti = context["ti"]
    reported = {(run["scheduler_run"], run["attempt"]) for run in runs}
    own = _own_runs(report)
    # Clearing a task grants it all its retries again, in addition to its previous tries.
    retries = getattr(context.get("task"), "retries", None) or 0
    cleared = (getattr(ti, "max_tries", None) or 0) - retries
    if cleared > 0:
        scheduler_runs = {run["scheduler_run"] for run in runs if str(run["run_id"]) in own}
        return not any((run_id, cleared) in reported for run_id in scheduler_runs)
    failed = last_failure(ti)
    if failed is None:
        return False
    is_mapped = ti.map_index is not None and ti.map_index >= 0
    scheduler_run = f"{failed.run_id}[{ti.map_index}]" if is_mapped else failed.run_id
    if any(run_id == scheduler_run for run_id, _ in reported):
        return False
    return _is_after(failed.end_date, [run for run in runs if str(run["run_id"]) not in own])


def _is_after(ended: datetime, runs: Sequence[Mapping[str, Any]]) -> bool:
    from dqx_airflow.results.schema import as_utc

    return all(as_utc(run["finished_at"]) < as_utc(ended) for run in runs)


def stored_faults(select: Any, run_id: str, fail_on: str) -> set[tuple[str, str, str]]:
    """The assertions that stop the gate in a run: their suite, name and status. Neither those that
    are experimental, nor those that a waiver covers."""
    from dqx_airflow.results.query import equals
    from dqx_airflow.results.report_rows import verdict_from_row
    from dqx_airflow.results.schema import RESULTS, RESULTS_SCHEMA

    where = [equals("run_id", run_id), "\"status\" IN ('failed', 'error')"]
    limit = Severity(fail_on)
    return {
        (str(row["suite"]), str(row["name"]), str(row["status"]))
        for row in select(RESULTS, RESULTS_SCHEMA.names, where)
        if verdict_from_row(row).can_block(limit)
    }
