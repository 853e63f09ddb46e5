"""Opens datasets as Spark DataFrames, pinned to the version that is there now.

A Delta table is read through Spark's Delta source where the session has it. Where it has not, the
snapshot's files are read as Parquet; a table that needs more than that gets an error that says
which package to add.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dqx_airflow.errors import DatasetError
from dqx_airflow.values import FORMATS, DatasetRef, Field

_NEEDS_DELTA_SOURCE = frozenset({"deletionVectors", "columnMapping"})


@dataclass(frozen=True, slots=True)
class OpenDataset:
    """A dataset that can be scanned. `frame` holds at least the rows of the dates asked for.

    `rows` is the number of rows of the whole dataset where its transaction log tells it; None
    where only a scan can tell, or where the dataset has dates.
    """

    ref: DatasetRef
    frame: DataFrame
    location: str
    version: int | None = None
    rows: int | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(
            Field(field.name, field.dataType.simpleString()) for field in self.frame.schema.fields
        )


def open_dataset(
    spark: SparkSession, ref: DatasetRef, dates: Collection[date | None]
) -> OpenDataset:
    """Opens a dataset for some dates. No Spark job runs for Delta tables and catalog tables.

    :raises DatasetError: there is nothing to read, or no way to read it.
    """
    if (ref.path is None) == (ref.table is None):
        raise DatasetError(
            f"dataset '{ref.name}' needs a path or a table, and not both",
            "write DatasetRef(name, path=...) or DatasetRef(name, table=...)",
        )
    if ref.format not in FORMATS:
        raise DatasetError(
            f"dataset '{ref.name}' has the unknown format '{ref.format}'",
            f"formats are {', '.join(FORMATS)}",
        )
    try:
        opened = _open(spark, ref, dates)
        if ref.filter is not None:
            filtered = opened.frame.where(ref.filter)
            opened = replace(opened, frame=filtered, rows=None)
        # The schema is asked for here, so that what is wrong with it is found here.
        columns = opened.frame.columns
    except PySparkException as error:
        raise DatasetError(
            f"dataset '{ref.name}' cannot be read: {explain(error)}",
            f"look at {ref.location}",
        ) from error
    if ref.date_column is not None and ref.date_column not in columns:
        raise DatasetError(
            f"dataset '{ref.name}' has no date column '{ref.date_column}'",
            f"its columns are {', '.join(columns)}",
        )
    return opened


def _open(spark: SparkSession, ref: DatasetRef, dates: Collection[date | None]) -> OpenDataset:
    if ref.table is not None:
        return OpenDataset(ref, spark.table(ref.table), ref.table)
    path = _absolute(ref.path or "")
    if ref.format == "delta":
        return _open_delta(spark, ref, path, dates)
    frame = spark.read.format(ref.format).options(**dict(ref.options)).load(path)
    return OpenDataset(ref, frame, path)


def _open_delta(
    spark: SparkSession, ref: DatasetRef, path: str, dates: Collection[date | None]
) -> OpenDataset:
    try:
        snapshot = DeltaTable(path, version=ref.version)
    except TableNotFoundError as error:
        raise DatasetError(
            f"dataset '{ref.name}': there is no Delta table at {path}",
            "correct the path, or run the task that writes the table first",
        ) from error
    except (DeltaError, OSError, ValueError) as error:
        raise DatasetError(
            f"dataset '{ref.name}': the Delta table at {path} cannot be read: {_first_line(error)}",
            "look at its _delta_log",
        ) from error
    version = snapshot.version()
    rows = None if ref.date_column else _counted_rows(snapshot)
    if "io.delta" in (spark.conf.get("spark.sql.extensions", "") or ""):
        reader = spark.read.format("delta").option("versionAsOf", version)
        return OpenDataset(ref, reader.load(path), path, version, rows)
    needed = _NEEDS_DELTA_SOURCE.intersection(snapshot.protocol().reader_features or ())
    if needed:
        raise DatasetError(
            f"dataset '{ref.name}': the Delta table at {path} uses {', '.join(sorted(needed))}, "
            "which this Spark session cannot read",
            'give the gate packages="io.delta:delta-spark_4.2_2.13:4.4.1" and '
            "conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
        )
    schema = StructType.fromJson(json.loads(snapshot.schema().to_json()))
    files = snapshot.file_uris(file_pruning_predicate=_pruning(schema, ref, dates))
    if not files:
        return OpenDataset(ref, spark.createDataFrame([], schema), path, version, rows)
    reader = spark.read.schema(schema).option("basePath", path)
    return OpenDataset(ref, reader.parquet(*files), path, version, rows)


def _counted_rows(snapshot: DeltaTable) -> int | None:
    """The number of rows as the log tells it: every file counted, no rows deleted in place."""
    if "deletionVectors" in (snapshot.protocol().reader_features or ()):
        return None
    counts = pyarrow.table(snapshot.get_add_actions(flatten=True))["num_records"].to_pylist()
    return None if None in counts else sum(counts)


def _pruning(
    schema: StructType, ref: DatasetRef, dates: Collection[date | None]
) -> list[tuple[str, str, list[date] | list[str]]] | None:
    """The filter for files that may hold the dates: by partition, else by their statistics.

    None where all files have to be read. The rows are filtered again in the scan.
    """
    column = ref.date_column
    if column is None or column not in schema.names:
        return None
    days = sorted(on for on in dates if on)
    match schema[column].dataType.simpleString():
        case "date":
            return [(column, "in", days)]
        case "string":
            return [(column, "in", [on.isoformat() for on in days])]
        case _:
            return None


def _absolute(path: str) -> str:
    """Local paths absolute: Spark and deltalake have different ideas of relative ones."""
    if urlsplit(path).scheme in ("", "file"):
        return str(Path(path.removeprefix("file://")).expanduser().absolute())
    return path


def explain(error: PySparkException) -> str:
    """What Spark complains about, in one line."""
    return _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
