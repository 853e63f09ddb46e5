"""Good rows go on (`promote_valid`): the target gets exactly the rows without violations, the
quarantine the others, or the gate blocks as before and says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.diagnostics.verdicts import headline
from dqx_airflow.engine.job import run_gates
from dqx_airflow.errors import RequestError
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    GateOrigin,
    GatePart,
    GateReport,
    GateRequest,
    Outcome,
    Promotion,
    SourceFile,
)
from tests.engine.lake import TODAY, YESTERDAY, delta, request
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

DAYS = [TODAY, YESTERDAY]
BAD, TWICE, UNKNOWN = {3, 14}, {7, 8}, {20}
"""By number: a negative amount, the same key, a country that is not in the list."""


def orders(on: date) -> pa.Table:
    numbers = range(100)
    return pa.table(
        {
            "id": pa.array([7 if n in TWICE else n for n in numbers], pa.int64()),
            "number": pa.array(numbers, pa.int64()),
            "amount": pa.array([-1 if n in BAD else None if n == 30 else n for n in numbers]),
            "country": ["XX" if n in UNKNOWN else "CH" for n in numbers],
            "store": ["basel" if n % 2 else "bern" for n in numbers],
            "ds": pa.array([on] * 100, pa.date32()),
        }
    )


ROWS = """
assert each row: amount >= 0 name "amount"
assert unique(id) name "id"
@required assert values(country) in values(code, dataset countries) name "country" severity P0
assert num_rows() > 94 name "enough"
assert average(amount) > 10 name "average"
assert each row: number < 99 name "small" severity P3
"""
GOOD = [n for n in range(100) if n not in BAD | TWICE | UNKNOWN]


@pytest.fixture
def gate(tmp_path: Path) -> GateRequest:
    table = pa.concat_tables([orders(on) for on in DAYS])
    refs = [
        replace(delta(tmp_path, "orders", table), date_column="ds", keys=("number",)),
        delta(tmp_path, "countries", pa.table({"code": ["CH", "DE"]})),
    ]
    return request(
        tmp_path,
        ROWS,
        refs,
        quarantine=(("orders", str(tmp_path / "quarantine")),),
        promote_to=(("orders", str(tmp_path / "silver")),),
        promote_valid="5%",
    )


@pytest.fixture
def run(spark: Any, lineage: Path) -> Callable[..., Any]:
    return lambda gate: run_gates(gate.parts, lambda _: spark)


def numbers(place: Path, on: date | None = TODAY) -> list[int]:
    """The numbers of the rows of a table."""
    if not (place / "_delta_log").exists():
        return []
    found = DeltaTable(str(place)).to_pyarrow_table().to_pylist()
    return sorted(row["number"] for row in found if on in (None, row["ds"]))


def of(gate: GateRequest, body: str, attempt: int = 2) -> GateRequest:
    text = f'suite "Test" {{\n check "All" on orders {{\n{body}\n }}\n}}\n'
    named = Attempt(attempt, f"attempt-{attempt}")
    return replace(gate, suite=replace(gate.suite, text=text), attempt=named)


def notes(report: GateReport) -> str:
    return "; ".join(verdict.note or "" for verdict in report.verdicts)


@pytest.mark.more
def test_good_rows_are_promoted_bad_rows_are_quarantined_and_everything_says_so(
    run: Callable[..., Any], gate: GateRequest, tmp_path: Path, spark: Any
) -> None:
    (blocked,) = run(replace(gate, promote_valid=None))
    before = jobs_so_far(spark)
    (same,) = run(replace(gate, promote_valid="4", attempt=Attempt(2, "2"), recompute=True))
    as_before = jobs_so_far(spark) - before
    assert {blocked.outcome, same.outcome} == {Outcome.BLOCKED}
    assert "the valid rows are not promoted: 5 of 100 rows of orders are bad, more than 4" in notes(
        same
    )
    assert numbers(tmp_path / "silver") == []
    before = jobs_so_far(spark)
    (report,) = run(replace(gate, attempt=Attempt(3, "3"), recompute=True))
    assert jobs_so_far(spark) - before <= as_before + 12
    assert report.outcome is Outcome.WARNED
    assert numbers(tmp_path / "silver") == GOOD
    assert numbers(tmp_path / "quarantine") == sorted(BAD | TWICE | UNKNOWN)
    assert report.datasets[0].promotion == Promotion(str(tmp_path / "silver"), 0, 95, left_out=5)
    assert report.left_out == ("5 of 100 rows of orders",)
    assert headline(report).startswith("warned: 5 of 100 rows of orders left out; gate ")
    assert {one.name for one in report.verdicts if one.rows_left_out} == {"amount", "id", "country"}
    assert report.validated["orders"].location == str(tmp_path / "silver")
    assert read_report(gate.results_root, gate.run_key, "3") == report
    assert DeltaTable(str(tmp_path / "silver")).history(1)[0]["dqx_left_out"] == "5"
    event = json.loads((tmp_path / "lineage.jsonl").read_text().splitlines()[-1])
    tags = {tag["key"]: tag["value"] for tag in event["run"]["facets"]["tags"]["tags"]}
    assert tags["dqx_left_out"] == "5 of 100 rows of orders"
    (output,) = [one for one in event["outputs"] if one["name"].endswith("silver")]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 95


NOT_OF_ROWS = 'assert average(amount) > 90 name "mean"'
TOO_FEW = 'assert num_rows() > 98 name "enough"'
AMOUNT = 'assert each row: amount >= 0 name "amount"'
BROKEN = 'assert null_count(nothing) == 0 name "gone"'
UNEQUAL = 'assert null_count(amount) == 0 name "nulls"\nassert null_count(amount) != 0 name "some"'


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(
            f"{AMOUNT}\n{NOT_OF_ROWS}",
            "mean is not about single rows of a promoted dataset",
            marks=pytest.mark.slow,
        ),
        (f"{AMOUNT}\n{TOO_FEW}", "without the bad rows, enough: num_rows() is 98, expected > 98"),
        pytest.param(f"{AMOUNT}\n{BROKEN}", "gone could not be evaluated", marks=pytest.mark.slow),
        pytest.param(
            UNEQUAL,
            "without the bad rows, some: null_count(amount) is 0, expected != 0",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'assert unique(number) name "n"\nassert each row: number < 0 name "all"',
            "100 of 100 rows of orders are bad, more than 5%",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_anything_but_single_bad_rows_blocks_as_before(
    run: Callable[..., Any], gate: GateRequest, tmp_path: Path, body: str, why: str
) -> None:
    (report,) = run(of(gate, body))
    assert report.outcome is Outcome.BLOCKED
    assert f"the valid rows are not promoted: {why}" in notes(report)
    assert "no rows promoted (orders)" in headline(report)
    assert numbers(tmp_path / "silver") == []


@pytest.mark.slow
def test_good_rows_go_on_over_spark_connect_as_in_this_process(
    run: Callable[..., Any],
    gate: GateRequest,
    tmp_path: Path,
    server_session: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (report,) = run(gate)
    there = tmp_path / "there"
    places = {"quarantine": there / "quarantine", "promote_to": there / "silver"}
    over_connect = replace(
        gate,
        results_root=str(there / "results"),
        **{name: (("orders", str(place)),) for name, place in places.items()},
    )
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    (same,) = run_gates((over_connect,), lambda _: server_session)
    assert (same.outcome, same.left_out) == (Outcome.WARNED, report.left_out)
    assert same.verdicts == report.verdicts
    assert numbers(places["promote_to"], None) == numbers(tmp_path / "silver", None) == GOOD
    assert numbers(places["quarantine"]) == sorted(BAD | TWICE | UNKNOWN)
    # Without a bad row that is allowed, nothing more goes on.
    refused = replace(over_connect, promote_valid="4", attempt=Attempt(2, "2"), recompute=True)
    (blocked,) = run_gates((refused,), lambda _: server_session)
    assert blocked.outcome is Outcome.BLOCKED
    assert "5 of 100 rows of orders are bad, more than 4" in notes(blocked)
    assert numbers(places["promote_to"]) == GOOD


@pytest.mark.slow
def test_suites_dates_and_reruns_agree_on_the_rows_that_go_on(
    run: Callable[..., Any], gate: GateRequest, tmp_path: Path
) -> None:
    first = replace(of(gate, AMOUNT), origin=GateOrigin(job=gate.run_key.gate))
    other = SourceFile("other.dql", of(gate, 'assert unique(id) name "id"').suite.text)
    keys = [
        replace(gate.run_key, gate=f"{gate.run_key.gate}/{name}", date=on)
        for on in DAYS
        for name in "AB"
    ]
    parts = (GatePart(keys[1], other), GatePart(keys[2], first.suite), GatePart(keys[3], other))
    both = replace(first, run_key=keys[0], more=parts, promote_slice=())
    reports = run(both)
    assert [report.outcome for report in reports] == [Outcome.WARNED] * 4
    assert {report.job for report in reports} == {gate.run_key.gate}
    assert {report.left_out for report in reports} == {("4 of 100 rows of orders",)}
    for on in DAYS:
        assert numbers(tmp_path / "quarantine", on) == sorted(BAD | TWICE)
        assert numbers(tmp_path / "silver", on) == sorted({*range(100)} - BAD - TWICE)
    # The source is repaired: the rerun promotes all, and nothing is left in quarantine.
    repaired = pa.concat_tables([orders(on) for on in DAYS])
    whole = repaired.set_column(0, "id", repaired["number"]).set_column(
        2, "amount", repaired["number"]
    )
    write_deltalake(str(tmp_path / "orders"), whole, mode="overwrite")
    reports = run(replace(both, attempt=Attempt(3, "3")))
    assert [report.outcome for report in reports] == [Outcome.PASSED] * 4
    assert numbers(tmp_path / "quarantine", None) == []
    assert numbers(tmp_path / "silver", None) == sorted([*range(100)] * 2)


@pytest.mark.slow
def test_slices_undated_datasets_and_texts_go_on_without_their_bad_rows(
    run: Callable[..., Any], gate: GateRequest, tmp_path: Path
) -> None:
    for store, own in (("basel", {3}), ("bern", {14})):
        ref = replace(gate.datasets[0], filter=f"store = '{store}'")
        of_store = replace(
            of(gate, AMOUNT),
            datasets=(ref,),
            promote_slice=(("store", store),),
            run_key=replace(gate.run_key, gate=f"test.{store}"),
        )
        (report,) = run(of_store)
        assert report.left_out == ("1 of 50 rows of orders",)
        assert own <= {*numbers(tmp_path / "quarantine")}
    assert numbers(tmp_path / "silver") == sorted({*range(100)} - BAD)
    assert numbers(tmp_path / "quarantine") == sorted(BAD)
    # A CSV file without dates, of which a line cannot be read.
    (tmp_path / "t.csv").write_text("number,amount\n1,1\n2,x\n3,-3\n4,4\n")
    ref = DatasetRef(
        "orders",
        path=str(tmp_path / "t.csv"),
        format="csv",
        schema="number int, amount int",
        options=(("header", "true"),),
    )
    places = {"quarantine": str(tmp_path / "q-csv"), "promote_to": str(tmp_path / "silver-csv")}
    of_texts = replace(
        of(gate, AMOUNT),
        datasets=(ref,),
        promote_valid="50%",
        **{name: (("orders", place),) for name, place in places.items()},
    )
    (report,) = run(of_texts)
    assert report.left_out == ("2 of 4 rows of orders",), notes(report)
    found = DeltaTable(places["promote_to"]).to_pyarrow_table().to_pylist()
    assert sorted(row["number"] for row in found) == [1, 4]


def test_good_rows_need_a_target_and_a_quarantine(
    run: Callable[..., Any], gate: GateRequest
) -> None:
    with pytest.raises(RequestError, match="there is no quarantine for dataset 'orders'"):
        run(replace(gate, quarantine=()))
    with pytest.raises(RequestError, match="and there is no promote_to"):
        run(replace(gate, promote_to=()))
