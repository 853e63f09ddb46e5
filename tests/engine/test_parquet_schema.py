"""The schema of Parquet files that Spark wrote, found without a Spark job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.values import DatasetRef
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
TYPES = """CAST(1 AS TINYINT) AS tiny, 1.5BD AS amount, CAST(1 AS DECIMAL(38, 18)) AS wide,
    DATE'1969-12-31' AS day, TIMESTAMP'2024-03-02 10:00:00' AS at,
    TIMESTAMP_NTZ'2024-03-02 10:00:00' AS there, X'00' AS raw, INTERVAL '1' DAY AS term,
    named_struct('with.dot', array(1), 'm', map('k', 1.0D)) AS `a nested, quoted "one`,
    parse_json('{"a": 1}') AS anything"""

Write = Callable[[Any, Path], None]


def in_one_file(spark: Any, path: Path) -> None:
    spark.sql(f"SELECT {TYPES}").write.parquet(str(path))


def with_names_of_texts(spark: Any, path: Path) -> None:
    spark.sql(
        f"CREATE TABLE texts (id INT NOT NULL COMMENT 'the key', code CHAR(3), name VARCHAR(9)) "
        f"USING parquet LOCATION '{path}'"
    )
    spark.sql("INSERT INTO texts VALUES (1, 'abc', 'name')")
    spark.sql("DROP TABLE texts")


def in_partitions(spark: Any, path: Path) -> None:
    rows = spark.sql("SELECT id, DATE'2024-03-02' AS ds, '007' AS shop FROM range(3)")
    rows.write.partitionBy("ds", "shop").parquet(str(path))


def with_a_partition_that_the_files_have_too(spark: Any, path: Path) -> None:
    rows = spark.sql("SELECT id, '2024-03-02' AS DS FROM range(3)")
    rows.write.parquet(str(path / "ds=2024-03-02"))


def with_other_columns_in_the_second_file(spark: Any, path: Path) -> None:
    path.mkdir()
    for number, columns in enumerate(("1L AS id", "1L AS id, 1.0D AS price")):
        written = path.parent / str(number)
        spark.sql(f"SELECT {columns} ").write.parquet(str(written))
        (file,) = written.glob("*.parquet")
        file.rename(path / f"{number}.parquet")


def with_a_summary(spark: Any, path: Path) -> None:
    with_other_columns_in_the_second_file(spark, path)
    (path / "1.parquet").rename(path / "_common_metadata")


def by_another_writer(spark: Any, path: Path) -> None:
    path.mkdir()
    pq.write_table(pa.table({"id": [1]}), path / "a.parquet")


def with_a_schema_that_is_none(spark: Any, path: Path) -> None:
    path.mkdir()
    table = pa.table({"id": [1]}).replace_schema_metadata({ROW_METADATA: b"{}"})
    pq.write_table(table, path / "a.parquet")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("write", "jobs"),
    [
        (in_one_file, 0),
        (with_names_of_texts, 0),
        (in_partitions, 0),
        (with_a_partition_that_the_files_have_too, 1),
        (with_other_columns_in_the_second_file, 0),
        (with_a_summary, 1),
        (by_another_writer, 1),
        (with_a_schema_that_is_none, 1),
    ],
)
def test_the_schema_is_the_one_spark_finds(
    spark: Any, tmp_path: Path, write: Write, jobs: int
) -> None:
    path = tmp_path / "t"
    write(spark, path)
    files = next(path.rglob("*.parquet")) if write is in_one_file else path
    for place in {path, files}:
        found, started = opened(spark, DatasetRef("t", str(place), format="parquet"))
        assert found == spark.read.parquet(str(place)).schema.json()
        assert started == jobs


@pytest.mark.few(1)
@pytest.mark.parametrize("by", ["an option", "the session"])
def test_merged_schemas_are_left_to_spark(spark: Any, tmp_path: Path, by: str) -> None:
    path = tmp_path / "t"
    with_other_columns_in_the_second_file(spark, path)
    ref = DatasetRef("t", str(path), format="parquet")
    if by == "an option":
        ref = replace(ref, options=(("mergeSchema", "true"),))
    else:
        spark.conf.set("spark.sql.parquet.mergeSchema", True)
    try:
        assert '"price"' in opened(spark, ref)[0]
    finally:
        spark.conf.unset("spark.sql.parquet.mergeSchema")


def opened(spark: Any, ref: DatasetRef) -> tuple[str, int]:
    """The schema of a dataset as JSON, and the number of Spark jobs that opening it took."""
    before = jobs_so_far(spark)
    found = open_dataset(spark, ref).struct.json()
    return found, jobs_so_far(spark) - before
