"""The sample of failing rows that a gate stores, on a real Spark."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dqx_airflow.diagnostics.verdicts import draw_report
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import DatasetRef, GateReport, Outcome, Status, Verdict
from dqx_airflow.values.json_form import to_arguments
from tests.engine.lake import ORDERS, TODAY, Run, delta, request
from tests.job_count import jobs_so_far
from tests.processes import environment, output_of

pytestmark = [pytest.mark.spark, pytest.mark.compiled]

LOSES_ITS_JVM = """
import os, signal, sys
from dqx_airflow.values.json_form import from_arguments
from dqx_airflow.engine import gate_report
from dqx_airflow.engine.job import run_gates
from dqx_airflow.engine.session.spark_session import create_session

take = gate_report.with_failing_rows

def taken_too_late(spark, *others):
    os.kill(spark._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
    return take(spark, *others)

gate_report.with_failing_rows = taken_too_late
run_gates([from_arguments(sys.argv[1:])], create_session)
"""


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    ref = delta(tmp_path, "orders", ORDERS, partition_by=["ds"])
    return replace(ref, date_column="ds", keys=("id",))


def verdict(report: GateReport, name: str = "a") -> Verdict:
    return next(verdict for verdict in report.verdicts if verdict.name == name)


def rows(report: GateReport, name: str = "a") -> list[tuple[dict[str, Any], str]]:
    return [(json.loads(row.row), row.reason) for row in verdict(report, name).failing_rows]


BROKEN = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "x": pa.array([float("nan"), 1.0, -1.0, None, 2.0], pa.float64()),
        "a": pa.array([2**62, 1, 1, 1, 1], pa.int64()),
        "b": pa.array([2**62, 0, 1, 1, None], pa.int64()),
        "day": pa.array(["2024-01-01", "soon", "2024-01-01", None, "2024-01-01"]),
    }
)
CAUSES = [
    ("each row: x >= 0", {1: "NaN in x: not (x >= 0)", 3: "not (x >= 0)"}),
    ("95% of rows: not (x < 0)", {1: "NaN in x: not (not x < 0)", 3: "not (not x < 0)"}),
    ("each row: a + b < 10", {1: "overflow in a + b: not (a + b < 10)"}),
    ("each row: a / b > 0", {2: "division by zero in a / b: not (a / b > 0)"}),
    ("each row: coalesce(a / b, 1) > 0", None),
    (
        "each row: date(day) < 2030-01-01",
        {2: "not a date or timestamp in date(day): not (date(day) < 2030-01-01)"},
    ),
    ("minimum(x) > -10", {1: "x is NaN"}),
    ("average(x) between -10 and 10", {1: "x is NaN"}),
    ("nan_count(x) == 0", {1: "x is NaN"}),
    ("each row: x is not nan", {1: "not (x is not nan)"}),
    ("each row: x <= 100", {1: "NaN in x: not (x <= 100)"}),
]


def test_a_failing_row_has_its_reason_and_is_quarantined(run: Run, tmp_path: Path) -> None:
    ref = replace(delta(tmp_path, "orders", BROKEN), keys=("id",))
    claims = "\n".join(f'assert {claim} name "{n}"' for n, (claim, _) in enumerate(CAUSES))
    away = str(tmp_path / "away")
    gate = request(tmp_path, claims, [ref], quarantine=(("orders", away),))
    report = run(gate)
    for number, (claim, due) in enumerate(CAUSES):
        found = {row["id"]: reason for row, reason in rows(report, str(number))}
        if due is not None:
            assert found == due, claim
    assert {row["id"] for row, _ in rows(report, "4")} == {2}
    assert verdict(report, "6").reason == "the metric has no value (column 'x' holds 1 NaN value)"
    assert sorted(DeltaTable(away).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]


SAMPLES = [
    ("null_count(price) == 0", [({"id": 3, "price": None}, "price is NULL")]),
    ("not_null(id, price)", [({"id": 3, "price": None}, "price is NULL")]),
    ("null_count(price) / num_rows() < 5%", [({"id": 3, "price": None}, "price is NULL")]),
    ("count(price) / num_rows() > 95%", [({"id": 3, "price": None}, "price is NULL")]),
    ("1 - null_count(price) / num_rows() > 95%", [({"id": 3, "price": None}, "price is NULL")]),
    ("minimum(price) >= 6", [({"id": 3, "price": 5.0}, "price < 6")]),
    ("minimum(price) > 5", [({"id": 3, "price": 5.0}, "price <= 5")]),
    ("maximum(price) between 1 and 15", [({"id": 2, "price": 20.0}, "price > 15")]),
    ("maximum(price) == 15", [({"id": 2, "price": 20.0}, "price > 15")]),
    (
        "maximum(price) < minimum(price, lag 1) * 3",
        [({"id": 1, "price": 10.0}, "price >= 6"), ({"id": 2, "price": 20.0}, "price >= 6")],
    ),
    (
        "maximum(ds) < 2024-03-02",
        [({"id": n, "ds": "2024-03-02"}, "ds >= 2024-03-02") for n in (1, 2, 3, 3)],
    ),
    (
        "max_length(status) < 4",
        [({"id": n, "status": "paid"}, "length of status >= 4") for n in (2, 3)],
    ),
    ('count_values(status, "new") == 0', [({"id": 1, "status": "new"}, "status is new")]),
    (
        'in_set(country, ["CH", "DE"])',
        [({"id": 3, "country": "XX"}, 'not (country in ["CH", "DE"])')],
    ),
    (
        "each row: price >= 6 or amount > 4",
        [({"id": 3, "price": 5.0, "amount": 4}, "not (price >= 6 or amount > 4)")],
    ),
    ("90% of rows: price >= 10", [({"id": 3, "price": 5.0}, "not (price >= 10)")]),
    ("unique(id)", [({"id": 3}, "2 rows")]),
    ("duplicate_count([id, ds]) == 0", [({"id": 3, "ds": "2024-03-02"}, "2 rows")]),
    ("repeated_count([id, ds]) == 0", [({"id": 3, "ds": "2024-03-02"}, "2 rows")]),
    (
        "values(country) in values(code, dataset countries)",
        [({"id": 3, "country": "XX"}, "not (country in values(code, dataset countries))")],
    ),
    ("average(price) > 100", []),
    ("num_rows() > 100", []),
    ("null_count(price) > 100", []),
    ("day_over_day(null_count(price)) < 1%", []),
]


@pytest.mark.slow
def test_the_rows_that_count_against_an_assertion_are_shown(
    run: Run, orders: DatasetRef, countries: DatasetRef, tmp_path: Path
) -> None:
    body = "\n".join(f'assert {text} name "n{number}"' for number, (text, _) in enumerate(SAMPLES))
    report = run(request(tmp_path, body, [orders, countries]))
    for number, (text, expected) in enumerate(SAMPLES):
        found = rows(report, f"n{number}")
        assert sorted(found, key=str) == sorted(expected, key=str), text
        assert verdict(report, f"n{number}").status is Status.FAILED, text
        assert verdict(report, f"n{number}").note is None, text


@pytest.mark.slow
def test_all_assertions_with_failing_rows_share_one_pass_and_repeated_keys_take_one_each(
    spark: Any, run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    def jobs(body: str, **changes: Any) -> int:
        before = jobs_so_far(spark)
        run(request(tmp_path, body, [orders], recompute=True, **changes))
        return jobs_so_far(spark) - before

    failing = "assert each row: price > 6\nassert not_null(status)\nassert minimum(amount) > 1"
    without = jobs(failing, sample_rows=0)
    assert jobs(failing) - without == 1
    assert jobs(f"{failing}\nassert unique(id)") - without == 2
    passing = "assert each row: price > 0"
    assert jobs(passing) == jobs(passing, sample_rows=0)


@pytest.mark.slow
def test_a_sample_is_bounded_and_the_same_for_the_same_rows(
    spark: Any, run: Run, tmp_path: Path
) -> None:
    table = pa.table(
        {"id": list(range(5000)), "price": [-1.0] * 5000, "twin": [n // 2 for n in range(5000)]}
    )
    many = replace(delta(tmp_path, "orders", table), keys=("id",))
    body = 'assert each row: price > 0 name "a"\nassert unique(twin) name "b"'
    first, second = (run(request(tmp_path, body, [many], sample_rows=7)) for _ in range(2))
    assert [row["id"] for row, _ in rows(first)] == list(range(7))
    assert [row["twin"] for row, _ in rows(first, "b")] == list(range(7))
    assert rows(first) == rows(second)
    keyless = replace(many, keys=())
    first, second = (run(request(tmp_path, body, [keyless], sample_rows=7)) for _ in range(2))
    assert len(rows(first)) == 7
    assert rows(first) == rows(second)


def test_no_rows_are_sampled_if_the_request_turns_samples_off(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    report = run(request(tmp_path, 'assert not_null(price) name "a"', [orders], sample_rows=0))
    assert rows(report) == []
    assert not (tmp_path / "results" / "failing_rows").exists()


def test_without_keys_the_whole_row_is_shown_the_columns_at_fault_first(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    report = run(request(tmp_path, 'assert not_null(price) name "a"', [replace(orders, keys=())]))
    ((row, _),) = rows(report)
    assert list(row) == ["price", "id", "amount", "status", "country", "ds"]


@pytest.mark.since_spark("4.1", "stores columns without values")
def test_values_of_every_type_are_readable_and_long_ones_are_cut(run: Run, tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1]),
            "decimal": pa.array([Decimal("12.50")], pa.decimal128(18, 2)),
            "flag": [True],
            "at": pa.array(
                [datetime(2024, 3, 2, 6, tzinfo=timezone.utc)], pa.timestamp("us", "UTC")
            ),
            "text": ["ü" * 1000],
            "bytes": [b"\x00\xff" * 500],
            "list": [list(range(500))],
            "address": [{"city": None, "street": 'Main "St"'}],
            "Ünï `x`": ["odd"],
        }
    )
    report = run(
        request(
            tmp_path,
            'assert null_count(address.city) == 0 name "a"',
            [delta(tmp_path, "orders", table)],
        )
    )
    ((row, reason),) = rows(report)
    assert reason == "address.city is NULL"
    assert row["address.city"] is None
    assert (row["id"], row["decimal"], row["flag"]) == (1, 12.5, True)
    assert row["at"].startswith("2024-03-02T06:00:00")
    assert row["text"] == "ü" * 199 + "…"
    assert row["bytes"].startswith("00FF00FF")
    assert len(row["bytes"]) == 64
    assert row["list"].startswith("[0,1,2,")
    assert json.loads(row["address"]) == {"street": 'Main "St"'}
    assert row["Ünï `x`"] == "odd"
    assert len(verdict(report).failing_rows[0].row) < 2000


SECRETS = ("SECRET-1", "SECRET-2", "SECRET-3")


@pytest.fixture
def people(tmp_path: Path) -> DatasetRef:
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "tax_id": [*SECRETS, "SECRET-3"],
            "salary": [9876543210987.25, 8765432109876.25, 7654321098765.25, None],
            "home": [{"street": f"{secret} street"} for secret in (*SECRETS, "x")],
        }
    )
    ref = delta(tmp_path, "people", table)
    return replace(ref, name="orders", keys=("id",), masked=("TAX_ID", "salary", "home.street"))


def test_masked_values_never_leave_spark(
    run: Run, people: DatasetRef, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # as the job does
    body = """
    assert each row: length(tax_id) < 3 name "rows"
    assert unique(tax_id) name "twins"
    assert minimum(tax_id) == "A" name "least"
    assert maximum(salary) < 100 name "most"
    assert average(salary) < 100 name "mean"
    assert percentile(salary, 100%) < 100 name "percentile"
    assert maximum(salary) < minimum(salary) name "bound"
    assert first(home.street, order_by id) == "x" name "nested"
    assert sql("max(tax_id)") == "A" name "sql"
    assert query("SELECT max(salary) FROM orders") < 5 name "query"
    assert sql("max(CAST(tax_id AS INT))") > 5 name "cast"
    assert null_count(salary) == 0 name "nulls"
    """
    report = run(request(tmp_path, body, [replace(people, keys=())]))
    assert report.outcome is Outcome.BLOCKED
    shown = {item.name: item.value for item in report.verdicts}
    assert {name for name, value in shown.items() if value == "***"} == {
        "least",
        "most",
        "mean",
        "percentile",
        "bound",
        "nested",
        "sql",
        "query",
    }
    assert shown["nulls"] == 1
    assert rows(report, "twins") == [({"tax_id": "***"}, "2 rows")]
    row, _ = rows(report, "nulls")[0]
    assert row == {"salary": None, "id": 4, "tax_id": "***", "home": "***"}
    assert rows(report, "most")[0][1] == "salary >= 100"
    assert rows(report, "bound")[0][1] == "salary >= ***"
    assert verdict(report, "bound").expected == "< minimum(salary) (***)"
    written = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    written.append((tmp_path / "lineage.jsonl").read_bytes())
    written += [draw_report(report).encode(), caplog.text.encode()]
    assert len(written) > 5
    # What all salaries have in common, and how each begins when it is rounded: no other number
    # that is written, of a time or a size, has so many digits in this order.
    for secret in ("SECRET-", "65432109", "9.87654", "8.76543", "7.65432"):
        assert not [text for text in written if secret.encode() in text]


@pytest.mark.more
@pytest.mark.since_spark("4.0", "keeps the order of fields of rows from Python")
def test_failing_array_items_fail_their_rows(run: Run, tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": [1, 2],
            "tags": [["a", "b"], ["a", "B"]],
            "lines": [[{"qty": 1, "codes": [1]}], [{"qty": 1, "codes": [0, 1]}]],
            "order": [{"items": [1]}, {"items": [2]}],
            "secret": [["x"], ["y"]],
        }
    )
    ref = replace(delta(tmp_path, "orders", table), keys=("id",), masked=("secret",))
    body = """
    assert each row: every(tags, item matches "^[a-z]$") name "tags"
    assert each row: every(lines, every(item.codes, item > 0)) name "lines"
    assert 60% of rows: not some(order.items, item > id - 1) name "fields"
    assert each row: every(secret, item == "x") name "masked"
    """
    report = run(request(tmp_path, body, [ref]))
    assert rows(report, "tags") == [
        ({"id": 2, "tags": '["a","B"]'}, 'not (every(`tags`, item matches "^[a-z]$"))')
    ]
    nested = '[{"qty":1,"codes":[0,1]}]'
    reason = "not (every(lines, every(item.codes, item > 0)))"
    assert rows(report, "lines") == [({"id": 2, "lines": nested}, reason)]
    assert [row for row, _ in rows(report, "fields")] == [
        {"id": 1, "order.items": "[1]"},
        {"id": 2, "order.items": "[2]"},
    ]
    assert [row for row, _ in rows(report, "masked")] == [{"id": 2, "secret": "***"}]


def test_a_mask_for_an_unknown_column_hides_all_rows(
    run: Run, people: DatasetRef, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slip = replace(people, masked=("tax_ids",))
    report = run(request(tmp_path, 'assert unique(tax_id) name "a"', [slip]))
    assert verdict(report).status is Status.FAILED
    assert rows(report) == []
    assert "has no column 'tax_ids' to mask: did you mean 'tax_id'?" in (verdict(report).note or "")
    assert "tax_ids" in caplog.text


@pytest.mark.more
def test_a_failed_sample_keeps_the_verdict_and_is_explained(
    spark: Any, run: Run, orders: DatasetRef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.engine.outputs import samples as module

    # An order that Spark cannot sort by stands for whatever may go wrong in the pass.
    monkeypatch.setattr(module._Sampler, "_order", lambda _: "no_such_column")
    gate = request(
        tmp_path, 'assert not_null(price) name "a"\nassert unique(id) name "b"', [orders]
    )
    report = run(gate)
    assert verdict(report).status is Status.FAILED
    assert report.outcome is Outcome.BLOCKED
    assert "failing rows cannot be shown: " in (verdict(report).note or "")
    assert len(rows(report, "b")) == 1
    assert "failing rows cannot be shown" in draw_report(report)
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) == report


def test_the_rows_come_back_from_the_store_and_are_drawn_below_the_verdict(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    gate = request(tmp_path, 'assert maximum(ds) < 2024-03-02 name "a"', [orders], TODAY)
    report = run(gate)
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) == report
    drawn = draw_report(report)
    assert "  = failing row: id=1, ds=2024-03-02 (ds >= 2024-03-02)\n" in drawn
    assert drawn.count("= failing row: id=") == 3
    assert (
        f"= failing row: 1 more in the sample: dql results show {report.run_id[:8]} --rows" in drawn
    )


@pytest.mark.e2e
def test_verdicts_survive_the_loss_of_spark(tmp_path: Path, orders: DatasetRef) -> None:
    gate = request(tmp_path, 'assert null_count(price) == 0 name "a"', [orders])
    output_of([sys.executable, "-c", LOSES_ITS_JVM, *to_arguments(gate)], env=environment())
    report = read_report(gate.results_root, gate.run_key, gate.attempt.id)
    assert report is not None
    assert report.outcome is Outcome.BLOCKED
    assert verdict(report).status is Status.FAILED
    assert verdict(report).value == 1
    assert verdict(report).failing_rows == ()
    assert (verdict(report).note or "").startswith("failing rows cannot be shown: ")
