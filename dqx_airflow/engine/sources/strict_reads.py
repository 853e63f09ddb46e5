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
_CHECKS_FOLDERS = "spark.sql.sources.validatePartitionColumns"


def require_strict_session(spark: SparkSession, ref: DatasetRef, what: str) -> None:
    """Rejects a session that skips files, for a read that takes no options against it.

    :raises DatasetError: the session is configured so.
    """
    for name in _IGNORING:
        if spark.conf.get(name, "false").lower() == "true":
            raise DatasetError(
                f"dataset '{ref.name}': this Spark session has {name}=true, so {what} may "
                "silently lack rows",
                f"set {name}=false, at least for the gate",
            )


def require_escaped_literals(spark: SparkSession, ref: DatasetRef) -> None:
    """Rejects a session in which the strings of a suite would be other strings in Spark's SQL.

    :raises DatasetError: the session is configured so.
    """
    if spark.conf.get(_LITERALS_AS_WRITTEN, "false").lower() == "true":
        raise DatasetError(
            f"dataset '{ref.name}': this Spark session has {_LITERALS_AS_WRITTEN}=true, so it "
            "would compare with other strings than those in the suite",
            f"set {_LITERALS_AS_WRITTEN}=false, at least for the gate",
        )


def require_checked_folders(spark: SparkSession, ref: DatasetRef) -> None:
    """Rejects a session that reads a partition folder as NULL if its value is not of the declared
    type.

    :raises DatasetError: the session is configured so.
    """
    if spark.conf.get(_CHECKS_FOLDERS, "true").lower() != "true":
        raise DatasetError(
            f"dataset '{ref.name}': this Spark session has {_CHECKS_FOLDERS}=false, so a "
            "folder such as ds=junk would silently become NULL",
            f"set {_CHECKS_FOLDERS}=true, at least for the gate",
        )
