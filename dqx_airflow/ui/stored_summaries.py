"""The last runs of gates with their summaries: from Airflow's database, or from the results store
where an XCom backend keeps XComs elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby, islice
from typing import Any

from dqx_airflow.operators.outcome import combined_report
from dqx_airflow.operators.summary import summaries_of_parts, summary
from dqx_airflow.results.report_rows import gate_without_suite
from dqx_airflow.ui.airflow import TaskRun, recent_runs
from dqx_airflow.ui.store import StoreClient
from dqx_airflow.ui.summary_view import Summary
from dqx_airflow.values import GateReport

_MOST_KEPT = 10_000
_ASKED_AT_ONCE = 200

_kept: dict[object, Summary] = {}
"""The summaries from the store, by the attempt and its end."""


def reported_runs(
    session: Any, client: StoreClient, tasks: Collection[tuple[str, str]]
) -> tuple[TaskRun, ...]:
    """The instances of these tasks in the last runs of their DAGs, newest run first, with the
    summaries of their reports wherever these are."""
    return with_summaries(client, recent_runs(session, tasks))


def with_summaries(client: StoreClient, runs: Sequence[TaskRun]) -> tuple[TaskRun, ...]:
    """The runs; those whose XCom is elsewhere with the summary of their stored report."""
    elsewhere = [run for run in runs if isinstance(run.pushed, str)]
    if not elsewhere:
        return tuple(runs)
    missing = iter([run for run in elsewhere if _key(run) not in _kept])
    while batch := list(islice(missing, _ASKED_AT_ONCE)):
        _keep(client, batch)
    found = tuple(
        run._replace(pushed=_kept.get(_key(run))) if isinstance(run.pushed, str) else run
        for run in runs
    )
    for key in [*islice(_kept, max(len(_kept) - _MOST_KEPT, 0))]:
        _kept.pop(key, None)
    return found


def _key(run: TaskRun) -> object:
    return run.attempt_id, run.state, run.ended


def _keep(client: StoreClient, runs: Sequence[TaskRun]) -> None:
    attempts = {run.attempt_id for run in runs}
    reports = last_judged(client.ask(lambda store: store.reports_of(attempts)).found)
    in_order = sorted(reports, key=lambda report: report.attempt.id)
    by_attempt = {
        attempt: [*own] for attempt, own in groupby(in_order, lambda report: report.attempt.id)
    }
    for run in runs:
        own = by_attempt.get(run.attempt_id)
        if own:
            gate = gate_without_suite(own[0].run_key.gate, own[0].suite, own[0].job)
            combined = combined_report(own, gate)
            _kept[_key(run)] = Summary({**summary(combined, own), **summaries_of_parts(own)})


def last_judged(reports: Sequence[GateReport]) -> tuple[GateReport, ...]:
    """The reports, without those that their own attempt has replaced: after an answer it judges
    again."""
    last: dict[object, str] = {}
    for report in reports:
        key = report.attempt.id, report.run_key
        last[key] = max(last.get(key, ""), report.answered or "")
    return tuple(
        report
        for report in reports
        if (report.answered or "") == last[report.attempt.id, report.run_key]
    )
