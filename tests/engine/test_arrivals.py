"""Which commits and files brought the rows of a date, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql.types import IntegerType, StringType, StructType

from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of
from dqx_airflow.engine.sources.listing import DataFile, ListedFiles, partitions_of
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.report import Arrival

DAY = date(2024, 3, 2)


def write(path: Path, day: str, rows: int, mode: Any = "append", **noted: str) -> None:
    """A commit with the rows of a day."""
    table = pa.table({"id": [*range(rows)], "day": [day] * rows})
    write_deltalake(
        str(path),
        table,
        mode=mode,
        partition_by=["day"],
        commit_properties=CommitProperties(custom_metadata=noted),
    )


def arrivals(path: Path, on: date = DAY, most: int = 10) -> tuple[Arrival, ...]:
    table = DeltaTable(str(path))
    log = DeltaLog(table, str(path), struct_of(table), DateColumn("day", "string"))
    return log.arrivals(on, most)


def rewrite_info(path: Path, version: int, **info: Any) -> None:
    """A commit as another writer would have noted it."""
    commit = path / "_delta_log" / f"{version:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"] = info
    commit.write_text("\n".join(map(json.dumps, lines)))


def test_the_commit_that_brought_a_day_is_named_with_its_writer(tmp_path: Path) -> None:
    write(tmp_path, "2024-03-01", 5)
    write(tmp_path, "2024-03-02", 7, airflow_dag="load", airflow_run="manual__1")
    write(tmp_path, "2024-03-03", 9)
    later, brought, earlier = arrivals(tmp_path)
    assert [one.name for one in (later, brought, earlier)] == ["2", "1", "0"]
    assert (brought.files, brought.rows) == (1, 7)
    assert brought.at is not None
    assert (datetime.now(timezone.utc) - brought.at).total_seconds() < 600
    words = brought.by.split(", ")
    assert words[0] == "WRITE"
    assert {"airflow_dag load", "airflow_run manual__1"} <= {*words}
    assert [(one.files, one.rows) for one in (later, earlier)] == [(0, None)] * 2


@pytest.mark.parametrize(
    ("info", "by"),
    [
        (
            {
                "operation": "MERGE",
                "userName": "etl@example.com",
                "job": {"jobId": "17", "jobName": "nightly", "runId": "9"},
                "notebook": {"notebookId": "5"},
                "operationParameters": {"predicate": "tax_id = 'CANARY'"},
                "isBlindAppend": False,
            },
            "MERGE, userName etl@example.com, jobId 17, jobName nightly, runId 9, notebookId 5",
        ),
        ({"operation": "WRITE", "job": "nightly"}, "WRITE, job nightly"),
        ({"operation": "WRITE", "userMetadata": "load 7"}, "WRITE, userMetadata load 7"),
        (
            {"operation": "WRITE", "job_url": "https://me:hunter2@ci.example.com/7"},
            "WRITE, job_url https://***@ci.example.com/7",
        ),
        ({"operation": "WRITE", "userMetadata": '{"email": "x"}'}, "WRITE"),
        ({}, "unknown operation"),
    ],
)
def test_of_the_writer_only_who_and_which_job_is_kept(
    tmp_path: Path, info: dict[str, Any], by: str
) -> None:
    write(tmp_path, "2024-03-02", 7)
    rewrite_info(tmp_path, 0, timestamp=1709337600000, **info)
    (one,) = arrivals(tmp_path)
    assert one.by == by
    assert one.at == datetime(2024, 3, 2, tzinfo=timezone.utc)


def test_an_optimization_counts_only_if_the_rows_are_in_its_files(tmp_path: Path) -> None:
    for _ in range(2):
        write(tmp_path, "2024-03-01", 5)
    write(tmp_path, "2024-03-02", 7)
    DeltaTable(str(tmp_path)).optimize.compact()
    assert [(one.name, one.files) for one in arrivals(tmp_path)] == [("2", 1), ("1", 0), ("0", 0)]
    moved = arrivals(tmp_path, date(2024, 3, 1))[0]
    assert (moved.name, moved.files, moved.rows, moved.removed) == ("3", 1, 10, 2)


def test_a_deletion_of_whole_days_is_listed_without_its_predicate(tmp_path: Path) -> None:
    write(tmp_path, "2024-03-02", 7)
    write(tmp_path, "2024-03-01", 5)
    DeltaTable(str(tmp_path)).delete("day = '2024-03-02'")
    deleted, *_ = arrivals(tmp_path)
    assert (deleted.files, deleted.removed) == (0, 1)
    assert deleted.by.startswith("DELETE")
    assert "2024-03-02" not in deleted.by


@pytest.mark.more
def test_old_days_are_found_behind_many_commits_and_the_list_stays_short(tmp_path: Path) -> None:
    write(tmp_path, "2024-03-02", 7)
    for number in range(70):
        write(tmp_path, f"2024-05-{number % 30 + 1:02}", 1)
    found = arrivals(tmp_path, most=3)
    assert [one.name for one in found] == ["70", "69", "68", "0"]
    assert found[-1].rows == 7


def test_a_log_that_cannot_be_read_names_no_commit(tmp_path: Path) -> None:
    write(tmp_path, "2024-03-02", 7)
    table = DeltaTable(str(tmp_path))
    log = DeltaLog(table, str(tmp_path), struct_of(table), DateColumn("day", "string"))
    assert len(log.arrivals(DAY, 5)) == 1
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("{")
    assert log.arrivals(DAY, 5) == ()


STRUCT = StructType().add("id", IntegerType()).add("day", StringType())


def of_files(*files: DataFile, masked: tuple[str, ...] = ()) -> tuple[Arrival, ...]:
    ref = DatasetRef("orders", path="/t", format="parquet", date_column="day", masked=masked)
    opened = OpenDataset(
        ref, STRUCT, lambda _: cast(Any, None), "file:///t", DateColumn.of(ref, STRUCT), files=files
    )
    partitions = partitions_of(ref, "/t", ListedFiles(files))
    return replace(opened, partitions=partitions).arrivals(DAY, most=2)


def test_files_of_the_day_are_listed_newest_first() -> None:
    files = [DataFile(f"/t/day=2024-03-02/{n}.parquet", 10 + n, n * 10**9) for n in (1, 3, 2)]
    files.append(DataFile("/t/day=2024-03-01/9.parquet", 10, 9 * 10**9))
    newest, second = of_files(*files)
    assert newest == Arrival(
        "/t/day=2024-03-02/3.parquet",
        datetime(1970, 1, 1, 0, 0, 3, tzinfo=timezone.utc),
        files=1,
        size=13,
    )
    assert second.name.endswith("/2.parquet")


def test_a_folder_of_a_masked_column_hides_its_value() -> None:
    file = DataFile("/t/Tax%5fId=CANARY/day=2024-03-02/1.parquet", 1, 1)
    (one,) = of_files(file, masked=("tax_id",))
    assert one.name == "/t/Tax%5fId=***/day=2024-03-02/1.parquet"


@pytest.mark.parametrize("timestamp", [10**30, 10**400, -(10**17), "now", [1]])
def test_a_commit_with_an_impossible_time_breaks_no_report(tmp_path: Path, timestamp: Any) -> None:
    write(tmp_path, "2024-03-02", 7)
    rewrite_info(tmp_path, 0, timestamp=timestamp)
    assert arrivals(tmp_path) == ()
