"""What a strict read refuses, and errors of reading explained.

A cluster may be configured to skip files that are corrupt or missing. Reader options override such
a setting; reads of catalog tables take no options that apply to all of their files.
"""

from __future__ import annotations

from types import MappingProxyType

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.datasets.settings import format_of
from dqx_airflow.engine.session.spark_errors import explain
from dqx_airflow.engine.session.spark_versions import condition_of, objection_to_types, package_of
from dqx_airflow.engine.sources.listing import absolute, files_at
from dqx_airflow.errors import DatasetError, first_line
from dqx_airflow.values import DatasetRef

NOTHING_IGNORED = MappingProxyType(
    {
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "false",
        "ignoreInvalidPartitionPaths": "false",
    }
)
"""The options of a file reader that make it fail."""

_IGNORING = (
    *(f"spark.sql.files.{name}" for name in NOTHING_IGNORED),
    "spark.sql.hive.verifyPartitionPath",
)
_LITERALS_AS_WRITTEN = "spark.sql.parser.escapedStringLiterals"
_QUOTED_PATTERNS = "spark.sql.parser.quotedRegexColumnNames"
_CHECKS_FOLDERS = "spark.sql.sources.validatePartitionColumns"


def require_strict_session(spark: SparkSession, ref: DatasetRef, read: str) -> None:
    """Rejects a session that skips files, for a read that takes no options against it.

    :raises DatasetError: the session is configured so.
    """
    for name in _IGNORING:
        _require(spark, ref, name, "false", f"{read} may silently lack rows")


def require_plain_sql(spark: SparkSession, ref: DatasetRef) -> None:
    """Rejects a session in which the strings and the column names of a suite would be others in
    Spark's SQL.

    :raises DatasetError: the session is configured so.
    """
    strings = "it would compare with other strings than those in the suite"
    _require(spark, ref, _LITERALS_AS_WRITTEN, "false", strings)
    names = "the name of a column would be a pattern, which other columns may match"
    _require(spark, ref, _QUOTED_PATTERNS, "false", names)


def require_checked_folders(spark: SparkSession, ref: DatasetRef) -> None:
    """Rejects a session that reads a partition folder as NULL if its value is not of the declared
    type.

    :raises DatasetError: the session is configured so.
    """
    consequence = "a folder such as ds=junk would silently become NULL"
    _require(spark, ref, _CHECKS_FOLDERS, "true", consequence)


def _require(
    spark: SparkSession, ref: DatasetRef, name: str, default: str, consequence: str
) -> None:
    """:param default: Spark's default of a boolean setting, the value that it must have.
    :raises DatasetError: it has the other one.
    """
    actual = spark.conf.get(name, default).lower()
    if actual != default:
        message = f"dataset '{ref.name}': this Spark session has {name}={actual}, so {consequence}"
        raise DatasetError(message, f"set {name}={default}, at least for the gate")


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
    """Why a dataset cannot be read, in the user's words instead of Spark's."""
    condition = condition_of(error)
    if ref.path is not None and condition in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
        return nothing_there(ref, absolute(ref.path))
    if condition == "DATA_SOURCE_NOT_FOUND" or "Failed to find data source" in first_line(error):
        kind = ref.format if ref.path is not None else "delta"
        package = package_for(spark, kind)
        return DatasetError(
            f"dataset '{ref.name}': this Spark session cannot read {kind}; {package}"
        )
    if (objection := objection_to_types(spark, ref.schema or str(error))) is not None:
        return DatasetError(f"dataset '{ref.name}' cannot be read: {objection}")
    if condition == "COLUMN_ALREADY_EXISTS":
        column = (error.getMessageParameters() or {}).get("columnName", "").strip("`")
        return DatasetError(
            f"dataset '{ref.name}' has a duplicate column '{column}' (names are case-insensitive)",
            "rename one of them, or set spark.sql.caseSensitive=true",
        )
    return DatasetError(
        f"dataset '{ref.name}' cannot be read: {explain(error)}", f"check {ref.location}"
    )


def package_for(spark: SparkSession, kind: str) -> str:
    """The package that lets a session read a format."""
    package = package_of(kind, spark.version)
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
