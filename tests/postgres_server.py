"""A PostgreSQL for a test, on loopback, with its data in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.processes import free_port

_PATIENCE_S = 30
_OWNER_PASSWORD = "owner-of-the-test"


@dataclass(frozen=True)
class Postgres:
    """A server that runs; its owner may do everything."""

    binaries: Path
    port: int

    def program(self, name: str) -> str:
        """The path of a program that came with the server."""
        return str(_program(name, self.binaries))

    def run(self, sql: str) -> None:
        """Runs statements as the owner."""
        address = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        call = [self.program("psql"), "-q", "-v", "ON_ERROR_STOP=1", address]
        environment = {**os.environ, "PGPASSWORD": _OWNER_PASSWORD}
        subprocess.run(call, input=sql, env=environment, text=True, check=True, timeout=60)


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server until the end of the block; the test is skipped where there is no PostgreSQL."""
    binaries = _binaries()
    # The server runs as a user who may not see the folders of another one's tests.
    folder = Path(tempfile.mkdtemp(prefix="dqx-postgres-"))
    as_whom: dict[str, Any] = {}
    if os.geteuid() == 0:
        as_whom = {"user": "postgres", "group": "postgres", "extra_groups": []}
        shutil.chown(folder, "postgres", "postgres")
    data, secret = folder / "data", folder / "password"
    secret.write_text(_OWNER_PASSWORD)
    secret.chmod(0o644)
    port = free_port()
    options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    # Neither the time zone of the Spark session nor the one of its JVM.
    options["timezone"] = "America/New_York"
    flags = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    make = ["initdb", "-D", str(data), "-U", "postgres", "-A", "scram-sha-256", "--no-sync"]
    try:
        subprocess.run(
            [str(binaries / make[0]), *make[1:], f"--pwfile={secret}"],
            check=True,
            capture_output=True,
            cwd=folder,
            **as_whom,
        )
        server = subprocess.Popen(
            [str(binaries / "postgres"), "-D", str(data), "-p", str(port), *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            **as_whom,
        )
        try:
            _wait_for(server, port)
            yield Postgres(binaries, port)
        finally:
            server.terminate()
            server.wait(_PATIENCE_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    on_path = shutil.which("postgres")
    found = [Path(on_path).parent] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    usable = [one for one in found if (one / "initdb").exists() and (one / "postgres").exists()]
    if not usable:
        pytest.skip("there is no PostgreSQL server: install the package postgresql")
    return usable[0]


def _program(name: str, binaries: Path) -> Path:
    return binaries / name if (binaries / name).exists() else Path(shutil.which(name) or name)


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the PostgreSQL of the test did not start")
