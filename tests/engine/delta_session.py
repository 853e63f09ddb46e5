"""What Spark's Delta source reads and writes, in a separate session: `test_other_sources.py`."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from datetime import date, datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

from dqx_airflow.api.validated import read_validated
from dqx_airflow.engine.job import run_gates
from dqx_airflow.engine.outputs.promotion_target import PromotionTarget
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.spark_session import create_session
from dqx_airflow.engine.sources.delta_table import has_delta
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError, PromotionError
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, Outcome, RunKey, SourceFile

TODAY = date(2024, 3, 2)


def main(jars: str, folder: str) -> None:
    os.environ.update(java_environment())
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--master local[2] --jars {jars} --conf spark.log.level=OFF "
        "--conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension "
        "--conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog "
        f"--conf spark.sql.warehouse.dir={folder}/warehouse pyspark-shell"
    )
    spark = create_session("delta")

    def ids(ref: DatasetRef) -> list[int]:
        return sorted(row.id for row in rows_of(open_dataset(spark, ref), TODAY).collect())

    assert has_delta(spark)
    deleted_rows(spark, ids, f"{folder}/deleted")
    added_files(spark, folder)
    renamed_columns(spark, ids, f"{folder}/renamed")
    catalog_tables(spark, ids)
    promotions(spark, folder)
    partitions(spark, folder)
    missing_values(spark, folder)


def deleted_rows(spark: Any, ids: Any, path: str) -> None:
    """Deletion vectors; versions and moments; what is pinned stays."""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, ds DATE) USING delta PARTITIONED BY (ds) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = true)"
    )
    spark.sql(
        f"INSERT INTO delta.`{path}` SELECT /*+ COALESCE(1) */ id, DATE'{TODAY}' FROM range(4)"
    )
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    ref = DatasetRef("orders", path, date_column="ds")
    opened = open_dataset(spark, ref)
    assert opened.version == 2
    assert opened.log is not None
    assert opened.log.features == {"deletionVectors"}
    assert ids(ref) == [0, 1, 2]
    assert ids(DatasetRef("orders", path, version=1)) == [0, 1, 2, 3]
    # The log and its files tell different moments of one commit.
    written = Path(path, "_delta_log", f"{1:020}.json").stat().st_mtime * 1000
    moment = max(written, opened.log.table.history()[1]["timestamp"])
    text = spark.sql(f"SELECT timestamp_millis({int(moment) + 1})").collect()[0][0]
    assert ids(DatasetRef("orders", path, timestamp=f"{text.isoformat()}Z")) == [0, 1, 2, 3]
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (9, DATE'{TODAY}')")
    assert opened.read({TODAY}).count() == 3
    plan = rows_of(opened, TODAY)._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(ds" in plan


def added_files(spark: Any, folder: str) -> None:
    """After an append the new file alone is read; after a deletion vector everything is."""
    path = f"{folder}/grown"
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, ds DATE) USING delta")
    suite = 'suite "S" { check "C" on orders { assert sum(id) > 0 name "sum" } }'
    found = []
    for statement in (
        f"INSERT INTO delta.`{path}` SELECT id, DATE'{TODAY}' FROM range(1, 4)",
        f"INSERT INTO delta.`{path}` VALUES (10, DATE'{TODAY}')",
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)",
        f"DELETE FROM delta.`{path}` WHERE id = 2",
        f"INSERT INTO delta.`{path}` VALUES (20, DATE'{TODAY}')",
    ):
        spark.sql(statement)
        gate = GateRequest(
            RunKey("growth", TODAY, "run"),
            Attempt(1, "1"),
            SourceFile("s", suite),
            (DatasetRef("orders", path, date_column="ds"),),
            f"{folder}/results",
        )
        report = run_gates([gate], lambda _: spark)[0]
        (total,) = (verdict for verdict in report.verdicts if verdict.name == "sum")
        found.append((total.value, total.origin and total.origin.value))
    assert found == [
        (6, "scan"),
        (16, "stored state and new files"),
        (16, "scan"),
        (14, "scan"),
        (34, "scan"),
    ]


def renamed_columns(spark: Any, ids: Any, path: str) -> None:
    """Column mapping, which the older protocol does not list as a feature."""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (number INT, price DOUBLE) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 2.0)")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN number TO id")
    ref = DatasetRef("orders", path)
    opened = open_dataset(spark, ref)
    assert opened.log is not None
    assert opened.log.features == {"columnMapping"}
    assert ids(ref) == [1]


def catalog_tables(spark: Any, ids: Any) -> None:
    spark.sql("CREATE TABLE shop (id INT) USING delta")
    for number in (1, 2):
        spark.sql(f"INSERT INTO shop VALUES ({number})")
    ref = DatasetRef("orders", table="shop")
    opened = open_dataset(spark, ref)
    spark.sql("INSERT INTO shop VALUES (3)")
    assert opened.version == 2
    assert opened.read({None}).count() == 2
    assert ids(DatasetRef("orders", table="shop", version=1)) == [1]
    now = spark.sql("SELECT current_timestamp()").collect()[0][0]
    assert ids(DatasetRef("orders", table="shop", timestamp=f"{now.isoformat()}Z")) == [1, 2, 3]
    with pytest.raises(DatasetError, match="no version as old as 2020-01-01"):
        open_dataset(spark, DatasetRef("orders", table="shop", timestamp="2020-01-01"))
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    assert open_dataset(spark, DatasetRef("orders", table="plain")).version is None


def promotions(spark: Any, folder: str) -> None:
    """Into a table with deletion vectors and a constraint, and into one of the catalog."""
    path = f"{folder}/promoted"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT NOT NULL, ds DATE) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = true)"
    )
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (id < 100)")
    values = f"(1, DATE'{TODAY}'), (2, DATE'{TODAY}'), (3, DATE'2024-03-01')"
    spark.sql(f"INSERT INTO delta.`{path}` VALUES {values}")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    for place in (path, "published"):
        staged = f"{folder}/staged_{place.rpartition('/')[2]}"
        spark.sql(f"CREATE TABLE delta.`{staged}` (id INT, ds DATE) USING delta")
        spark.sql(f"INSERT INTO delta.`{staged}` VALUES {values.replace('1', '5', 1)}")
        for attempt in (1, 2):
            gate = GateRequest(
                RunKey("gate", TODAY, "run"),
                Attempt(attempt, str(attempt)),
                SourceFile("s", 'suite "S" { check "C" on orders { assert num_rows() == 2 } }'),
                (DatasetRef("orders", staged, date_column="ds"),),
                f"{folder}/results",
                promote_to=(("orders", place),),
            )
            report = run_gates([gate], lambda _: spark)[0]
            promotion = report.datasets[0].promotion
            assert promotion is not None
            assert (promotion.location, promotion.rows) == (place, 2)
            rows = read_validated(spark, report, "orders").collect()
            assert sorted(row.id for row in rows) == [2, 5]
        for index, change in ((None, "another gate"), (1, "another map index")):
            key = replace(gate.run_key, gate="gate" if index else "other")
            key = replace(key, scheduler_run=f"run[{index}]" if index else "run")
            refused = run_gates([replace(gate, run_key=key)], lambda _: spark)[0]
            assert refused.outcome is Outcome.BROKEN
            reason = refused.verdicts[-1].reason or ""
            assert change in reason, reason
            assert f"(gate gate, in version {promotion.version}: " in reason, reason
        table = place if place == "published" else f"delta.`{place}`"
        newest = spark.sql(f"DESCRIBE HISTORY {table}").selectExpr("max(version)").collect()
        assert newest[0][0] == promotion.version
        there = sorted(row.id for row in spark.table(table).collect())
        assert there == ([2, 5] if place == "published" else [2, 3, 5])
    # Of a table that needs nothing, the files with other dates that are not touched stay once.
    plain = f"{folder}/plain_promoted"
    for day in ("2024-03-01", str(TODAY)):
        ids = pa.array([1, 2], pa.int32())
        ds = pa.array([date.fromisoformat(day)] * 2)
        write_deltalake(plain, pa.table({"id": ids, "ds": ds}), mode="append")
    run_gates([replace(gate, promote_to=(("orders", plain),))], lambda _: spark)
    there = spark.read.format("delta").load(plain).collect()
    assert sorted((row.id, row.ds.day) for row in there) == [(1, 1), (2, 1), (2, 2), (5, 2)]
    slices(spark, gate)
    race(spark, gate)
    padded(spark, gate, folder)
    numbered(spark, gate, folder)
    ages(spark, gate)
    gate = replace(gate, run_key=replace(gate.run_key, scheduler_run="later"))
    spark.sql(f"INSERT INTO delta.`{staged}` VALUES (500, DATE'{TODAY}')")
    suite = replace(gate.suite, text=gate.suite.text.replace("== 2", "== 3"))
    report = run_gates(
        [replace(gate, suite=suite, promote_to=(("orders", path),))], lambda _: spark
    )[0]
    assert report.outcome is Outcome.BROKEN
    reason = report.verdicts[-1].reason or ""
    assert reason.endswith(f"{path}: CHECK constraint small (id < 100) violated by row")


def slices(spark: Any, gate: GateRequest) -> None:
    """Each gate has rows of its own in a table of the catalog."""
    (orders,) = gate.datasets
    suite = replace(gate.suite, text=gate.suite.text.replace("== 2", "== 1"))
    for number in (2, 5, 2):
        own = replace(
            gate,
            suite=suite,
            run_key=replace(gate.run_key, gate=f"gate {number}"),
            datasets=(replace(orders, filter=f"id = {number}"),),
            promote_to=(("orders", "sliced"),),
            promote_slice=(("id", str(number)),),
        )
        assert run_gates([own], lambda _: spark)[0].outcome is Outcome.PASSED
    assert sorted(row.id for row in spark.table("sliced").collect()) == [2, 5]
    odd = run_gates([replace(own, promote_slice=(("id", "3"),))], lambda _: spark)[0]
    assert "1 rows do not have the values" in (odd.verdicts[-1].reason or "")
    assert sorted(row.id for row in spark.table("sliced").collect()) == [2, 5]


def race(spark: Any, gate: GateRequest) -> None:
    """Spark commits over what another gate promotes after the check: the gate that did it ends with
    an error, which brings the rows back."""
    (orders,) = gate.datasets
    suite = replace(gate.suite, text=gate.suite.text.replace("== 2", "== 1"))

    def own(name: str, number: int) -> GateRequest:
        return replace(
            gate,
            suite=suite,
            run_key=replace(gate.run_key, gate=name),
            datasets=(replace(orders, filter=f"id = {number}"),),
            promote_to=(("orders", "raced"),),
            promote_slice=(("id", str(number)),),
        )

    assert run_gates([own("other", 5)], lambda _: spark)[0].outcome is Outcome.PASSED
    check, checks = PromotionTarget.check_slice, count()

    def check_and_lose(self: PromotionTarget, table: Any) -> Any:
        found = check(self, table)
        if self.by.gate == "late" and next(checks) == 1:  # the last one before the write
            early = run_gates([own("early", 2)], lambda _: spark)[0]
            assert early.outcome is Outcome.PASSED
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PromotionTarget, "check_slice", check_and_lose)
        with pytest.raises(
            PromotionError, match=r"gate early promoted .*id = 2 at the same time"
        ) as e:
            run_gates([own("late", 2)], lambda _: spark)
    restore = re.search(r"RESTORE TABLE raced TO VERSION AS OF (\d+)", str(e.value.in_one_line))
    assert restore is not None
    spark.sql(restore[0])
    assert sorted(row.id for row in spark.table("raced").collect()) == [2, 5]


def padded(spark: Any, gate: GateRequest, folder: str) -> None:
    """The value of a char column is the same with and without the spaces at its end."""
    spark.sql("CREATE TABLE padded (id INT, store CHAR(5)) USING delta")
    spark.sql("INSERT INTO padded VALUES (1, 'a'), (2, 'a')")
    target = f"{folder}/padded_promoted"
    for name, store, outcome in (
        ("one", "a", Outcome.PASSED),
        ("one", "a  ", Outcome.PASSED),
        ("two", "a ", Outcome.BROKEN),
    ):
        key = replace(gate.run_key, gate=name, scheduler_run=f"{name} {store}")
        own = replace(
            gate,
            run_key=key,
            datasets=(DatasetRef("orders", table="padded"),),
            promote_to=(("orders", target),),
            promote_slice=(("store", store),),
        )
        report = run_gates([own], lambda _: spark)[0]
        assert report.outcome is outcome, report.verdicts
        there = spark.read.format("delta").load(target).collect()
        assert sorted(row.id for row in there) == [1, 2]


def numbered(spark: Any, gate: GateRequest, folder: str) -> None:
    """Into a table of the catalog whose rows Delta numbers: refused at once, if it always does."""
    for kind, is_refused in (("always", True), ("by_default", False)):
        place = f"{folder}/numbered_{kind}"
        number = {"delta.identity.start": 1, "delta.identity.step": 1}
        number["delta.identity.allowExplicitInsert"] = not is_refused
        columns = [
            {"name": "id", "type": "integer", "nullable": True, "metadata": number},
            {"name": "ds", "type": "date", "nullable": True, "metadata": {}},
        ]
        struct = json.dumps({"type": "struct", "fields": columns})
        DeltaTable.create(place, Schema.from_json(struct))
        spark.sql(f"CREATE TABLE numbered_{kind} USING delta LOCATION '{place}'")
        promoting = replace(gate, promote_to=(("orders", f"numbered_{kind}"),))
        reason = run_gates([promoting], lambda _: spark)[0].verdicts[-1].reason or ""
        assert ("its column 'id' is GENERATED ALWAYS AS IDENTITY" in reason) is is_refused, reason
        if is_refused:
            assert DeltaTable(place).version() == 0


def ages(spark: Any, gate: GateRequest) -> None:
    """A table of the catalog is as old as its last commit that changed its data."""
    suite = replace(
        gate.suite, text=gate.suite.text.replace("num_rows() == 2", "commit_age() < 1 hour")
    )
    of_table = replace(gate, suite=suite, promote_to=())
    newest = DatasetRef("orders", table="published")
    report = run_gates([replace(of_table, datasets=(newest,))], lambda _: spark)[0]
    assert report.outcome is Outcome.PASSED, report.verdicts
    # A version that was asked for has no age: its rows are what they were.
    old = run_gates([replace(of_table, datasets=(replace(newest, version=0),))], lambda _: spark)[0]
    assert "its log has no commit" in str([one.reason for one in old.verdicts])


def partitions(spark: Any, folder: str) -> None:
    """Timestamps in partitions are in UTC in every session, or an error; so is what a partition
    cannot hold."""
    zone, utc_values = "spark.sql.session.timeZone", "spark.databricks.delta.write.utcTimestamp"
    utc_values += "PartitionValues"
    noon = "TIMESTAMP'2024-03-02 12:00:00Z'"
    first = GateRequest(
        RunKey("parts", TODAY, "run"),
        Attempt(1, "1"),
        SourceFile("s", 'suite "S" { check "C" on orders { assert num_rows() > 0 } }'),
        (),
        f"{folder}/results",
    )

    def judged(path: str | None, table: str | None = None, **changes: Any) -> tuple[Outcome, str]:
        text = 'assert maximum(at) == "2024-03-02T12:00:00Z"'
        suite = replace(first.suite, text=f'suite "S" {{ check "C" on orders {{ {text} }} }}')
        ref = DatasetRef("orders", path, table=table)
        gate = replace(first, suite=suite, datasets=(ref,), **changes)
        report = run_gates([gate], lambda _: spark)[0]
        return report.outcome, " ".join(str(one.reason) for one in report.verdicts)

    spark.conf.set(zone, "America/New_York")
    for name, in_utc in (("utc", "true"), ("own", "false")):
        spark.conf.set(utc_values, in_utc)
        columns = "(id INT, at TIMESTAMP) USING delta PARTITIONED BY (at)"
        for place in (f"delta.`{folder}/of_{name}`", f"of_{name}"):
            spark.sql(f"CREATE TABLE {place} {columns}")
            spark.sql(f"INSERT INTO {place} VALUES (1, {noon})")
    spark.conf.unset(utc_values)
    for session in ("Europe/Zurich", "UTC"):
        spark.conf.set(zone, session)
        for path, table in ((f"{folder}/of_utc", None), (None, "of_utc")):
            assert judged(path, table)[0] is Outcome.PASSED
        for path, table in ((f"{folder}/of_own", None), (None, "of_own")):
            outcome, reason = judged(path, table)
            assert outcome is Outcome.BROKEN
            assert "at=2024-03-02 07:00:00" in reason, reason
            assert "UPDATE delta." in reason, reason
    # What deltalake writes is in UTC, which Spark's source does not know.
    path = f"{folder}/zoneless"
    moments = pa.array(
        [datetime(2024, 3, 2, 12, tzinfo=timezone.utc)] * 2, pa.timestamp("us", "UTC")
    )
    write_deltalake(
        path, pa.table({"id": pa.array([1, 2], pa.int32()), "at": moments}), partition_by=["at"]
    )
    spark.conf.set(zone, "Europe/Zurich")
    assert judged(path)[0] is Outcome.PASSED
    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)"
    )
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    outcome, reason = judged(path)
    assert outcome is Outcome.BROKEN
    assert "would read them in its own" in reason, reason
    spark.conf.set(zone, "UTC")
    assert judged(path)[0] is Outcome.PASSED
    # Promotions that Spark has to write.
    source = f"{folder}/odd"
    odd = {"id": pa.array([1, 2], pa.int32()), "p": ["", "x"], "at": moments}
    write_deltalake(source, pa.table(odd))
    for name, column, session, wanted in (
        ("by_text", "p", "UTC", 'rows have an empty string: in a partition that is NULL: {"id":1'),
        ("by_time", "at", "Europe/Zurich", "set spark.sql.session.timeZone=UTC"),
        ("by_time", "at", "UTC", ""),
    ):
        spark.conf.set(zone, session)
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {name} (id INT, p STRING, at TIMESTAMP) USING delta "
            f"PARTITIONED BY ({column})"
        )
        outcome, reason = judged(source, promote_to=(("orders", name),))
        assert outcome is (Outcome.BROKEN if wanted else Outcome.PASSED), reason
        assert wanted in reason, reason
    assert spark.table("by_text").count() == 0
    spark.conf.set(zone, "Asia/Kolkata")
    found = spark.table("by_time").selectExpr("unix_micros(at)").distinct().collect()
    assert [row[0] for row in found] == [1_709_380_800_000_000]
    spark.conf.set(zone, "UTC")


def missing_values(spark: Any, folder: str) -> None:
    """NULL where the table has none, by another writer: found where its files are read as they are,
    and an error where Spark's source would read another value, if the log has it."""
    item = pa.field("element", pa.int64(), nullable=False)
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("items", pa.list_(item))])
    rows = pa.table({"id": [1, None], "items": [[1], [None]]})
    text = "assert null_count(id) == 0 assert each row: every(items, item is not null)"
    suite = SourceFile("s", f'suite "S" {{ check "C" on orders {{ {text} }} }}')
    for name, properties in (("plain", ""), ("deleting", "'delta.enableDeletionVectors' = true")):
        path = f"{folder}/missing_{name}"
        DeltaTable.create(path, columns)
        if properties:
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({properties})")
        pq.write_table(rows, f"{path}/rows.parquet")
        size = Path(path, "rows.parquet").stat().st_size
        statistics = json.dumps({"numRecords": 2, "nullCount": {"id": 1}})
        add = {"path": "rows.parquet", "partitionValues": {}, "size": size, "dataChange": True}
        add |= {"modificationTime": 1, "stats": statistics}
        commit = f"{DeltaTable(path).version() + 1:020}.json"
        Path(path, "_delta_log", commit).write_text(json.dumps({"add": add}) + "\n")
        spark.sql(f"CREATE TABLE missing_{name} USING delta LOCATION '{path}'")
        refs = [DatasetRef("orders", path)]
        if properties:
            refs.append(DatasetRef("orders", table=f"missing_{name}"))
        for number, ref in enumerate(refs):
            gate = GateRequest(
                RunKey(f"{name} {number}", TODAY, "run"),
                Attempt(1, "1"),
                suite,
                (ref,),
                f"{folder}/results",
            )
            report = run_gates([gate], lambda _: spark)[0]
            if not properties:
                assert [one.value for one in report.verdicts] == [2, 1, 1]
                continue
            assert report.outcome is Outcome.BROKEN
            reason = report.verdicts[-1].reason or ""
            assert f"column 'id' of {path} is NOT NULL, and its files have NULL" in reason, reason


if __name__ == "__main__":
    main(sys.argv[1], str(Path(sys.argv[2])))
