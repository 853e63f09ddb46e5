"""The processes of a demo: each writes a log and ends with its children."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dqx_airflow.cli.demo.home import DemoHome
from dqx_airflow.errors import DqxError

POLL_S = 0.5
START_TIMEOUT_S = 180
_STOP_TIMEOUT_S = 20


class DemoError(DqxError):
    """A step of the demo failed."""


def start(
    home: DemoHome, log: str, command: Sequence[str], env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts a command in the environment of the demo, with a session of its own.

    :param log: the name of the file, among the logs of the demo, for what it prints.
    :param env: added to the environment.
    """
    target: Path = home.logs / f"{log}.log"
    with target.open("wb") as file:
        return subprocess.Popen(  # noqa: S603 (our own command, no shell)
            command,
            env={**home.environment(), **(env or {})},
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


@contextmanager
def interruptible() -> Iterator[None]:
    """Ends the block as Ctrl-C does if this process is terminated, or its terminal is closed: what
    the demo started would run on without it."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def require_running(home: DemoHome, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    if any(process.poll() is not None for process in processes):
        raise DemoError("Airflow ended early", f"see {home.logs}")


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends the processes with their children: each has a session of its own."""
    for process in processes:
        _signal(process, signal.SIGTERM)
    for process in processes:
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def free_port() -> int:
    """A port of this machine that no server listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
