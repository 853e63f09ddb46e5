"""Formats that need a package: it is fetched, and a session of its own reads with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from maven_jars import AVRO, AVRO_BEFORE, DELTA, ICEBERG, any_jar, jars

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


def run(script: str, folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *arguments, str(folder)],
        cwd=folder,
        env={**os.environ, "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_spark_s_delta_source_reads_what_files_alone_do_not_tell(tmp_path: Path) -> None:
    run("delta_session.py", tmp_path, jars(*DELTA))


def test_avro_files_are_read(tmp_path: Path) -> None:
    run("other_sources.py", tmp_path, "avro", any_jar(AVRO, AVRO_BEFORE))


def test_iceberg_tables_are_read(tmp_path: Path) -> None:
    run("other_sources.py", tmp_path, "iceberg", jars(ICEBERG))
