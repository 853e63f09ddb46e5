"""Tables of all forms with generated faults: each is in the report, and no table without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.whole_lake import FAULTS, write_lake
from tests.command_line import dql

pytestmark = pytest.mark.nightly


def test_each_generated_fault_is_in_the_report(tmp_path: Path) -> None:
    planted = write_lake(tmp_path / "lake", tables=15, rows=1500, large=0, with_fault=2)
    assert {*planted.values()} == {*FAULTS}
    options = ("--dataset", tmp_path / "lake", "--format", "json")
    done = dql("init", tmp_path / "gates", *options)
    assert done.returncode == 0, done.output
    rows = json.loads(done.stdout)["tables"]
    assert len(rows) == 15
    wrong = {row["location"]: row["wrong"] or row["problem"] for row in rows}
    assert {place for place, what in wrong.items() if what} == {*planted}, wrong
