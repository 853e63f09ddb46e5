"""The plain values are the same after a round trip through JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import date, datetime, timezone
from typing import Any

import pytest

from dqx_airflow import values
from dqx_airflow.values import (
    Attempt,
    DatasetField,
    DatasetRef,
    DatasetSnapshot,
    FailingRow,
    GateReport,
    GateRequest,
    MetricResult,
    Outcome,
    ParentRun,
    Promotion,
    RunKey,
    Severity,
    SourceFile,
    Span,
    Status,
    Verdict,
    from_json,
    to_json,
)

SPAN = Span("größe 🦆.dql", 1, 2, 3, 4)
KEY = RunKey("gate", date(2024, 2, 29), "scheduled__2024-03-01T00:00:00+00:00")
DATASETS = (
    DatasetRef("orders", path="s3://lake/orders", date_column="day", version=7),
    DatasetRef("people", "s3://lake/people", keys=("id", "day"), masked=("tax_id", "home.street")),
    DatasetRef("returns", table="lake.returns", format="table", options=(("a", "b"), ("a", ""))),
)
REQUEST = GateRequest(
    run_key=KEY,
    attempt=Attempt(2, "id"),
    suite=SourceFile("größe 🦆.dql", 'suite "\\"\n\r\t🦆" { }'),
    datasets=DATASETS,
    results_root="s3://lake/results",
    fail_on=Severity.P2,
    allow_empty=True,
    skip_dates=(date(2024, 1, 1), date(2024, 12, 31)),
    parent=ParentRun("airflow", "dag.task", "1", "airflow", "dag", "2"),
    timeout_s=1.5,
    sample_rows=5,
    quarantine=(("orders", "s3://lake/quarantine/orders"),),
    promote_to=(("orders", "silver.orders"),),
)
VERDICT = Verdict(
    name="orders.rows",
    check="Volume 🦆",
    datasets=("orders",),
    expression="num_rows()",
    expected=">= 10",
    severity=Severity.P0,
    status=Status.FAILED,
    value=3,
    multiplier=1.5,
    scaled_value=4.5,
    threshold="2024-01-01",
    reason='"because"',
    tags=("a", "b-c"),
    profiles=("Holiday",),
    metric="num_rows",
    column=None,
    span=SPAN,
    source_line="    assert num_rows() >= 10",
    failing_rows=(FailingRow("orders", "price is NULL", '{"id": 1, "price": null}'),),
    note="no more",
)
SNAPSHOT = DatasetSnapshot(
    "orders",
    "s3://lake/orders",
    "delta",
    version=7,
    rows=0,
    fields=(DatasetField("price", "decimal(18,2)"), DatasetField("a", "struct<b:array<int>>")),
    metrics=(MetricResult("sum", "price", 0.1), MetricResult("num_rows", None, 0)),
    quarantined=0,
    condition="`ds` IN (DATE'2024-03-02')",
    promotion=Promotion("silver.orders", 17, 3),
)
REPORT = GateReport(
    run_id="0192",
    run_key=KEY,
    attempt=Attempt(2, "id"),
    suite="S",
    fail_on=Severity.P1,
    outcome=Outcome.BLOCKED,
    verdicts=(VERDICT,),
    datasets=(SNAPSHOT,),
    started_at=datetime(2024, 3, 1, 0, 0, 0, 123456, tzinfo=timezone.utc),
    finished_at=datetime(2024, 3, 1, 0, 1, tzinfo=timezone.utc),
)
EXAMPLES = (
    REQUEST,
    dataclasses.replace(REQUEST, parent=None, timeout_s=None, skip_dates=()),
    REPORT,
    dataclasses.replace(REPORT, verdicts=(), datasets=()),
    VERDICT,
    SNAPSHOT,
    KEY,
    SPAN,
    *DATASETS,
)


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: type(value).__name__)
def test_a_value_survives_a_round_trip_through_json(value: Any) -> None:
    text = to_json(value)
    assert from_json(type(value), text) == value
    assert from_json(type(value), text.encode()) == value
    assert to_json(from_json(type(value), text)) == text


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        1,
        -1,
        2**63,
        10**38,
        0.0,
        1.0,
        -0.5,
        0.1,
        1e300,
        5e-324,
        "",
        "1",
        "None",
        "🦆 'ö\"\n",
    ],
)
def test_a_metric_value_keeps_its_type(value: values.MetricValue) -> None:
    for field in ("value", "scaled_value", "threshold"):
        back = from_json(Verdict, to_json(dataclasses.replace(VERDICT, **{field: value})))
        found = getattr(back, field)
        assert found == value
        assert type(found) is type(value)


def test_json_of_an_older_version_is_read_with_defaults() -> None:
    newer = {
        GateRequest: ("sample_rows", "quarantine", "recompute", "promote_to"),
        Verdict: ("failing_rows", "note", "origin"),
        DatasetSnapshot: ("quarantined", "condition", "promotion"),
        DatasetRef: ("keys", "masked"),
    }
    for value in (REQUEST, VERDICT, SNAPSHOT, *DATASETS):
        form = json.loads(to_json(value))
        names = newer[type(value)]
        older = json.dumps({name: item for name, item in form.items() if name not in names})
        defaults = {
            field.name: field.default for field in dataclasses.fields(value) if field.name in names
        }
        assert from_json(type(value), older) == dataclasses.replace(value, **defaults)


def test_the_json_form_is_plain_and_readable() -> None:
    plain = json.loads(to_json(REPORT))
    assert plain["outcome"] == "blocked"
    assert plain["run_key"]["date"] == "2024-02-29"
    assert plain["verdicts"][0]["severity"] == "P0"
    assert "🦆" in to_json(REPORT)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_in_json(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json(dataclasses.replace(VERDICT, value=number))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "5",
        '"text"',
        "[]",
        "{}",
        "{",
        to_json(KEY),
        to_json(REQUEST).replace("2024-02-29", "2024-02-30"),
        to_json(REQUEST).replace('"P2"', '"P9"'),
        to_json(REQUEST).replace('"number": 2', '"number": "two"'),
    ],
)
def test_invalid_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(GateRequest, text)


def test_the_message_names_the_missing_key() -> None:
    plain = json.loads(to_json(REQUEST))
    del plain["results_root"]
    with pytest.raises(ValueError, match="results_root"):
        from_json(GateRequest, json.dumps(plain))


def test_severities_are_ordered_from_worst_to_lowest() -> None:
    assert Severity.P0.at_least(Severity.P1)
    assert Severity.P1.at_least(Severity.P1)
    assert not Severity.P2.at_least(Severity.P1)


def test_a_report_lists_its_verdicts_worst_first() -> None:
    verdicts = tuple(
        dataclasses.replace(VERDICT, name=name, severity=severity)
        for name, severity in (("a", Severity.P2), ("b", Severity.P0), ("c", Severity.P2))
    )
    report = dataclasses.replace(REPORT, verdicts=verdicts)
    assert [verdict.name for verdict in report.with_status(Status.FAILED)] == ["b", "a", "c"]
    assert report.count(Status.FAILED) == 3
    assert report.count(Status.PASSED) == 0


def test_instances_of_a_mapped_gate_are_distinguished() -> None:
    assert KEY.gate_instance == "gate"
    assert dataclasses.replace(KEY, scheduler_run="manual__1[3]").gate_instance == "gate[3]"


@pytest.mark.parametrize("place", ["https://u:SECRET@lake/t.csv", "https://lake/t?sig=SECRET"])
def test_a_snapshot_has_no_credentials_in_its_locations(place: str) -> None:
    snapshot = DatasetSnapshot("t", place, "csv", promote_to=place, quarantine=place)
    assert "SECRET" not in str(dataclasses.replace(snapshot, lineage_name=place))
    assert DatasetSnapshot("t", "s3://lake/t", "csv").location == "s3://lake/t"
