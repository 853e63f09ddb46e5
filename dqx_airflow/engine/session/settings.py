"""The settings of a Spark session that may change results."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.session.spark_errors import spark_failures

_WITH_DEFAULTS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
)
"""These count even at their defaults, which may come from the machine or its environment."""

_OF_SQL = "spark.sql."
_COUNT = (_OF_SQL, *(f"spark.hadoop.{name}." for name in ("parquet", "orc", "avro", "mapreduce")))
_WITHOUT_EFFECT = tuple(
    f"{_OF_SQL}{name}"
    for name in (
        # How work is divided, and what is compiled or cached.
        *("adaptive.", "autoBroadcastJoinThreshold", "broadcastTimeout", "shuffle.partitions"),
        *("codegen.", "files.maxPartition", "files.minPartition", "files.openCostInBytes"),
        *("inMemoryColumnarStorage.", "optimizer.maxIterations", "maxMetadataStringLength"),
        # What is displayed, counted or logged, and where sessions and tables are.
        *("ui.", "debug.", "queryExecutionListeners", "streaming.", "thriftServer."),
        *("artifact.", "warehouse.dir", "hive.", "catalogImplementation", "repl."),
        # May contain tokens; no states are stored for catalog tables.
        "catalog.",
    )
)
"""Every other setting counts, also of future Spark versions: an extra scan does no harm."""


def settings_of(spark: SparkSession) -> Mapping[str, str | None] | None:
    """The settings of a session that may change a result, by name; None if it hides them."""
    try:
        with spark_failures():
            every = dict(spark.conf.getAll)
    except PySparkException:
        return None
    values: dict[str, str | None] = {name: spark.conf.get(name, None) for name in _WITH_DEFAULTS}
    values |= {
        name: value
        for name, value in every.items()
        if name.startswith(_COUNT) and not name.startswith(_WITHOUT_EFFECT)
    }
    return values
