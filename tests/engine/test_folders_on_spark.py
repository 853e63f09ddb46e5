"""A date of Parquet files in folders is read without the other folders, and as with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.folders_on_spark import SparkFolders
from dqx_airflow.engine.sources.listing import DatasetFiles, files_at
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.values import DatasetRef

pytestmark = pytest.mark.spark

DAY = date(2024, 3, 2)
OTHER = "ds=2024-03-01", "ds=2024-03-03", "ds=2024-03-04"

Lake = Callable[..., DatasetRef]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Writes a file of one row into each folder; the row is numbered."""

    def write(
        *folders: str, date_column: str = "ds", below: str = ".", **columns: Any
    ) -> DatasetRef:
        root = tmp_path / below / "t"
        for number, folder in enumerate(folders):
            (root / folder).mkdir(parents=True, exist_ok=True)
            table = pa.table({"id": [number], **{name: [one] for name, one in columns.items()}})
            pq.write_table(table, root / folder / f"{number}.parquet")
        return DatasetRef("t", path=str(root), format="parquet", date_column=date_column)

    return write


def folders_of(spark: SparkSession, ref: DatasetRef) -> SparkFolders | None:
    assert ref.path is not None
    return SparkFolders.of(DatasetFiles(spark, ref, ref.path, files_at(ref.path) or ()), None)


def listed_by_spark(opened: OpenDataset, on: date) -> set[str]:
    """The folders of the files that Spark found for a date."""
    files = opened.read({on}).inputFiles()
    return {file.rpartition("/")[0].rpartition("/t/")[2] for file in files}


LAYOUTS: Mapping[str, tuple[str, ...]] = {
    "dates": (*OTHER, "ds=2024-03-02", "ds=2024-03-05"),
    "dates and NULL": (*OTHER, "ds=2024-03-02", "ds=__HIVE_DEFAULT_PARTITION__"),
    "dates and words": tuple(
        f"ds=2024-03-0{day}/region={name}" for day in (1, 2, 3, 4) for name in ("ch", "a%20b")
    ),
    "dates and numbers": tuple(f"hour={hour}/ds=2024-03-0{hour}" for hour in range(1, 6)),
    "dates and leading zeros": tuple(f"ds=2024-03-0{hour}/hour=0{hour}" for hour in range(1, 6)),
    "in capitals": tuple(f"DS=2024-03-0{day}" for day in range(1, 6)),
    "only other dates": (*OTHER, "ds=2024-03-05"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_rows_of_a_date_are_those_that_spark_finds_in_all_folders(
    spark: SparkSession, lake: Lake, layout: str
) -> None:
    name = "DS" if layout == "in capitals" else "ds"
    ref = lake(*LAYOUTS[layout], date_column=name)
    assert folders_of(spark, ref) is not None
    opened = open_dataset(spark, ref)
    whole = spark.read.parquet(ref.path or "")
    assert opened.struct == whole.schema
    on = F.col(name) == F.lit(DAY)
    assert opened.read({DAY}).schema == whole.schema
    assert sorted(opened.read({DAY}).where(on).collect()) == sorted(whole.where(on).collect())
    assert sorted(opened.read({None}).collect(), key=str) == sorted(whole.collect(), key=str)


def test_only_the_folders_of_the_dates_are_listed(spark: SparkSession, lake: Lake) -> None:
    opened = open_dataset(spark, lake(*LAYOUTS["dates"]))
    assert listed_by_spark(opened, DAY) == {"ds=2024-03-02"}
    assert opened.read({DAY, date(2024, 3, 3)}).count() == 2


@pytest.mark.parametrize("below", ["env=prod", "ds=2024-01-01", "ds=2024-01-01/env=prod/x"])
def test_a_table_in_a_folder_that_looks_like_a_partition_has_its_own_folders(
    spark: SparkSession, lake: Lake, below: str
) -> None:
    ref = lake(*LAYOUTS["dates"], below=below)
    opened = open_dataset(spark, ref)
    assert opened.struct == spark.read.parquet(ref.path or "").schema
    assert [row.id for row in opened.read({DAY}).where(F.col("ds") == F.lit(DAY)).collect()] == [3]
    assert opened.change is None


def test_a_file_that_comes_later_is_read_by_no_read_of_the_run(
    spark: SparkSession, lake: Lake
) -> None:
    ref = lake(*LAYOUTS["dates"])
    opened = open_dataset(spark, ref)

    def arrives(name: str) -> None:
        pq.write_table(pa.table({"id": [77]}), Path(ref.path or "") / "ds=2024-03-02" / name)

    arrives("before.parquet")
    assert opened.read({DAY}).count() == 1
    arrives("between.parquet")
    assert [opened.read({DAY}).count(), opened.read({None}).count()] == [1, 5]
    assert opened.read({DAY, date(2024, 3, 3)}).count() == 2
    assert opened.change is None


def test_the_columns_of_a_summary_are_left_to_spark(spark: SparkSession, lake: Lake) -> None:
    ref = lake(*LAYOUTS["dates"])
    schema = pa.schema({"id": pa.int64(), "other": pa.string()})
    pq.write_metadata(schema, Path(ref.path or "") / "_common_metadata")
    assert folders_of(spark, ref) is None
    assert open_dataset(spark, ref).struct == spark.read.parquet(ref.path or "").schema


UNCERTAIN: Mapping[str, tuple[str, ...]] = {
    "a value that is no date": (*OTHER, "ds=2024-03-02", "ds=2024-02-30"),
    "moments": tuple(f"ds=2024-03-0{day}/at=2024-03-01 10%3A00%3A00" for day in (1, 2, 3, 4)),
    "large numbers": tuple(f"ds=2024-03-0{day}/n=12345678901" for day in (1, 2, 3, 4)),
    "fractions": tuple(f"ds=2024-03-0{day}/n=1.{day}" for day in (1, 2, 3, 4)),
    "escaped digits": ("ds=2024-03-01/n=2", "ds=2024-03-02/n=%31", "ds=2024-03-03/n=5"),
    "a number with a space": tuple(f"ds=2024-03-0{day}/n=NaN " for day in (1, 2, 3, 4)),
}


@pytest.mark.parametrize("layout", UNCERTAIN)
def test_folders_of_uncertain_types_are_left_to_spark(
    spark: SparkSession, lake: Lake, layout: str
) -> None:
    ref = lake(*UNCERTAIN[layout])
    assert folders_of(spark, ref) is None
    assert open_dataset(spark, ref).struct == spark.read.parquet(ref.path or "").schema


def test_a_column_that_is_in_the_files_too_is_left_to_spark(
    spark: SparkSession, lake: Lake
) -> None:
    assert folders_of(spark, lake("ds=2024-03-02", "ds=2024-03-03", ds="2024-03-02")) is None


def test_strings_stay_strings_where_a_session_infers_no_types(
    spark: SparkSession, lake: Lake
) -> None:
    ref = lake(*LAYOUTS["dates"])
    setting = "spark.sql.sources.partitionColumnTypeInference.enabled"
    spark.conf.set(setting, "false")
    try:
        opened = open_dataset(spark, ref)
        assert opened.struct["ds"].dataType.simpleString() == "string"
        assert opened.read({DAY}).where("ds = '2024-03-02'").count() == 1
    finally:
        spark.conf.unset(setting)


def test_a_change_of_files_that_were_not_read_is_none(spark: SparkSession, lake: Lake) -> None:
    ref = lake(*LAYOUTS["dates"])
    opened = open_dataset(spark, ref)
    assert opened.change is None
    opened.read({DAY}).collect()
    root = Path(ref.path or "")
    os.utime(root / "ds=2024-03-03" / "1.parquet", ns=(1, 1))
    (root / "ds=2024-03-02" / "new.parquet").write_bytes(b"")
    assert opened.change is None
    os.utime(root / "ds=2024-03-02" / "3.parquet", ns=(1, 1))
    assert str(opened.change).endswith("3.parquet was changed or removed while it was read")


def test_a_change_of_any_file_counts_where_all_were_read(spark: SparkSession, lake: Lake) -> None:
    ref = lake(*LAYOUTS["dates"])
    opened = open_dataset(spark, ref)
    opened.read({None}).collect()
    (Path(ref.path or "") / "ds=2024-03-03" / "1.parquet").unlink()
    assert opened.change is not None
