"""A request and reports of its four outcomes, and an HTTP server."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.values import (
    Attempt,
    DatasetField,
    DatasetRef,
    DatasetSnapshot,
    GateReport,
    GateRequest,
    MetricResult,
    Outcome,
    ParentRun,
    RunKey,
    Severity,
    SourceFile,
    Status,
    Verdict,
)
from tests.http_stub import Asked, Reply, http_stub

HERE = Path(__file__).parent
RUN_ID = "01939b7e-0000-7000-8000-000000000001"


@dataclass
class Server:
    """Answers every POST with `answer`, and keeps the bodies that it was sent."""

    url: str = ""
    answer: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def reply(self, asked: Asked) -> Reply:
        if asked.method != "POST":
            return Reply(404)
        self.released.wait(self.delay_s)
        self.bodies.append(asked.json())
        return Reply(self.answer, headers=self.headers)


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    with http_stub(found.reply) as found.url:
        yield found
        found.released.set()


@pytest.fixture(autouse=True)
def _no_lineage_configured(here: Path) -> Iterator[None]:
    """No configuration of this machine is seen, and none that the client exports is left."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("OPENLINEAGE"):
            del os.environ[name]
    os.environ["HOME"] = str(here)
    os.environ["NO_PROXY"] = "127.0.0.1"
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def request_() -> GateRequest:
    return GateRequest(
        run_key=RunKey("shop.check_orders", date(2026, 11, 20), "scheduled__2026-11-20"),
        attempt=Attempt(1, "01939b7e-0000-7000-8000-0000000000cc"),
        suite=SourceFile("orders.dql", 'suite "orders" {}'),
        datasets=(
            DatasetRef("orders", path="s3a://lake/silver/orders/", date_column="ds"),
            DatasetRef("customers", path="/data/customers"),
        ),
        results_root="s3a://lake/dq",
        parent=ParentRun(
            "airflow",
            "shop.check_orders",
            "01939b7e-0000-7000-8000-0000000000aa",
            "airflow",
            "shop",
            "01939b7e-0000-7000-8000-0000000000bb",
        ),
    )


@pytest.fixture
def passed() -> GateReport:
    return GateReport(
        run_id=RUN_ID,
        run_key=RunKey("shop.check_orders", date(2026, 11, 20), "scheduled__2026-11-20"),
        attempt=Attempt(1, "01939b7e-0000-7000-8000-0000000000cc"),
        suite="orders",
        fail_on=Severity.P1,
        outcome=Outcome.PASSED,
        verdicts=(
            Verdict(
                "orders.volume.num_rows",
                "volume",
                ("orders",),
                "num_rows() > 1000",
                "> 1000",
                Severity.P0,
                Status.PASSED,
                value=1500,
                scaled_value=1200.0,
                multiplier=0.8,
                threshold=1000,
                metric="num_rows",
                profiles=("holiday",),
            ),
            Verdict(
                "email mostly there",
                "completeness",
                ("orders",),
                "null_count(email)/num_rows() < 0.05",
                "< 0.05",
                Severity.P2,
                Status.PASSED,
                value=0.04,
                scaled_value=0.04,
                threshold=0.05,
                column="email",
                tags=("pii", "team-crm"),
            ),
            Verdict(
                "orders.references.customer",
                "references",
                ("orders", "customers"),
                "values(customer_id) in values(id, dataset customers)",
                "all",
                Severity.P1,
                Status.PASSED,
                value=0,
                scaled_value=0,
                metric="referential_integrity",
                column="customer_id",
            ),
            Verdict(
                "orders.trend.week",
                "trend",
                ("orders",),
                "week_over_week(num_rows()) < 0.3",
                "< 0.3",
                Severity.P1,
                Status.SKIPPED,
                threshold=0.3,
                reason="data for 1 of 2 dates (50%), the suite asks for 90%",
            ),
        ),
        datasets=(
            DatasetSnapshot(
                "orders",
                "s3a://lake/silver/orders/",
                "delta",
                version=12,
                rows=1500,
                fields=(
                    DatasetField("id", "bigint"),
                    DatasetField("email", "string"),
                    DatasetField("ds", "date"),
                ),
                metrics=(
                    MetricResult("num_rows", None, 1500),
                    MetricResult("null_count", "email", 60),
                    MetricResult("unique_count", "id", 1500),
                    MetricResult("sum", "amount", 99.5),
                    MetricResult("minimum", "amount", -3),
                    MetricResult("maximum", "ds", "2026-11-20"),
                    MetricResult("average", "amount", 0.07),
                ),
            ),
            DatasetSnapshot("customers", "/data/customers", "parquet", rows=40),
        ),
        started_at=datetime(2026, 11, 21, 2, 0, tzinfo=timezone.utc),
        finished_at=datetime(2026, 11, 21, 2, 3, 4, 500000, tzinfo=timezone.utc),
    )


@pytest.fixture
def reports(passed: GateReport) -> dict[str, GateReport]:
    volume, email, reference, trend = passed.verdicts
    no_mail = replace(
        email,
        status=Status.FAILED,
        value=0.062,
        scaled_value=0.062,
        reason="0.062 is not below 0.05",
    )
    too_few = replace(
        volume, status=Status.FAILED, value=950, scaled_value=760.0, reason="760 is not above 1000"
    )
    unknown = replace(
        reference,
        status=Status.ERROR,
        value=None,
        scaled_value=None,
        reason="dataset customers: column id is missing",
    )
    return {
        "passed": passed,
        "warned": replace(
            passed, outcome=Outcome.WARNED, verdicts=(volume, no_mail, reference, trend)
        ),
        "blocked": replace(
            passed, outcome=Outcome.BLOCKED, verdicts=(too_few, no_mail, reference, trend)
        ),
        "broken": replace(passed, outcome=Outcome.BROKEN, verdicts=(volume, email, unknown, trend)),
    }
