"""The age of a Delta table, from the last commit in its log that changed data."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.contracts.enforcement.enforced_contract import enforce
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of
from dqx_airflow.values import DatasetRef, SourceFile

LONG_AGO = datetime(2024, 1, 1, tzinfo=timezone.utc)
CONTRACT = """\
contract:
  id: bronze.slots
  version: 1.0.0
  schema: {columns: [{name: id, type: bigint, semantic: the slot}]}
  quality: {freshness: {max_age_minutes: 60}}
"""


def log_of(path: Path, *, is_of_now: bool = True) -> DeltaLog:
    table = DeltaTable(path)
    return DeltaLog(table, str(path), struct_of(table), None, is_of_now)


def test_commits_without_new_rows_do_not_make_data_fresh(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = int(LONG_AGO.timestamp() * 1000)
        commit.write_text("\n".join(map(json.dumps, actions)))
    DeltaTable(tmp_path).optimize.compact()
    DeltaTable(tmp_path).alter.add_constraint({"positive": "id >= 0"})
    assert log_of(tmp_path).committed_at() == LONG_AGO
    write_deltalake(tmp_path, pa.table({"id": [4]}), mode="append")
    newest = log_of(tmp_path).committed_at()
    assert newest is not None
    assert (datetime.now(timezone.utc) - newest).total_seconds() < 600
    assert log_of(tmp_path, is_of_now=False).committed_at() is None


def test_freshness_that_no_column_measures_is_that_of_the_delta_table() -> None:
    source = SourceFile("slots.yaml", CONTRACT)
    enforcement = enforce(source, on=LONG_AGO.date())
    delta = enforcement.over((DatasetRef("slots", path="/lake/slots"),))
    assert "assert commit_age() <= 1 hour" in delta.suite.text
    for other in (
        DatasetRef("slots", path="/lake/slots", format="parquet"),
        DatasetRef("slots", table="lake.slots"),
    ):
        (left,) = enforcement.over((other,)).contract.unenforced
        assert "so the column of the age is unknown" in left.reason
