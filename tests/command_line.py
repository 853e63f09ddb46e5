"""Calls `dql` within the process; a few tests of each verb start a real process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from dqx_airflow.cli.main import app


@dataclass(frozen=True)
class Called:
    """How a call ended; named as what `subprocess.run` returns."""

    returncode: int
    stdout: str
    stderr: str
    output: str
    """Both, as a terminal shows them."""


def dql(*arguments: str | Path, cwd: Path | None = None, stdin: str = "") -> Called:
    with _folder(cwd):
        result = CliRunner().invoke(
            app, [*map(str, arguments)], input=stdin, catch_exceptions=False, prog_name="dql"
        )
    return Called(result.exit_code, result.stdout, result.stderr, result.output)


def dql_prints(*arguments: str | Path, code: int = 0) -> str:
    """The output of a call of `dql`, which must end with this exit code."""
    call = dql(*arguments)
    assert call.returncode == code, call.output
    return call.output


@contextmanager
def _folder(path: Path | None) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(path or before)
    try:
        yield
    finally:
        os.chdir(before)
