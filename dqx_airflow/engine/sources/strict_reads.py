"""Makes Spark fail where it would silently read nothing, or something else: by reader options, or
by refusing a read.

A cluster may be configured to skip files that are corrupt or missing. Reader options override such
a setting; reads of catalog tables take no options that apply to all of their files.
"""

from __future__ import annotations

from types import MappingProxyType

from pyspark.sql import SparkSession

from dqx_airflow.errors import DatasetError
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
        raise DatasetError(
            f"dataset '{ref.name}': this Spark session has {name}={actual}, so {consequence}",
            f"set {name}={default}, at least for the gate",
        )
