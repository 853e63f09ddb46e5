"""The settings of a Spark session that may change what is computed."""

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
"""These count with their defaults too, which may come from the machine or its environment."""

_OF_SQL = "spark.sql."
_COUNT = (_OF_SQL, *(f"spark.hadoop.{name}." for name in ("parquet", "orc", "avro", "mapreduce")))
_WITHOUT_EFFECT = tuple(
    f"{_OF_SQL}{name}"
    for name in (
        # How work is divided, and what of it is compiled or kept.
        *("adaptive.", "autoBroadcastJoinThreshold", "broadcastTimeout", "shuffle.partitions"),
        *("codegen.", "files.maxPartition", "files.minPartition", "files.openCostInBytes"),
        *("inMemoryColumnarStorage.", "optimizer.maxIterations", "maxMetadataStringLength"),
        # What is shown, counted or kept for people, and where sessions and tables are.
        *("ui.", "debug.", "queryExecutionListeners", "streaming.", "thriftServer."),
        *("artifact.", "warehouse.dir", "hive.", "catalogImplementation", "repl."),
        # Tokens may be among them, and of tables of a catalog no state is stored.
        "catalog.",
    )
)
"""Everything else counts, also what no version of Spark has yet: one scan too many is no harm."""


def settings_of(spark: SparkSession) -> Mapping[str, str | None] | None:
    """The settings of a session that may change a result, by name; None where it does not tell."""
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
