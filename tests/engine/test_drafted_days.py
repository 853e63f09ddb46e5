"""A draft of `dql init` counts the days that its gate finds, in whatever form a table has them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dqx_airflow.datasets.dqx_toml import read_settings
from dqx_airflow.engine.sources.open import open_dataset
from tests.command_line import dql

pytestmark = pytest.mark.spark

DAYS = [date(2024, 3, 1) + timedelta(number) for number in range(6)]
ROWS = [(number, on) for number, on in enumerate(on for on in DAYS for _ in range(5))]


def parquet(lake: Path, values: list[Any]) -> None:
    pq.write_table(
        pa.table({"id": [number for number, _ in ROWS], "ds": values}), lake / "t.parquet"
    )


def delta(lake: Path, values: list[Any]) -> None:
    write_deltalake(str(lake / "t"), pa.table({"id": [number for number, _ in ROWS], "ds": values}))


def json_lines(lake: Path, values: list[Any]) -> None:
    rows = zip((number for number, _ in ROWS), values, strict=True)
    lines = [json.dumps({"id": number, "ds": value}) for number, value in rows]
    (lake / "t.json").write_text("\n".join(lines))


def csv_file(lake: Path, values: list[Any]) -> None:
    with (lake / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "ds"])
        writer.writerows(zip((number for number, _ in ROWS), values, strict=True))


def folders(lake: Path, values: list[Any]) -> None:
    for value in dict.fromkeys(values):
        ids = [number for (number, _), own in zip(ROWS, values, strict=True) if own == value]
        (lake / "t" / f"ds={value}").mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), lake / "t" / f"ds={value}" / "part-0.parquet")


DAY_FORMS: dict[str, Callable[[date], Any]] = {
    "date": lambda on: on,
    "text": str,
    "compact text": lambda on: f"{on:%Y%m%d}",
    "compact number": lambda on: int(f"{on:%Y%m%d}"),
    "timestamp": lambda on: datetime(on.year, on.month, on.day, 23, 30),
    "timestamp in UTC": lambda on: datetime(on.year, on.month, on.day, 23, 30, tzinfo=timezone.utc),
}
MOMENTS: dict[str, Callable[[date], Any]] = {
    "text of a moment": lambda on: f"{on}T23:30:00",
    "text of a moment with fraction": lambda on: f"{on}T00:00:00.000",
    "text of a moment with a space": lambda on: f"{on} 23:30:00",
    "text in UTC": lambda on: f"{on}T23:30:00Z",
    "text with offset": lambda on: f"{on}T23:30:00.5-05:00",
}
OTHER_FORMS: dict[str, Callable[[date], Any]] = {
    "words": lambda on: f"{on:%d %B %Y}",
    "an hour that does not exist": lambda on: f"{on}T25:30:00",
    "a zone without seconds": lambda on: f"{on}T23:30Z",
}
FORMS = DAY_FORMS | MOMENTS | OTHER_FORMS
TEXTS = [form for form, value in FORMS.items() if isinstance(value(DAYS[0]), (str, int))]
CASES = [
    *((write, form) for write in (parquet, delta) for form in FORMS),
    *((write, form) for write in (json_lines, csv_file, folders) for form in TEXTS),
]


@pytest.mark.few(12, apart=True)
@pytest.mark.parametrize(("write", "form"), CASES)
def test_a_gate_finds_the_rows_of_the_days_of_its_draft(
    write: Callable[[Path, list[Any]], None], form: str, spark: Any, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    write(lake, [FORMS[form](on) for _, on in ROWS])
    (lake / "other.csv").write_text("id\n1\n")
    done = dql("init", tmp_path / "gates", "--dataset", lake, "--format", "json")
    assert done.returncode == 0, done.output
    (row,) = [row for row in json.loads(done.stdout)["tables"] if row["location"][0] == "t"]
    ref = read_settings(tmp_path / "gates" / "dqx.toml").refs["t"]
    # Only readers of text files find a moment in a string.
    is_moment = form in MOMENTS and write in (json_lines, csv_file)
    assert (ref.date_column is not None) == (is_moment or form in DAY_FORMS), ref
    if ref.date_column is None:
        return
    opened = open_dataset(spark, ref)
    dates = opened.dates
    assert dates is not None
    after = DAYS[-1] + timedelta(1)
    rows = {on: opened.read({on}).where(dates.filter({on})).count() for on in (*DAYS, after)}
    assert sum(rows.values()) == len(ROWS)
    assert len([on for on, count in rows.items() if count]) == row["days"] == len(DAYS)
