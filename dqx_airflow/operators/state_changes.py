"""Notices on a change of state: when a slice begins to block, blocks for more, and recovers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from dqx_airflow.operators.notices import Callback, GateNotice, gate_notice, summary_of
from dqx_airflow.values import Outcome

_BAD = (Outcome.BLOCKED, Outcome.BROKEN)
_MOST_RUNS = 2000
_REPORTS_AGAIN = "recovered from a failure without a report"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Change:
    """What has changed since the attempts before, such as "recovered", and for which date."""

    kind: str
    on: str = ""


def notify_on_change(make: Callable[[GateNotice], Any]) -> Callback:
    """A callback that sends a notice only when the state of the gate changes.

    The state is that of a slice: a date of the data, for the same map index and `promote_slice`. A
    change is that the slice is blocked or broken and was not before, that another assertion blocks
    or breaks it as well, or that it passes again: a good date is no recovery of another one. Use it
    for failures and successes:

        def email(notice: GateNotice) -> SmtpNotifier:
            return SmtpNotifier(to="me@example.com", subject=notice.text, html_content=notice.html)

        notify = notify_on_change(email)
        gate = DqlGateOperator(..., on_failure_callback=notify, on_success_callback=notify)

    The state before is that of the last attempt in the results store; of several dates or suites,
    each has its own. A partial run that passes is no recovery. If there is no report, or the store
    cannot be read, the notice is sent. A pass after a task that failed without a report is a
    recovery: after a cleared try, or after an earlier run of the DAG (from Airflow 3.2 on).

    :param make: returns the notifier for a notice, as for `notify_with`.
    """

    def notify(context: Any) -> None:
        report = summary_of(context["ti"])
        change = _change(context, report)
        if change is not None:
            is_recovery = change.kind in ("recovered", _REPORTS_AGAIN)
            on = None if change.kind == _REPORTS_AGAIN else change.on
            make(gate_notice(context, is_recovery=is_recovery, on=on)).notify(context)

    return notify


def _change(context: Any, report: Mapping[str, Any]) -> _Change | None:
    """What has changed since the attempts before; None if nothing has."""
    if not report.get("run_id"):
        return _Change("no report")
    is_bad = report.get("outcome") in _BAD
    if not is_bad and report.get("partial"):
        return None
    try:
        select = _store_of(context)
        own_ids = _own_runs(report)
        runs = _runs_until(select, context["ti"], report, dates=_dates(report))
        recovered = ""
        own_runs = [run for run in runs if str(run["run_id"]) in own_ids]
        for own in sorted(own_runs, key=lambda run: run["dataset_date"]):
            earlier = _bad_before(runs, own, own_ids)
            known = _faults(select, earlier, report) if earlier else set()
            if own["outcome"] not in _BAD:
                recovered = recovered or (str(own["dataset_date"]) if earlier else "")
            elif earlier is None or _faults(select, own, report) - known:
                return _Change("bad", str(own["dataset_date"]))
        if is_bad or recovered:
            return None if is_bad else _Change("recovered", recovered)
        runs = _runs_until(select, context["ti"], report)
        return _Change(_REPORTS_AGAIN) if _failed_without_report(context, report, runs) else None
    except Exception:  # a notice too many is better than none
        log.exception("the earlier state of gate %s is unknown", report.get("gate"))
        return _Change("unknown")


def _dates(report: Mapping[str, Any]) -> list[date]:
    parts = report.get("parts") or [report]
    return sorted({date.fromisoformat(str(part["date"])) for part in parts})


def _store_of(context: Any) -> Any:
    from dqx_airflow.operators.results_location import results_location_of
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
    """The runs of the gate up to this one, newest first; for several suites those of each.

    :param dates: only runs on the days from the first to the last of these dates.
    """
    from dqx_airflow.results.query import PARTIAL, equals, literal, of_dates, of_instance
    from dqx_airflow.results.schema import RUNS

    gate, finished_at = str(report.get("gate") or ""), str(report.get("finished_at") or "")
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
    columns += ["gate", "dataset_date", "slice", PARTIAL]
    order = f'ORDER BY "finished_at" DESC LIMIT {_MOST_RUNS}'
    runs: Sequence[Mapping[str, Any]] = select(RUNS, columns, where, order)
    return runs


def _bad_before(
    runs: Sequence[Mapping[str, Any]], own: Mapping[str, Any], own_ids: set[str]
) -> Mapping[str, Any] | None:
    """The last run of an earlier attempt on the same slice, ignoring a partial one that passed, if
    it was bad."""
    from dqx_airflow.results.incidents import same_slice
    from dqx_airflow.results.query import PARTIAL

    earlier = (
        run
        for run in runs
        if str(run["run_id"]) not in own_ids
        and all(run[name] == own[name] for name in ("gate", "dataset_date"))
        and run["attempt_id"] != own["attempt_id"]
        and same_slice(run.get("slice"), own.get("slice"))
        and (run["outcome"] in _BAD or not run.get(PARTIAL))
    )
    last = next(earlier, None)
    return last if last is not None and last["outcome"] in _BAD else None


def _failed_without_report(
    context: Any, report: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
) -> bool:
    """True if the task failed, by what Airflow knows, after the last report before this one."""
    from dqx_airflow.results.schema import as_utc

    ti = context["ti"]
    reported = {(run["scheduler_run"], run["attempt"]) for run in runs}
    own = _own_runs(report)
    scheduler_runs = {run["scheduler_run"] for run in runs if str(run["run_id"]) in own}
    # Clearing a task allows it all its retries again, after the tries that it has had.
    retries = getattr(context.get("task"), "retries", None) or 0
    cleared = (getattr(ti, "max_tries", None) or 0) - retries
    if cleared > 0:
        return not any((run_id, cleared) in reported for run_id in scheduler_runs)
    previous = getattr(ti, "get_previous_ti", None)  # from Airflow 3.2 on
    failed = previous(state="failed", map_index=ti.map_index) if previous else None
    if failed is None or failed.end_date is None:
        return False
    is_mapped = ti.map_index is not None and ti.map_index >= 0
    scheduler_run = f"{failed.run_id}[{ti.map_index}]" if is_mapped else failed.run_id
    if any(run_id == scheduler_run for run_id, _ in reported):
        return False
    finished = (as_utc(run["finished_at"]) for run in runs if str(run["run_id"]) not in own)
    return all(at < as_utc(failed.end_date) for at in finished)


def _faults(
    select: Any, run: Mapping[str, Any], report: Mapping[str, Any]
) -> set[tuple[str, str, str]]:
    """The assertions that stop the gate in a run: their suite, name and status."""
    from dqx_airflow.results.query import equals, literal
    from dqx_airflow.results.schema import RESULTS

    where = [
        equals("run_id", str(run["run_id"])),
        "\"status\" IN ('failed', 'error')",
        f'"severity" <= {literal(str(report.get("fail_on") or "P3"))}',
    ]
    rows = select(RESULTS, ["suite", "name", "status"], where)
    return {(str(row["suite"]), str(row["name"]), str(row["status"])) for row in rows}
