"""Parquet files of pandas and other writers, with types that Spark cannot read."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.engine.job import try_gates
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef
from tests.engine.lake import request

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
            "pauses": pa.array([time(12, 0, 0, 1), None], pa.time64("us")),
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
        "pauses": "string",
        "tags": "array<string>",
    }
    texts = ("CAST(at AS STRING)", "unix_micros(`seen at`)", "opens", "closes", "pauses", "tags")
    first, second = opened.read([None]).orderBy("id").selectExpr(*texts).collect()
    assert tuple(first) == (
        "1969-12-31 23:59:59.999999",
        -1,
        "06:30:00.005000",
        "18:30:00.000000",
        "12:00:00.000001",
        ["a"],
    )
    assert tuple(second) == (None,) * 6


@pytest.mark.since_spark("4.0", "reads other types as they are stored")
def test_a_nested_nanosecond_timestamp_is_an_error(spark: Any, tmp_path: Path) -> None:
    nested = pa.array([[MOMENT]], pa.list_(pa.timestamp("ns")))
    pq.write_table(pa.table({"moments": nested}), tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match="does not read: 'moments'"):
        open_dataset(spark, DatasetRef("t", str(tmp_path / "a.parquet"), format="parquet"))


UNREAD = {
    "half": (pa.array([1.5], pa.float64()).cast(pa.float32()).cast(pa.float16()), "halffloat"),
    "times": (pa.array([[time(6, 30)]]), "time64"),
    "long": (pa.array([1], pa.decimal128(38, 0)).cast(pa.decimal256(50, 0)), "decimal256"),
}


@pytest.mark.since_spark("4.0", "reads other types as they are stored")
@pytest.mark.few(1)
@pytest.mark.parametrize("name", UNREAD)
def test_a_column_that_spark_does_not_read_is_named_with_the_schema_of_the_others(
    spark: Any, tmp_path: Path, name: str
) -> None:
    values, kind = UNREAD[name]
    pq.write_table(pa.table({"id": [1], name: values}), tmp_path / "a.parquet")
    ref = DatasetRef("t", str(tmp_path / "a.parquet"), format="parquet")
    with pytest.raises(DatasetError, match=f"'{name}' .*{kind}") as refused:
        open_dataset(spark, ref)
    assert refused.value.hint == 'read the other columns: schema="`id` bigint"'
    without = open_dataset(spark, replace(ref, schema="`id` bigint"))
    assert [tuple(row) for row in without.read([None]).collect()] == [(1,)]


def test_files_of_different_types_are_named_with_the_column(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    pq.write_table(pa.table({"id": ["x"]}), folder / "b.parquet")
    ref = DatasetRef("orders", str(folder), format="parquet")
    report = try_gates(
        [request(tmp_path, 'assert sum(id) > 0 name "sum"', [ref])], lambda _: spark
    )[0]
    reasons = " ".join(item.reason or "" for item in report.verdicts)
    assert "b.parquet cannot be read: column 'id' is of the Parquet type BINARY" in reasons


NOTED = {
    "orc": ("TIMESTAMP_NTZ'2024-03-31 02:30:00'", "bigint", 1_711_852_200_000_000),
    "parquet": ("INTERVAL '1 00:00:01' DAY TO SECOND", "bigint", 86_401_000_000),
}
"""By format a value that it has no type for, what Spark stores for it, and the number."""


@pytest.mark.parametrize("form", NOTED)
def test_what_spark_only_notes_to_be_of_a_type_is_read_as_the_stored_number(
    spark: Any, tmp_path: Path, form: str
) -> None:
    """Another file may have the same numbers without the note: the error names what to declare."""
    value, stored, number = NOTED[form]
    place = str(tmp_path / "t")
    spark.sql(f"SELECT {value} AS v").write.format(form).save(place)
    ref = DatasetRef("orders", place, format=form)
    with pytest.raises(DatasetError) as found:
        open_dataset(spark, ref).read([None]).collect()
    assert f"declare 'v' as {stored} in its schema" in found.value.hint
    declared = open_dataset(spark, replace(ref, schema=f"v {stored}"))
    assert declared.read([None]).collect()[0].v == number
