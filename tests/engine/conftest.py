"""What the tests of gates share: a gate in the session of the worker, and its datasets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import DatasetRef
from tests.engine.lake import COUNTRIES, ORDERS, Gate, Run, delta


@pytest.fixture
def lineage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that gates send their events to."""
    file = tmp_path / "lineage.jsonl"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    return file


@pytest.fixture
def gate(spark: Any, tmp_path: Path, lineage: Path) -> Gate:
    return Gate(spark, tmp_path)


@pytest.fixture
def run(spark: Any, lineage: Path) -> Run:
    """Runs a gate in the shared session."""
    return lambda gate: run_gates([gate], lambda _: spark)[0]


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    return replace(delta(tmp_path, "orders", ORDERS, partition_by=["ds"]), date_column="ds")


@pytest.fixture
def countries(tmp_path: Path) -> DatasetRef:
    return delta(tmp_path, "countries", COUNTRIES)
