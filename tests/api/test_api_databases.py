"""The databases of the Python API: tables in memory and Spark give the same results."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dqx_airflow import DatasetRef, MemoryDatabase, Results, SparkDatabase, Table
from dqx_airflow.dql import Interpreter
from dqx_airflow.errors import RequestError
from tests.api.python_suites import COUNTRIES, ORDERS, RETURNS, TODAY, memory, python_suite

NOON = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)
CHECK = """\
rows = mp.num_rows()
ctx.assert_that(mp.null_count("email") / rows).where(name="email", severity="P0").is_lt(0.05)
ctx.assert_that(mp.average("price")).where(name="price").is_eq(15.0)
ctx.assert_that(mp.day_over_day(rows)).where(name="growth").is_between(0, 3)
ctx.assert_that(mp.duplicate_count(["id"])).where(name="ids").is_eq(0)
ctx.assert_that(mp.maximum("ds")).where(name="newest").is_eq(datetime.date(2024, 11, 29))
ctx.assert_that(mp.freshness("ds")).where(name="fresh").is_lt(datetime.timedelta(hours=13))
ctx.assert_that(mp.average("weight")).where(name="no column").is_gt(0)
ctx.assert_each_row("price > 6 and country in values(code, dataset countries)").where(name="row")
ctx.assert_share_of_rows(0.5, 'email matches "^a"').where(name="rows")
ctx.assert_column("price", type="double").where(name="type")
"""


@pytest.mark.spark
def test_spark_finds_what_memory_finds(spark: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    paths = {}
    for name, rows in (("orders", ORDERS), ("returns", RETURNS), ("countries", COUNTRIES)):
        paths[name] = str(tmp_path / name)
        write_deltalake(paths[name], pa.Table.from_pylist(rows))
    on_spark = SparkDatabase(
        spark,
        {
            "orders": {"path": paths["orders"], "date_column": "ds"},
            "returns": DatasetRef("old name", path=paths["returns"], date_column="ds"),
            "countries": Path(paths["countries"]),
        },
    )
    text = "import datetime\n" + CHECK
    found = python_suite(text, on_spark).run(TODAY, now=NOON)
    in_memory = python_suite(text).run(TODAY, now=NOON)
    for mine, other in zip(_verdicts(found), _verdicts(in_memory), strict=True):
        assert mine == other
    assert {result.status.value for result in found} == {"passed", "failed", "error"}
    assert [(data.name, data.location, data.version, data.rows) for data in found.datasets] == [
        ("orders", paths["orders"], 0, 4),
        ("returns", paths["returns"], 0, 1),
        ("countries", paths["countries"], 0, 2),
    ]


def _verdicts(results: Results) -> list[Any]:
    return [
        replace(verdict, reason=None, origin=None, failing_rows=(), note=None, measured=None)
        for verdict in results.report.verdicts
    ]


def test_datasets_for_spark_are_written_as_for_an_operator() -> None:
    db = SparkDatabase(
        None,  # type: ignore[arg-type]
        {
            "a": "lake/a",
            "b": "catalog.b",
            "c": {"path": "c", "format": "csv", "options": {"header": True}},
        },
    )
    assert db.datasets == (
        DatasetRef("a", path="lake/a"),
        DatasetRef("b", table="catalog.b"),
        DatasetRef("c", path="c", format="csv", options=(("header", "True"),)),
    )
    with pytest.raises(RequestError, match="dataset 'a' has unknown settings pth"):
        SparkDatabase(None, {"a": {"pth": "x"}})  # type: ignore[arg-type]


def test_tables_in_memory_have_the_types_of_their_values_or_those_given() -> None:
    db = MemoryDatabase({"a": [{"x": 1}], "b": Table.typed({"x": "int"}, [(1,)])})
    types = 'assert column x type int name "int"'
    results = Interpreter(db, TODAY).run_string(
        f'suite "S" {{ check "A" on a {{ {types} }} check "B" on b {{ {types} }} }}'
    )
    assert [r.status.value for r in results if r.name == "int"] == ["failed", "passed"]


def test_a_key_may_be_of_a_kind_of_string() -> None:
    db = MemoryDatabase({"a": [{np.str_("x"): 1}]})
    results = Interpreter(db, TODAY).run_string(
        'suite "S" { check "A" on a { assert sum(x) == 1 } }'
    )
    assert {result.status.value for result in results} == {"passed"}


def test_tables_that_make_no_sense_are_refused() -> None:
    with pytest.raises(RequestError, match="dataset 'a': x contains values of several types"):
        MemoryDatabase({"a": [{"x": 1}, {"x": "one"}]})
    with pytest.raises(RequestError, match="dataset 'a': its rows are not mappings whose keys are"):
        MemoryDatabase({"a": [{0: 1}, {None: 2}]})
    with pytest.raises(RequestError, match=r"(?s)dataset 'a' has no date column 'ds'.*are: x"):
        MemoryDatabase({"a": [{"x": 1}]}, date_columns={"a": "ds"})
    with pytest.raises(RequestError, match="dataset 'b' has no date column"):
        MemoryDatabase({"a": [{"x": 1}]}, date_columns={"b": "x"})


def test_anything_that_measures_a_plan_is_a_database() -> None:
    class Counting:
        def __init__(self) -> None:
            self.inner, self.plans = memory(), 0

        @property
        def datasets(self) -> Any:
            return self.inner.datasets

        def measure(self, plan: Any) -> Any:
            self.plans += 1
            return self.inner.measure(plan)

    db = Counting()
    python_suite("ctx.assert_that(mp.num_rows()).where(name='a').is_gt(1)\n", db).run(TODAY)
    assert db.plans == 1


@pytest.mark.parametrize("key", ["", "\u200b", None, 5])
def test_a_dataset_needs_a_name(key: Any) -> None:
    wanted = f"has {key!r} as a name: write a string with a visible character"
    with pytest.raises(RequestError, match=r"datasets has .* as a name") as raised:
        SparkDatabase("sail", {key: "lake/orders"})
    assert raised.value.problem.endswith(wanted)
    with pytest.raises(RequestError, match=r"tables has .* as a name"):
        MemoryDatabase({key: ORDERS})
    with pytest.raises(RequestError, match=r"date_columns has .* as a name"):
        MemoryDatabase({"orders": ORDERS}, date_columns={key: "ds"})


def test_datasets_are_a_mapping() -> None:
    with pytest.raises(RequestError, match="datasets is of type list"):
        SparkDatabase("sail", ["lake/orders"])  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="tables is of type list"):
        MemoryDatabase([ORDERS])  # type: ignore[arg-type]
