"""Sources of datasets: every format, every kind of date column, and broken data.

What is broken is an error or a failed assertion, never a pass.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import ORDERS, TODAY, Gate, delta, verdict
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

ROWS = 'assert num_rows() >= 0 name "rows"'
"""An assertion that passes wherever there is something to count."""


def reason(report: GateReport, name: str = "rows") -> str:
    """Why an assertion could not be evaluated: the gate is broken then."""
    assert report.outcome is Outcome.BROKEN
    found = verdict(report, name)
    assert found.status.value == "error"
    return found.reason or ""


def rows_on(spark: Any, ref: DatasetRef, on: date = TODAY) -> list[int]:
    """The ids of the rows of a date."""
    from dqx_airflow.engine.scan.frames import rows_of

    return sorted(row.id for row in rows_of(open_dataset(spark, ref), on).collect())


def scan_of(spark: Any, ref: DatasetRef, *columns: str, on: date = TODAY) -> str:
    """The line of the physical plan that tells what Spark reads."""
    from dqx_airflow.engine.scan.frames import rows_of

    frame = rows_of(open_dataset(spark, ref), on).select(*columns)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    (line,) = (line for line in plan.splitlines() if "FileScan" in line)
    return line


def partitions(folder: Path, *values: str, column: str = "ds") -> DatasetRef:
    """A Parquet dataset with one row a partition: ids 0, 1, 2..."""
    for number, value in enumerate(values):
        part = folder / f"{column}={value}"
        part.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number], "price": [1.0]}), part / "a.parquet")
    return DatasetRef("orders", str(folder), format="parquet", date_column=column)


# Formats


def _write(format: str, path: Path) -> None:
    path.mkdir()
    table = ORDERS.select(["id", "price", "ds"])
    match format:
        case "parquet":
            pq.write_table(table, path / "a.parquet")
        case "orc":
            orc.write_table(table, path / "a.orc")
        case "csv":
            lines = [
                ",".join("" if v is None else str(v) for v in row.values())
                for row in table.to_pylist()
            ]
            (path / "a.csv").write_text("id,price,ds\n" + "\n".join(lines) + "\n")
        case "json":
            lines = [json.dumps(row, default=str) for row in table.to_pylist()]
            (path / "a.json").write_text("\n".join(lines) + "\n")


_GUESSED = pytest.mark.since_spark("4.0", "guesses the types of JSON")


@pytest.mark.few(2)
@pytest.mark.parametrize("format", ["parquet", "orc", "csv", pytest.param("json", marks=_GUESSED)])
def test_files_of_every_format_are_read(gate: Gate, tmp_path: Path, format: str) -> None:
    _write(format, tmp_path / "data")
    ref = DatasetRef("orders", str(tmp_path / "data"), format=format, date_column="ds")
    body = 'assert sum(price) == 35 name "sum"\nassert null_count(price) == 1 name "nulls"'
    assert gate(body, ref).outcome is Outcome.PASSED


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_files_that_are_no_delta_table_are_named_by_their_format(
    gate: Gate, tmp_path: Path, format: str
) -> None:
    _write(format, tmp_path / "data")
    ref = DatasetRef("orders", str(tmp_path / "data"))
    message = f"no Delta table at {tmp_path}/data, its files are {format}; set format="
    assert f"{message}{format}" in reason(gate(ROWS, ref))
    (file,) = (tmp_path / "data").glob(f"*.{format}")
    assert f"its files are {format}; " in reason(gate(ROWS, replace(ref, path=str(file))))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "path", ["t", "t/", "t/ds=2024-03-02", "t/ds=2024-03-0*", "t/*", "t/*/*.parquet"]
)
def test_a_delta_table_is_not_read_as_parquet(gate: Gate, tmp_path: Path, path: str) -> None:
    # Its files are also those of older versions: of rows that were replaced or deleted.
    write_deltalake(str(tmp_path / "t"), ORDERS, partition_by=["ds"])
    ref = DatasetRef("orders", f"{tmp_path}/{path}", format="parquet")
    found = reason(gate(ROWS, ref))
    assert "belong to a table of Delta: they include replaced and deleted files" in found
    assert found.endswith("set format=delta and the path of the table")


def test_a_single_file_of_a_delta_table_is_not_read_as_parquet(gate: Gate, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), ORDERS)
    (file,) = (tmp_path / "t").glob("*.parquet")
    for path in (file, tmp_path / "t" / "*.parquet"):
        ref = DatasetRef("orders", str(path), format="parquet")
        assert "belong to a table of Delta" in reason(gate(ROWS, ref))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("path", "beside", "table"),
    [
        ("t", "t/.hoodie/hoodie.properties", "Hudi"),
        ("t/data", "t/metadata/00001-a.metadata.json", "Iceberg"),
        ("t/data", "t/metadata/notes.json", None),
        ("t/data", "t/_delta_log.txt", None),
    ],
)
def test_files_of_other_table_formats_are_not_read_as_parquet(
    gate: Gate, tmp_path: Path, path: str, beside: str, table: str | None
) -> None:
    for folder in (tmp_path / path, (tmp_path / beside).parent):
        folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / path / "a.parquet")
    (tmp_path / beside).touch()
    report = gate(ROWS, DatasetRef("orders", str(tmp_path / path), format="parquet"))
    if table is None:
        assert report.outcome is Outcome.PASSED
    else:
        assert f"belong to a table of {table}: they include" in reason(report)


@pytest.mark.parametrize(
    ("format", "package"),
    [
        ("avro", "org.apache.spark:spark-avro_2."),
        ("iceberg", "org.apache.iceberg:iceberg-spark-runtime-"),
    ],
)
@pytest.mark.slow
def test_a_format_without_its_package_names_the_package(
    spark: Any, tmp_path: Path, format: str, package: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        open_dataset(spark, DatasetRef("orders", str(tmp_path), format=format))
    assert f"cannot read {format}" in caught.value.problem
    assert package in caught.value.problem


@pytest.mark.more
def test_a_csv_file_has_a_header_and_types_by_default(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,price\n1,2.5\n")
    ref = DatasetRef("orders", str(tmp_path / "a.csv"), format="csv")
    assert [field.type for field in open_dataset(spark, ref).fields] == ["int", "decimal(2,1)"]
    bare = replace(ref, options=(("Header", "false"), ("inferSchema", "false")))
    assert [field.name for field in open_dataset(spark, bare).fields] == ["_c0", "_c1"]
    typed = replace(ref, schema="id string, price decimal(4,2)")
    assert [field.type for field in open_dataset(spark, typed).fields] == ["string", "decimal(4,2)"]


@pytest.mark.slow
@pytest.mark.since_spark("4.0", "ignores a missing catalog plugin")
def test_a_configured_but_missing_delta_source_is_not_needed(spark: Any, tmp_path: Path) -> None:
    ref = delta(tmp_path, "orders", ORDERS)
    setting = "spark.sql.catalog.spark_catalog"
    spark.conf.set(setting, "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    try:
        assert rows_on(spark, ref) == [1, 2, 3, 3, 5, 6]
    finally:
        spark.conf.unset(setting)


@pytest.mark.slow
def test_tables_and_views_of_the_catalog_are_read(spark: Any, gate: Gate, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE shop (id INT, price DOUBLE) USING parquet LOCATION '{tmp_path}/shop'")
    try:
        spark.sql("INSERT INTO shop VALUES (1, 2.0), (2, NULL)")
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW priced AS SELECT * FROM shop WHERE price > 0")
        table, view = DatasetRef("orders", table="shop"), DatasetRef("priced", table="priced")
        suite = """suite "S" { check "C" on orders, priced {
            assert num_rows(dataset orders) == num_rows(dataset priced) + 1
        } }"""
        assert gate(suite, table, view).outcome is Outcome.PASSED
        missing = DatasetRef("orders", table="shopp")
        assert "shopp" in reason(gate(ROWS, missing))
        assert "not a Delta table" in reason(gate(ROWS, replace(table, version=1)))
    finally:
        spark.sql("DROP TABLE shop")


def test_a_query_over_the_catalog_is_a_dataset(spark: Any, gate: Gate) -> None:
    spark.createDataFrame(
        [(1, "2024-03-02"), (2, "2024-03-01")], "id int, ds string"
    ).createOrReplaceTempView("till")
    ref = DatasetRef("orders", query="SELECT id, date(ds) AS ds FROM till", date_column="ds")
    report = gate('assert maximum(id) == 1 name "id"', ref)
    assert report.outcome is Outcome.PASSED
    assert report.datasets[0].format == "query"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("DROP TABLE till", "not a query"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT * FROM parquet.`/etc/x`", "not a catalog table"),
        ("SELECT * FROM text.passwd", "not a catalog table"),
        ("SELECT * FROM read_files('/etc')", "not one of Spark's functions"),
        ("SELECT reflect('java.lang.System', 'exit', 1)", "calls methods of Java"),
        ("INSERT INTO till SELECT * FROM till", "only read-only SQL"),
        ("SHOW TABLES", "only read-only SQL"),
    ],
)
def test_a_query_that_does_more_than_read_tables_is_refused(
    spark: Any, query: str, problem: str
) -> None:
    with pytest.raises(DatasetError, match=problem):
        open_dataset(spark, DatasetRef("orders", query=query))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name",
    ["with blank", "per%20cent", "br[a]c", "a=b", "Grüße", "a+b", "q?x", "{c}", "s*r", "h#h"],
)
def test_folders_of_any_name_are_read(spark: Any, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    (tmp_path / "seer").mkdir()
    pq.write_table(pa.table({"id": [9]}), tmp_path / "seer" / "a.parquet")
    for path in (str(folder), folder.as_uri()):
        assert rows_on(spark, DatasetRef("orders", path, format="parquet")) == [1]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["with blank", "Grüße", "q?x", "{c}", "s*r", "a+b"])
def test_delta_tables_in_folders_of_nearly_any_name_are_read(
    spark: Any, tmp_path: Path, name: str
) -> None:
    write_deltalake(str(tmp_path / name), pa.table({"id": [1]}))
    for path in (str(tmp_path / name), (tmp_path / name).as_uri()):
        assert rows_on(spark, DatasetRef("orders", path)) == [1]


@pytest.mark.parametrize("name", ["per%20cent", "br[a]c"])
def test_a_delta_table_in_a_folder_that_deltalake_cannot_name_is_an_error(
    spark: Any, tmp_path: Path, name: str
) -> None:
    write_deltalake(str(tmp_path / "fine"), pa.table({"id": [1]}))
    shutil.move(tmp_path / "fine", tmp_path / name)
    with pytest.raises(DatasetError, match="cannot be read"):
        open_dataset(spark, DatasetRef("orders", str(tmp_path / name)))


def test_delta_partitions_of_any_value_are_read(spark: Any, tmp_path: Path) -> None:
    values = ["a b", "a%b", "a:b/c", "Grüße", "{x}", "[y]*", None]
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": range(7), "kind": values}), partition_by=["kind"])
    frame = open_dataset(spark, DatasetRef("orders", path)).read({None})
    assert {row.id: row.kind for row in frame.collect()} == dict(enumerate(values))


@pytest.mark.parametrize("by", [None, "d", "at"])
@pytest.mark.slow
def test_delta_tables_hold_dates_that_python_does_not_have(
    spark: Any, tmp_path: Path, by: str | None
) -> None:
    from dqx_airflow.engine.scan.frames import rows_of

    days = pa.array([4_000_000, 10], pa.int32())  # the first is in the year 12921
    times = pa.array([4_000_000 * 86_400_000_000, 0], pa.int64())
    days, times = days.cast(pa.date32()), times.cast(pa.timestamp("us", "UTC"))
    columns = {"id": [1, 2], "d": days, "at": times}
    write_deltalake(str(tmp_path / "t"), pa.table(columns), partition_by=by)
    ref = DatasetRef("orders", str(tmp_path / "t"))
    for column, on in (("d", date(1970, 1, 11)), ("at", date(1970, 1, 1))):
        opened = open_dataset(spark, replace(ref, date_column=column))
        assert opened.read({None}).count() == 2
        assert opened.read({None}).where("year(d) = 12921 AND year(at) > 9999").count() == 1
        assert opened.log is not None
        assert opened.log.rows_of(None) == 2
        assert [row.id for row in rows_of(opened, on).select("id").collect()] == [2]


@pytest.mark.parametrize("year", [1, 9999])
def test_the_first_and_the_last_timestamp_are_rows_of_their_day(
    spark: Any, tmp_path: Path, year: int
) -> None:
    edge = datetime(year, 1, 1) if year == 1 else datetime(year, 12, 31, 23)
    table = pa.table({"id": [0, 1], "at": [edge, datetime(2024, 3, 2, 12)]})
    write_deltalake(str(tmp_path / "t"), table)
    assert rows_on(spark, DatasetRef("orders", str(tmp_path / "t"), date_column="at")) == [1]


def test_a_path_may_begin_at_home(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    assert rows_on(spark, DatasetRef("orders", "~/a.parquet", format="parquet")) == [1]


# Dates


def test_only_partitions_of_the_date_are_read(spark: Any, tmp_path: Path) -> None:
    ref = partitions(tmp_path / "t", "2024-03-01", "2024-03-02", "__HIVE_DEFAULT_PARTITION__")
    assert rows_on(spark, ref) == [1]
    line = scan_of(spark, ref, "price")
    assert "PartitionFilters: [isnotnull(ds" in line
    assert "ReadSchema: struct<price:double>" in line


@pytest.mark.parametrize(
    ("values", "pattern"),
    [
        (["2024-03-01", "2024-03-02", "2024-02-30"], None),
        (["20240301", "20240302", "__HIVE_DEFAULT_PARTITION__"], "yyyyMMdd"),
        (["20240301", "20240302", "junk"], "yyyyMMdd"),
        (["day 2024_03_01", "day 2024_03_02"], "'day' yyyy_MM_dd"),
        (["2024-03-01", "2024-03-02", "junk"], None),
        (["20240301", "20240302"], "yyyyMMdd"),
        (["01.03.2024", "02.03.2024"], "dd.MM.yyyy"),
        (["1-3-24", "2-3-24"], "d-M-yy"),
    ],
)
@pytest.mark.slow
def test_partitions_of_strings_and_numbers_are_dates_by_a_pattern(
    spark: Any, gate: Gate, tmp_path: Path, values: list[str], pattern: str | None
) -> None:
    ref = replace(partitions(tmp_path / "t", *values), date_format=pattern)
    assert rows_on(spark, ref) == [1]
    assert "PartitionFilters: [isnotnull(ds" in scan_of(spark, ref, "price")
    body = 'assert num_rows() == 1 name "rows"\nassert num_rows(lag 1) == 1 name "before"'
    assert gate(body, ref).outcome is Outcome.PASSED
    assert gate(body, ref).outcome is Outcome.PASSED  # now from stored states


def test_a_number_needs_a_pattern_to_be_a_date(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        open_dataset(spark, partitions(tmp_path / "t", "20240301", "20240302"))
    assert caught.value.problem == "the date column 'ds' of dataset 'orders' is of type int"
    assert "date_format" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "help"),
    [
        ({"date_column": "price"}, "dates, timestamps or strings"),
        ({"date_column": "pric"}, "its columns are id, price, ds"),
        ({"time_zone": "Europe/Zurich"}, "remove time_zone"),
    ],
)
def test_an_invalid_date_column_is_an_error(
    spark: Any, tmp_path: Path, changes: dict[str, str], help: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        open_dataset(spark, replace(partitions(tmp_path / "t", "2024-03-01"), **changes))
    assert help in caught.value.hint


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("path", ["t/ds=2024-03-0[1-2]", "t/ds=2024-03-02", "t/ds=2024-03-0*"])
def test_a_path_into_partitions_keeps_their_column(
    spark: Any, gate: Gate, tmp_path: Path, path: str
) -> None:
    ref = partitions(tmp_path / "t", "2024-03-01", "2024-03-02")
    ref = replace(ref, path=str(tmp_path / path))
    assert rows_on(spark, ref) == [1]
    gate(ROWS, ref)
    assert verdict(gate(ROWS, ref), "rows").origin == "stored state"


def test_a_glob_reads_its_files_and_a_new_one_makes_its_states_stale(
    gate: Gate, tmp_path: Path
) -> None:
    for name in ("a1", "a2", "b1"):
        pq.write_table(pa.table({"id": [1]}), tmp_path / f"{name}.parquet")
    ref = DatasetRef("orders", str(tmp_path / "{a,c}[0-9].parquet"), format="parquet")
    assert verdict(gate(ROWS, ref), "rows").value == 2
    pq.write_table(pa.table({"id": [1]}), tmp_path / "b2.parquet")
    assert verdict(gate(ROWS, ref), "rows").origin == "stored state"
    pq.write_table(pa.table({"id": [1]}), tmp_path / "c1.parquet")
    assert verdict(gate(ROWS, ref), "rows").value == 3


ZURICH, HAVANA = ZoneInfo("Europe/Zurich"), ZoneInfo("America/Havana")
"""The clocks of Havana are set at midnight: some days there begin at one o'clock."""


def _hours(on: date, days: int) -> pa.Table:
    """One row an hour around a day, in UTC."""
    start = datetime(on.year, on.month, on.day, tzinfo=timezone.utc) - timedelta(days)
    hours = [start + timedelta(hours=hour) for hour in range((2 * days + 1) * 24)]
    return pa.table({"id": range(len(hours)), "at": pa.array(hours, pa.timestamp("us", "UTC"))})


@pytest.mark.few(1)
@pytest.mark.parametrize("format", [pytest.param("delta", marks=pytest.mark.slow), "parquet"])
@pytest.mark.parametrize(
    ("zone", "on", "hours"),
    [
        (ZURICH, date(2024, 10, 27), 25),
        (HAVANA, date(2024, 3, 10), 23),
        (ZURICH, date(2024, 3, 31), 23),
        (HAVANA, date(2024, 11, 3), 25),
        (ZURICH, date(2024, 7, 1), 24),
        (ZoneInfo("Pacific/Kiritimati"), date(2024, 7, 1), 24),
    ],
)
def test_the_day_of_a_timestamp_is_that_of_its_zone(
    spark: Any, gate: Gate, tmp_path: Path, format: str, zone: ZoneInfo, on: date, hours: int
) -> None:
    path, table = str(tmp_path / "t"), _hours(on, 2)
    if format == "delta":
        for start in range(0, len(table), 24):
            write_deltalake(path, table.slice(start, 24), mode="append")
    else:
        pq.write_table(table, path)
    ref = DatasetRef("orders", path, format=format, date_column="at", time_zone=zone.key)
    rows = [n for n, at in enumerate(table["at"].to_pylist()) if at.astimezone(zone).date() == on]
    assert rows_on(spark, ref, on) == rows
    assert len(rows) == hours
    body = f'assert num_rows() == {hours} name "h"\nassert num_rows(lag 1) == 24 name "before"'
    assert gate(body, ref, on=on).outcome is Outcome.PASSED
    assert "PushedFilters: [IsNotNull(at), GreaterThanOrEqual(at" in scan_of(
        spark, ref, "id", on=on
    )


def test_a_timestamp_without_a_zone_keeps_its_day(spark: Any, tmp_path: Path) -> None:
    moments = [datetime(2024, 3, 1, 23, 59), datetime(2024, 3, 2), datetime(2024, 3, 2, 23, 59)]
    pq.write_table(
        pa.table({"id": range(3), "at": pa.array(moments, pa.timestamp("us"))}), tmp_path / "t"
    )
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet", date_column="at")
    assert rows_on(spark, ref) == [1, 2]
    assert "PushedFilters: [IsNotNull(at), GreaterThanOrEqual(at" in scan_of(spark, ref, "id")


def test_only_the_files_of_a_day_are_read_of_a_delta_table_with_timestamps(
    spark: Any, tmp_path: Path
) -> None:
    table = _hours(TODAY, 5)
    for start in range(0, len(table), 24):
        write_deltalake(str(tmp_path / "t"), table.slice(start, 24), mode="append")
    opened = open_dataset(spark, DatasetRef("orders", str(tmp_path / "t"), date_column="at"))
    assert len(opened.read({TODAY}).inputFiles()) == 3  # with a day of margin on both sides


@pytest.mark.parametrize("is_partition", [True, False])
@pytest.mark.slow
def test_string_dates_of_a_delta_table_follow_their_pattern_only(
    spark: Any, gate: Gate, tmp_path: Path, is_partition: bool
) -> None:
    table = pa.table({"id": [0, 1, 2, 3], "ds": ["20240302", "2024-03-02", None, "junk"]})
    write_deltalake(str(tmp_path / "t"), table, partition_by=["ds"] if is_partition else None)
    ref = DatasetRef("orders", str(tmp_path / "t"), date_column="ds")
    for pattern, ids in (("yyyyMMdd", [0]), (None, [1])):
        asked = replace(ref, date_format=pattern)
        if is_partition:  # two partitions of one date in two forms
            assert "in another form than" in reason(gate(ROWS, asked))
            continue
        assert rows_on(spark, asked) == ids
        assert verdict(gate(ROWS, asked), "rows").value == 1


# Versions of Delta tables


@pytest.fixture
def versions(tmp_path: Path) -> DatasetRef:
    """A table with one row more in each version, a second apart."""
    path = str(tmp_path / "versions")
    for number in range(3):
        write_deltalake(path, pa.table({"id": [number]}), mode="append")
        log = Path(path) / "_delta_log" / f"{number:020}.json"
        moment = datetime(2024, 3, 1 + number, tzinfo=timezone.utc).timestamp()
        log.write_text(
            "\n".join(
                json.dumps(
                    {"commitInfo": {**commit["commitInfo"], "timestamp": int(moment * 1000)}}
                    if "commitInfo" in commit
                    else commit
                )
                for commit in map(json.loads, log.read_text().splitlines())
            )
        )
        os.utime(log, (moment, moment))
    return DatasetRef("orders", path)


def test_a_version_or_a_timestamp_pins_a_delta_table(
    spark: Any, gate: Gate, versions: DatasetRef
) -> None:
    assert rows_on(spark, versions) == [0, 1, 2]
    assert rows_on(spark, replace(versions, version=1)) == [0, 1]
    for moment in ("2024-03-02T00:00:00Z", "2024-03-02 12:00", "2024-03-03T00:30:00+01:00"):
        assert rows_on(spark, replace(versions, timestamp=moment)) == [0, 1]
    assert rows_on(spark, replace(versions, timestamp="2030-01-01")) == [0, 1, 2]
    report = gate(ROWS, replace(versions, timestamp="2024-03-02"))
    assert report.datasets[0].version == 1


def test_an_unknown_version_is_an_error(gate: Gate, versions: DatasetRef) -> None:
    never = reason(gate(ROWS, replace(versions, version=99)))
    assert "has no version 99: the newest is 2" in never
    early = reason(gate(ROWS, replace(versions, timestamp="2024-02-01")))
    assert "no version as old as 2024-02-01" in early


def test_rows_written_after_opening_are_not_read(spark: Any, versions: DatasetRef) -> None:
    opened = open_dataset(spark, versions)
    write_deltalake(str(versions.path), pa.table({"id": [3]}), mode="append")
    assert opened.read({None}).count() == 3
    assert opened.version == 2


def test_a_version_whose_files_were_vacuumed_is_an_error(gate: Gate, versions: DatasetRef) -> None:
    table = DeltaTable(str(versions.path))
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert gate(ROWS, versions).outcome is Outcome.PASSED
    reason(gate(ROWS, replace(versions, version=1)))


# Broken data


@pytest.mark.few(3)
@pytest.mark.since_spark("4.0", "guesses the types of JSON")
@pytest.mark.parametrize("format", ["delta", "parquet", "csv", "json", "orc"])
@pytest.mark.parametrize("place", ["nowhere", "empty", "hidden", "nowhere/*"])
@pytest.mark.parametrize("schema", [None, pytest.param("id int", marks=pytest.mark.slow)])
def test_a_missing_table_is_not_an_empty_one(
    gate: Gate, tmp_path: Path, format: str, place: str, schema: str | None
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "_SUCCESS").write_text("")
    ref = DatasetRef("orders", str(tmp_path / place), format=format)
    if format != "delta":
        ref = replace(ref, schema=schema)
    why = reason(gate(ROWS, ref, allow_empty=True))
    assert f"no {'Delta table' if format == 'delta' else format + ' file'} at" in why
    assert place in why


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["csv", "json"])
def test_an_empty_file_is_an_error(gate: Gate, tmp_path: Path, format: str) -> None:
    (tmp_path / "t").write_text("")
    ref = DatasetRef("orders", str(tmp_path / "t"), format=format)
    reason(gate(ROWS, ref, allow_empty=True))


RAGGED = {"too short": "id,price\n1,2.5\n2\n", "too long": "id,price\n1,2.5\n2,3.5,4\n"}


@pytest.mark.few(1)
@pytest.mark.since_spark("4.0", "names the file that cannot be read")
@pytest.mark.parametrize("case", RAGGED)
@pytest.mark.parametrize("body", [ROWS, 'assert minimum(id) >= 0 name "rows"'])
def test_a_csv_line_of_another_length_is_an_error_for_every_metric(
    gate: Gate, tmp_path: Path, case: str, body: str
) -> None:
    (tmp_path / "a.csv").write_text(RAGGED[case])
    ref = DatasetRef("orders", str(tmp_path / "a.csv"), format="csv")
    assert "a.csv cannot be read: line " in reason(gate(body, ref))
    lenient = replace(ref, options=(("mode", "PERMISSIVE"),))
    assert gate(body, lenient).outcome is Outcome.PASSED


@pytest.mark.slow
def test_a_csv_value_of_another_type_makes_its_column_a_string(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,price\n1,2.5\n2,x\n")
    ref = DatasetRef("orders", str(tmp_path / "a.csv"), format="csv")
    report = gate('assert average(price) > 0 name "rows"', ref)
    assert "price' is of type string" in reason(report)


def test_csv_files_with_their_columns_in_another_order_are_an_error(
    gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("low,high\n1,5\n")
    (tmp_path / "t" / "b.csv").write_text("high,low\n5,1\n")
    ref = DatasetRef("orders", str(tmp_path / "t"), format="csv")
    reason(gate('assert each row: low <= high name "rows"', ref))


@pytest.mark.few(1)
@pytest.mark.since_spark("4.0", "guesses the types of JSON")
@pytest.mark.parametrize("body", [ROWS, 'assert minimum(id) >= 0 name "rows"'])
def test_a_truncated_json_line_is_an_error_for_every_metric(
    gate: Gate, tmp_path: Path, body: str
) -> None:
    (tmp_path / "a.json").write_text('{"id": 1, "price": 2.5}\n{"id": 2, "pri')
    ref = DatasetRef("orders", str(tmp_path / "a.json"), format="json")
    assert "a.json cannot be read: line 2 is not JSON" in reason(gate(body, ref))


def _corrupt(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[50:-400] = bytes(len(content) - 450)
    path.write_bytes(bytes(content))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a short file": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "zeros in the middle": _corrupt,
    "no Parquet": lambda path: path.write_bytes(b"no parquet at all"),
    "an empty file": lambda path: path.write_bytes(b""),
}


@pytest.mark.few(1)
@pytest.mark.since_spark("4.0", "names the file that cannot be read")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_corrupt_parquet_file_is_an_error_and_other_datasets_are_judged(
    gate: Gate, tmp_path: Path, damage: str
) -> None:
    (tmp_path / "t").mkdir()
    for name in ("a", "b"):
        table = pa.table({"id": range(5000), "price": [float(n) for n in range(5000)]})
        pq.write_table(table, tmp_path / "t" / f"{name}.parquet")
    DAMAGE[damage](tmp_path / "t" / "b.parquet")
    broken = DatasetRef("broken", str(tmp_path / "t"), format="parquet")
    suite = """suite "S" {
        check "A" on orders {
            assert num_rows() == 6 name "good"
            assert values(id) in values(id, dataset broken) name "lookup"
            assert duplicate_count(id) == 1 name "keys"
        }
        check "B" on broken {
            assert average(id) > 0 name "average"
            assert duplicate_count(id) >= 0 name "duplicates"
        }
    }"""
    report = gate(suite, delta(tmp_path, "orders", ORDERS), broken)
    assert "cannot be read" in reason(report, "average")
    assert "b.parquet" in reason(report, "average")
    assert "b.parquet" in reason(report, "duplicates")
    reason(report, "lookup")
    assert verdict(report, "good").status.value == "passed"
    assert verdict(report, "keys").status.value == "passed"


@pytest.mark.more
def test_a_file_that_disappears_during_the_scan_is_an_error(
    spark: Any, tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = partitions(tmp_path / "t", "2024-03-01", "2024-03-02")
    _after_opening(monkeypatch, (tmp_path / "t/ds=2024-03-02/a.parquet").unlink)
    report = gate('assert minimum(id) >= 0 name "rows"', ref)
    assert "a.parquet was changed or removed while it was read" in reason(report)


@pytest.mark.more
@pytest.mark.parametrize(
    "table", [pa.table({"id": [1]}), pa.table({"id": ["a"], "price": [1.0]})], ids=["gone", "type"]
)
def test_a_file_whose_columns_change_during_the_scan_is_an_error(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch, table: pa.Table
) -> None:
    ref = partitions(tmp_path / "t", "2024-03-02")
    file = tmp_path / "t/ds=2024-03-02/a.parquet"
    _after_opening(monkeypatch, lambda: pq.write_table(table, file))
    reason(gate('assert each row: price > 0 and id >= 0 name "rows"', ref))


def _after_opening(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    from dqx_airflow.engine import measure

    def opened(spark: Any, ref: DatasetRef) -> OpenDataset:
        found = open_dataset(spark, ref)
        change()
        return found

    monkeypatch.setattr(measure, "open_dataset", opened)


def _truncated(log: Path) -> None:
    newest = sorted(log.glob("*.json"))[-1]
    newest.write_text(newest.read_text()[:-40])


def _emptied(log: Path) -> None:
    sorted(log.glob("*.json"))[-1].write_text("")


def _with_a_gap(log: Path) -> None:
    sorted(log.glob("*.json"))[-2].unlink()


def _without_a_file(log: Path) -> None:
    next(log.parent.glob("*.parquet")).unlink()


@pytest.mark.few(3)
@pytest.mark.parametrize("damage", [_truncated, _emptied, _with_a_gap, _without_a_file])
@pytest.mark.parametrize("body", [ROWS, 'assert average(id) >= 0 name "rows"'])
def test_a_half_written_delta_table_is_an_error(
    gate: Gate, versions: DatasetRef, damage: Callable[[Path], None], body: str
) -> None:
    damage(Path(str(versions.path)) / "_delta_log")
    assert "versions" in reason(gate(body, versions))


def test_column_mapping_needs_the_delta_source_whatever_the_protocol_calls_it(
    spark: Any, tmp_path: Path
) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = {
                "delta.columnMapping.id": 1,
                "delta.columnMapping.physicalName": "col-1",
            }
            action["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(DatasetError) as caught:
        open_dataset(spark, DatasetRef("orders", str(tmp_path / "t")))
    assert "columnMapping" in caught.value.problem
    assert "io.delta:delta-spark_" in caught.value.problem


@pytest.mark.since_spark("4.1", "reads columns of nulls from Delta")
@pytest.mark.parametrize("format", ["delta", "parquet", "view"])
@pytest.mark.slow
def test_a_column_of_nulls_alone_has_its_nulls_counted(
    spark: Any, gate: Gate, tmp_path: Path, format: str
) -> None:
    table = pa.table({"id": [1, 2], "note": pa.nulls(2)})
    ref = DatasetRef("orders", str(tmp_path / "t"), format=format)
    match format:
        case "delta":
            write_deltalake(str(tmp_path / "t"), table)
        case "parquet":
            pq.write_table(table, tmp_path / "t")
        case "view":
            spark.sql("SELECT id, NULL AS note FROM range(2)").createOrReplaceTempView("nulls")
            ref = DatasetRef("orders", table="nulls")
    body = """
    assert null_count(note) == 2 name "nulls"
    assert count(note) == 0 name "count"
    assert unique_count(note) == 0 name "distinct"
    assert minimum(note) is None name "least"
    assert not_null(note) name "not null"
    """
    report = gate(body, ref)
    found = {item.name: item.status.value for item in report.verdicts}
    assert found["nulls"] == found["count"] == found["distinct"] == "passed"
    assert found["least"] in ("passed", "error")
    assert found["not null"] == "failed"


def test_columns_that_differ_in_case_alone_are_an_error(gate: Gate, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "ID": [2]}), tmp_path / "t")
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet")
    assert "a duplicate column 'id'" in reason(gate(ROWS, ref))


@pytest.mark.nightly
def test_a_table_of_2000_columns_is_judged_in_one_pass(
    spark: Any, gate: Gate, tmp_path: Path
) -> None:
    columns = {f"c{n}": pa.array([n, None, n + 1], pa.int64()) for n in range(2000)}
    pq.write_table(pa.table(columns), tmp_path / "wide")
    body = "\n".join(f'assert maximum(c{n}) == {n + 1} name "n{n}"' for n in range(2000))
    ref = DatasetRef("orders", str(tmp_path / "wide"), format="parquet")
    before = jobs_so_far(spark)
    report = gate(body, ref)
    assert report.outcome is Outcome.PASSED
    assert len(report.verdicts) == 2001
    assert jobs_so_far(spark) - before == 2  # one for the schema


@pytest.mark.parametrize("format", ["delta", "parquet"])
def test_a_missing_permission_is_an_error(gate: Gate, tmp_path: Path, format: str) -> None:
    folder = tmp_path / "t"
    write_deltalake(str(folder), pa.table({"id": [1]}))
    folder.chmod(0)
    if os.access(folder, os.R_OK):
        folder.chmod(0o700)
        pytest.skip("this user may read everything")
    try:
        assert "cannot be read" in reason(
            gate(ROWS, DatasetRef("orders", str(folder), format=format))
        )
    finally:
        folder.chmod(0o700)
