"""The archives that are published: they pass the checks of PyPI, and the wheel works by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from demo_runs import BLOCKED, STORM, run_demo

import dqx_airflow

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
SUITE = 'suite "S" { check "C" on t { assert sum(id) == 6 name "sum" } }'


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What a program prints that sees nothing of this checkout and of its environment."""
    hidden = ("PYTHON", "PYSPARK", "VIRTUAL_ENV", "SPARK")
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={name: text for name, text in os.environ.items() if not name.startswith(hidden)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--outdir", folder, ROOT], folder)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def programs(archives: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel in it, and what it requires."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=True)
    (wheel,) = (path for path in archives if path.suffix == ".whl")
    pip = [home / "bin" / "pip", "install", "-q", "-c", ROOT / "requirements.lock"]
    run([*pip, f"{wheel}[demo]"], home)
    return home / "bin"


def test_the_archives_pass_the_checks_of_the_index(archives: list[Path]) -> None:
    version = dqx_airflow.__version__
    names = {f"dqx_airflow-{version}-py3-none-any.whl", f"dqx_airflow-{version}.tar.gz"}
    assert {path.name for path in archives} == names
    checked = run(
        [sys.executable, "-m", "twine", "check", "--strict", *archives], archives[0].parent
    )
    assert checked.count("PASSED") == 2


def test_a_suite_runs_from_the_wheel(programs: Path, tmp_path: Path) -> None:
    where = "import dqx_airflow; print(dqx_airflow.__file__)"
    assert run([programs / "python", "-c", where], tmp_path).startswith(str(programs.parent))
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "t.parquet")
    (tmp_path / "s.dql").write_text(SUITE)
    call = ["run", "s.dql", "--dataset", "t=t.parquet", "--date", "2024-03-02"]
    printed = run(
        [programs / "dql", *call, "--connection", "local[2]", "--output", "summary"], tmp_path
    )
    assert printed.startswith("passed S, 2024-03-02: ")


def test_the_storm_day_of_the_demo_runs_from_the_wheel(programs: Path, tmp_path: Path) -> None:
    demo = run_demo(tmp_path, "--day", STORM.isoformat(), program=programs / "dql")
    assert {task: state for task, (state, _) in demo.tasks(STORM).items()} == BLOCKED
