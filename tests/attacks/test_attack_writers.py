"""Sixteen processes write fifty reports each into one store: none is lost, doubled or refused."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dqx_airflow.results.runs import list_runs

pytestmark = pytest.mark.nightly

WRITERS, REPORTS = 16, 50

WRITER = """
import sys, time
from tests.results.samples import sample_report
from dqx_airflow.results.store import ResultsStore
while time.time() < float(sys.argv[2]):  # all at the same moment
    pass
for run in range(int(sys.argv[3]), int(sys.argv[4])):
    ResultsStore(sys.argv[1]).write(sample_report(run, attempt=run))
"""


def test_many_writers_neither_lose_nor_duplicate_rows(
    tmp_path: Path, attack: Callable[[str], Any]
) -> None:
    start = str(time.time() + 8)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), start, str(first), str(last)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for first, last in ((n * REPORTS, (n + 1) * REPORTS) for n in range(WRITERS))
    ]
    tally = attack("concurrent writers: reports refused, lost or doubled")
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors[-2000:]
    runs = list_runs(str(tmp_path), limit=10**6, all_attempts=True)
    rows = Counter(DeltaTable(str(tmp_path / "runs")).to_pyarrow_table()["run_id"].to_pylist())
    for run in runs:
        tally.tried(rows[run.run_id] == 1, f"run {run.run_id} is there {rows[run.run_id]} times")
    assert len(runs) == WRITERS * REPORTS
