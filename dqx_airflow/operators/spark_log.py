"""The output of the Spark of a gate.

The log of the task is for the verdict of the gate. With `verbose` it gets every line instead; by
default the output is kept in a file below Airflow's logs."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.providers.common.compat.sdk import redact

from dqx_airflow.values.redact import redact_urls

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
    """Collects the output of a job, line by line; the job's own messages also go into the log of
    the task.

    :param path: the file for the output; None to write all of it into the log of the task.
    :param log: writes a line into the log of the task.
    """

    def __init__(self, path: Path | None, log: Callable[[str], None]) -> None:
        self.path = path
        self._log = log
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
            self._log(line)
            return
        if not self._file.closed:
            self._file.write(f"{line}\n")
        if _NOTE.fullmatch(line) and self._notes < _MOST_NOTES:
            self._notes += 1
            self._log(line)

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
