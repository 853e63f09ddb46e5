"""The Spark session of the job. A session that was passed in is never reconfigured."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

from pyspark import SparkConf
from pyspark.sql import SparkSession

from dqx_airflow.plan.passes import MOST_COMPILED
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.run_options import ANSI

SQL_DEFAULTS = {
    # Dates and timestamps have the same meaning wherever the job runs.
    "spark.sql.session.timeZone": "UTC",
    # Of SQL that a user writes, an overflow or a bad cast is an error; off, it is a NULL.
    ANSI: "true",
    # Spark would substitute environment variables in SQL with ${env:NAME}, even inside quotes.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.codegen.maxFields": str(2 * MOST_COMPILED),
    # Delta and Iceberg would answer counts and extremes from their logs, even if files are missing.
    "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
    "spark.sql.iceberg.aggregate-push-down.enabled": "false",
}
"""The settings of a session that we create, wherever it runs."""

_LOCAL_DEFAULTS = {
    # A gate lives for seconds: its web UI costs more than it is worth.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Adaptive execution runs every shuffle as a separate job, which pays off on clusters; here one
    # fused aggregate is one job.
    "spark.sql.adaptive.enabled": "false",
}


def create_session(name: str, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """The session of a gate, with our defaults for every setting that is not set.

    :param settings: added to those of spark-submit.
    """
    builder = SparkSession.builder
    for key, value in _settings(name, settings).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def start_context(name: str) -> None:
    """Starts the Spark that the next `create_session` with this name uses."""
    from pyspark import SparkContext  # a client of Spark Connect has none

    SparkContext.getOrCreate(conf_of(name))


def conf_of(name: str, settings: Mapping[str, str] = MappingProxyType({})) -> SparkConf:
    """The configuration that `create_session` passes to Spark."""
    return SparkConf().setAll(list(_settings(name, settings).items()))


def _settings(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    conf = SparkConf().setAll(list(settings.items()))
    defaults = dict(SQL_DEFAULTS)
    master = conf.get("spark.master", "local[*]") or "local[*]"
    if master.startswith("local"):
        defaults |= _LOCAL_DEFAULTS
        defaults["spark.sql.shuffle.partitions"] = str(_local_cores(master))
    ours = {key: value for key, value in defaults.items() if not conf.contains(key)}
    return {"spark.app.name": name, **settings, **ours}


def quiet_pyspark() -> None:
    """Silences what PySpark says beside its exceptions: its logger writes every query error as a
    page of JSON, and a warning announces that a server is lost."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")


def without_log(spark: SparkSession, refs: Iterable[DatasetRef]) -> SparkSession:
    """A session of ours, whose log is off if columns are masked: it quotes the values that cannot
    be cast, and our messages have the conditions."""
    if any(ref.masked for ref in refs):
        with suppress(AttributeError):  # Spark Connect has no such handle
            spark.sparkContext.setLogLevel("OFF")
    return spark


def _local_cores(master: str) -> int:
    """The number of concurrent tasks: 2 for `local[2]`, all cores for `local[*]`."""
    import os

    cores = master.removeprefix("local").strip("[]").split(",")[0]
    return int(cores) if cores.isdigit() else (os.cpu_count() or 1) if cores else 1
