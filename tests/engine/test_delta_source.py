"""Delta tables in a session that has Spark's Delta source; its jars are not part of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

JARS = sorted(Path(os.environ.get("DQX_TEST_DELTA_JARS", "nowhere")).glob("delta-*.jar"))


@pytest.mark.spark
@pytest.mark.skipif(
    not JARS,
    reason="DQX_TEST_DELTA_JARS names no folder with delta-spark, delta-storage and delta-kernel-*",
)
def test_spark_s_delta_source_reads_what_files_alone_do_not_tell(tmp_path: Path) -> None:
    script = Path(__file__).with_name("delta_session.py")
    done = subprocess.run(
        [sys.executable, str(script), ",".join(map(str, JARS)), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
