"""Starts a driver: Spark on one thread, the imports of the job on another."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dqx_airflow.errors import DqxError, RequestError
from dqx_airflow.values.json_form import FILE_FLAG, from_arguments, storage_options_of
from dqx_airflow.values.redact import redact_urls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT = {"SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"}


def job_arguments(given: Sequence[str]) -> list[str]:
    """The arguments of a job; where they have the address of a stored request, those in it.

    Ends the process if that cannot be read.
    """
    if FILE_FLAG not in given[:-1]:
        return list(given)
    from dqx_airflow.results.store import take_request

    try:
        options = storage_options_of(os.environ)
        return take_request(given[given.index(FILE_FLAG) + 1], options)
    except DqxError as error:
        print(f"error: {redact_urls(str(error))}", file=sys.stderr)
        sys.exit(4)


def start_spark(arguments: Sequence[str]) -> Callable[[str], SparkSession]:
    """Starts the Spark of a job and returns while it is starting.

    :param arguments: of the job. Spark does not start if they are invalid: the job reports that.
    :return: `create_session`, which waits for Spark and raises the error if the start failed.
    """
    prefer_bytecode(sys.path)
    on_a_server = bool(os.environ.keys() & _CONNECT)
    if not on_a_server:
        _warm_up()
    from dqx_airflow.engine.session.spark_session import create_session, start_context
    from dqx_airflow.engine.session.spark_versions import modules_of_first_call

    try:
        name = from_arguments(arguments).run_key.gate
    except RequestError:
        return create_session
    if on_a_server:
        return create_session
    # PySpark imports this in its first call to the JVM. Two threads that import modules of one
    # package may see it half initialized; after this import the other thread imports nothing.
    for module in modules_of_first_call():
        importlib.import_module(module)
    failed: list[Exception] = []

    def start() -> None:
        try:
            start_context(name)
        except Exception as error:
            failed.append(error)

    # A daemon thread: a rejected job does not wait until a cluster has room for its Spark.
    starting = threading.Thread(target=start, daemon=True)
    starting.start()

    def session(name: str) -> SparkSession:
        starting.join()
        if failed:
            raise failed[0]
        return create_session(name)

    return session


def _warm_up() -> None:
    # Before PySpark is imported, which takes a while; and only if PySpark can be found.
    from dqx_airflow.engine.session.warm_up import class_names, starter_of, warm_up

    starter = starter_of(os.environ)
    if starter is not None:
        warm_up(starter, class_names())


def start_own_spark(name: str, settings: Mapping[str, str]) -> None:
    """Starts a JVM, and in it the Spark that the next `create_session` with these settings uses.

    Does nothing if this process has a JVM. Raises what PySpark raises.
    """
    from py4j.java_gateway import GatewayParameters
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    from dqx_airflow.engine.session.spark_session import conf_of
    from dqx_airflow.engine.session.warm_up import class_names, warm_up

    if SparkContext._gateway is not None:
        return
    conf = conf_of(name, settings)
    gateway = launch_gateway(conf)
    parameters = gateway.gateway_parameters
    warm_up(
        GatewayParameters(port=parameters.port, auth_token=parameters.auth_token), class_names()
    )
    SparkContext(gateway=gateway, conf=conf)


def prefer_bytecode(path: list[str]) -> None:
    """Moves PySpark's archives on `sys.path` behind the packages that they were made of, if
    installed.

    spark-submit puts the archives first. They contain no bytecode, so that all of PySpark would be
    compiled again, and every import would search them.
    """
    for entry in filter(_is_pyspark, list(path)):
        package = Path(entry).parents[2]  # SPARK_HOME: the package itself where pip installed it
        if (package / "__init__.py").is_file() and str(package.parent) in path:
            inside = [part for part in path if Path(part).is_relative_to(package)]
            path[:] = [part for part in path if part not in inside] + inside


def _is_pyspark(entry: str) -> bool:
    return Path(entry).parts[-3:] == ("python", "lib", "pyspark.zip")
