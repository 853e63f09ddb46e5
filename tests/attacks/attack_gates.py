"""Requests for the gates of the attacks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile
from tests.attacks.exact_tables import TODAY


def gate_request(
    folder: Path,
    suite: str,
    datasets: Sequence[DatasetRef],
    on: date = TODAY,
    root: str = "results",
    **changes: Any,
) -> GateRequest:
    return GateRequest(
        run_key=RunKey("attacks.gate", on, "manual"),
        attempt=Attempt(1, "attempt-1"),
        suite=SourceFile("suite.dql", suite),
        datasets=tuple(datasets),
        results_root=str(folder / root),
        **changes,
    )
