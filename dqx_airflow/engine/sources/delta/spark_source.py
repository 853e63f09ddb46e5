"""Spark's own Delta source: whether a session has it, and which settings add it."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.session.spark_errors import spark_failures

EXTENSIONS = (
    "set spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog in its conf "
    "as well"
)
"""The settings that are needed besides the package."""

_EXTENDED_BY = {"spark.sql.extensions": "", "spark.sql.catalog.spark_catalog": "builtin"}
"""Settings by which other extensions get into Spark SQL, with their default values."""
_MISSING = ("DATA_SOURCE_NOT_FOUND", "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG")
_NOWHERE = "/there-is-no-such-delta-table"


def has_delta(spark: SparkSession) -> bool:
    """True if the session reads and writes Delta tables itself.

    The source itself is asked: on some platforms it is available without being configured, and
    elsewhere it is configured but its package is missing. A plain session is not asked: it cannot
    have the source, and would look for one in Python, too.
    """
    if all(spark.conf.get(name, plain) == plain for name, plain in _EXTENDED_BY.items()):
        return False
    try:
        with spark_failures():
            _ = spark.read.format("delta").load(_NOWHERE).schema
    except PySparkException as error:
        return error.getCondition() not in _MISSING
    return True
