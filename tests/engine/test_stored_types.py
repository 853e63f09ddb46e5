"""Parquet files of pandas and other writers, with types that Spark cannot read."""

from __future__ import annotations

from datetime import datetime, time, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

pytestmark = pytest.mark.spark

MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999)
MOMENT_UTC = MOMENT.replace(tzinfo=timezone.utc)


@pytest.mark.since_spark("4.0", "reads nanoseconds of Parquet")
def test_nanoseconds_times_and_unsigned_numbers_are_read(spark: Any, tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.uint32()),
            "at": pa.array([MOMENT, None], pa.timestamp("ns")),
            "seen at": pa.array([MOMENT_UTC, None], pa.timestamp("ns", "UTC")),
            "opens": pa.array([time(6, 30, 0, 5000), None], pa.time32("ms")),
            "closes": pa.array([time(18, 30), None], pa.time64("ns")),
            "tags": pa.array([["a"], None], pa.list_(pa.string())),
        }
    )
    (tmp_path / "t").mkdir()
    pq.write_table(table.slice(0, 1), tmp_path / "t" / "a.parquet")
    pq.write_table(table.slice(1), tmp_path / "t" / "b.parquet")
    opened = open_dataset(spark, DatasetRef("t", str(tmp_path / "t"), format="parquet"))
    assert {field.name: field.type for field in opened.fields} == {
        "id": "bigint",
        "at": "timestamp_ntz",
        "seen at": "timestamp",
        "opens": "string",
        "closes": "string",
        "tags": "array<string>",
    }
    texts = ("CAST(at AS STRING)", "unix_micros(`seen at`)", "opens", "closes", "tags")
    first, second = opened.read([None]).orderBy("id").selectExpr(*texts).collect()
    assert tuple(first) == (
        "1969-12-31 23:59:59.999999",
        -1,
        "06:30:00.005000",
        "18:30:00.000000",
        ["a"],
    )
    assert tuple(second) == (None,) * 5


def test_a_nested_nanosecond_timestamp_is_an_error(spark: Any, tmp_path: Path) -> None:
    nested = pa.array([[MOMENT]], pa.list_(pa.timestamp("ns")))
    pq.write_table(pa.table({"moments": nested}), tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match="Illegal Parquet type"):
        open_dataset(spark, DatasetRef("t", str(tmp_path / "a.parquet"), format="parquet"))
