"""The gate job over Spark Connect: a process without a JVM. Entered from `spark_jobs/`.

The address of Spark may hold a token, and arguments are public, so one line of JSON on standard
input passes it. The parent process keeps that input open; when it closes, no one waits for the
report any more, and the job ends.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import IO

from pyspark.sql import SparkSession

from dqx_airflow.datasets.spark_address import Connection, connection_of
from dqx_airflow.engine.job import run_gates, run_job
from dqx_airflow.engine.session.connection import open_session, spark_errors_explained
from dqx_airflow.engine.session.job_ending import JobEnding, signs_of_life
from dqx_airflow.engine.session.launch import job_arguments
from dqx_airflow.errors import DqxError
from dqx_airflow.values import GateReport, GateRequest
from dqx_airflow.values.json_form import EXIT_INFRASTRUCTURE

_REFUSED = re.compile(r"Failed to set (\S+) to ")


def main(arguments: Sequence[str]) -> int:
    """Runs the gate job over a session of a Spark Connect server, and returns the exit code."""
    # The reading thread must not hold a buffer lock when the process ends.
    task = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115
    message = json.loads(task.readline())
    ending = JobEnding()
    threading.Thread(target=_end_with, args=(task, ending), daemon=True).start()
    try:
        connection = connection_of(message["address"])
    except DqxError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE

    session = ending.opening(lambda name: _open(connection, name, message["settings"]))

    def run(request: GateRequest) -> tuple[GateReport, ...]:
        with spark_errors_explained(connection):
            reports = run_gates(request.parts, session)
            ending.close()
            return reports

    given, taken = job_arguments(arguments)
    with signs_of_life(taken, ending) as note:
        code = run_job(given, run, ending, session)
        note(code)
    return code


def _end_with(task: IO[bytes], ending: JobEnding) -> None:
    while task.read(1024):
        pass
    ending.end(EXIT_INFRASTRUCTURE, "the task of this gate has ended")


def _open(connection: Connection, name: str, settings: Mapping[str, str]) -> SparkSession:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spark = open_session(connection, name, settings)
    # The warning quotes the value, which may be a secret.
    refused = filter(None, (_REFUSED.match(str(warning.message)) for warning in caught))
    for setting in dict.fromkeys(match[1] for match in refused):
        print(f"warning: only the server can set {setting}", file=sys.stderr)
    return spark
