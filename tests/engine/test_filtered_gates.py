"""Filters in a gate: failing rows, quarantine, stored states and the transaction log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.values import DatasetRef, Status
from tests.engine.lake import Gate, delta, verdict

pytestmark = pytest.mark.spark

ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 2, 3, 3, 4, 5], pa.int64()),
        "status": ["paid", "paid", "open", "paid", "paid", "open", None],
        "total": pa.array([10.0, -1.0, -2.0, 30.0, None, 40.0, -5.0]),
        "customer": pa.array([1, 9, 9, 1, 1, 9, 9], pa.int64()),
    }
)
SUITE = """
assert each row: total > 0 where status == "paid" name "total"
assert null_count(total, where status == "paid") == 0 name "null"
assert minimum(total) > 0 where status == "paid" name "least"
assert unique(id) where status == "paid" name "key"
assert unique(id) where status == "open" name "open key"
assert values(customer) in values(id, dataset customers) where status == "paid" name "known"
assert num_rows(where status == "open") == 2 name "open"
"""
DUE = {
    "total": [(2, "not (total > 0)")],
    "null": [(3, "total is NULL")],
    "least": [(2, "total <= 0")],
    "key": [(3, "2 rows")],
    "open key": [],
    "known": [(2, "not (customer in values(id, dataset customers))")],
    "open": [],
}


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    return replace(delta(tmp_path, "orders", ORDERS), keys=("id",))


@pytest.mark.more
def test_failing_rows_and_rows_in_quarantine_meet_the_filter(
    gate: Gate, orders: DatasetRef, tmp_path: Path
) -> None:
    customers = delta(tmp_path, "customers", pa.table({"id": pa.array([1], pa.int64())}))
    away = str(tmp_path / "away")
    report = gate(SUITE, orders, customers, quarantine=(("orders", away),))
    for name, due in DUE.items():
        found = [
            (json.loads(row.row)["id"], row.reason) for row in verdict(report, name).failing_rows
        ]
        assert found == due, name
        assert verdict(report, name).status is (Status.FAILED if due else Status.PASSED), name
    held = DeltaTable(away).to_pyarrow_table().to_pylist()
    reasons = {(row["id"], row["status"], row["total"]): row["dqx_reasons"] for row in held}
    assert reasons == {
        (2, "paid", -1.0): ["total", "least", "known"],
        (3, "paid", 30.0): ["key"],
        (3, "paid", None): ["null", "key"],
    }


@pytest.mark.slow
def test_a_stored_state_belongs_to_its_filter(gate: Gate, orders: DatasetRef) -> None:
    def counted(status: str) -> tuple[object, str, int]:
        suite = f'assert num_rows() > 0 where status == "{status}" name "rows"'
        found = verdict(gate(suite, orders), "rows")
        assert found.origin is not None
        return found.value, found.origin.value, gate.jobs

    assert counted("paid") == (4, "scan", 1)
    assert counted("paid") == (4, "stored state", 0)
    assert counted("open") == (2, "scan", 1)
    write_deltalake(str(orders.path), ORDERS, mode="append")
    assert counted("paid") == (8, "stored state and new files", 1)


def test_the_transaction_log_answers_no_filtered_metric(gate: Gate, orders: DatasetRef) -> None:
    suite = """
    assert minimum(id) == 1 name "all"
    assert minimum(id) == 2 where status == "open" name "some"
    assert each row: id > 0 where status == "open" name "rows"
    """
    report = gate(suite, orders)
    found = {name: verdict(report, name) for name in ("all", "some", "rows")}
    origins = {name: one.origin.value for name, one in found.items() if one.origin}
    assert origins == {"all": "transaction log", "some": "scan", "rows": "scan"}
    assert [one.value for one in found.values()] == [1, 2, 0]
    assert gate.jobs == 1
