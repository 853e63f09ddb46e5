"""The settings of a Spark session that may change results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.values.run_options import ANSI

_WITH_DEFAULTS = (
    "spark.sql.session.timeZone",
    ANSI,
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


def has_ansi(spark: SparkSession) -> bool | None:
    """Whether ANSI mode is on; None if the session does not tell."""
    try:
        with spark_failures():
            value = spark.conf.get(ANSI)
    except PySparkException:
        return None
    return None if value is None else value.lower() == "true"


def engine_of(spark: SparkSession) -> dict[str, Any]:
    """What a report says about the session that measured."""
    return {"spark_version": spark.version, "ansi": has_ansi(spark)}


def objection_to_sql(spark: SparkSession, *, ansi: bool) -> str | None:
    """Why SQL that a user wrote is not evaluated: the session is not in the declared mode."""
    actual = has_ansi(spark)
    if actual is ansi:
        return None
    found = "unknown" if actual is None else "on" if actual else "off"
    meant, other = ("on", "ansi=False (--no-ansi)") if ansi else ("off", "ansi=True (--ansi)")
    return (
        f"ANSI mode is {found} in the Spark session, but this run declares it {meant}, and SQL has "
        f"other values without it: set {ANSI}={str(ansi).lower()}, or declare {other}"
    )


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
