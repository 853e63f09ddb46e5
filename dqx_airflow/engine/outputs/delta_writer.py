"""Files that Spark writes into the folder of a Delta table, for its log.

deltalake commits them: no row passes through the driver, and the session needs no Delta source.
Files that no commit adds are invisible to readers, and VACUUM removes them. The actions and their
statistics are those of the Delta protocol, "Add File and Remove File".
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from dqx_airflow.metrics.sql import quote_name


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Files for a commit, the number of their rows, and of those that satisfied a condition."""

    adds: tuple[AddAction, ...] = ()
    rows: int = 0
    counted: int = 0


def write_files(
    spark: SparkSession,
    frame: DataFrame,
    root: str,
    folder: str,
    *,
    partition_by: Sequence[str] = (),
    constants: Mapping[str, str] = MappingProxyType({}),
    extremes_of: Sequence[str] = (),
    count_if: str | None = None,
) -> WrittenFiles:
    """Writes the rows of a frame into a folder below the root of a table.

    :param partition_by: columns of the frame by which the table is partitioned.
    :param constants: other partition columns, with their single value.
    :param extremes_of: columns of dates, strings or integers whose minimum and maximum in each file
        the log records.
    :param count_if: a condition, as Spark SQL, on rows to be counted.
    """
    place = f"{root}/{folder}"
    # As many files as the size of the result requires, rather than one for each file that was read.
    hinted = frame.hint("rebalance", *(F.expr(quote_name(name)) for name in partition_by))
    hinted.write.mode("overwrite").partitionBy(*partition_by).parquet(place)
    written = spark.read.schema(frame.schema).parquet(place)
    about = ("file_path", "file_size", "file_modification_time")
    values = [F.expr(quote_name(name)).cast("string").alias(name) for name in partition_by]
    grouped = written.groupBy(*(F.col(f"_metadata.{name}").alias(f"_{name}") for name in about))
    measured = [F.count(F.lit(1)).alias("_rows"), F.count_if(F.expr(count_if or "false"))]
    measured += (F.first(value) for value in values)
    bounded = [name for name in dict.fromkeys(extremes_of) if name not in partition_by]
    for name in bounded:
        column = F.expr(quote_name(name))
        measured += [F.min(column), F.max(column), F.count(column)]
    rows = grouped.agg(*measured).withColumn(
        "_file_modification_time", F.unix_millis("_file_modification_time")
    )
    adds, total, counted = [], 0, 0
    # Spark renames files after writing them, and the log is not trusted for files that are younger
    # than its entry.
    now_ms = int(time.time() * 1000)
    for path, size, modified_ms, count, matching, *folders_and_extremes in rows.collect():
        name = unquote(path).rpartition(f"/{folder}/")[2]
        extremes = folders_and_extremes[len(partition_by) :]
        thirds = zip(bounded, extremes[::3], extremes[1::3], extremes[2::3], strict=True)
        statistics = {"numRecords": count, **_statistics(count, thirds)}
        partition = {**constants, **dict(zip(partition_by, folders_and_extremes, strict=False))}
        statistics_json = json.dumps(statistics, default=str)
        written_ms = max(modified_ms, now_ms)
        adds.append(
            AddAction(f"{folder}/{name}", size, partition, written_ms, True, statistics_json)
        )
        total += count
        counted += matching
    return WrittenFiles(tuple(adds), total, counted)


def _statistics(rows: int, columns: Iterable[tuple[str, Any, Any, int]]) -> dict[str, Any]:
    """The statistics of columns for the log: minimum, maximum and number of values."""
    statistics: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for column, least, most, values in columns:
        statistics["nullCount"][column] = rows - values
        if least is not None:
            statistics["minValues"][column], statistics["maxValues"][column] = least, most
    return {name: by_column for name, by_column in statistics.items() if by_column}


def nullable(struct: StructType) -> StructType:
    """The columns without the metadata of their source; each may be missing in an older file."""
    return StructType([StructField(field.name, field.dataType) for field in struct.fields])
