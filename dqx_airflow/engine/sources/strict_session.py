"""Settings of a Spark session with which a dataset would be read leniently, or a suite misread.

A cluster may be configured to skip files that are corrupt or missing. Reader options override such
a setting; reads of catalog tables take no options that apply to all of their files.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from dqx_airflow.engine.session import spark_versions
from dqx_airflow.engine.sources.listing import NOTHING_IGNORED
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

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
    _require(spark, ref, "false", dict.fromkeys(_IGNORING, f"{read} may silently lack rows"))


def require_plain_sql(spark: SparkSession, ref: DatasetRef) -> None:
    """Rejects a session in which the strings and the column names of a suite would be others in
    Spark's SQL.

    :raises DatasetError: the session is configured so.
    """
    strings = "it would compare with other strings than those in the suite"
    names = "the name of a column would be a pattern, which other columns may match"
    _require(spark, ref, "false", {_LITERALS_AS_WRITTEN: strings, _QUOTED_PATTERNS: names})


def require_checked_folders(spark: SparkSession, ref: DatasetRef) -> None:
    """Rejects a session that reads a partition folder as NULL if its value is not of the declared
    type.

    :raises DatasetError: the session is configured so.
    """
    consequence = "a folder such as ds=junk would silently become NULL"
    _require(spark, ref, "true", {_CHECKS_FOLDERS: consequence})


def _require(
    spark: SparkSession, ref: DatasetRef, default: str, consequences: Mapping[str, str]
) -> None:
    """:param default: Spark's default of boolean settings, the value that they must have.
    :param consequences: what would happen otherwise, by setting.
    :raises DatasetError: one has the other value.
    """
    for name, held in spark_versions.settings_named(
        spark, dict.fromkeys(consequences, default)
    ).items():
        if (actual := held.lower()) != default:
            message = f"dataset '{ref.name}': this Spark session has {name}={actual}, so "
            hint = f"set {name}={default}, at least for the gate"
            raise DatasetError(message + consequences[name], hint)
