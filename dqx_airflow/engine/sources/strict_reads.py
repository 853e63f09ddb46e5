"""What makes Spark fail where it would read nothing: options of each read, and what has none.

A cluster may be told to pass over files that are corrupt or gone. The options of a reader win over
such a setting; the reads of tables of the catalog take none that reach all of their files.
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
"""The options of a reader of files by which it fails as it should."""

_IGNORING = (
    *(f"spark.sql.files.{name}" for name in NOTHING_IGNORED),
    "spark.sql.hive.verifyPartitionPath",
)
_CHECKS_FOLDERS = "spark.sql.sources.validatePartitionColumns"


def require_strict_session(spark: SparkSession, ref: DatasetRef, what: str) -> None:
    """Refuses a session that passes over files, for a read that takes no options against it.

    :raises DatasetError: the session does so.
    """
    for name in _IGNORING:
        if spark.conf.get(name, "false").lower() == "true":
            raise DatasetError(
                f"dataset '{ref.name}': this Spark session has {name}=true, so {what} may "
                "silently lack rows",
                f"set {name}=false, at least for the gate",
            )


def require_checked_folders(spark: SparkSession, ref: DatasetRef) -> None:
    """Refuses a session that takes a folder for NULL whose value is not of the declared type.

    :raises DatasetError: the session does so.
    """
    if spark.conf.get(_CHECKS_FOLDERS, "true").lower() != "true":
        raise DatasetError(
            f"dataset '{ref.name}': this Spark session has {_CHECKS_FOLDERS}=false, so a "
            "folder such as ds=junk would silently become NULL",
            f"set {_CHECKS_FOLDERS}=true, at least for the gate",
        )
