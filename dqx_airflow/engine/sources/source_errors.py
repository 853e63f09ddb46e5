"""Errors of datasets that cannot be read, in the words of the user instead of Spark's."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.datasets.settings import format_of
from dqx_airflow.engine.session import spark_versions
from dqx_airflow.engine.session.spark_errors import explain
from dqx_airflow.engine.sources import iceberg
from dqx_airflow.engine.sources.broken_lines import located
from dqx_airflow.engine.sources.listing import absolute, files_at
from dqx_airflow.errors import DatasetError, first_line
from dqx_airflow.values import DatasetRef

_INSTEAD = {
    "Delta": "set format=delta and the path of the table",
    "Iceberg": "set format=iceberg and the path of the table, or give it as a catalog table",
    "Hudi": "give it as a catalog table",
}
"""The description of a table instead of the format of its files."""


def nothing_there(ref: DatasetRef, path: str) -> DatasetError:
    kind = "Delta table" if ref.format == "delta" else f"{ref.format} file"
    problem = f"dataset '{ref.name}': no {kind} at {path}"
    formats = {format_of(file.path) for file in files_at(path) or ()}
    if len(formats) == 1 and (actual := formats.pop()) not in (None, ref.format):
        return DatasetError(f"{problem}, its files are {actual}", f"set format={actual}")
    return DatasetError(problem, "correct the path, or run the task that writes it first")


def of_table(ref: DatasetRef, path: str, table: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': the {ref.format} files at {path} belong to a table of {table}: "
        "they include replaced and deleted files",
        _INSTEAD[table],
    )


def unreadable(spark: SparkSession, ref: DatasetRef, error: PySparkException) -> DatasetError:
    """The error of a dataset that cannot be read, in the user's words instead of Spark's."""
    condition = spark_versions.condition_of(error)
    if ref.path is not None and condition in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
        return nothing_there(ref, absolute(ref.path))
    if condition == "DATA_SOURCE_NOT_FOUND" or "Failed to find data source" in first_line(error):
        kind = ref.format if ref.path is not None else "delta"
        package = package_for(spark, kind)
        return DatasetError(
            f"dataset '{ref.name}': this Spark session cannot read {kind}; {package}"
        )
    if (
        objection := spark_versions.objection_to_types(spark, ref.schema or str(error))
    ) is not None:
        return DatasetError(f"dataset '{ref.name}' cannot be read: {objection}")
    if condition == "COLUMN_ALREADY_EXISTS":
        column = (error.getMessageParameters() or {}).get("columnName", "").strip("`")
        return DatasetError(
            f"dataset '{ref.name}' has a duplicate column '{column}' (names are case-insensitive)",
            "rename one of them, or set spark.sql.caseSensitive=true",
        )
    message = explain(error)
    if ref.format == "iceberg" or ref.table is not None:
        refused = iceberg.refusal_of_options(ref, message)
        if refused is not None:
            return DatasetError(f"dataset '{ref.name}' {refused.problem}", refused.hint)
    problem = located(ref, message)
    return DatasetError(f"dataset '{ref.name}' cannot be read: {problem}", f"check {ref.location}")


def package_for(spark: SparkSession, kind: str) -> str:
    """The package that lets a session read a format."""
    package = spark_versions.package_of(kind, spark.version)
    return f'give the gate packages="{package}"' if package else "give the gate its package"


def lost_file(ref: DatasetRef, entry: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': the log of the Delta table lists {entry}",
        "restore the file, or choose a version whose files all exist",
    )


def too_early(ref: DatasetRef, place: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': {place} has no version as old as {ref.timestamp}",
        "give it a later timestamp",
    )
