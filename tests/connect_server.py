"""A Spark Connect server for a test, reachable from this machine only."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import PROGRAMS, environment, free_port, running, wait_until

_SETTINGS = (
    "spark.ui.enabled=false",
    "spark.sql.adaptive.enabled=false",
    "spark.sql.shuffle.partitions=2",
)


@contextmanager
def connect_server(
    folder: Path, *more: str, program: Path = PROGRAMS / "spark-submit"
) -> Iterator[str]:
    """The address of the server; its log is written into the folder.

    :param more: settings of Spark, such as `spark.sql.ansi.enabled=false`.
    :param program: the spark-submit of another Spark.
    """
    port = free_port()
    settings = [*_SETTINGS, *more, f"spark.connect.grpc.binding.port={port}"]
    command = [
        *(str(program), "--master", "local[2]"),
        *(word for setting in settings for word in ("--conf", setting)),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    ]
    log = folder / "connect.log"

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    with running(command, environment(), log):
        wait_until(answers, log)
        yield f"sc://127.0.0.1:{port}"
