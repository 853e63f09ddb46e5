"""What the tests of gates share: a gate in the session of the worker, and its datasets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lake import COUNTRIES, ORDERS, delta

from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import DatasetRef, GateReport, GateRequest


@pytest.fixture
def run(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[GateRequest], GateReport]:
    """Runs a gate in the shared session; lineage goes into `lineage.jsonl`."""
    transport = {"type": "file", "log_file_path": str(tmp_path / "lineage.jsonl"), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    return lambda gate: run_gates([gate], lambda _: spark)[0]


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    return replace(delta(tmp_path, "orders", ORDERS, partition_by=["ds"]), date_column="ds")


@pytest.fixture
def countries(tmp_path: Path) -> DatasetRef:
    return delta(tmp_path, "countries", COUNTRIES)
