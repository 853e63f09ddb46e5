"""A MariaDB for a test, on loopback, with its data in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import free_port

_PATIENCE_S = 60
_ZONE = "-05:00"
"""Neither the time zone of the Spark session nor the one of its JVM."""


@dataclass(frozen=True)
class MariaDb:
    """A server that runs; the one who started it may do everything."""

    port: int
    socket: Path

    def run(self, sql: str) -> None:
        """Runs statements as the owner."""
        call = ["mariadb", "--no-defaults", "-uroot", f"--socket={self.socket}"]
        subprocess.run(call, input=sql, text=True, check=True, timeout=60, capture_output=True)


@contextmanager
def mariadb() -> Iterator[MariaDb]:
    """A server until the end of the block; the test is skipped where there is no MariaDB."""
    if not all(map(shutil.which, ("mariadbd", "mariadb", "mariadb-install-db"))):
        pytest.skip("MariaDB is not installed")
    folder = Path(tempfile.mkdtemp(prefix="dqx-mariadb-"))
    user = "mysql" if os.geteuid() == 0 else os.environ.get("USER", "mysql")
    if user == "mysql":
        shutil.chown(folder, "mysql")
    data, port, socket = folder / "data", free_port(), folder / "socket"
    flags = [f"--user={user}", f"--datadir={data}"]
    install = ["mariadb-install-db", "--no-defaults", *flags]
    install.append("--auth-root-authentication-method=normal")
    # The folder for temporary files of whoever runs the tests may be closed to the server's user.
    own_folder = {**os.environ, "TMPDIR": str(folder)}
    subprocess.run(install, check=True, capture_output=True, timeout=_PATIENCE_S, env=own_folder)
    options = {"port": port, "bind-address": "127.0.0.1", "socket": socket}
    options["default-time-zone"] = _ZONE
    given = [f"--{name}={value}" for name, value in options.items()]
    server = subprocess.Popen(
        ["mariadbd", "--no-defaults", *flags, *given, "--skip-log-bin"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=own_folder,
    )
    found = MariaDb(port, socket)
    try:
        _wait_for(found, server)
        yield found
    finally:
        server.terminate()
        server.wait(_PATIENCE_S)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(found: MariaDb, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            found.run("SELECT 1")
        except subprocess.CalledProcessError:
            assert server.poll() is None, "MariaDB ended"
            assert time.monotonic() < until, "MariaDB does not answer"
            time.sleep(0.2)
        else:
            return
