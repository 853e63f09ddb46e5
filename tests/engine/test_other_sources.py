"""Formats that need a package: it is fetched, and a separate session reads with it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.maven_jars import (
    AVRO,
    AVRO_BEFORE,
    DELTA,
    FOLDER,
    ICEBERG,
    SPARK_OF_ICEBERG,
    any_jar,
    jars,
)
from tests.processes import ended, output_of

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


def run(script: str, folder: Path, *arguments: str, packages: Path | None = None) -> None:
    """Runs a script; `packages` come before those that are installed."""
    path = {} if packages is None else {"PYTHONPATH": str(packages)}
    output_of(
        [sys.executable, str(Path(__file__).with_name(script)), *arguments, str(folder)],
        cwd=folder,
        env={**os.environ, "TZ": "UTC", **path},
        timeout=1800,
    )


def test_the_delta_source_of_spark_reads_and_promotes_tables(tmp_path: Path) -> None:
    run("delta_session.py", tmp_path, jars(*DELTA))


def test_avro_files_are_read(tmp_path: Path) -> None:
    run("other_sources.py", tmp_path, "avro", any_jar(AVRO, AVRO_BEFORE))


def test_iceberg_tables_are_read(tmp_path: Path) -> None:
    before = pyspark_of(SPARK_OF_ICEBERG)
    run("other_sources.py", tmp_path, "iceberg", jars(ICEBERG), packages=before)


def pyspark_of(version: str) -> Path:
    """A folder with a PySpark of this version, made once; skips the test if it cannot be had."""
    folder = FOLDER.parent / f"pyspark-{version}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
        wanted = ["--quiet", "--target", partial, f"pyspark=={version}"]
        call = [sys.executable, "-m", "pip", "install", *wanted]
        done = ended(call)
        if done.returncode != 0:
            pytest.skip(f"pip cannot install {wanted[-1]}")
        shutil.copytree(partial, folder)
    return folder
