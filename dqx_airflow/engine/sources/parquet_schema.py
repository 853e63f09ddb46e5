"""The schema that Spark wrote into Parquet files, read without a Spark job."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, FileType
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dqx_airflow.engine.sources.listing import DataFile, partition_names
from dqx_airflow.values import DatasetRef

_WRITTEN_BY_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_NO_CLASS = (ImportError, AttributeError)
"""A type that somebody has defined in Python may be defined no longer."""
_SUMMARIES = ("_common_metadata", "_metadata")
"""Files beside the data that Spark looks into first."""


def merges_schemas(spark: SparkSession, ref: DatasetRef) -> bool:
    """True where the columns of all files are to be read, as an option or the session says."""
    name = "mergeSchema"
    said = {key.casefold(): value for key, value in ref.options}.get(name.casefold())
    return (said or spark.conf.get(f"spark.sql.{ref.format}.{name}")).lower() == "true"


def schema_as_written(path: str, files: Sequence[DataFile]) -> StructType | None:
    """The schema that Spark finds for the files at a path, where it wrote them.

    Spark starts a job for it that reads the footer of the first file. None where it would not be
    found there: Spark did not write the file, a summary is beside it, or it has a column that the
    folders tell as well, whose type Spark takes from them.
    """
    try:
        system, root = FileSystem.from_uri(path)
        beside = [info.type for info in system.get_file_info([f"{root}/{s}" for s in _SUMMARIES])]
        if not files or any(kind is not FileType.NotFound for kind in beside):
            return None
        footer = pq.read_metadata(files[0].path, filesystem=system)
        written = (footer.metadata or {}).get(_WRITTEN_BY_SPARK)
        struct = None if written is None else StructType.fromJson(json.loads(written))
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException, *_NO_CLASS):
        return None
    told = {name.casefold() for name in partition_names(files)}
    is_told_twice = struct is not None and not told.isdisjoint(map(str.casefold, struct.names))
    return None if is_told_twice else struct
