"""The tutorial over 40 tables: what is wrong in seven of them is found, and a gate blocks."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.cli import exit_codes
from dqx_airflow.values.files import shipped
from tests.command_line import dql

pytestmark = pytest.mark.nightly


def making_lakes() -> Any:
    """The script that writes the lake."""
    spec = spec_from_file_location("make_lake", shipped("dags_examples/lake/make_lake.py"))
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_all_faults_of_the_lake_are_in_the_report_and_a_gate_blocks(tmp_path: Path) -> None:
    script = making_lakes()
    lake, gates = tmp_path / "lake", tmp_path / "gates"
    script.write_lake(lake, datetime.now(timezone.utc).date())
    done = dql(*("init", gates, "--dataset", lake, "--calls-per-month", "3", "--format", "json"))
    assert done.returncode == 0, done.output
    rows = json.loads(done.stdout)["tables"]
    assert len(rows) == 40
    wrong = {row["location"] for row in rows if row["wrong"] or row["problem"]}
    assert wrong == {*script.FAULTS, script.BROKEN}
    # The key of orders is repeated on the newest day: it blocks as soon as someone says so.
    suite = gates / "suites" / "sales" / "orders.dql"
    newest = next(row["newest"] for row in rows if row["location"] == "sales/orders")
    warned = dql("run", suite, "--date", newest)
    assert (warned.returncode, "warned" in warned.output) == (0, True), warned.output
    done = dql("tune", "enforce", suite, "--assertion", "orders.key", "--author", "ana")
    assert done.returncode == 0, done.output
    blocked = dql("run", suite, "--date", newest)
    assert blocked.returncode == exit_codes.EXIT_FAILED, blocked.output
    assert "orders.key" in blocked.output
