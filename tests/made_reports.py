"""Verdicts and reports: a test gives what it is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from dqx_airflow.values import Attempt, GateReport, Outcome, RunKey, Severity, Status, Verdict


def verdict_of(name: str, **given: Any) -> Verdict:
    """A verdict that passed; nothing scales its value."""
    made = Verdict(name, "Volume", ("orders",), "num_rows()", "> 0", Severity.P1, Status.PASSED)
    return replace(made, **{"scaled_value": given.get("value"), **given})


def report_at(
    at: datetime, *verdicts: Verdict, gate: str = "lake.gate", **changes: Any
) -> GateReport:
    """The report of a gate that began and ended at this time, and passed."""
    made = GateReport(
        run_id=str(uuid4()),
        run_key=RunKey(gate, at.date(), f"run at {at}"),
        attempt=Attempt(1, str(uuid4())),
        suite="orders.dql",
        fail_on=Severity.P1,
        outcome=Outcome.PASSED,
        verdicts=verdicts,
        datasets=(),
        started_at=at,
        finished_at=at,
    )
    return replace(made, **changes)
