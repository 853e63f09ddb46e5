"""What reading a log costs does not grow with the product of its files and the dates of a run."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from benchmarks.log_growth import FIRST, write_table
from dqx_airflow.engine.sources import delta_storage
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of

FILES = 900


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
