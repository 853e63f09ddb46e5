"""Which folders of a dataset are partitions, and so which files may hold the rows of a date: as
Spark decides it, whatever lies above the table, between its folders, or in its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dqx_airflow.engine.sources.listing import ListedFiles, files_at, partitions_of
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

DAYS = [date(2024, 1, day) for day in (1, 2, 3)]


@pytest.mark.parametrize(
    ("path", "options", "folder", "partition"),
    [
        ("/lake/t", {}, "/lake/t/ds=2024-03-02", {"ds": "2024-03-02"}),
        ("/lake/t", {}, "/lake/t/ds=1/region=a%20b", {"ds": "1", "region": "a b"}),
        ("/lake/t", {}, "/lake/t/ds=2024-03-02/parts", {"ds": "2024-03-02"}),
        ("/lake/t", {}, "/lake/t/ds=1/exp/region=eu", {"region": "eu"}),
        ("/lake/t", {}, "/lake/t", {}),
        ("/lake/env=prod/t", {}, "/lake/env=prod/t/ds=1", {"ds": "1"}),
        ("/lake/ds=5/exp", {}, "/lake/ds=5/exp", {"ds": "5"}),
        ("/lake/ds=5/exp", {}, "/lake/ds=5/exp/region=eu", {"region": "eu"}),
        ("/lake/t/ds=1", {}, "/lake/t/ds=1/hour=2", {"ds": "1", "hour": "2"}),
        ("/lake/t/ds=*", {}, "/lake/t/ds=1/hour=2", {"ds": "1", "hour": "2"}),
        ("/lake/t/*/*.parquet", {}, "/lake/t/ds=1", {}),
        ("/lake/t/*", {}, "/lake/t/ds=1", {}),
        ("/lake/*", {}, "/lake/t/ds=1", {"ds": "1"}),
        ("/lake/t", {"recursiveFileLookup": "true"}, "/lake/t/ds=1", {}),
        ("/lake/t/ds=1", {"basePath": "/lake/t/ds=1"}, "/lake/t/ds=1/hour=2", {"hour": "2"}),
        ("/lake/t", {"basepath": "/lake"}, "/lake/t/ds=1", {"ds": "1"}),
    ],
)
def test_the_last_folders_in_a_row_below_the_base_path_are_partitions(
    path: str, options: Mapping[str, str], folder: str, partition: Mapping[str, str]
) -> None:
    ref = DatasetRef("t", path=path, format="parquet", options=tuple(options.items()))
    assert dict(partitions_of(ref, path, ListedFiles(())).partition_of(folder)) == partition


Row = tuple[int, int]
"""The day in January 2024 of a row, and its value."""


@dataclass(frozen=True)
class Layout:
    """The rows of files, each by its folder.

    :param has_dates: the files have the column `ds`.
    :param path: what is read, below the folder with all of them.
    """

    files: Mapping[str, tuple[Row, ...]]
    path: str = "t"
    options: Mapping[str, str] = field(default_factory=dict)
    has_dates: bool = True


ONE_EACH: Mapping[str, tuple[Row, ...]] = {f"t/ds=2024-01-0{day}": ((day, day),) for day in (1, 2)}
LATE: Mapping[str, tuple[Row, ...]] = {**ONE_EACH, "t/ds=2024-01-03": ((1, -100), (3, 3))}
EXPORT: Mapping[str, tuple[Row, ...]] = {
    "ds=2024-01-03/t/region=eu": ((2, 1), (1, 5)),
    "ds=2024-01-03/t/region=us": ((2, 2),),
}
LAYOUTS: Mapping[str, Layout] = {
    "folders of dates": Layout(ONE_EACH, has_dates=False),
    "folders of dates that are no partitions": Layout(
        LATE, options={"recursiveFileLookup": "true"}
    ),
    "a glob of files": Layout(LATE, path="t/*/*"),
    "a glob of folders": Layout(LATE, path="t/*"),
    "a glob of partitions": Layout(ONE_EACH, path="t/ds=2024-01-0*", has_dates=False),
    "a base path": Layout(
        {"ds=2024-01-03/t": ((1, 1), (2, 2))},
        path="ds=2024-01-03/t",
        options={"basePath": "ds=2024-01-03/t"},
    ),
    "a table in a folder of its date column": Layout(EXPORT, path="ds=2024-01-03/t"),
    "a folder between partitions": Layout({f"t/{name}": rows for name, rows in EXPORT.items()}),
    "partitions of dates in such a folder": Layout(
        {f"ds=2024-01-02/{name}": rows for name, rows in ONE_EACH.items()},
        path="ds=2024-01-02/t",
        has_dates=False,
    ),
}


IN_SEVERAL = Layout(
    {"t/ds=2024-01-01/exp/region=eu": ((1, 1),), "t/ds=2024-01-02/exp/region=eu": ((1, -5), (2, 2))}
)


def written(place: Path, form: str, layout: Layout) -> DatasetRef:
    for folder, rows in layout.files.items():
        (place / folder).mkdir(parents=True)
        columns: dict[str, Any] = {"v": [value for _, value in rows]}
        if layout.has_dates:
            columns["ds"] = [date(2024, 1, day) for day, _ in rows]
        WRITERS[form](pa.table(columns), place / folder / f"a.{form}")
    options = {key: str(place / text) if text != "true" else text
               for key, text in layout.options.items()}  # fmt: skip
    schema = "v bigint, ds date" if form == "json" and layout.has_dates else None
    return DatasetRef(
        "t",
        path=str(place / layout.path),
        format=form,
        date_column="ds",
        options=tuple(options.items()),
        schema=schema,
    )


def write_json(table: pa.Table, path: Path) -> None:
    lines = (f'{{"v": {row["v"]}, "ds": "{row["ds"]}"}}' for row in table.to_pylist())
    plain = (f'{{"v": {row["v"]}}}' for row in table.to_pylist())
    path.write_text("\n".join(lines if "ds" in table.column_names else plain))


WRITERS: Mapping[str, Callable[[pa.Table, Path], None]] = {
    "parquet": pq.write_table,
    "orc": lambda table, path: pyarrow.orc.write_table(table, str(path)),
    "json": write_json,
}


FORMATS = ["parquet", *(pytest.param(form, marks=pytest.mark.more) for form in ("orc", "json"))]


@pytest.mark.spark
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_rows_of_a_date_and_their_files_are_those_that_spark_finds(
    spark: SparkSession, tmp_path: Path, form: str, layout: str
) -> None:
    """The rows of each date are those of all files, and each file with such a row is one of the
    files that a stored state of the date depends on."""
    ref = written(tmp_path, form, LAYOUTS[layout])
    due = {(row.v, row.ds, row.file.rpartition(str(tmp_path))[2]) for row in whole(spark, ref)}
    assert len(due) == sum(map(len, LAYOUTS[layout].files.values()))
    opened = open_dataset(spark, ref)
    listed = ListedFiles(files_at(str(ref.path)) or ())
    for on in DAYS:
        rows = opened.read({on}).where(F.col("ds") == F.lit(on)).select("v").collect()
        assert sorted(row.v for row in rows) == sorted(v for v, of, _ in due if of == on)
        files = {file.path for file in opened.files_on(on, listed)}
        assert {str(tmp_path) + file for _, of, file in due if of == on} <= files
    assert opened.change is None


@pytest.mark.spark
@pytest.mark.parametrize("form", FORMATS)
def test_partitions_in_several_folders_are_refused_as_by_spark(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    ref = written(tmp_path, form, IN_SEVERAL)
    with pytest.raises((PySparkException, Py4JJavaError), match="CONFLICTING_DIRECTORY_STRUCTURES"):
        whole(spark, ref)
    with pytest.raises(DatasetError, match="CONFLICTING_DIRECTORY_STRUCTURES"):
        open_dataset(spark, ref).read({DAYS[0]}).collect()


def whole(spark: SparkSession, ref: DatasetRef) -> list[Any]:
    """All rows of a dataset with their files, as Spark reads them alone."""
    path = str(ref.path)
    # The folder above the first one that has a value.
    base = {"basePath": path.partition("=")[0].rpartition("/")[0]} if "=" in path else {}
    reader = spark.read.format(ref.format).options(**{**base, **dict(ref.options)})
    if ref.schema is not None:
        reader = reader.schema(ref.schema)
    file = F.col("_metadata.file_path").alias("file")
    return reader.load(path).select("v", F.col("ds").cast("date"), file).collect()
