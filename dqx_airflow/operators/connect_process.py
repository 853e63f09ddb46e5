"""The process of a job over Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from dqx_airflow.values.redact import HIDDEN

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
        self, arguments: Sequence[str], env: Mapping[str, Any], add_line: Callable[[str], None]
    ) -> int:
        """Waits for the job; returns its exit code.

        :param env: added to the environment of this process.
        :param add_line: is called with each line of the output.
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
            # If the job does not read its address, its output explains why.
            with suppress(BrokenPipeError, ValueError):
                process.stdin.write(f"{json.dumps(self._opening)}\n".encode())
            number = process.stdout.fileno()
            with open(number, encoding="utf-8", errors="replace", closefd=False) as output:
                for line in output:
                    add_line(self._hidden(line.rstrip()))
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
