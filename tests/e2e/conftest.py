"""The published archives and their installation, made once per worker."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from dqx_airflow.datasets.jvm_options import SUBMIT_OPTIONS
from tests.e2e.demo_runs import flights_in_duckdb
from tests.e2e.fresh_environment import run
from tests.quick_jvm import QUICK_JVM

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--outdir", folder, ROOT], folder)
    return sorted(folder.iterdir())


@pytest.fixture(scope="session")
def programs(archives: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel in it, and what it requires."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home)
    (wheel,) = (path for path in archives if path.suffix == ".whl")
    # With what uv keeps of this environment, by the settings of this project. Where an index does
    # not say how long a file is fresh, uv would build PySpark again: 30 s, and 2 GB of disk.
    uv = which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    assert uv, "pip install uv"
    install = [uv, "pip", "install", "-q", "-p", home, "-c", ROOT / "requirements.lock"]
    try:
        run([*install, "--offline", f"{wheel}[demo]"], ROOT)
    except AssertionError:  # something is not kept
        run([*install, f"{wheel}[demo]"], ROOT)
    return home / "bin"


@pytest.fixture(scope="session")
def jvm_archive(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the classes of a gate, as the programs of that environment write it.

    To write it takes as long as three JVMs start up, and the three days of the demo start twelve.
    """
    path = tmp_path_factory.mktemp("archive") / "gate.jsa"
    command = [programs / "dql", "package", "--jvm-archive", path]
    run(command, path.parent, **{SUBMIT_OPTIONS: QUICK_JVM})
    return path


@pytest.fixture(scope="session")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The flights of the demo in DuckDB, straight from their CSV file."""
    return flights_in_duckdb(tmp_path_factory.mktemp("flights"))
