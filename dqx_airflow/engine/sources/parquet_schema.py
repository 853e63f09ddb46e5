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
"""A user-defined type of Python may no longer exist."""
_SUMMARIES = ("_common_metadata", "_metadata")
"""Summary files beside the data that Spark reads first."""


def merges_schemas(spark: SparkSession, ref: DatasetRef) -> bool:
    """True if an option or the session asks for the columns of all files."""
    name = "mergeSchema"
    option = {key.casefold(): value for key, value in ref.options}.get(name.casefold())
    return (option or spark.conf.get(f"spark.sql.{ref.format}.{name}")).lower() == "true"


def schema_as_written(path: str, files: Sequence[DataFile]) -> StructType | None:
    """The schema that Spark finds for the files at a path, if Spark wrote them.

    Spark would start a job to read the footer of the first file. None if the result could differ:
    Spark did not write the file, there is a summary file, or folders have one of its columns, whose
    type Spark takes from them.
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
    folders = {name.casefold() for name in partition_names(files)}
    is_in_both = struct is not None and not folders.isdisjoint(map(str.casefold, struct.names))
    return None if is_in_both else struct
