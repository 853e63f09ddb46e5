"""A promotion keeps what its target demands of values: whatever a table says of its columns, rows
that break it are refused before anything is committed.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dqx_airflow.engine.outputs.target_demands import demands_on_values
from dqx_airflow.values import DatasetRef, Outcome
from tests.engine.lake import Run, request

pytestmark = pytest.mark.spark


def _struct(name: str, kind: Any, *, nullable: bool = True) -> dict[str, Any]:
    field = {"name": name, "type": kind, "nullable": nullable, "metadata": {}}
    return {"type": "struct", "fields": [field]}


def _array(item: Any, *, has_null: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": item, "containsNull": has_null}


def _map(value: Any, *, has_null: bool = True) -> dict[str, Any]:
    kinds = {"keyType": "string", "valueType": value, "valueContainsNull": has_null}
    return {"type": "map", **kinds}


REQUIRED = _struct("a", "long", nullable=False)
TEXT = _struct("a", "string")
NULL, LONG = "NOT NULL, and rows have NULL", ", and rows have longer strings"
CASES: dict[str, tuple[Any, str, str, str, str]] = {
    "field": (REQUIRED, "", "named_struct('a', 1L)", "named_struct('a', NULL)", f"v.a' is {NULL}"),
    "field of a field": (
        _struct("b", REQUIRED),
        "",
        "named_struct('b', NULL)",
        "named_struct('b', named_struct('a', NULL))",
        f"v.b.a' is {NULL}",
    ),
    "item": (
        _array("long", has_null=False),
        "",
        "array()",
        "array(1, NULL)",
        f"v[item]' is {NULL}",
    ),
    "field of an item": (
        _array(REQUIRED),
        "",
        "array(NULL)",
        "array(NULL, named_struct('a', NULL))",
        f"v[item].a' is {NULL}",
    ),
    "item of an item": (
        _array(_array("long", has_null=False)),
        "",
        "array(array(), NULL)",
        "array(array(1), array(NULL))",
        f"v[item][item]' is {NULL}",
    ),
    "value": (
        _map("long", has_null=False),
        "",
        "map('a', 1)",
        "map('a', NULL)",
        f"v[value]' is {NULL}",
    ),
    "varchar": ("string", "varchar(3)", "'abc'", "'abc '", f"v' is varchar(3){LONG}"),
    "char": ("string", "char(3)", "'abc  '", "'abcd'", f"v' is char(3){LONG}"),
    "varchar in a field": (
        TEXT,
        "struct<a:varchar(1)>",
        "named_struct('a', NULL)",
        "named_struct('a', 'éé')",
        f"v.a' is varchar(1){LONG}",
    ),
    "char in an item": (
        _array("string"),
        "array<char(1)>",
        "array('a ', NULL, '')",
        "array('', 'ab')",
        f"v[item]' is char(1){LONG}",
    ),
    "varchar in a value": (
        _map("string"),
        "map<string,varchar(1)>",
        "map('long', 'a')",
        "map('b', 'ab')",
        f"v[value]' is varchar(1){LONG}",
    ),
    "varchar in a key": (
        _map("string"),
        "map<varchar(1),string>",
        "map('a', 'long')",
        "map('ab', 'b')",
        f"v[key]' is varchar(1){LONG}",
    ),
}
"""The type of a column, its type in the table if Spark has another one, a value that it holds, one
that it does not hold, and what is wrong with this one."""


def _columns(case: str) -> dict[str, Any]:
    kind, declared, *_ = CASES[case]
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared} if declared else {}
    number = {"name": "id", "type": "integer", "nullable": True, "metadata": {}}
    value = {"name": "v", "type": kind, "nullable": True, "metadata": metadata}
    return {"type": "struct", "fields": [number, value]}


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES)
def test_each_demand_of_a_target_is_kept(
    run: Run, spark: SparkSession, tmp_path: Path, case: str
) -> None:
    columns = _columns(case)
    _, _, good, bad, broken = CASES[case]
    kind = StructType.fromJson(columns)["v"].dataType.simpleString()
    for name, values in (("good", [good, "NULL"]), ("bad", [good, bad, "NULL"])):
        rows = " UNION ALL ".join(
            f"SELECT {number} AS id, CAST({value} AS {kind}) AS v"
            for number, value in enumerate(values)
        )
        source, target = str(tmp_path / name), str(tmp_path / f"{name} target")
        DeltaTable.create(target, Schema.from_json(json.dumps(columns)))
        spark.sql(rows).write.parquet(source)
        gate = request(
            tmp_path,
            "assert num_rows() > 0",
            [DatasetRef("orders", source, format="parquet", keys=("id",))],
            promote_to=(("orders", target),),
        )
        report = run(gate)
        if name == "good":
            assert report.outcome is Outcome.PASSED, report.verdicts
            assert DeltaTable(target).version() == 1
            continue
        assert report.outcome is Outcome.BROKEN
        assert DeltaTable(target).version() == 0
        assert f'its column \'{broken}: {{"id":1}}' in (report.verdicts[-1].reason or "")


@pytest.mark.parametrize("is_refused", [True, False], ids=["always", "by default"])
def test_a_target_that_always_numbers_its_rows_is_refused_at_once(
    run: Run, tmp_path: Path, is_refused: bool
) -> None:
    number = _struct("id", "long")["fields"][0]
    start = {"delta.identity.start": 1, "delta.identity.step": 1}
    number["metadata"] = {**start, "delta.identity.allowExplicitInsert": not is_refused}
    target = str(tmp_path / "target")
    columns = {"type": "struct", "fields": [number]}
    DeltaTable.create(target, Schema.from_json(json.dumps(columns)))
    write_deltalake(tmp_path / "orders", pa.table({"id": pa.array([1], pa.int64())}))
    gate = request(
        tmp_path,
        "assert num_rows() > 0",
        [DatasetRef("orders", str(tmp_path / "orders"))],
        promote_to=(("orders", target),),
    )
    report = run(gate)
    assert report.outcome is Outcome.BROKEN
    reason = report.verdicts[-1].reason or ""
    assert ("its column 'id' is GENERATED ALWAYS AS IDENTITY" in reason) is is_refused
    assert ("the table there has identity columns" in reason) is not is_refused
    assert DeltaTable(target).version() == 0


def test_no_new_target_is_made_that_nobody_reads(run: Run, tmp_path: Path) -> None:
    at = datetime(2024, 3, 2)
    deep = pa.list_(pa.map_(pa.string(), pa.struct([("at", pa.timestamp("us"))])))
    rows = pa.table({"id": [1], "v": pa.array([[[("a", {"at": at})]]], deep)})
    (tmp_path / "orders").mkdir()
    pq.write_table(rows, tmp_path / "orders" / "a.parquet")
    target, quarantine = str(tmp_path / "target"), str(tmp_path / "quarantine")
    orders = DatasetRef("orders", str(tmp_path / "orders"), format="parquet")
    promoting = {"promote_to": (("orders", target),)}
    report = run(request(tmp_path, "assert num_rows() > 0", [orders], **promoting))
    assert report.outcome is Outcome.BROKEN
    assert "timestamp_ntz in a map ('v')" in (report.verdicts[-1].reason or "")
    assert not Path(target).exists()
    for keeps in (pa.table({"id": [1]}), rows):  # a quarantine that gains the column
        pq.write_table(keeps, tmp_path / "orders" / "a.parquet")
        keeping = {"quarantine": (("orders", quarantine),)}
        report = run(request(tmp_path, "assert each row: id > 1", [orders], **keeping))
        assert report.datasets[0].quarantined == 1
    kept = DeltaTable(quarantine).to_pyarrow_table(columns=["v"])["v"]
    assert kept.to_pylist() == [[[("a", {"at": at})]]]


def test_a_table_without_demands_has_no_condition(tmp_path: Path) -> None:
    rows = pa.table(
        {"id": [1], "v": [[{"a": "x", "b": {"c": [1]}}]], "m": pa.nulls(1, pa.string())}
    )
    write_deltalake(tmp_path, rows)
    struct = StructType.fromJson(json.loads(DeltaTable(tmp_path).schema().to_json()))
    assert list(demands_on_values(struct)) == []
