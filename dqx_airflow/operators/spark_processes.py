"""The processes of a gate's Spark: the settings of a driver on the worker itself, the job over
Spark Connect, and the output of both.

The log of the task is for the verdict of the gate. With `verbose` it gets every line instead; by
default the output is kept in a file below Airflow's logs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from logging import Logger
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.providers.common.compat.sdk import redact

from dqx_airflow.values.redact import HIDDEN, redact_urls


def local_driver_conf(
    conf: Mapping[str, str], env_vars: Mapping[str, Any] | None, log: Logger
) -> dict[str, str]:
    """`conf` for a driver on this worker: adds its Python and a class archive, unless set."""
    return {**_python(conf, env_vars or {}), **conf, **_jvm(conf, log)}


def local_driver_env(env_vars: Mapping[str, Any] | None) -> dict[str, Any]:
    """`env_vars` with options for a JVM that lives for seconds."""
    from dqx_airflow.datasets.connections import for_a_short_life

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
    from dqx_airflow.datasets.connections import DRIVER_OPTIONS, with_archive

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


_GRACE_S = 20.0  # within ten seconds the job ends itself


class ConnectJob:
    """One run of the job. Its Spark is at `address`, which may contain the `secrets`.

    The address is sent through a pipe, which neither the list of processes nor the environment
    shows. The pipe is also a leash: it is closed when this process ends for any reason, and the job
    then cancels its queries on the server, and ends as well.
    """

    def __init__(
        self, address: str, settings: Mapping[str, Any], secrets: Sequence[str] = ()
    ) -> None:
        self._opening = {
            "address": address,
            "settings": {key: str(value) for key, value in settings.items()},
        }
        self._secrets = tuple(secrets)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_let_go = False

    def run(
        self, arguments: Sequence[str], env: Mapping[str, Any], tell: Callable[[str], None]
    ) -> int:
        """Waits for the job; returns its exit code.

        :param env: added to the environment of this process.
        :param tell: is called with each line of the output.
        """
        from dqx_airflow.values.files import shipped

        script = str(shipped("spark_jobs/connect_job.py"))
        self._process = process = subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **{key: str(value) for key, value in env.items()}},
            bufsize=0,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        if self._is_let_go:  # while the process was being started
            self.end()
        try:
            with suppress(
                BrokenPipeError, ValueError
            ):  # its output explains why it does not listen
                process.stdin.write(f"{json.dumps(self._opening)}\n".encode())
            number = process.stdout.fileno()
            with open(number, encoding="utf-8", errors="replace", closefd=False) as output:
                for line in output:
                    tell(self._hidden(line.rstrip()))
            return process.wait()
        finally:
            self.end()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()

    def end(self) -> None:
        """Closes the pipe to the job, which then ends; does not wait, for signal handlers."""
        self._is_let_go = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _hidden(self, line: str) -> str:
        for secret in self._secrets:
            line = line.replace(secret, HIDDEN)
        return line


SHOWN_LINES = 10
"""The number of Spark's lines in the log of a task without a report."""

_LONGEST_CAUSE = 300
_MOST_NOTES = 6
_NOTE = re.compile(r"(?:dqx[\w.]*|warning): (?!assertion (?:failed|could)).+")
"""Messages of the job itself, such as where it wrote rows, but not its report."""
_OF_THE_JOB = re.compile(r"error(?:\[\w+\])?: (?P<cause>.+)")
_HELP = re.compile(r"  help: (?P<help>.+)")
_OF_JAVA = re.compile(
    r'(?:Exception in thread "[^"]*" |Caused by: )?(?:[\w$]+\.)*\w+(?:Exception|Error)(?:: .*)?'
)
_OF_SUBMIT = re.compile(r"(?:Error: |\S+ \S+ ERROR |.* ERROR \S+: )(?P<cause>.+)")


class SparkLog:
    """Collects the output of a job, line by line; the job's own messages also go to `tell`.

    :param path: the file for the output; None to pass it on to `tell`.
    :param tell: writes a line into the log of the task.
    """

    def __init__(self, path: Path | None, tell: Callable[[str], None]) -> None:
        self.path = path
        self._tell = tell
        self._file: TextIO | None = None
        self._tail: deque[str] = deque(maxlen=SHOWN_LINES)
        self._causes: dict[int, str] = {}
        self._help: str | None = None
        self._notes = 0

    @property
    def is_file(self) -> bool:
        """True if lines go into a file, and not into the log of the task."""
        return self._file is not None

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines."""
        return tuple(self._tail)

    @property
    def cause(self) -> str:
        """The last error in the output: from the job itself, or else from Java or Python, or else
        from spark-submit; empty if there is none."""
        if not self._causes:
            return ""
        cause = self._causes[min(self._causes)]
        return f"{cause}; {self._help}" if self._help and 0 in self._causes else cause

    def open(self) -> None:
        """Opens the file. Without one, the lines go into the log of the task.

        :raises OSError: it cannot be written.
        """
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("w", encoding="utf-8", errors="replace", buffering=1)

    def close(self) -> None:
        """Closes the file; later lines are dropped."""
        if self._file is not None:
            self._file.close()

    def add(self, line: str) -> None:
        """Adds a line, with the secrets that Airflow masks in its logs removed."""
        line = str(redact(line.rstrip("\r\n")))
        if line.strip():
            self._tail.append(line)
        self._look_for_cause(line)
        if self._file is None:
            self._tell(line)
            return
        if not self._file.closed:
            self._file.write(f"{line}\n")
        if _NOTE.fullmatch(line) and self._notes < _MOST_NOTES:
            self._notes += 1
            self._tell(line)

    def _look_for_cause(self, line: str) -> None:
        patterns = (_OF_THE_JOB, _OF_JAVA, _OF_SUBMIT)
        for rank, pattern in enumerate(patterns):
            if match := pattern.fullmatch(line):
                cause = match.groupdict().get("cause") or line.removeprefix("Caused by: ")
                self._causes[rank] = redact_urls(cause.strip())[:_LONGEST_CAUSE]
                self._help = None if rank == 0 else self._help
                return
        if (match := _HELP.fullmatch(line)) and self._help is None:
            self._help = redact_urls(match["help"])[:_LONGEST_CAUSE]


class SubmissionLog:
    """The log of a submitting hook, without the lines of Spark and without repetitions."""

    def __init__(self, log: Any, spark: SparkLog) -> None:
        self._log = log
        self._spark = spark
        self._line: str | None = None
        self._last: tuple[Any, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def info(self, message: object, *values: object) -> None:
        """Logs a message of the hook; a polled state only when it has changed."""
        if not values and message == self._line:
            return
        if (message, *values) != self._last:
            self._last = (message, *values)
            self._log.info(message, *values)

    def reading(self, lines: Iterator[Any]) -> Iterator[Any]:
        """Yields the lines of Spark to the hook, after storing each."""
        for line in lines:
            self._spark.add(str(line))
            self._line = str(line).strip()
            yield line


def spark_log_path(task: Any) -> Path:
    """The file for the output of a task instance: below Airflow's logs, with the same names."""
    folder = airflow_conf.get("dqx", "spark_log_folder", fallback=None)
    if not folder:
        logs = airflow_conf.get("logging", "base_log_folder", fallback=None) or "~/airflow/logs"
        folder = os.path.join(logs, "dqx_spark")
    parts = [f"dag_id={task.dag_id}", f"run_id={task.run_id}", f"task_id={task.task_id}"]
    if isinstance(task.map_index, int) and task.map_index >= 0:
        parts.append(f"map_index={task.map_index}")
    names = (quote(part, safe="=:+ ") for part in parts)
    return Path(os.path.expanduser(folder), *names, f"attempt={task.try_number}.log")
