"""What reading a log costs does not grow with the product of its files and the dates of a run."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import DateType, StructType

from benchmarks import log_growth
from benchmarks.log_growth import FIRST, write_table
from dqx_airflow.engine.sources import delta_storage
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of
from dqx_airflow.engine.sources.listing import DataFile, ListedFiles, partitions_of
from dqx_airflow.values import DatasetRef

FILES = 900


def test_a_date_is_compared_with_the_folders_of_a_listing_and_not_with_its_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    column = DateColumn("ds", "date")
    days = [FIRST + timedelta(number) for number in range(3)]
    files = [DataFile(f"/t/ds={days[at % 3]}/{at}.parquet", 1, at) for at in range(FILES)]
    files.append(DataFile("/t/loose.parquet", 1, 0))
    ref = DatasetRef("orders", path="/t", format="parquet", date_column="ds")
    struct = StructType().add("ds", DateType())
    listed = ListedFiles(files)
    opened = OpenDataset(ref, struct, lambda _: cast(Any, None), "/t", column)
    dataset = replace(opened, partitions=partitions_of(ref, "/t", listed))
    compared: list[str] = []
    own = DateColumn.is_elsewhere

    def is_elsewhere(self: DateColumn, on: date, text: str) -> bool:
        compared.append(text)
        return own(self, on, text)

    monkeypatch.setattr(DateColumn, "is_elsewhere", is_elsewhere)
    for on in days:
        held = [file for file in files if "ds=" not in file.path or f"ds={on}" in file.path]
        assert dataset.files_on(on, listed) == held
    assert len(compared) == 9


@pytest.mark.more
@pytest.mark.parametrize("by", ["partition", "statistics", "folders"])
def test_the_growth_with_files_can_be_measured(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], by: str
) -> None:
    arguments = ["log_growth.py", "--files", "30", "--dates", "3", "--by", by]
    monkeypatch.setattr("sys.argv", arguments)
    log_growth.main()
    assert "| 30 | " in capfd.readouterr().out


@pytest.mark.slow
def test_files_are_found_whatever_the_pieces_of_the_log(tmp_path: Path) -> None:
    write_table(tmp_path, 20_000, is_partitioned=True)  # deltalake returns 8,192 files in a piece
    table = DeltaTable(str(tmp_path))
    log = DeltaLog(table, str(tmp_path), struct_of(table), DateColumn("ds", "date"))
    held = [log.files_of(FIRST + timedelta(number)) for number in range(366)]
    paths = [file.path for file in log.files_of(None)]
    assert len(paths) == log.count == 20_000
    assert sorted(file.path for files in held for file in files) == sorted(paths)
    for files in held:
        elsewhere = [one.path for one in files if f"ds={one.partition[0]}/" not in one.path]
        assert elsewhere == []
    assert log.rows_in(held[0] + held[365]) == len(held[0]) + len(held[365])


@pytest.mark.parametrize("is_partitioned", [True, False])
def test_each_folder_is_listed_once_and_dates_are_compared_with_values_and_not_with_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_partitioned: bool
) -> None:
    write_table(tmp_path, FILES, days=3, is_partitioned=is_partitioned)
    table = DeltaTable(str(tmp_path))
    log = DeltaLog(table, str(tmp_path), struct_of(table), DateColumn("ds", "date"))
    listed: list[str] = []
    compared: list[Any] = []
    scandir = os.scandir
    own = DeltaLog._may_hold
    monkeypatch.setattr(
        delta_storage.os, "scandir", lambda folder: (listed.append(folder), scandir(folder))[1]
    )
    monkeypatch.setattr(
        DeltaLog, "_may_hold", lambda *given: (compared.append(given), own(*given))[1]
    )
    days = [FIRST + timedelta(number) for number in range(3)]
    held = [log.files_held(on) or [] for on in days]
    assert [len(files) for files in held] == [FILES // 3] * 3
    assert {file.path for files in held for file in files} == {
        file.path for file in log.files_of(None)
    }
    assert [file.path for file in held[0]] == [
        file.path for file in log.files_of(None) if file in {*log.files_of(FIRST)}
    ]
    assert len(listed) == len({*listed}) == (3 if is_partitioned else 1)
    assert len(compared) == 9
