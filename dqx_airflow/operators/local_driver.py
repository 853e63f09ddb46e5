"""The settings of a driver that runs on the worker itself, and the classes that its JVM leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from logging import Logger
from pathlib import Path
from shutil import which
from typing import Any

from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.datasets.class_cache import ClassCache, class_cache
from dqx_airflow.datasets.jvm_options import DRIVER_OPTIONS, for_a_short_life, with_archive


class LocalDriver:
    """A driver on this worker.

    :param conf: the settings of the gate. :param env_vars: the variables of the gate.
    :param spark_submit: the name of the program that starts it.
    :param on_classpath: settings that `spark-submit` gets as options of its own.
    :ivar conf: the settings with the Python of this worker and an archive of classes, unless set.
    :ivar env_vars: the variables with options for a JVM that lives for seconds.
    """

    def __init__(
        self,
        conf: Mapping[str, str],
        env_vars: Mapping[str, Any] | None,
        spark_submit: str,
        on_classpath: Mapping[str, Any],
        log: Logger,
    ) -> None:
        given = env_vars or {}
        self._env: Mapping[str, str] = {**os.environ, **given}
        self._log = log
        self._written: tuple[ClassCache, Path] | None = None
        self.env_vars: dict[str, Any] = {**given, **for_a_short_life(self._env)}
        self.conf = {**self._python(conf), **conf}
        self.conf |= self._archive() or self._cached(spark_submit, on_classpath)

    def keep_classes(self, *, has_ended_well: bool) -> None:
        """Takes the archive that the JVM of this driver wrote when it ended."""
        if self._written is None:
            return
        cache, made = self._written
        with suppress(OSError):
            if has_ended_well:
                cache.keep(made, has_ended_well=True)
            else:  # the next gate tries again
                made.unlink(missing_ok=True)

    def _python(self, conf: Mapping[str, str]) -> dict[str, str]:
        """The setting for the Python of this worker; empty if another one is set."""
        if self._env.keys() & {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}:
            return {}
        if "spark.pyspark.python" in conf:
            return {}
        return {"spark.pyspark.driver.python": sys.executable}

    def _archive(self) -> dict[str, str]:
        """The setting for the archive that `jvm_archive` names, if it exists."""
        archive = airflow_conf.get("dqx", "jvm_archive", fallback=None)
        if not archive:
            return {}
        if not os.path.isfile(archive):
            self._log.warning(
                "file %s not found, which jvm_archive in section [dqx] names: create it with "
                "`dql package --jvm-archive`; the gate runs without it",
                archive,
            )
            return {}
        return {DRIVER_OPTIONS: with_archive(self.conf.get(DRIVER_OPTIONS, ""), archive)}

    def _cached(self, spark_submit: str, on_classpath: Mapping[str, Any]) -> dict[str, str]:
        """The setting for an archive in the folder that `jvm_cache` names, or to write one."""
        folder = airflow_conf.get("dqx", "jvm_cache", fallback=None)
        if not folder:
            return {}
        if not os.path.isabs(folder):
            self._log.warning(
                "jvm_cache in section [dqx] is not an absolute path: %s; the gate runs without it",
                folder,
            )
            return {}
        java, spark = _java_home(self._env), _spark_home(spark_submit, self._env)
        if java is None or spark is None:
            return {}
        settings = {
            **self.conf,
            **{key: str(value) for key, value in on_classpath.items() if value},
        }
        try:
            cache = class_cache(Path(folder), java, spark, settings, self._env)
        except OSError as error:
            self._log.warning("the gate runs without jvm_cache: %s", error)
            return {}
        if cache is None:
            return {}
        start = cache.start(self.conf.get(DRIVER_OPTIONS, ""))
        if start.made is not None:
            self._written = cache, start.made
        return {DRIVER_OPTIONS: start.options} if start.options else {}


def _java_home(env: Mapping[str, str]) -> Path | None:
    """The home of the Java that `spark-submit` starts."""
    if home := env.get("JAVA_HOME"):
        return Path(home)
    program = which("java", path=env.get("PATH"))
    return Path(program).resolve().parents[1] if program else None


def _spark_home(spark_submit: str, env: Mapping[str, str]) -> Path | None:
    """The home of the Spark that the program starts: PySpark, for the one of its package."""
    if home := env.get("SPARK_HOME"):
        return Path(home)
    program = which(spark_submit, path=env.get("PATH"))
    if program is not None and (Path(program).resolve().parents[1] / "jars").is_dir():
        return Path(program).resolve().parents[1]
    found = find_spec("pyspark")
    return Path(found.origin).parent if found and found.origin else None
