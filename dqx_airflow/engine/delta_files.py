"""Files that Spark writes into the folder of a Delta table, as the log of the table takes them up.

deltalake commits them: no row passes through the driver, and the session needs no Delta source.
What no commit takes up is invisible to readers, and VACUUM removes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from dqx_airflow.metrics.sql import quote_name

WAITS_S = (0.05, 0.2, 0.8, 1.6)
"""How long a writer waits, time after time, whose commit another one has crossed."""


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    adds: tuple[AddAction, ...] = ()
    rows: int = 0


def write_files(
    spark: SparkSession,
    frame: DataFrame,
    root: str,
    folder: str,
    *,
    partition_by: Sequence[str] = (),
    constants: Mapping[str, str] = MappingProxyType({}),
    extremes_of: str | None = None,
) -> WrittenFiles:
    """Writes the rows of a frame into a folder below the root of a table.

    :param partition_by: columns of the frame by which the table is partitioned.
    :param constants: other columns by which it is, with the one value of each.
    :param extremes_of: a column of dates, texts or whole numbers whose least and greatest value in
        each file the log is told.
    """
    place = f"{root}/{folder}"
    # As many files as the size of what is left asks for, not one for each file that was read.
    hinted = frame.hint("rebalance", *(F.expr(quote_name(name)) for name in partition_by))
    hinted.write.mode("overwrite").partitionBy(*partition_by).parquet(place)
    written = spark.read.schema(frame.schema).parquet(place)
    about = ("file_path", "file_size", "file_modification_time")
    values = [F.expr(quote_name(name)).cast("string").alias(name) for name in partition_by]
    grouped = written.groupBy(*(F.col(f"_metadata.{name}").alias(f"_{name}") for name in about))
    measured = [F.count(F.lit(1)).alias("_rows"), *(F.first(value) for value in values)]
    if extremes_of is not None and extremes_of not in partition_by:
        column = F.expr(quote_name(extremes_of))
        measured += [F.min(column), F.max(column), F.count(column)]
    else:
        extremes_of = None
    rows = grouped.agg(*measured).withColumn(
        "_file_modification_time", F.unix_millis("_file_modification_time")
    )
    adds, total = [], 0
    for path, size, modified_ms, count, *found in rows.collect():
        name = unquote(path).rpartition(f"/{folder}/")[2]
        statistics: dict[str, Any] = {"numRecords": count}
        if extremes_of is not None:
            statistics |= _statistics(extremes_of, count, *found[len(partition_by) :])
        partition = {**constants, **dict(zip(partition_by, found, strict=False))}
        told = json.dumps(statistics, default=str)
        adds.append(AddAction(f"{folder}/{name}", size, partition, modified_ms, True, told))
        total += count
    return WrittenFiles(tuple(adds), total)


def _statistics(column: str, rows: int, least: Any, most: Any, values: int) -> dict[str, Any]:
    known = {} if least is None else {"minValues": {column: least}, "maxValues": {column: most}}
    return {**known, "nullCount": {column: rows - values}}


def nullable(struct: StructType) -> StructType:
    """The columns without the metadata of their source; each may be missing in an older file."""
    return StructType([StructField(field.name, field.dataType) for field in struct.fields])
