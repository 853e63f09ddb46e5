"""The Spark session of the job. A session that is handed in is never reconfigured."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType

from pyspark import SparkConf
from pyspark.sql import SparkSession

from dqx_airflow.plan.passes import MOST_COMPILED

SQL_DEFAULTS = {
    # Dates and timestamps mean the same wherever the job runs.
    "spark.sql.session.timeZone": "UTC",
    # Spark would put environment variables into SQL that holds ${env:NAME}, even inside quotes.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.codegen.maxFields": str(2 * MOST_COMPILED),
    # Delta and Iceberg would answer counts and extremes from their logs, for files that are gone.
    "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
    "spark.sql.iceberg.aggregate-push-down.enabled": "false",
}
"""The settings of a session that we create, wherever it runs."""

_LOCAL_DEFAULTS = {
    # A gate lives for seconds: a web page about it costs more than it tells.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Adaptive execution runs every shuffle as a job of its own and pays off on clusters; here one
    # fused aggregate is one job.
    "spark.sql.adaptive.enabled": "false",
}


def create_session(name: str, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """The session of a gate, with our defaults for whatever was not set.

    :param settings: they are added to those of spark-submit.
    """
    builder = SparkSession.builder
    for key, value in _settings(name, settings).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def start_context(name: str) -> None:
    """Starts the Spark that the next `create_session` with this name then takes."""
    from pyspark import SparkContext  # a client of Spark Connect has none

    SparkContext.getOrCreate(conf_of(name))


def conf_of(name: str, settings: Mapping[str, str] = MappingProxyType({})) -> SparkConf:
    """What `create_session` asks of Spark."""
    return SparkConf().setAll(list(_settings(name, settings).items()))


def _settings(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    given = SparkConf().setAll(list(settings.items()))
    defaults = dict(SQL_DEFAULTS)
    master = given.get("spark.master", "local[*]") or "local[*]"
    if master.startswith("local"):
        defaults |= _LOCAL_DEFAULTS
        defaults["spark.sql.shuffle.partitions"] = str(_local_cores(master))
    ours = {key: value for key, value in defaults.items() if not given.contains(key)}
    return {"spark.app.name": name, **settings, **ours}


def quiet_pyspark() -> None:
    """PySpark logs every error of a query as a page of JSON. We tell what matters of it."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


def _local_cores(master: str) -> int:
    """How many tasks run at once: `local[2]` says it, `local[*]` means all cores."""
    import os

    cores = master.removeprefix("local").strip("[]").split(",")[0]
    return int(cores) if cores.isdigit() else (os.cpu_count() or 1) if cores else 1
