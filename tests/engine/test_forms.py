"""Claims other than plain metrics on a real Spark: columns, ages, formats, shares, SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import GateReport
from tests.engine.lake import TODAY, YESTERDAY, Run, delta, request

pytestmark = [pytest.mark.spark, pytest.mark.compiled]

NOON = datetime(2024, 3, 1, 12, tzinfo=timezone.utc)
MOMENT = pa.timestamp("us", "UTC")
PARCELS = pa.table(
    {
        "id": ["123e4567-e89b-12d3-a456-426614174000", "x", None, "y"],
        "email": ["ada@example.org", "nobody", None, "eve@example.org\n"],
        "price": [1.0, 2.0, 3.0, 10.0],
        "latency": pa.array([1, 2, 100, 7], pa.int64()),
        "status": ["A", "A", "B", "B"],
        "active": [True, True, False, None],
        "ordered": pa.array([NOON, NOON, NOON, NOON], MOMENT),
        "delivered": pa.array([NOON + timedelta(1), NOON + timedelta(4), None, NOON], MOMENT),
        "tags": pa.array([["a"], [], None, None], pa.list_(pa.string())),
        "ds": pa.array([TODAY, TODAY, TODAY, YESTERDAY], pa.date32()),
    }
)

CLAIMS = [
    ("column email exists", "passed", "string"),
    ("column nothing exists", "failed", None),
    ('column tags type "array<string>"', "passed", "array<string>"),
    ("column price type decimal(18,2)", "failed", "double"),
    ('distribution(status) matches {"A": 65%, "B": 35%}', "passed", 1 / 60),
    ("distribution(active) matches {true: 50%, false: 50%}", "failed", 1 / 6),
    ('distribution(status) matches {"A": 60%} +/- 10%', "passed", 1 / 15),
    ("each row: email is email", "failed", 1),
    ('each row: email like "%@%" or id is not uuid', "passed", 0),
    ('each row: email not like "%@%"', "failed", 1),
    ("each row: delivered - ordered < 2 days", "failed", 1),
    ("each row: ordered + 1 day <= delivered", "passed", 0),
    ("each row: year(ds) == 2024 and weekday(ds) == 6 and day(ds) == 2", "passed", 0),
    ("each row: date(ordered) == 2024-03-01 and hour(ordered) == 12", "passed", 0),
    ("each row: active == true", "failed", 1),
    ("each row: price not between 1 and 2", "failed", 2),
    ("percentile(latency, 50%) == 2", "passed", 2.0),
    ("percentile(latency, 75%) == 51", "passed", 51.0),
    ('first(status, order_by latency) == "A"', "passed", "A"),
    ("correlation(price, latency) > 0.8", "passed", 0.8703878312633371),
    ("minimum(active) == false", "passed", 0),
    ("count_values(active, true) == 2", "passed", 2),
    ('maximum(ordered) == "2024-03-01 12:00"', "passed", "2024-03-01 12:00:00"),
    ('sql("sum(price) / count(*)") == 2', "passed", 2.0),
    ('sql("sum(price)", lag 1) == 10', "passed", 10.0),
    ('query("SELECT count(*) FROM orders WHERE price > 1 -- a comment") == 2', "passed", 2),
    ("query(\"SELECT count(*) FROM orders WHERE status = '{a}'\") == 0", "passed", 0),
    ('query("SELECT max(ordered) FROM orders") > "2024-01-01"', "passed", "2024-03-01 12:00:00"),
    ("freshness(ordered) < 2 hours", "failed", ...),
    ("data_lag(ds) < 18 hours", "failed", ...),
    ("timeliness(ds) by 06:00 UTC", "failed", ...),
]

UNEVALUATED = [
    ('sql("sum(nothing)") == 2', "no column 'nothing'"),
    ('query("SELECT count(nothing) FROM orders") == 2', "the query failed"),
    ('query("SELECT price FROM orders") == 2', "several rows"),
    ('query("SELECT * FROM orders") == 2', "10 columns"),
    ("freshness(price) < 2 hours", "needs a date or timestamp or string column"),
    ("percentile(status, 50%) > 1", "needs a number column"),
]


@pytest.fixture(scope="module")
def report(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> GateReport:
    """One gate with all claims: they share a scan, and one that fails leaves the others alone."""
    folder = tmp_path_factory.mktemp("forms")
    orders = delta(folder, "orders", PARCELS, partition_by=["ds"])
    claims = [claim for claim, *_ in (*CLAIMS, *UNEVALUATED)]
    suite = "\n".join(f'assert {claim} name "{number}"' for number, claim in enumerate(claims))
    gate = request(folder, suite, [replace(orders, date_column="ds")])
    return run_gates([gate], lambda _: spark)[0]


@pytest.mark.parametrize("number", range(len(CLAIMS)), ids=lambda number: CLAIMS[number][0])
def test_a_claim_gets_its_verdict(report: GateReport, number: int) -> None:
    _, status, value = CLAIMS[number]
    verdict = next(item for item in report.verdicts if item.name == str(number))
    assert verdict.status.value == status, verdict.reason
    if value is not ...:
        expected = pytest.approx(value) if isinstance(value, float) else value
        assert verdict.value == expected


@pytest.mark.parametrize(("claim", "reason"), UNEVALUATED)
def test_an_unevaluated_claim_has_a_reason(report: GateReport, claim: str, reason: str) -> None:
    number = len(CLAIMS) + UNEVALUATED.index((claim, reason))
    verdict = next(item for item in report.verdicts if item.name == str(number))
    assert verdict.status.value == "error"
    assert reason in (verdict.reason or "")


def test_ages_are_those_at_the_start_of_the_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dqx_airflow.engine.job._now", _clock(NOON + timedelta(hours=15)))
    orders = replace(delta(tmp_path, "orders", PARCELS), date_column="ds")
    suite = """
        assert freshness(ordered) == 15 hours name "age"
        assert data_lag(ds) == 3 hours name "since midnight of the newest day"
        assert timeliness(ds) by 3:00 "Asia/Tokyo" name "the day after, in Tokyo"
    """
    report = run(request(tmp_path, suite, [orders]))
    assert {item.status.value for item in report.verdicts} == {"passed"}


def _clock(moment: datetime) -> Callable[[], datetime]:
    return lambda: moment
