"""The settings of a driver that runs on the worker itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from logging import Logger
from typing import Any

from airflow.providers.common.compat.sdk import conf as airflow_conf


def local_driver_conf(
    conf: Mapping[str, str], env_vars: Mapping[str, Any] | None, log: Logger
) -> dict[str, str]:
    """`conf` for a driver on this worker: adds its Python and a class archive, unless set."""
    return {**_python(conf, env_vars or {}), **conf, **_jvm(conf, log)}


def local_driver_env(env_vars: Mapping[str, Any] | None) -> dict[str, Any]:
    """`env_vars` with options for a JVM that lives for seconds."""
    from dqx_airflow.datasets.jvm_options import for_a_short_life

    given = env_vars or {}
    return {**given, **for_a_short_life({**os.environ, **given})}


def _python(conf: Mapping[str, str], env_vars: Mapping[str, Any]) -> dict[str, str]:
    """The setting for the Python of this worker; empty if another one is set."""
    variables = {**os.environ, **env_vars}
    if variables.keys() & {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}:
        return {}
    if "spark.pyspark.python" in conf:
        return {}
    return {"spark.pyspark.driver.python": sys.executable}


def _jvm(conf: Mapping[str, str], log: Logger) -> dict[str, str]:
    """Settings for the class archive with which the driver's JVM starts faster, if configured."""
    from dqx_airflow.datasets.jvm_options import DRIVER_OPTIONS, with_archive

    archive = airflow_conf.get("dqx", "jvm_archive", fallback=None)
    if not archive:
        return {}
    if not os.path.isfile(archive):
        log.warning(
            "file %s not found, which jvm_archive in section [dqx] names: create it with "
            "`dql package --jvm-archive`; the gate runs without it",
            archive,
        )
        return {}
    return {DRIVER_OPTIONS: with_archive(conf.get(DRIVER_OPTIONS, ""), archive)}
