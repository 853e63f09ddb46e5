"""Formats that need a package, each in a separate session: `test_other_sources.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable

from dqx_airflow.engine.job import run_gates
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.spark_session import create_session
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import request

TODAY, YESTERDAY = date(2024, 3, 2), date(2024, 3, 1)
SUITE = 'assert sum(id) > 0 name "sum"\nassert duplicate_count(id) == 0 name "unique"'


def main(format: str, jars: str, folder: str) -> None:
    os.environ.update(java_environment())
    # The catalog `writer` has the same tables, and keeps nothing of what `lake` has read.
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    iceberg = (
        f"--conf spark.sql.extensions={extensions} "
        "--conf spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog "
        "--conf spark.sql.catalog.lake.type=hadoop "
        f"--conf spark.sql.catalog.lake.warehouse={folder}/warehouse "
        "--conf spark.sql.catalog.writer=org.apache.iceberg.spark.SparkCatalog "
        "--conf spark.sql.catalog.writer.type=hadoop "
        f"--conf spark.sql.catalog.writer.warehouse={folder}/warehouse "
    )
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--master local[2] --jars {jars} --conf spark.log.level=OFF "
        f"{iceberg if format == 'iceberg' else ''}pyspark-shell"
    )
    CHECKS[format](create_session(format), Path(folder))


def avro(spark: Any, folder: Path) -> None:
    """Folders of dates; states are reused while the files are the same."""
    path = str(folder / "orders")

    def write(first: int, on: date) -> None:
        rows = spark.range(first, first + 3).selectExpr("id", f"DATE'{on}' AS ds")
        rows.coalesce(1).write.mode("append").partitionBy("ds").format("avro").save(path)

    write(1, TODAY)
    write(10, YESTERDAY)
    orders = DatasetRef("orders", path, format="avro", date_column="ds")
    assert ids(spark, orders) == [1, 2, 3]
    assert value_and_origin(gate(spark, folder, orders)) == (6, "scan")
    assert value_and_origin(gate(spark, folder, orders)) == (6, "stored state")
    write(4, TODAY)
    assert value_and_origin(gate(spark, folder, orders)) == (21, "scan")
    (folder / "orders" / f"ds={TODAY}" / "z.avro").write_bytes(b"Obj\x01 cut off")
    assert gate(spark, folder, orders).outcome is Outcome.BROKEN


def iceberg(spark: Any, folder: Path) -> None:
    """By the path, by the catalog, as of a snapshot, and in a branch; a commit writes a file of
    metadata."""
    columns = "id BIGINT, ds DATE"
    spark.sql(f"CREATE TABLE lake.shop.orders ({columns}) USING iceberg PARTITIONED BY (ds)")
    spark.sql(f"INSERT INTO lake.shop.orders VALUES (1, DATE'{TODAY}'), (2, DATE'{YESTERDAY}')")
    snapshot = spark.sql("SELECT snapshot_id FROM lake.shop.orders.snapshots").collect()[0][0]
    spark.sql(f"INSERT INTO lake.shop.orders VALUES (3, DATE'{TODAY}')")
    place = str(folder / "warehouse" / "shop" / "orders")
    by_path = DatasetRef("orders", place, format="iceberg", date_column="ds")
    by_name = DatasetRef("orders", table="lake.shop.orders", date_column="ds")
    for orders, origin in ((by_path, "stored state"), (by_name, "scan")):
        assert ids(spark, orders) == [1, 3]
        assert value_and_origin(gate(spark, folder, orders)) == (4, "scan")
        assert value_and_origin(gate(spark, folder, orders)) == (4, origin)
    options = (("versionAsOf", str(snapshot)),)
    before = DatasetRef("orders", place, format="iceberg", date_column="ds", options=options)
    assert ids(spark, before) == [1]
    spark.sql("DELETE FROM lake.shop.orders WHERE id = 1")
    assert value_and_origin(gate(spark, folder, by_path)) == (3, "scan")
    spark.sql("ALTER TABLE lake.shop.orders CREATE BRANCH audit")
    spark.sql(f"INSERT INTO lake.shop.orders.branch_audit VALUES (5, DATE'{TODAY}')")
    branch = replace(by_path, options=(("branch", "audit"),))
    assert value_and_origin(gate(spark, folder, branch)) == (8, "scan")
    assert value_and_origin(gate(spark, folder, by_path)) == (3, "scan")
    refs = spark.sql("SELECT name, snapshot_id FROM lake.shop.orders.refs").collect()
    heads = {row.name: row.snapshot_id for row in refs}
    assert heads["main"] != heads["audit"]
    newest = max((folder / "warehouse/shop/orders/metadata").glob("v*.metadata.json"))
    known = StaticTable.from_metadata(str(newest)).refs()
    assert {name: ref.snapshot_id for name, ref in known.items()} == heads
    main, audit = (heads["main"], "main"), (heads["audit"], "audit")
    for read, expected in (
        (by_path, main),
        (by_name, main),
        (branch, audit),
        (replace(by_name, options=(("branch", "audit"),)), audit),
        (replace(by_name, table="lake.shop.orders.branch_audit"), audit),
        (replace(by_path, options=(("versionAsOf", "audit"),)), audit),
        (before, (snapshot, None)),
    ):
        (described,) = gate(spark, folder, read).datasets
        assert (described.snapshot, described.branch) == expected, read
    # Another program writes what this session has read before.
    in_branch = replace(by_name, table="lake.shop.orders.branch_audit")
    for written, orders, total in (
        ("writer.shop.orders", by_name, 103),
        ("writer.shop.orders.branch_audit", in_branch, 108),
    ):
        spark.sql(f"INSERT INTO {written} VALUES (100, DATE'{TODAY}')")
        assert value_and_origin(gate(spark, folder, orders)) == (total, "scan")


def ids(spark: Any, ref: DatasetRef) -> list[int]:
    return sorted(row.id for row in rows_of(open_dataset(spark, ref), TODAY).collect())


def gate(spark: Any, folder: Path, orders: DatasetRef) -> GateReport:
    return run_gates([request(folder, SUITE, [orders], TODAY)], lambda _: spark)[0]


def value_and_origin(report: GateReport) -> tuple[object, str | None]:
    assert report.outcome is Outcome.PASSED
    (total,) = (verdict for verdict in report.verdicts if verdict.name == "sum")
    return total.value, total.origin and total.origin.value


CHECKS: dict[str, Callable[[Any, Path], None]] = {"avro": avro, "iceberg": iceberg}


if __name__ == "__main__":
    main(*sys.argv[1:])
