"""The data files that a commit adds to a Delta table, written by the engine.

On Sail, which writes no data, this process writes them.
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
from pyspark.sql.types import StringType, StructField, StructType

from dqx_airflow.engine.outputs.collected_files import PartFile, write_collected
from dqx_airflow.engine.session.sail import sail_version
from dqx_airflow.engine.session.spark_versions import rebalanced
from dqx_airflow.engine.sources import partition_values
from dqx_airflow.metrics.sql import quote_literal, quote_name


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Files for a commit, the number of their rows, and the number of rows that satisfied a
    condition."""

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
    if sail_version(spark) is not None:
        parts = write_collected(frame, root, folder, partition_by, extremes_of, count_if)
        return _of_parts(parts, folder, constants)
    place = f"{root}/{folder}"
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    divided = {name: kinds[name] for name in partition_by}
    named = frame.select(
        *(
            F.expr(
                partition_values.folder_text(name, kind) if name in divided else quote_name(name)
            ).alias(name)
            for name, kind in kinds.items()
        )
    )
    # As many files as the size of the result requires, rather than one for each file that was read.
    balanced = rebalanced(spark, named, tuple(map(quote_name, partition_by)))
    balanced.write.mode("overwrite").partitionBy(*partition_by).parquet(place)
    fields = (
        StructField(field.name, StringType() if field.name in divided else field.dataType)
        for field in frame.schema.fields
    )
    written = _as_written(spark.read.schema(StructType(list(fields))).parquet(place), divided)
    measured = [F.count(F.lit(1)).alias("_rows"), F.count_if(F.expr(count_if or "false"))]
    bounded = [name for name in dict.fromkeys(extremes_of) if name not in divided]
    for name in bounded:
        column = F.expr(quote_name(name))
        measured += [F.min(column), F.max(column), F.count(column)]
    rows = written.groupBy(*map(quote_name, _OF_FILE)).agg(*measured)
    adds = []
    total = 0
    counted = 0
    # Spark renames files after writing them, and the log is not trusted for files that are younger
    # than its entry.
    now_ms = int(time.time() * 1000)
    for path, size, modified_ms, row_count, matching, *extremes in rows.collect():
        name = unquote(path).rpartition(f"/{folder}/")[2]
        try:
            partition = {**constants, **partition_values.logged_values(name, divided)}
        except partition_values.UnheldValueError as error:
            error.rows = written.where(f"{quote_name(_OF_FILE[0])} = {quote_literal(path)}")
            raise
        thirds = zip(bounded, extremes[::3], extremes[1::3], extremes[2::3], strict=True)
        statistics = {"numRecords": row_count, **_statistics(row_count, thirds)}
        statistics_json = json.dumps(statistics, default=str)
        written_ms = max(modified_ms, now_ms)
        adds.append(
            AddAction(f"{folder}/{name}", size, partition, written_ms, True, statistics_json)
        )
        total += row_count
        counted += matching
    return WrittenFiles(tuple(adds), total, counted)


def _of_parts(parts: Sequence[PartFile], folder: str, constants: Mapping[str, str]) -> WrittenFiles:
    """The files that this process has written."""
    now_ms = int(time.time() * 1000)
    adds = tuple(
        AddAction(
            f"{folder}/{part.name}",
            part.size,
            {**constants, **part.partition},
            now_ms,
            True,
            json.dumps(
                {"numRecords": part.rows, **_statistics(part.rows, part.extremes)}, default=str
            ),
        )
        for part in parts
    )
    return WrittenFiles(adds, sum(part.rows for part in parts), sum(part.counted for part in parts))


_OF_FILE = ("dqx: file", "dqx: size", "dqx: modified")


def _as_written(files: DataFrame, divided: Mapping[str, str]) -> DataFrame:
    """The rows of written files with the values in the names of their folders, and the file of each
    row.

    :param divided: the types of the partition columns.
    """
    about = ("_metadata.file_path", "_metadata.file_size")
    modified = "unix_millis(_metadata.file_modification_time)"
    of_file = zip((*about, modified), _OF_FILE, strict=True)
    values = (
        F.expr(
            partition_values.value_in_folder(name, divided[name])
            if name in divided
            else quote_name(name)
        ).alias(name)
        for name in files.columns
    )
    return files.select(*values, *(F.expr(sql).alias(name) for sql, name in of_file))


def _statistics(rows: int, columns: Iterable[tuple[str, Any, Any, int]]) -> dict[str, Any]:
    """The statistics of columns for the log: minimum, maximum and number of values."""
    statistics: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for column, least, most, values in columns:
        statistics["nullCount"][column] = rows - values
        if least is not None:
            statistics["minValues"][column], statistics["maxValues"][column] = least, most
    return {name: by_column for name, by_column in statistics.items() if by_column}
