"""The quarantine of failing rows on a real Spark: which rows it gets, and each only once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results import quarantines
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey
from tests.engine.lake import ORDERS, TODAY, YESTERDAY, Run, delta, request

pytestmark = pytest.mark.spark


BODY = """
assert not_null(price) name "price"
assert unique(id) name "unique"
assert values(country) in values(code, dataset countries) name "country"
assert each row: amount > 1 name "mild" severity P2
assert each row: amount > 0 name "fine"
"""


@pytest.fixture
def gate(orders: DatasetRef, countries: DatasetRef, tmp_path: Path) -> GateRequest:
    quarantine = (("orders", str(tmp_path / "quarantine" / "orders")),)
    return request(tmp_path, BODY, [orders, countries], quarantine=quarantine)


def quarantined(gate: GateRequest) -> list[dict[str, Any]]:
    """The rows in quarantine, in a stable order, read by deltalake."""
    table = DeltaTable(gate.quarantine[0][1])
    found = QueryBuilder().register("q", table).execute("SELECT * FROM q").read_all()
    return sorted(pa.table(found).to_pylist(), key=lambda row: (row["id"], str(row["amount"])))


def test_every_row_is_valid_or_quarantined_with_its_reasons(run: Run, gate: GateRequest) -> None:
    report = run(gate)
    there = quarantined(gate)
    assert [(row["id"], row["amount"], row["dqx_reasons"]) for row in there] == [
        (3, 3, ["price", "unique", "country"]),
        (3, 4, ["unique"]),
    ]
    assert {row["dqx_date"] for row in there} == {TODAY}
    assert {row["dqx_run_id"] for row in there} == {report.run_id}
    incoming = [row for row in ORDERS.to_pylist() if row["ds"] == TODAY]
    bare = [{name: row[name] for name in ORDERS.column_names} for row in there]
    valid = Counter(map(str, incoming)) - Counter(map(str, bare))
    assert valid.total() == 2
    assert valid + Counter(map(str, bare)) == Counter(map(str, incoming))
    assert [item.quarantined for item in report.datasets] == [2, None]
    assert [item.quarantine for item in report.datasets] == [gate.quarantine[0][1], None]
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) == report


@pytest.mark.slow
def test_failures_of_lower_severity_are_quarantined_if_they_block(
    run: Run, gate: GateRequest
) -> None:
    from dqx_airflow.values import Severity

    run(replace(gate, fail_on=Severity.P2))
    assert [row["dqx_reasons"] for row in quarantined(gate)] == [
        ["mild"],
        ["price", "unique", "country"],
        ["unique"],
    ]


@pytest.mark.slow
def test_a_retry_replaces_the_rows_of_the_earlier_attempt(
    run: Run, gate: GateRequest, orders: DatasetRef
) -> None:
    run(gate)
    again = run(replace(gate, attempt=Attempt(2, "attempt-2")))
    assert len(quarantined(gate)) == 2
    assert {row["dqx_run_id"] for row in quarantined(gate)} == {again.run_id}
    write_deltalake(orders.path or "", ORDERS.slice(0, 2), mode="overwrite")
    mended = run(replace(gate, attempt=Attempt(3, "attempt-3")))
    assert mended.datasets[0].quarantined == 0
    assert quarantined(gate) == []


@pytest.mark.slow
def test_other_gates_and_dates_keep_their_rows_and_another_run_replaces_them(
    run: Run, gate: GateRequest
) -> None:
    run(gate)
    run(replace(gate, run_key=RunKey("test.gate", YESTERDAY, "manual")))
    run(replace(gate, run_key=RunKey("another.gate", TODAY, "manual")))
    run(replace(gate, run_key=RunKey("test.gate", TODAY, "another run")))
    found = Counter(row["dqx_run_key"] for row in quarantined(gate))
    assert found == {"another.gate/2024-03-02/manual": 2, "test.gate/2024-03-02/another run": 2}


def test_no_quarantine_is_created_without_failing_rows(
    run: Run, gate: GateRequest, orders: DatasetRef, tmp_path: Path
) -> None:
    fine = request(tmp_path, "assert num_rows() > 100", [orders], quarantine=gate.quarantine)
    assert run(fine).datasets[0].quarantined == 0
    assert not (tmp_path / "quarantine").exists()


@pytest.mark.slow
def test_a_column_that_the_dataset_gained_is_added_to_the_quarantine(
    run: Run, gate: GateRequest, orders: DatasetRef
) -> None:
    run(gate)
    wider = ORDERS.append_column("channel", pa.array(["web"] * 6))
    write_deltalake(orders.path or "", wider, mode="overwrite", schema_mode="overwrite")
    run(replace(gate, run_key=RunKey("another.gate", TODAY, "next")))
    assert Counter(row["channel"] for row in quarantined(gate)) == {None: 2, "web": 2}


@pytest.mark.slow
def test_values_of_any_type_are_quarantined_unchanged(
    spark: Any, run: Run, gate: GateRequest, tmp_path: Path
) -> None:
    from datetime import datetime, timezone
    from decimal import Decimal

    row = {
        "id": 1,
        "amount": Decimal("-1.25"),
        "at": datetime(2024, 3, 2, 6, 0, 0, 123456, tzinfo=timezone.utc),
        "local": datetime(2024, 3, 2, 6, 0, 0, 123456),
        "day": date(1582, 1, 1),
        "tags": ["a", None],
        "home": {"city": "Ünï", "code": None},
        "bytes": b"\x00\xff",
        "half": 0.5,
        "tax_id": "SECRET",
    }
    schema = pa.schema(
        {
            "id": pa.int64(),
            "amount": pa.decimal128(18, 2),
            "at": pa.timestamp("us", "UTC"),
            "local": pa.timestamp("us"),
            "day": pa.date32(),
            "tags": pa.list_(pa.string()),
            "home": pa.struct({"city": pa.string(), "code": pa.int32()}),
            "bytes": pa.binary(),
            "half": pa.float32(),
            "tax_id": pa.string(),
        }
    )
    table = pa.Table.from_pylist([row], schema=schema)
    ref = replace(delta(tmp_path, "odd", table), name="orders", masked=("tax_id",))
    report = run(request(tmp_path, "assert minimum(amount) > 0", [ref], quarantine=gate.quarantine))
    assert report.datasets[0].quarantined == 1
    (found,) = quarantined(gate)
    assert {name: found[name] for name in row} == row
    files = DeltaTable(gate.quarantine[0][1]).file_uris()
    read = spark.read.parquet(*files).select(*row).collect()[0].asDict(recursive=True)
    assert read["tax_id"] == "SECRET"


@pytest.mark.more
def test_what_any_gate_masks_stays_masked_in_a_quarantine_that_several_share(
    run: Run, gate: GateRequest, tmp_path: Path
) -> None:
    """Also a column whose name has a dot."""
    table = pa.table({"id": [1], "tax.id": ["SECRET"], "home": [{"street": "SECRET"}]})
    ref = replace(delta(tmp_path, "odd", table), name="orders", masked=("Tax.id", "home.street"))
    first = request(tmp_path, "assert minimum(id) > 1", [ref], quarantine=gate.quarantine)
    other = replace(first, run_key=replace(first.run_key, gate="other.gate"))
    for one in (first, replace(other, datasets=(replace(ref, masked=()),))):
        assert run(one).datasets[0].quarantined == 1
    place = DeltaTable(gate.quarantine[0][1])
    masked = quarantines.masked_in(place)
    shown = quarantines.shown_rows(place, quarantines.quarantined(place), masked or (), 20)
    assert [(row["id"], row["tax.id"], row["home"]) for row in shown] == 2 * [(1, "***", "***")]


@pytest.mark.more
def test_another_table_at_the_quarantine_path_is_untouched_and_an_error(
    run: Run, gate: GateRequest, tmp_path: Path
) -> None:
    path = gate.quarantine[0][1]
    write_deltalake(path, pa.table({"mine": [1]}))
    with pytest.raises(StoreError, match=r"cannot be quarantined .* other columns"):
        run(gate)
    assert DeltaTable(path).to_pyarrow_table().to_pylist() == [{"mine": 1}]
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) is None


def test_a_quarantine_among_the_results_is_refused_before_anything_is_read(
    run: Run, gate: GateRequest, tmp_path: Path
) -> None:
    path = f"{gate.results_root}/quarantine"
    with pytest.raises(RequestError, match="is inside the location of the results"):
        run(replace(gate, quarantine=(("orders", path),)))
    assert not (tmp_path / "lineage.jsonl").exists()


def test_two_datasets_with_one_quarantine_are_refused_and_lose_no_rows(
    run: Run, gate: GateRequest
) -> None:
    path = gate.quarantine[0][1]
    with pytest.raises(RequestError, match="inside the location of the quarantine of dataset"):
        run(replace(gate, quarantine=(("orders", path), ("countries", f"file:{path}/"))))


@pytest.mark.slow
def test_a_column_with_other_capitals_is_refused_as_one_of_another_type_is(
    run: Run, gate: GateRequest, tmp_path: Path
) -> None:
    run(gate)
    renamed = replace(
        delta(
            tmp_path,
            "renamed",
            ORDERS.rename_columns([name.upper() for name in ORDERS.column_names]),
        ),
        name="orders",
    )
    gate = replace(gate, datasets=(replace(renamed, date_column="DS"), gate.datasets[1]))
    with pytest.raises(StoreError, match="its column 'id' previously had another name or type"):
        run(gate)


def test_rows_with_repeated_keys_are_quarantined_and_null_keys_are_not(
    run: Run, tmp_path: Path
) -> None:
    table = pa.table(
        {"id": [1, 2, 3, 4, 5], "amount": [0] * 5, "code": ["a", "a", None, None, "b"]}
    )
    place = (("orders", str(tmp_path / "quarantine")),)
    body = 'assert repeated_count(code) == 0 name "again"'
    gate = request(tmp_path, body, [delta(tmp_path, "orders", table)], quarantine=place)
    run(gate)
    assert [row["id"] for row in quarantined(gate)] == [1, 2]
