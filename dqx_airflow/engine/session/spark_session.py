"""The Spark session of a run and its settings."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import pyspark
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.session.engines import switches_in, versions_of
from dqx_airflow.engine.session.sail import engine_version
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.session.spark_versions import (
    context_of,
    require_supported,
    running_sparks,
    settings_set,
)
from dqx_airflow.plan.passes import MOST_COMPILED
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.request import ANSI

TIME_ZONE = "spark.sql.session.timeZone"
_UTC = frozenset({"utc", "z", "gmt", "etc/utc", "etc/gmt", "etc/uct", "uct", "zulu", "+00:00"})
_WITH_DEFAULTS = (TIME_ZONE, ANSI, "spark.sql.caseSensitive", "spark.sql.legacy.timeParserPolicy")
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
        *("parser.manageParserCaches", "parser.parserDfaCache"),
        # What is displayed, counted or logged, and where sessions and tables are.
        *("ui.", "debug.", "queryExecutionListeners", "streaming.", "thriftServer."),
        *("artifact.", "warehouse.dir", "hive.", "catalogImplementation", "repl."),
        # May contain tokens; no states are stored for catalog tables.
        "catalog.",
    )
)
"""Every other setting counts, also of future Spark versions: an extra scan does no harm."""


def has_ansi(spark: SparkSession) -> bool | None:
    """True if ANSI mode is on; None if the session does not report it."""
    try:
        with spark_failures():
            value = spark.conf.get(ANSI)
    except PySparkException:
        return None
    return None if value is None else value.lower() == "true"


def is_in_utc(spark: SparkSession) -> bool:
    """True if the time zone of a session is UTC; False also if the session does not report it."""
    return str(spark.conf.get(TIME_ZONE, "")).lower() in _UTC


def engine_of(spark: SparkSession) -> dict[str, Any]:
    """The entries of a report about the session that measured."""
    return {"spark_version": engine_version(spark), "ansi": has_ansi(spark)}


def objection_to_sql(spark: SparkSession, *, ansi: bool) -> str | None:
    """The reason for not evaluating SQL of a user or of the clause of a contract: the session is
    not in the declared ANSI mode. None if it is."""
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
    """The settings of a session that may change a result, by name, and the versions of its engine
    by `engines.VERSIONS`; None if it hides them."""
    try:
        with spark_failures():
            every = settings_set(spark)
            versions = versions_of(spark, every)
    except PySparkException:
        return None
    values: dict[str, str | None] = {name: spark.conf.get(name, None) for name in _WITH_DEFAULTS}
    values |= {
        name: value
        for name, value in every.items()
        if name.startswith(_COUNT) and not name.startswith(_WITHOUT_EFFECT)
    }
    return {**values, **switches_in(every), **versions}


def _settings_in(file: str) -> dict[str, str]:
    """The settings in a file of this package, in the format of `spark-defaults.conf`."""
    lines = files(__package__).joinpath(file).read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines if line and not line.startswith("#"))


SQL_DEFAULTS = {
    **_settings_in("sql_defaults.conf"),
    "spark.sql.codegen.maxFields": str(2 * MOST_COMPILED),
}
"""The settings of a session that we create, wherever it runs."""


def create_session(name: str, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """The session of a gate, with our defaults for every setting that is not set.

    :param settings: settings that are added to the settings of spark-submit.
    """
    require_supported(pyspark.__version__)
    return SparkSession.builder.config(map=_settings(name, settings)).getOrCreate()


def start_context(name: str) -> None:
    """Starts the Spark that the next `create_session` with this name uses, for the job of this
    process. Does nothing on a cluster whose tasks share a running Spark."""
    from pyspark import SparkContext  # a client of Spark Connect has none

    earlier = running_sparks()
    context = SparkContext.getOrCreate(conf_of(name))
    if not any(context is one for one in earlier):
        _for_the_job.append(context)


_for_the_job: list[Any] = []


def earlier_sparks() -> list[Any]:
    """The Sparks that this process uses, without the Spark that was started for its job."""
    return [one for one in running_sparks() if not any(one is own for own in _for_the_job)]


def conf_of(name: str, settings: Mapping[str, str] = MappingProxyType({})) -> SparkConf:
    """The configuration that `create_session` passes to Spark."""
    return SparkConf().setAll(list(_settings(name, settings).items()))


def _settings(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    conf = SparkConf().setAll(list(settings.items()))
    # Where the log of the driver is off, the logs of the executors are too: see `without_log`.
    defaults = {**SQL_DEFAULTS, "spark.executor.syncLogLevel.enabled": "true"}
    master = conf.get("spark.master", "local[*]") or "local[*]"
    if master.startswith("local"):
        defaults |= _settings_in("local_defaults.conf")
        defaults["spark.sql.shuffle.partitions"] = str(_local_cores(master))
    ours = {key: value for key, value in defaults.items() if not conf.contains(key)}
    return {"spark.app.name": name, **settings, **ours}


def quiet_pyspark() -> None:
    """Silences the messages of PySpark beside its exceptions: its logger writes every query error
    as a page of JSON, and a warning announces that a server is lost."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")


def without_log(spark: SparkSession, refs: Iterable[DatasetRef]) -> SparkSession:
    """Turns off the log of our own session if columns are masked, and returns the session: the log
    quotes values that cannot be cast, and our messages have the error conditions."""
    if any(ref.masked for ref in refs):
        context = context_of(spark)
        if context is not None:
            context.setLogLevel("OFF")
    return spark


def _local_cores(master: str) -> int:
    """The number of concurrent tasks: 2 for `local[2]`, all cores for `local[*]`."""
    cores = master.removeprefix("local").strip("[]").split(",")[0]
    return int(cores) if cores.isdigit() else (os.cpu_count() or 1) if cores else 1
