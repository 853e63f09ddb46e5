"""A Spark Connect server for a test, reachable from this machine only."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.maven_jars import any_jar
from tests.processes import PROGRAMS, environment, free_port, running, wait_until

_SETTINGS = (
    "spark.ui.enabled=false",
    "spark.sql.adaptive.enabled=false",
    "spark.sql.shuffle.partitions=2",
)


@contextmanager
def connect_server(
    folder: Path, *more: str, programs: Path = PROGRAMS, version: str = pyspark.__version__
) -> Iterator[str]:
    """The address of the server; its log is written into the folder.

    :param more: settings of Spark, such as `spark.sql.ansi.enabled=false`.
    :param programs: the folder of the programs of another Spark, whose version is given.
    """
    port = free_port()
    jars = [f"spark.jars={_jar_of(version)}"] if version.startswith("3.") else []
    settings = [*_SETTINGS, *jars, *more, f"spark.connect.grpc.binding.port={port}"]
    command = [
        *(str(programs / "spark-submit"), "--master", "local[2]"),
        *(word for setting in settings for word in ("--conf", setting)),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    ]
    log = folder / "connect.log"

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    variables = environment()
    # `spark-submit` takes the Spark of the first Python on the path.
    variables["PATH"] = os.pathsep.join([str(programs), variables["PATH"]])
    with running(command, variables, log):
        wait_until(answers, log)
        yield f"sc://127.0.0.1:{port}"


def _jar_of(version: str) -> str:
    """The server, which the distribution of Spark 3.5 comes without."""
    of_connect = "org.apache.spark:spark-connect_2.12"
    return any_jar(f"{of_connect}:{version}", f"{of_connect}:3.5.7")
