"""What a gate reads from a database, in a session with its driver: `test_jdbc.py`."""

from __future__ import annotations

import os
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.datasets.databases import connection_in, with_lineage_names
from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.engine.job import run_gates
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.spark_session import create_session
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError, SparkError
from dqx_airflow.values import GateReport, Outcome
from tests.engine.database_values import chosen_types, values_are_read
from tests.engine.lake import request

TODAY = date(2024, 3, 2)
ORDERS = {"table": "shop.orders", "conn_id": "shop"}
SUITE = """
assert num_rows() == 500 name "rows"
assert duplicate_count(id) == 0 name "unique"
assert sum(price) == 250000 name "sum"
assert each row: ok == true name "each"
assert each row: code == "a" and code like "a" and code matches "^a$" and length(code) == 1 name "a"
assert each row: coalesce(code, "z") in ["a"] and code between "a" and "a" name "padding"
assert mode(code) == "a" name "mode"
assert maximum(code) == "a" name "maximum"
assert count_values(code, "a") == 500 name "count"
assert each row: every(codes, item like "a" or item matches "^b$") name "items"
"""


def main(driver: str, folder: str) -> None:
    os.environ.update(java_environment())
    lineage = Path(folder, "lineage.json")
    os.environ["OPENLINEAGE__TRANSPORT__TYPE"] = "file"
    os.environ["OPENLINEAGE__TRANSPORT__LOG_FILE_PATH"] = str(lineage)
    os.environ["OPENLINEAGE__TRANSPORT__APPEND"] = "true"
    events = Path(folder, "events")
    events.mkdir()
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--master local[2] --jars {driver} --conf spark.log.level=ERROR "
        f"--conf spark.eventLog.enabled=true --conf spark.eventLog.dir={events} "
        "--conf spark.eventLog.compress=false pyspark-shell"
    )
    spark = create_session("jdbc")
    days_are_those_of_the_data(spark)
    types_are_kept(spark)
    values_are_read("postgres", rows(spark, table="shop.odd_values"))
    chosen = {"customSchema": chosen_types("postgres chosen")}
    values_are_read("postgres chosen", rows(spark, table="shop.chosen_values", options=chosen))
    every_type_is_read(spark)
    hidden_rows_are_reported(spark, Path(folder))
    an_unqualified_table_is_that_of_the_connection(spark)
    long_tables_are_divided(spark)
    nothing_is_reused(spark, Path(folder))
    problems_are_reported(spark, Path(folder))
    spark.stop()
    assert '"postgres.shop.orders"' in lineage.read_text()


def rows(spark: Any, **settings: Any) -> Any:
    return rows_of(open_dataset(spark, dataset_ref("orders", {**ORDERS, **settings})), TODAY)


def days_are_those_of_the_data(spark: Any) -> None:
    """Whatever the zones of the server and of the JVM are; and the database is asked for them."""
    odd = "id % 2 = 1"
    for column in ("ds", "at", "local"):
        found = rows(spark, date_column=column)
        assert (found.count(), found.where(odd).count()) == (500, 500), column
    assert rows(spark, date_column="text_day", date_format="yyyyMMdd").where(odd).count() == 500
    assert rows(spark, date_column="at", time_zone="America/New_York").count() == 0
    assert rows(spark, date_column="at", time_zone="Europe/Zurich").count() == 1000
    assert rows(spark, date_column="ds", filter="uid <> 'no uuid' AND at > '2024-03-02'").count()
    plan = rows(spark, date_column="ds").select("id")._jdf.queryExecution().toString()
    assert """WHERE "ds" IN (CAST('2024-03-02' AS date))""" in plan
    assert "struct<id:bigint,ds:string>" in plan


def types_are_kept(spark: Any) -> None:
    row = rows(spark).where("id = 1").collect()[0]
    assert row.amount == Decimal("0.125")
    assert row.price == Decimal("1.00")
    assert (row.uid, row.doc) == ("00000000-0000-0000-0000-000000000001", '{"a": 1}')
    assert (row.tags, row.ok, row["Mixed Case"]) == (["a", None], True, "x")
    assert row.cost == Decimal("12.34")
    types = dict(rows(spark).dtypes)
    assert (types["at"], types["local"]) == ("timestamp", "timestamp_ntz")


def every_type_is_read(spark: Any) -> None:
    """And so is an array of it."""
    found = rows(spark, table="shop.every_type")
    assert len(found.columns) > 150
    assert found.count() == 0
    found.collect()


def hidden_rows_are_reported(spark: Any, folder: Path) -> None:
    """A role with policies sees a part of a table: what passes is not true of the table."""
    for table, partial in (("shop.guarded", True), ("shop.same", False)):
        ref = dataset_ref("orders", {**ORDERS, "table": table})
        asked = request(folder, 'assert num_rows() == 1 name "one"', [ref], TODAY)
        report = run_gates([asked], lambda _: spark)[0]
        notes = {verdict.note for verdict in report.verdicts}
        expected = f"row security of {table} lets reader see only some of its rows"
        assert notes == {expected if partial else None}, report.verdicts


def an_unqualified_table_is_that_of_the_connection(spark: Any) -> None:
    """As for the other clients of the connection, which take its `options`."""
    for conn_id, id in (("shop", 1), ("of_path", 2)):
        assert rows(spark, table="same", conn_id=conn_id).collect()[0].id == id


def long_tables_are_divided(spark: Any) -> None:
    """By their primary key, which a role that may only read has to find."""
    long = {"table": "shop.long"}
    found = rows(spark, **long)
    assert (found.rdd.getNumPartitions(), found.selectExpr("count(id)").first()[0]) == (2, 250_000)
    assert rows(spark).rdd.getNumPartitions() == 1
    assert rows(spark, **long, options={"numPartitions": "1"}).rdd.getNumPartitions() == 1
    found = rows(spark, table="shop.by_day")
    assert (found.rdd.getNumPartitions(), found.count()) == (8, 2002)
    assert found.selectExpr("count(DISTINCT ds)").first()[0] == 2001
    plan = found.select("ds")._jdf.queryExecution().toString()
    assert '"ds" AS "dqx_divided_by"' in plan, "the index is of use"
    by = {"partitionColumn": "id", "lowerBound": "5", "upperBound": "9", "numPartitions": "4"}
    found = rows(spark, **long, options=by)
    assert (found.rdd.getNumPartitions(), found.count()) == (4, 250_000)
    with pytest.raises(DatasetError, match="partitionColumn doc is not a column of whole numbers"):
        rows(spark, options={"partitionColumn": "doc"})


def nothing_is_reused(spark: Any, folder: Path) -> None:
    """A table of a database has no version: every run reads it."""
    ref = dataset_ref("orders", {**ORDERS, "date_column": "ds"})
    refs = with_lineage_names((ref,), {"shop": connection_in(os.environ, "shop")})
    for _ in range(2):
        report = gate(spark, folder, *refs)
        assert report.outcome is Outcome.PASSED
        assert {one.origin.value for one in report.verdicts if one.origin} == {"scan"}
        (orders,) = report.datasets
        assert (orders.location, orders.format, orders.version) == ("shop.orders", "jdbc", None)


def problems_are_reported(spark: Any, folder: Path) -> None:
    cases = {
        "no table shop.nothing": {"table": "shop.nothing"},
        "permission denied for table secret": {"table": "shop.secret"},
        r"no table \(SELECT 1\) x": {"table": "(SELECT 1) x"},
        "customSchema 'id' is not a list of columns": {"options": {"customSchema": "id"}},
        "cannot make column id array<int>: it is bigint": {
            "options": {"customSchema": "id array<int>"}
        },
        "password authentication failed": {"conn_id": "wrong"},
        "neither DQX_CONN_NONE nor": {"conn_id": "none"},
        "com.mysql:mysql-connector-j": {"conn_id": "other"},
    }
    for problem, settings in cases.items():
        with pytest.raises(DatasetError, match=problem):
            rows(spark, **settings)
    with pytest.raises(SparkError, match=r"postgres://127.0.0.1:1/postgres does not respond"):
        rows(spark, conn_id="nowhere")
    broken = gate(spark, folder, dataset_ref("orders", {**ORDERS, "conn_id": "wrong"}))
    assert broken.outcome is Outcome.BROKEN


def gate(spark: Any, folder: Path, *refs: Any) -> GateReport:
    asked = request(folder, SUITE, refs, TODAY)
    return run_gates([asked], lambda _: spark)[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
