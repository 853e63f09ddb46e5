"""Identifies the engine behind a session: several engines have the same `spark.version`.

Settings let Photon and the plugins RAPIDS, Comet, Gluten (with Velox), Blaze and Auron replace the
operators of Spark. Vendors build their own Spark. `version()` in SQL returns the revision of a
build, and Databricks has `current_version()`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from dqx_airflow.engine.session.spark_versions import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASSES = ("spark.plugins", "spark.sql.extensions", "spark.shuffle.manager")
"""Settings with the classes of other engines."""

_SWITCHES = (
    "spark.plugins",
    "spark.shuffle.manager",
    "spark.rapids.",
    "spark.comet.",
    "spark.gluten.",
    "spark.blaze.",
    "spark.auron.",
    "spark.omni.",
    "spark.oap.",
    # Microsoft Fabric's, Alibaba's and Google's.
    "spark.native.",
    "spark.emr.serverless.fusion",
    "spark.dataproc.engine",
    "spark.dataproc.runtimeEngine",
    "spark.dataproc.lightningEngine.",
    "spark.databricks.photon.",
    "spark.databricks.clusterUsageTags.sparkVersion",
    "spark.databricks.clusterUsageTags.effectiveSparkVersion",
    "spark.databricks.clusterUsageTags.runtimeEngine",
)
"""The names, or how they begin, of settings that choose an engine and what it computes."""

_WITHOUT_EFFECT = re.compile(r"\.memory\b|[._](?:password|secret|token|credential)", re.I)
_NAMES_OF_SPARK = frozenset(
    (
        *("org", "com", "net", "io", "apache", "spark", "sql", "shuffle", "connect", "sort"),
        *("execution", "extensions", "plugin", "plugins", "executor", "driver", "memory"),
        *("hadoop", "databricks", "internal"),
    )
)
"""Parts of the names of classes after which Spark, or a platform, calls its own settings."""

_JARS = {
    "spark.jars": ",",
    "spark.jars.packages": ",",
    "spark.yarn.dist.jars": ",",
    "spark.driver.extraClassPath": ":",
    "spark.executor.extraClassPath": ":",
}
"""Settings with the files of other engines, and what is between two of them."""
_JAR_OF_ENGINE = re.compile(r"rapids|comet|gluten|velox|blaze|auron|photon|omni|native", re.I)

_OF_DATABRICKS = ("spark.databricks.clusterUsageTags.", "spark.databricks.photon.")
"""Delta Lake has settings below `spark.databricks.` everywhere."""

BUILD = "build"
RUNTIME = "runtime"
JARS = "jars"
VERSIONS = (BUILD, RUNTIME, JARS)
"""The names of the versions of an engine beside `spark.version`."""


def switches_in(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that choose an engine: known settings, and settings that share a word with the
    class of a plugin, as `spark.velocity.enabled` with `com.example.velocity.VelocityPlugin`."""
    classes = " ".join(settings.get(name) or "" for name in _CLASSES)
    words = {word.lower() for word in re.findall(r"\w+", classes)} - _NAMES_OF_SPARK
    prefixes = (*_SWITCHES, *(f"spark.{word}." for word in sorted(words)))
    return {
        name: value
        for name, value in settings.items()
        if name.startswith(prefixes) and not _WITHOUT_EFFECT.search(name)
    }


def versions_of(spark: SparkSession, settings: Mapping[str, str]) -> dict[str, str]:
    """The versions of the engine of a session, by `VERSIONS`, as far as it reports them.

    :param settings: the settings of the session.

    """
    versions = {BUILD: reported_version(spark), RUNTIME: _runtime_of(spark, settings)}
    versions[JARS] = " ".join(sorted(set(_jars_in(settings))))
    return {name: text for name, text in versions.items() if text}


_reported: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def reported_version(spark: SparkSession) -> str:
    """The result of `version()` in SQL: the version and revision of a Spark or of another
    engine."""
    if spark not in _reported:
        # A table in the query spares Spark a job.
        _reported[spark] = str(spark.sql("SELECT version() FROM VALUES (0)").collect()[0][0])
    return _reported[spark]


_runtimes: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def _runtime_of(spark: SparkSession, settings: Mapping[str, str]) -> str:
    """The version of the Databricks runtime; an empty string elsewhere."""
    of_driver = os.environ.get("DATABRICKS_RUNTIME_VERSION", "") if context_of(spark) else ""
    is_databricks = any(name.startswith(_OF_DATABRICKS) for name in settings)
    # The builds of Databricks have no revision.
    if not (of_driver or is_databricks or re.search(r"\b0{40}\b", reported_version(spark))):
        return ""
    if spark not in _runtimes:
        _runtimes[spark] = of_driver
        with suppress(PySparkException):  # it only calls its settings so
            row = spark.sql("SELECT to_json(current_version()) FROM VALUES (0)").collect()[0]
            _runtimes[spark] = str(row[0])
    return _runtimes[spark]


def _jars_in(settings: Mapping[str, str]) -> Iterator[str]:
    """The file names or Maven coordinates of the jars of other engines."""
    for setting, separator in _JARS.items():
        for jar in (settings.get(setting) or "").split(separator):
            name = jar.strip().rpartition("/")[2]
            if _JAR_OF_ENGINE.search(name):
                yield name
