"""`pytest --airflow 3.1`: the same tests with another version of Airflow.

The environment with it is made by `uv`, once, and kept for later runs: with our own versions of
everything else, as far as that Airflow takes them. Without paths, these are the tests of what
depends on Airflow: gates that wait for a person, notifications, assets, and the pages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.other_environments import CACHE, ROOT, replace_process

AIRFLOWS = ("3.1", "3.2", "3.3")

TESTS = (
    *(
        f"tests/operators/test_{name}.py"
        for name in (
            *("gate_ask", "gate_assets", "gate_notifications", "gate_states", "gate_webhooks"),
            *("gate_decorators", "gate_trigger_rules", "gate_deferral", "gate_link"),
            *("gate_metrics", "contract_gate", "operator_imports", "example_dags"),
            *("airflow_versions", "git_bundle", "batch_in_scheduler"),
        )
    ),
    "tests/ui",
)
"""Gates that wait, clear, announce and promote, batches by a scheduler, and every page."""

_TOOLS = (
    *("pytest>=8", "pytest-xdist>=3.6", "hypothesis>=6.100", "websockets>=13", "statsd>=3.3"),
    "apache-airflow-providers-git",  # bundles with versions
)
_NEEDED_BYTES = 3 * 10**9
"""The most that building an environment takes; half of it stays."""


def python_with(airflow: str) -> Path:
    """The Python of an environment that has this checkout and an Airflow; made where there is none.

    A test is skipped where the disk has no room for it.
    """
    locked = (ROOT / "requirements.lock").read_text("utf-8")
    wanted = [f"apache-airflow=={airflow}.*", *_TOOLS]
    digest = hashlib.sha256("\n".join([str(ROOT), *wanted, locked]).encode()).hexdigest()[:12]
    python = ".".join(map(str, sys.version_info[:2]))
    folder = CACHE / "airflows" / f"{airflow}-py{python}-{digest}"
    program = folder / "bin" / "python"
    if not (folder / "complete").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder.parent).free < _NEEDED_BYTES:
            pytest.skip(f"an environment with Airflow {airflow} needs {_NEEDED_BYTES:,} bytes")
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "--clear", "-p", python, str(folder)], check=True)
        (folder / "wanted.in").write_text("\n".join(wanted), "utf-8")
        # uv prefers the versions of an output file that exists to newer ones.
        versions = folder / "versions.txt"
        versions.write_text(locked, "utf-8")
        inputs = [str(ROOT / "pyproject.toml"), "--extra", "demo", str(folder / "wanted.in")]
        compiling = [*uv, "pip", "compile", "-q", "--no-annotate", "-p", str(program), *inputs]
        subprocess.run([*compiling, "-o", str(versions)], check=True, stdout=subprocess.DEVNULL)
        install = [*uv, "pip", "install", "-q", "--no-cache", "-p", str(program)]
        subprocess.run([*install, "-r", str(versions), "-e", str(ROOT)], check=True)
        (folder / "complete").touch()
    return program


def environment_with(airflow: str) -> dict[str, str]:
    """The variables of a process with that Airflow."""
    taken = ("PYTHONPATH", "VIRTUAL_ENV", "AIRFLOW_HOME")
    kept = {key: value for key, value in os.environ.items() if key not in taken}
    folder = python_with(airflow).parent
    return {**kept, "PATH": os.pathsep.join([str(folder), kept.get("PATH", os.defpath)])}


def run_instead(airflow: str, arguments: list[str], *, has_paths: bool) -> None:
    """Replaces this process by a pytest with that Airflow, which gets the other arguments."""
    try:
        program = python_with(airflow)
    except pytest.skip.Exception as no_room:
        pytest.exit(str(no_room))
    paths = () if has_paths else TESTS
    replace_process(program, "--airflow", airflow, arguments, paths, environment_with(airflow))
