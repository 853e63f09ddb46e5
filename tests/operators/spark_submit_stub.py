"""A stand-in for `spark-submit` in the tests of the operators, which writes a canned report.

`report_writer.py` calls it for the shell script that `conftest.py` puts on PATH. An action says
which report is written: `passed`, `warned`, `blocked`, `broken`, `other` (of another attempt),
`long` (with thousands of long verdicts), `by_dataset` (as the dataset's file name says),
`last_blocked` (of several parts the last one), `blocked_on=DATE,DATE` (those dates, and the others
passed). Each part of a request gets one. For a batch, `first=N` stands for N reports that pass,
after which it begins with the next one.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timezone

from dqx_airflow.results.batch_reports import BatchReports
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.stored_requests import take_request
from dqx_airflow.results.tables import locate
from dqx_airflow.values import (
    Attempt,
    BatchRequest,
    DatasetSnapshot,
    GateReport,
    GateRequest,
    Outcome,
    Promotion,
    Severity,
    Status,
    Verdict,
)
from dqx_airflow.values.json_form import EXIT_REPORTED, FILE_FLAG, FLAG, from_arguments


def verdict(name: str, severity: Severity, status: Status, reason: str | None = None) -> Verdict:
    value = None if status is Status.ERROR else 12
    return Verdict(
        name=name,
        check="Completeness",
        datasets=("orders",),
        expression="null_count(id)",
        expected="== 0",
        severity=severity,
        status=status,
        value=value,
        scaled_value=value,
        threshold=0,
        reason=reason,
    )


VERDICTS = {
    "passed": (verdict("orders.id", Severity.P0, Status.PASSED),),
    "warned": (
        verdict("orders.id", Severity.P0, Status.PASSED),
        verdict("orders.note", Severity.P2, Status.FAILED),
    ),
    "blocked": (
        verdict("orders.note", Severity.P2, Status.FAILED),
        verdict("orders.id", Severity.P0, Status.FAILED),
    ),
    "broken": (verdict("orders.id", Severity.P1, Status.ERROR, "there is no column 'id'"),),
}


def canned_report(request: GateRequest, action: str) -> GateReport:
    """The report that `action` stands for."""
    now = datetime.now(timezone.utc)
    outcome = {"other": "passed", "long": "blocked"}.get(action, action)
    verdicts = VERDICTS[outcome]
    if action == "long":
        longest = verdict("n" * 2000, Severity.P0, Status.FAILED, "r" * 2000)
        text = "v" * 2000
        longest = replace(
            longest, expected="e" * 2000, value=text, scaled_value=text, threshold=text
        )
        verdicts = (longest,) * 300
    names = [f"{number}{'d' * 100}" for number in range(500)] if action == "long" else ["orders"]
    promotions = {}
    is_blocked = outcome == "blocked" and request.promote_blocked
    if outcome in ("passed", "warned") or is_blocked:
        promotions = {
            name: Promotion(place, 17, 100, is_blocked) for name, place in request.promote_to
        }
    return GateReport(
        run_id=str(uuid.uuid4()),
        run_key=request.run_key,
        attempt=Attempt(9, "of-somebody-else") if action == "other" else request.attempt,
        suite=request.run_key.gate.partition("/")[2] or "Orders",
        fail_on=request.fail_on,
        outcome=Outcome(outcome),
        verdicts=verdicts,
        datasets=tuple(
            replace(
                DatasetSnapshot(name, "/lake/orders", "delta", 3, 100, quarantined=4),
                promotion=promotions.get(name),
                promote_to=dict(request.promote_to).get(name),
            )
            for name in names
        ),
        started_at=now,
        finished_at=now,
    )


def leave_canned_reports(batch: BatchRequest, action: str) -> None:
    """Leaves the reports of a batch for its gates, as its job does."""
    place = BatchReports(locate(batch.results_root), batch.batch, batch.run)
    most = int(action.removeprefix("first=")) if action.startswith("first=") else None
    for number, request in enumerate(batch.requests):
        place.begin(request)
        if number == most:
            return
        outcome = action if most is None else "passed"
        if action == "by_dataset":
            outcome = request.datasets[0].location.rpartition("/")[2]
        place.leave(request, [canned_report(part, outcome) for part in request.parts])


def main(action: str, arguments: list[str]) -> None:
    taken = None
    if FILE_FLAG in arguments:
        taken = take_request(arguments[arguments.index(FILE_FLAG) + 1], None)
        arguments = taken.arguments
    request = from_arguments(arguments[arguments.index(FLAG) :])
    if isinstance(request, BatchRequest):
        leave_canned_reports(request, action)
        return
    if action == "by_dataset":
        action = request.datasets[0].location.rpartition("/")[2]
    actions = [action] * len(request.parts)
    if action == "last_blocked":
        actions = ["passed"] * (len(actions) - 1) + ["blocked"]
    if action.startswith("blocked_on="):
        blocked = action.partition("=")[2].split(",")
        actions = [
            "blocked" if part.run_key.date.isoformat() in blocked else "passed"
            for part in request.parts
        ]
    reports = [canned_report(*part) for part in zip(request.parts, actions, strict=True)]
    ResultsStore(request.results_root).write_all([(report, ()) for report in reports])
    if taken is not None:
        taken.end(EXIT_REPORTED, "")
    print(f"the job wrote a report: {action}")
