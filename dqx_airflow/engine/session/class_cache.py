"""The JVM of this process in the [cache of classes][dqx_airflow.datasets.class_cache]: of the first
`dql run`, which writes an archive when it ends, and of later ones."""

from __future__ import annotations

import atexit
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dqx_airflow.datasets.class_cache import ClassCache, class_cache
from dqx_airflow.datasets.jvm_options import DRIVER_OPTIONS
from dqx_airflow.datasets.spark_address import Connection, ConnectionKind
from dqx_airflow.engine.session.java import search_java

CACHE = "DQX_JVM_CACHE"
"""The variable with the folder of the cache, an absolute path. Without it there is none."""

_LONGEST_END_S = 600


def with_cached_classes(
    connection: Connection, settings: Mapping[str, str], env: Mapping[str, str]
) -> Mapping[str, str]:
    """The settings of a session that start its JVM from cached classes, or let the JVM write them
    when this process ends."""
    is_asked_for = Path(env.get(CACHE, "")).is_absolute()
    if not is_asked_for or connection.kind is not ConnectionKind.LOCAL:
        return settings
    try:
        cache = cache_for(settings, env)
        if cache is None:
            return settings
        start = cache.start(settings.get(DRIVER_OPTIONS, ""))
    except (ImportError, OSError):
        return settings
    if start.made is not None:
        atexit.register(_end_jvm, cache, start.made)
    return {**settings, DRIVER_OPTIONS: start.options} if start.options else settings


def cache_for(settings: Mapping[str, str], env: Mapping[str, str]) -> ClassCache | None:
    """The cache of the Spark that would start; None if there is none, or if it would be useless.

    :raises OSError: it cannot be read or written, or there is no Spark.
    :raises ImportError: this PySpark only has a client.
    """
    import pyspark
    from pyspark import SparkContext

    java = search_java(env).found
    if java is None or SparkContext._gateway is not None:
        return None
    spark = Path(env.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return class_cache(Path(env.get(CACHE, "")), java.home, spark, settings, env)


def _end_jvm(cache: ClassCache, made: Path) -> None:
    """Ends the JVM of this process, which then writes its archive, and keeps that."""
    from pyspark import SparkContext

    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None:  # it did not start
        return
    has_ended_well = False
    with suppress(OSError):
        jvm.stdin.close()
    try:
        has_ended_well = jvm.wait(_LONGEST_END_S) == 0
    except (KeyboardInterrupt, subprocess.TimeoutExpired):  # the next run tries again
        jvm.kill()
        made.unlink(missing_ok=True)
        return
    with suppress(OSError):
        cache.keep(made, has_ended_well=has_ended_well)
