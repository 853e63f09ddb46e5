"""Reports for the tests of the results store."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

from dqx_airflow.values import (
    Attempt,
    DatasetField,
    DatasetSnapshot,
    EnforcedContract,
    FailingRow,
    GateReport,
    MetricResult,
    Outcome,
    RunKey,
    Severity,
    Span,
    Status,
    Verdict,
)
from tests.made_reports import verdict_of

DAY = date(2024, 2, 29)
RUN_KEY = RunKey("orders_to_silver", DAY, "scheduled__2024-03-01T00:00:00+00:00")
START = datetime(2024, 3, 1, 6, 0, 0, 123456, tzinfo=timezone.utc)

PASSED = verdict_of("orders.not_empty", check="implicit", value=5, threshold=0)
FAILED = Verdict(
    name="no_negative_amounts",
    check="amounts",
    datasets=("orders", "customers"),
    expression="minimum(amount)",
    expected=">= 0",
    severity=Severity.P0,
    status=Status.FAILED,
    value=-1.5,
    multiplier=1.1,
    scaled_value=-1.6500000000000001,
    threshold=0.0,
    reason="-1.65 is not >= 0",
    tags=("money", "ünïcode"),
    profiles=("black_friday",),
    metric="minimum",
    column="amount",
    span=Span("orders.dql", 3, 5, 3, 20),
    source_line="    assert minimum(amount) >= 0 # \N{SNOWMAN}",
    failing_rows=tuple(
        FailingRow("orders", "amount < 0", f'{{"id": {number}, "amount": -1.50, "name": null}}')
        for number in range(5)
    ),
    note="those of customers are not shown",
    clause="models.orders.fields.amount.minimum",
)
SKIPPED = replace(PASSED, name="trend", status=Status.SKIPPED, value=None, reason="too few days")
ERROR = replace(
    FAILED,
    name="typo",
    severity=Severity.P2,
    status=Status.ERROR,
    value=None,
    scaled_value=None,
    threshold=None,
    reason="no column amuont",
    span=None,
    source_line=None,
    failing_rows=(),
    note=None,
    clause=None,
)
SNAPSHOT = DatasetSnapshot(
    name="orders",
    location="s3://lake/orders",
    format="delta",
    version=12,
    rows=5,
    fields=(DatasetField("amount", "decimal(18,2)"),),
    metrics=(MetricResult("num_rows", None, 5), MetricResult("average", "amount", 5.0)),
    quarantined=5,
)


def sample_report(
    run: int = 1, *, attempt: int = 1, minutes: int = 0, **changes: Any
) -> GateReport:
    """A blocked report. `run` makes the run id, `minutes` moves its times."""
    report = GateReport(
        run_id=f"{run:08x}-0000-4000-8000-000000000000",
        run_key=RUN_KEY,
        attempt=Attempt(attempt, f"attempt-{attempt}"),
        suite="orders",
        fail_on=Severity.P1,
        outcome=Outcome.BLOCKED,
        verdicts=(PASSED, FAILED, SKIPPED, ERROR),
        datasets=(SNAPSHOT,),
        started_at=START + timedelta(minutes=minutes),
        finished_at=START + timedelta(minutes=minutes, seconds=30),
        contract=EnforcedContract("urn:orders", "1.2.0", "dcs", (), 12, 30, 1, pin="1"),
    )
    return replace(report, **changes)
