"""Promotion on a real Spark: what passed is written to its target once and completely, and nothing
else.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import struct
from dataclasses import asdict, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from dqx_airflow.diagnostics.verdicts import headline
from dqx_airflow.engine.job import run_gates
from dqx_airflow.engine.outputs.promotion import write_files
from dqx_airflow.errors import PromotionError, RequestError, UnverifiedError
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.receipts import receipts_of
from dqx_airflow.results.runs import read_report
from dqx_airflow.results.verify import verify_table
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    GateReport,
    GateRequest,
    Outcome,
    Promotion,
    RunKey,
    Status,
    Verdict,
)
from tests.engine.lake import ORDERS, TODAY, YESTERDAY, Run, delta, request

pytestmark = pytest.mark.spark

PASSES, WARNS, BLOCKS = (
    f"assert num_rows() > {n} severity {s}" for n, s in ((0, "P1"), (9, "P2"), (9, "P1"))
)


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    return replace(delta(tmp_path, "orders", ORDERS), date_column="ds")


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(tmp_path / "silver" / "orders")


@pytest.fixture
def gate(orders: DatasetRef, target: str, tmp_path: Path) -> GateRequest:
    return request(tmp_path, PASSES, [orders], promote_to=(("orders", target),))


def suite(gate: GateRequest, body: str) -> GateRequest:
    text = f'suite "Test" {{\n check "All" on orders {{\n{body}\n }}\n}}\n'
    return replace(gate, suite=replace(gate.suite, text=text))


def next_attempt(gate: GateRequest, number: int = 2) -> GateRequest:
    return replace(gate, attempt=Attempt(number, f"attempt-{number}"))


def rows(path: str, columns: str = "id, amount, ds") -> list[tuple[Any, ...]]:
    """The rows of a table, in a stable order, as deltalake reads them."""
    query = f"SELECT {columns} FROM t"
    found = QueryBuilder().register("t", DeltaTable(path)).execute(query).read_all()
    return sorted((tuple(row.values()) for row in pa.table(found).to_pylist()), key=str)


def promotion(report: GateReport) -> Promotion | None:
    return report.datasets[0].promotion


OF_TODAY = [(1, 1, TODAY), (2, 2, TODAY), (3, 3, TODAY), (3, 4, TODAY)]
OF_YESTERDAY = [(5, None, YESTERDAY), (6, 6, YESTERDAY)]


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [PASSES, WARNS])
def test_passed_rows_are_promoted_and_the_report_names_the_target(
    run: Run, gate: GateRequest, target: str, body: str
) -> None:
    report = run(suite(gate, body))
    assert rows(target) == OF_TODAY
    assert promotion(report) == Promotion(target, 0, 4)
    assert DeltaTable(target).metadata().partition_columns == []
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) == report


@pytest.mark.parametrize("body", [BLOCKS, "assert null_count(nothing) == 0"])
def test_blocked_or_broken_data_is_not_promoted(
    run: Run, gate: GateRequest, target: str, body: str
) -> None:
    report = run(suite(gate, body))
    assert promotion(report) is None
    assert not Path(target).exists()


BOTH = "orders, customers"


def test_rows_that_no_assertion_is_about_are_not_promoted(
    run: Run, gate: GateRequest, orders: DatasetRef, target: str, tmp_path: Path
) -> None:
    customers = replace(delta(tmp_path, "customers", ORDERS), date_column="ds")
    silver = str(tmp_path / "silver" / "customers")
    two = replace(gate, datasets=(orders, customers), promote_to=(("customers", silver),))

    def claiming(claim: str, on: str) -> GateRequest:
        stated = suite(two, f"assert {claim}")
        text = stated.suite.text.replace("on orders", f"on {on}")
        return replace(stated, suite=replace(stated.suite, text=text))

    for claim, on in (
        ("values(id) in values(id, dataset customers)", "orders"),
        ("query(\"SELECT count(*) FROM orders WHERE 'customers' <> ''\") > 0", BOTH),
        ('query("SELECT count(*) AS customers FROM orders -- not customers") > 0', BOTH),
    ):
        with pytest.raises(RequestError) as refused:
            run(claiming(claim, on))
        assert str(refused.value).startswith(
            f"dataset 'customers' would be promoted to {silver}, and no assertion is about it"
        )
        assert not Path(silver).exists()
    for claim in (
        "num_rows(dataset customers) == num_rows(dataset orders)",
        'query("SELECT count(*) FROM orders JOIN `customers` USING (id)") > 0',
    ):
        run(claiming(claim, BOTH))
        assert rows(silver) == OF_TODAY


REQUIRED = f"@required {BLOCKS}"
STRICT = "assert num_rows() > 9 severity P0"


def test_rows_of_a_blocked_gate_are_promoted_if_that_is_chosen_and_everything_says_so(
    run: Run, gate: GateRequest, target: str, tmp_path: Path
) -> None:
    report = run(replace(suite(gate, BLOCKS), promote_blocked=True))
    assert report.outcome is Outcome.BLOCKED
    assert rows(target) == OF_TODAY
    assert promotion(report) == Promotion(target, 0, 4, is_blocked=True)
    assert headline(report).startswith("blocked: promoted although blocked (orders); gate")
    assert report.validated["orders"].location == target
    assert DeltaTable(target).history(1)[0]["dqx_outcome"] == "blocked"
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) == report
    event = json.loads((tmp_path / "lineage.jsonl").read_text().splitlines()[-1])
    assert event["eventType"] == "COMPLETE"
    assert [output["name"] for output in event["outputs"]] == [target]
    tags = {tag["key"]: tag["value"] for tag in event["run"]["facets"]["tags"]["tags"]}
    assert tags["dqx_promoted_blocked"] == "orders"
    # What the target does not take has not passed for all that.
    write_deltalake(target, ORDERS.select(["id"]), mode="overwrite", schema_mode="overwrite")
    refused = run(replace(next_attempt(suite(gate, BLOCKS)), promote_blocked=True))
    assert refused.outcome is Outcome.BLOCKED
    (found,) = refused.with_status(Status.ERROR)
    assert (found.reason or "").startswith("the rows did not pass, and cannot be promoted to ")


@pytest.mark.parametrize(
    ("body", "on"),
    [
        (STRICT, TODAY),
        (REQUIRED, TODAY),
        (PASSES, date(2024, 1, 1)),
        ("assert null_count(nothing) == 0", TODAY),
    ],
    ids=["P0", "required", "empty", "broken"],
)
@pytest.mark.slow
def test_what_must_hold_is_never_promoted_by_a_setting(
    run: Run, gate: GateRequest, target: str, body: str, on: date
) -> None:
    wanted = replace(suite(gate, body), promote_blocked=True)
    report = run(replace(wanted, run_key=replace(gate.run_key, date=on)))
    assert promotion(report) is None
    assert "no rows promoted (orders)" in headline(report)
    assert not Path(target).exists()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "by",
    [
        ["ds"],
        [],
        *(pytest.param(by, marks=pytest.mark.slow) for by in (["country"], ["country", "ds"])),
    ],
)
def test_the_date_is_replaced_and_other_dates_stay_however_the_table_is_partitioned(
    run: Run, gate: GateRequest, target: str, by: list[str]
) -> None:
    odd = ORDERS.set_column(
        ORDERS.schema.get_field_index("country"),
        "country",
        pa.array(["A B", "a/b:c", "50%25", None, "Ünï", "A B"]),
    )
    write_deltalake(target, odd, partition_by=by or None)
    before = DeltaTable(target).version()
    report = run(gate)
    assert rows(target) == sorted([*OF_TODAY, *OF_YESTERDAY], key=str)
    assert {row[0] for row in rows(target, "country") if row[0]} >= {"Ünï", "A B", "CH", "XX"}
    assert promotion(report) == Promotion(target, before + 1, 4)
    run(replace(gate, run_key=RunKey("test.gate", YESTERDAY, "manual")))
    expected = [(*row, None) for row in rows(gate.datasets[0].path or "")]
    assert [(*row, None) for row in rows(target)] == expected
    assert rows(target, "id, country") == rows(gate.datasets[0].path or "", "id, country")


def test_a_dataset_without_dates_replaces_the_whole_table(
    run: Run, gate: GateRequest, target: str
) -> None:
    whole = replace(gate, datasets=(replace(gate.datasets[0], date_column=None),))
    write_deltalake(target, ORDERS.slice(0, 1))
    report = run(whole)
    assert rows(target) == sorted([*OF_TODAY, *OF_YESTERDAY], key=str)
    assert report.datasets[0].condition is None


def test_only_validated_rows_are_promoted(run: Run, gate: GateRequest, target: str) -> None:
    some = replace(gate, datasets=(replace(gate.datasets[0], filter="amount < 3"),))
    report = run(some)
    assert rows(target) == OF_TODAY[:2]
    assert report.datasets[0].condition == "(amount < 3) AND (`ds` IN (DATE'2024-03-02'))"


@pytest.mark.more
def test_the_validated_version_is_promoted_despite_later_writes(
    run: Run, gate: GateRequest, target: str
) -> None:
    path = gate.datasets[0].path or ""
    write_deltalake(path, ORDERS.slice(0, 1), mode="append")
    pinned = replace(gate, datasets=(replace(gate.datasets[0], version=0),))
    report = run(pinned)
    assert report.datasets[0].version == 0
    assert rows(target) == OF_TODAY


@pytest.mark.slow
def test_a_retry_is_invisible_to_readers(run: Run, gate: GateRequest, target: str) -> None:
    first, second = run(gate), run(next_attempt(gate))
    assert rows(target) == OF_TODAY
    assert (promotion(first), promotion(second)) == (
        Promotion(target, 0, 4),
        Promotion(target, 1, 4),
    )


def test_a_driver_that_a_cluster_starts_again_replaces_the_rows_of_the_first(
    run: Run, gate: GateRequest, target: str
) -> None:
    first, second = run(gate), run(gate)
    assert rows(target) == OF_TODAY
    assert first.run_id != second.run_id
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) == first
    assert verify_table(StoredResults(gate.results_root), target).differences == ()


@pytest.mark.few(1)
@pytest.mark.parametrize("promoted", [True, False])
def test_a_reader_downstream_gets_exactly_what_was_validated(
    spark: Any, run: Run, gate: GateRequest, target: str, promoted: bool
) -> None:
    from dqx_airflow import read_validated

    some = replace(gate, datasets=(replace(gate.datasets[0], filter="amount < 3"),))
    report = run(some if promoted else replace(some, promote_to=()))
    for path in (target, gate.datasets[0].path or ""):
        if Path(path).exists():
            write_deltalake(path, ORDERS.slice(0, 1), mode="append")
    summary = {
        "outcome": "passed",
        "validated": {name: asdict(rows) for name, rows in report.validated.items()},
    }
    for given in (report, summary, json.dumps(summary)):
        found = read_validated(spark, given, "orders").select("id", "amount").collect()
        assert sorted(map(tuple, found)) == [(1, 1), (2, 2)]


@pytest.mark.few(1)
@pytest.mark.parametrize("date_column", ["ds", None])
def test_a_reader_downstream_gets_no_row_of_another_slice(
    spark: Any, run: Run, gate: GateRequest, target: str, tmp_path: Path, date_column: str | None
) -> None:
    from dqx_airflow import read_validated

    for number, country in enumerate(("CH", "DE")):
        own = ORDERS.filter(pc.equal(ORDERS["country"], country))
        ref = replace(delta(tmp_path, country, own), name="orders", date_column=date_column)
        report = run(
            replace(
                gate,
                run_key=RunKey("test.gate", TODAY, f"manual[{number}]"),
                datasets=(ref,),
                promote_slice=(("country", country),),
            )
        )
        found = read_validated(spark, report, "orders").select("country").collect()
        assert {row[0] for row in found} == {country}


@pytest.mark.more
def test_a_promotion_leaves_a_receipt_that_a_reader_verifies(
    spark: Any, run: Run, gate: GateRequest, target: str
) -> None:
    from dqx_airflow import read_validated

    def differing() -> list[str]:
        found = verify_table(StoredResults(gate.results_root), target)
        return [one.problem for one in found.differences]

    def read(report: GateReport) -> int:
        root = gate.results_root
        return read_validated(spark, report, "orders", verify=True, results_root=root).count()

    of_yesterday = replace(gate, run_key=RunKey("test.gate", YESTERDAY, "manual"))
    first, _ = run(gate), run(of_yesterday)
    table_id = str(DeltaTable(target).metadata().id)
    known = receipts_of(StoredResults(gate.results_root), table_id)
    receipt, other = known[0].entries, known[1].entries
    assert receipt["read"] == [gate.datasets[0].path, 0]
    (judged,) = receipt["judged"]
    assert {one["status"] for one in judged["verdicts"]} == {"passed"}
    assert judged["sources"] == {one.file: one.digest for one in first.sources}
    assert other["previous"] == known[0].digest
    assert (differing(), read(first)) == ([], 4)
    # Rows of both dates, of which a promotion replaces one and keeps the other.
    write_deltalake(target, pa.concat_tables([ORDERS, ORDERS]), mode="append")
    for again in (next_attempt(gate), of_yesterday):
        (problem,) = differing()
        assert "files added: 1, removed: 0; no gate passed that" in problem
        last = run(again)
    assert differing() == []
    # As if the driver had been killed after its commit.
    DeltaTable(f"{gate.results_root}/receipts").delete("version = 4")
    with pytest.raises(
        UnverifiedError, match=r"version 4, receipt: .*: there is no receipt; run the gate"
    ):
        read(last)
    run(of_yesterday)
    assert differing() == []
    # As if a backup had been restored: of both dates, the newest promotions are gone.
    for again in (gate, of_yesterday):
        run(next_attempt(again, 7))
    newest = DeltaTable(target).version()
    for version in (newest, newest - 1):
        Path(target, "_delta_log", f"{version:020}.json").unlink()
    missing = f"is not in the table: the log ends at version {newest - 2}"
    assert [missing in problem for problem in differing()] == [True, True]
    run(next_attempt(gate, 8))
    (problem,) = differing()
    assert "the promotion of test.gate/2024-03-01/manual is not in the table" in problem
    run(of_yesterday)
    assert differing() == []
    shutil.rmtree(target)
    run(next_attempt(gate))
    (problem,) = differing()
    assert "test.gate/2024-03-01/manual is not in the table: the table was created again" in problem
    run(of_yesterday)
    assert differing() == []


def test_read_validated_refuses_a_blocked_gate(spark: Any, run: Run, gate: GateRequest) -> None:
    from dqx_airflow import read_validated

    blocked = run(suite(gate, BLOCKS))
    assert blocked.validated == {}
    with pytest.raises(RequestError, match="the gate is blocked, so no data was released"):
        read_validated(spark, blocked, "orders")
    with pytest.raises(RequestError, match="the gate knows no version of dataset 'order'"):
        read_validated(spark, {"outcome": "passed", "validated": {}}, "order")
    for odd in ("{", "[]", {"validated": {"orders": 5}}, {}):
        with pytest.raises(RequestError, match=r"summary of (a|the) gate"):
            read_validated(spark, odd, "orders")


@pytest.mark.more
def test_a_stale_driver_does_not_overwrite_a_later_promotion(
    run: Run, gate: GateRequest, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(gate)
    path = gate.datasets[0].path or ""
    write_deltalake(path, ORDERS.slice(0, 1), mode="overwrite")
    long_ago = datetime(2024, 3, 3, tzinfo=timezone.utc)
    monkeypatch.setattr("dqx_airflow.engine.job._now", lambda: long_ago)
    with pytest.raises(
        PromotionError, match="a run of a gate that started later has already promoted"
    ):
        run(next_attempt(gate))
    assert rows(target) == OF_TODAY
    assert read_report(gate.results_root, gate.run_key, "attempt-2") is None


@pytest.mark.more
def test_a_concurrent_writer_is_detected(
    run: Run, gate: GateRequest, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(target, ORDERS)
    crossed: list[bool] = []

    def crossing(*given: Any, **more: Any) -> Any:
        if not crossed:
            crossed.append(True)
            write_deltalake(target, ORDERS.slice(3, 3), mode="overwrite")
        return write_files(*given, **more)

    monkeypatch.setattr("dqx_airflow.engine.outputs.promotion.write_files", crossing)
    report = run(gate)
    assert rows(target) == sorted([*OF_TODAY, *OF_YESTERDAY], key=str)
    assert promotion(report) == Promotion(target, 2, 4)


def test_files_that_changed_since_are_not_promoted(
    run: Run, gate: GateRequest, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet

    folder = tmp_path / "landed"
    folder.mkdir()
    pyarrow.parquet.write_table(ORDERS, folder / "a.parquet")
    landed = DatasetRef("orders", path=str(folder), format="parquet", date_column="ds")
    files = replace(gate, datasets=(landed,))
    assert promotion(run(files)) == Promotion(target, 0, 4)

    def changing(*given: Any, **more: Any) -> Any:
        written = write_files(*given, **more)
        pyarrow.parquet.write_table(ORDERS.slice(0, 1), folder / "a.parquet")
        return written

    monkeypatch.setattr("dqx_airflow.engine.outputs.promotion.write_files", changing)
    with pytest.raises(PromotionError, match=r"a\.parquet was changed or removed"):
        run(next_attempt(files))
    assert DeltaTable(target).version() == 0


def refusal(report: GateReport) -> Verdict:
    """What tells that a gate is broken because a target does not take its rows."""
    assert report.outcome is Outcome.BROKEN
    (found,) = report.with_status(Status.ERROR)
    assert found == report.verdicts[-1]
    assert headline(report).endswith(f"worst: {found.name} (P1): {found.reason}")
    return found


@pytest.mark.more
def test_a_target_that_rejects_the_rows_breaks_the_gate_with_a_reason(
    run: Run, gate: GateRequest, target: str, tmp_path: Path
) -> None:
    write_deltalake(target, ORDERS.drop_columns(["price"]))
    report = run(gate)
    found = refusal(report)
    assert found.name == "orders.promoted"
    assert found.reason == (
        f"the rows passed, but cannot be promoted to {target}: its column 'price' is not "
        "there, and in the dataset double; change the columns of the table first: a "
        "promotion does not"
    )
    assert (promotion(report), report.validated) == (None, {})
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) == report
    write_deltalake(target, ORDERS.select(["id"]), mode="overwrite", schema_mode="overwrite")
    write_deltalake(target, ORDERS, mode="overwrite", schema_mode="overwrite")
    DeltaTable(target).alter.add_constraint({"positive": "id > 0"})
    reason = refusal(run(next_attempt(gate))).reason or ""
    assert re.search(
        "the table there has check constraints(; give the gate packages=|: Sail .* on Spark$)",
        reason,
    )
    last = [json.loads(line) for line in (tmp_path / "lineage.jsonl").read_text().splitlines()][-1]
    assert last["eventType"] == "FAIL"


def test_nothing_is_promoted_if_one_of_several_targets_rejects_its_rows(
    run: Run, gate: GateRequest, target: str, tmp_path: Path
) -> None:
    other = str(tmp_path / "silver" / "customers")
    write_deltalake(other, pa.table({"name": ["Ada"]}))
    customers = delta(tmp_path, "customers", pa.table({"id": [1]}))
    text = gate.suite.text.replace("}", f'}}\n check "Others" on customers {{ {PASSES} }}', 1)
    both = replace(
        gate,
        suite=replace(gate.suite, text=text),
        datasets=(*gate.datasets, customers),
        promote_to=(("orders", target), ("customers", other)),
    )
    assert refusal(run(both)).name == "customers.promoted"
    assert not Path(target).exists()


def test_a_table_of_a_catalog_needs_the_delta_source(run: Run, gate: GateRequest) -> None:
    found = refusal(run(replace(gate, promote_to=(("orders", "silver.orders"),))))
    assert "Spark's Delta source writes catalog tables" in (found.reason or "")


def test_a_target_that_cannot_be_written_now_leaves_no_report(
    run: Run, gate: GateRequest, target: str
) -> None:
    Path(target).parent.mkdir()
    Path(target).write_text("in the way")
    with pytest.raises(PromotionError, match=f"passed, but cannot be promoted to {target}"):
        run(gate)
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) is None


def test_a_target_in_use_is_refused_before_spark_starts(gate: GateRequest, tmp_path: Path) -> None:
    own = gate.datasets[0].path or ""
    link = tmp_path.with_name(f"{tmp_path.name}-link")
    link.symlink_to(own)
    results = (gate.results_root, f"{gate.results_root}/x")
    for place in (own, f"{own}/below", f"file:{own}/.", str(link), *results, str(tmp_path)):
        with pytest.raises(RequestError, match="would be promoted to the location of"):
            run_gates(
                [replace(gate, promote_to=(("orders", place),))], lambda _: pytest.fail("Spark")
            )
    spaced = replace(gate, datasets=(DatasetRef("orders", path=f"{tmp_path}/my orders"),))
    with pytest.raises(RequestError, match="would be promoted to the location of"):
        run_gates(
            [replace(spaced, promote_to=(("orders", f"file://{tmp_path}/my%20orders"),))],
            lambda _: pytest.fail("Spark"),
        )
    table = replace(gate, datasets=(DatasetRef("orders", table="silver.orders"),))
    for name in ("`silver`.`orders`", "spark_catalog.silver.Orders"):
        with pytest.raises(RequestError, match="would be promoted to the location of"):
            run_gates(
                [replace(table, promote_to=(("orders", name),))], lambda _: pytest.fail("Spark")
            )
    query = replace(gate, datasets=(DatasetRef("orders", query="SELECT 1 AS id"),))
    with pytest.raises(RequestError, match="'orders' is a query and cannot be promoted"):
        run_gates([query], lambda _: pytest.fail("Spark"))


@pytest.mark.parametrize(
    "kind",
    ["string", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("timestamp", "int"))],
)
@pytest.mark.slow
def test_dates_may_be_strings_timestamps_and_numbers(
    run: Run, gate: GateRequest, target: str, tmp_path: Path, kind: str
) -> None:
    days = [TODAY, TODAY, YESTERDAY]
    ds = {
        "string": pa.array([day.isoformat() for day in days]),
        "timestamp": pa.array(
            [datetime(day.year, day.month, day.day, 5, tzinfo=timezone.utc) for day in days],
            pa.timestamp("us", "UTC"),
        ),
        "int": pa.array([int(day.strftime("%Y%m%d")) for day in days], pa.int32()),
    }[kind]
    table = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "ds": ds})
    ref = replace(delta(tmp_path, kind, table), name="orders", date_column="ds")
    if kind == "int":
        ref = replace(ref, date_format="yyyyMMdd")
    dated = replace(gate, datasets=(ref,))
    write_deltalake(target, table)
    run(dated)
    run(next_attempt(dated))
    assert rows(target, "id") == [(1,), (2,), (3,)]
    run(replace(dated, run_key=RunKey("test.gate", date(2024, 3, 1), "manual")))
    assert rows(target, "id, ds") == rows(ref.path or "", "id, ds")


@pytest.mark.more
@pytest.mark.parametrize("file_format", ["parquet", "delta"])
def test_a_target_and_a_quarantine_hold_the_bits_of_the_floats_that_were_judged(
    run: Run, target: str, tmp_path: Path, file_format: str
) -> None:
    floats = [-0.0, 0.0, math.nan, 5e-324, -math.inf, None]
    column = {
        "x": pa.array(floats),
        "items": pa.array([[value] for value in floats]),
        "deep": pa.array([[{"a": value}] for value in floats]),
        "map": pa.array([[(1, value)] for value in floats], pa.map_(pa.int64(), pa.float64())),
    }
    rows = pa.table({"id": range(len(floats)), **column})
    source = tmp_path / "orders"
    if file_format == "parquet":
        source.mkdir()
        pq.write_table(rows, source / "a.parquet")
    else:
        write_deltalake(source, rows)
    orders = DatasetRef("orders", str(source), format=file_format)
    gate = request(tmp_path, "assert each row: x <= 1", [orders], promote_to=(("orders", target),))
    run(replace(gate, promote_blocked=True))
    kept = str(tmp_path / "quarantine")
    gate = request(tmp_path, "assert each row: id < 0", [orders], quarantine=(("orders", kept),))
    # A later attempt, and another run, find the rows that are there.
    another = replace(gate, run_key=replace(gate.run_key, scheduler_run="another"))
    for again in (gate, next_attempt(gate), another):
        run(again)
    for place in (target, kept):
        held = DeltaTable(place).to_pyarrow_table().sort_by("id")
        for name in column:
            assert _bits(held[name].to_pylist()) == _bits(rows[name].to_pylist()), (place, name)


def _bits(value: Any) -> Any:
    match value:
        case float():
            return struct.pack("<d", value)
        case dict():
            return {name: _bits(part) for name, part in value.items()}
        case list() | tuple():
            return [_bits(part) for part in value]
    return value
