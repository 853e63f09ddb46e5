"""Runs the commands of services outside of containers, on ports of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.quick_jvm import QUICK_JVM

PROGRAMS = Path(sys.executable).parent


def environment(**more: str) -> dict[str, str]:
    """What every process gets: the programs of this environment, and nothing that a user set."""
    from dqx_airflow.datasets.jvm_options import SUBMIT_OPTIONS
    from dqx_airflow.engine.session.java import java_environment

    kept = {key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR") if key in os.environ}
    path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
    spark = {"SPARK_LOCAL_IP": "127.0.0.1", SUBMIT_OPTIONS: QUICK_JVM, **java_environment()}
    return {**kept, "PATH": path, **spark, **more}


def ended(command: Iterable[object], timeout: float = 600, **more: Any) -> CompletedProcess[str]:
    """How a process ended, with its output as text."""
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, timeout=timeout, **more
    )


def output_of(command: Iterable[object], **more: Any) -> str:
    """What a process prints, which must succeed."""
    done = ended(command, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str], env: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process and its children, from here to the end of the block."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            command, env=env, stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def wait_until(is_so: Callable[[], bool], log: Path, seconds: float = 120) -> None:
    """Waits for something; the log tells why it did not come."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, log.read_text(errors="replace")[-4000:]
        time.sleep(0.5)


def succeeds(command: Sequence[str], env: Mapping[str, str]) -> bool:
    return subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0


def processes_with(variable: str, value: object) -> list[int]:
    """The processes that were started with a variable of the environment, oldest first."""
    mark = f"{variable}={value}".encode()
    pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    return sorted(pid for pid in pids if mark in _environment_of(pid))


def _environment_of(pid: int) -> list[bytes]:
    """The variables with which a process was started; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
