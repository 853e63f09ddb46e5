"""The published archives pass the checks of PyPI, and the wheel works on its own.

The demo of `test_demo.py` is that of the wheel, too.
"""

from __future__ import annotations

import shutil
import sys
import venv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dqx_airflow
from dqx_airflow.datasets.jvm_options import SUBMIT_OPTIONS, with_archive
from tests.e2e.fresh_environment import run
from tests.processes import ended
from tests.quick_jvm import QUICK_JVM

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
SUITE = 'suite "S" { check "C" on t { assert sum(id) == 6 name "sum" } }'


def test_the_archives_pass_the_checks_of_the_index(archives: list[Path]) -> None:
    version = dqx_airflow.__version__
    names = {f"dqx_airflow-{version}-py3-none-any.whl", f"dqx_airflow-{version}.tar.gz"}
    assert {path.name for path in archives} == names
    checked = run(
        [sys.executable, "-m", "twine", "check", "--strict", *archives], archives[0].parent
    )
    assert checked.count("PASSED") == 2


def test_two_builds_are_the_same_byte_for_byte(archives: list[Path], tmp_path: Path) -> None:
    """From a copy elsewhere, by a user with other rights, and with other hashes of strings."""
    for name in run(["git", "ls-files", "-co", "--exclude-standard"], ROOT).splitlines():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, tmp_path / "copy" / name)
    run(["git", "init", "-q", "copy"], tmp_path)
    shell = f"umask 077; {sys.executable} -m build --outdir again copy"
    run(["sh", "-c", shell], tmp_path, PYTHONHASHSEED="7")
    again = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert sorted(again) == sorted(path.name for path in archives)
    assert [path.name for path in archives if again[path.name] != path.read_bytes()] == []


def test_pip_builds_what_the_readme_installs(tmp_path: Path) -> None:
    """In an environment without our requirements: pip brings those of the build by itself."""
    venv.create(tmp_path / "fresh", with_pip=True)
    build = ["wheel", "-q", "--no-deps", "-w", "dist", ROOT]
    run([tmp_path / "fresh" / "bin" / "pip", *build], tmp_path)
    assert [path.suffix for path in (tmp_path / "dist").iterdir()] == [".whl"]


def test_a_suite_runs_from_the_wheel(programs: Path, jvm_archive: Path, tmp_path: Path) -> None:
    where = "import dqx_airflow; print(dqx_airflow.__file__)"
    assert run([programs / "python", "-c", where], tmp_path).startswith(str(programs.parent))
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "t.parquet")
    (tmp_path / "s.dql").write_text(SUITE)
    call = ["run", "s.dql", "--dataset", "t=t.parquet", "--date", "2024-03-02"]
    jvm = {SUBMIT_OPTIONS: with_archive(QUICK_JVM, str(jvm_archive))}
    printed = run(
        [programs / "dql", *call, "--connection", "local[2]", "--format", "summary"],
        tmp_path,
        **jvm,
    )
    assert printed.startswith("passed S, 2024-03-02: ")


def test_the_wheel_has_the_job_that_services_call(programs: Path, tmp_path: Path) -> None:
    find = (
        "import sys; from importlib.metadata import distribution; "
        "(job,) = distribution('dqx_airflow').entry_points.select(name='gate_job'); "
        "sys.argv = ['gate_job', '--request-file', 'results/_dqx_requests/0']; job.load()()"
    )
    done = ended([programs / "python", "-c", find], cwd=tmp_path)
    assert done.returncode == 4
    assert "error: cannot read the results store" in done.stderr
