"""The Spark of a demo: one Spark Connect server, a JVM for all jobs and gates, where each
`spark-submit` would start its own."""

from __future__ import annotations

import os
import socket
import time
from importlib.util import find_spec
from pathlib import Path

from dqx_airflow.cli.demo.home import LOCAL, DemoHome, programs
from dqx_airflow.cli.demo.processes import (
    POLL_S,
    START_TIMEOUT_S,
    DemoError,
    require_running,
    start,
    stop,
)

_SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    # A day of flights is small: a JVM that starts fast matters more than one that compiles well.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "WARN",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
_LOG = "spark_server"


def has_server() -> bool:
    """Whether this Spark comes with a Connect server, as it does since 4.0."""
    found = find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or (found and found.origin and Path(found.origin).parent)
    return bool(home) and any((Path(str(home)) / "jars").glob("spark-connect_*.jar"))


class SparkServer:
    """The server at `home.spark`, which has started when `wait` returns.

    Only processes with the environment of the demo can use it: they have its token.
    """

    def __init__(self, home: DemoHome) -> None:
        self._home = home
        self._port = int(home.spark.rpartition(":")[2])
        settings = {**_SETTINGS, "spark.connect.grpc.binding.port": str(self._port)}
        command = [str(programs() / "spark-submit"), "--master", LOCAL]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        self._process = start(home, _LOG, [*command, "spark-internal"])

    def wait(self) -> None:
        """Waits until the server accepts connections.

        :raises DemoError: it does not start.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._accepts():
            require_running(self._home, [self._process])
            if time.monotonic() > deadline:
                log = self._home.logs / f"{_LOG}.log"
                raise DemoError("the Spark server did not start", f"see {log}")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Ends the server."""
        stop([self._process])

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0
