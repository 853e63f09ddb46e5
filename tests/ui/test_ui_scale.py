"""The pages with a results store and an Airflow after years of many gates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from dqx_airflow.values import EnforcedContract, Outcome, Verdict
from tests.ui.ui_scene import DAY, NOT_EMPTY, NULLS, PLACE, Get, Scene, report_of

if TYPE_CHECKING:
    from httpx import Response

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.nightly]


RUNS, GATES = 100_000, 50
CONTRACT = EnforcedContract("orders", "2.3.0", "odcs")
MOST_SECONDS = 1.0


def fill(root: Path, gates: list[str], runs: int = RUNS) -> None:
    """Writes the tables of a store with so many runs at once, day by day up to the day before
    DAY."""
    import pyarrow as pa
    from deltalake import write_deltalake

    from dqx_airflow.results.report_rows import results_rows, run_row
    from dqx_airflow.results.schema import RESULTS_SCHEMA, RUNS_SCHEMA
    from dqx_airflow.results.store import arrow_table

    days = [DAY - timedelta(days=1 + number // len(gates)) for number in range(runs)]
    verdicts: tuple[Verdict, ...] = (NULLS, *(replace(NOT_EMPTY, name=f"n{i}") for i in range(9)))
    report = report_of(verdicts=verdicts, outcome=Outcome.PASSED, contract=CONTRACT)
    keys: dict[str, list[Any]] = {
        "run_id": [str(UUID(int=10**9 + number, version=4)) for number in range(runs)],
        "gate": [gates[number % len(gates)] for number in range(runs)],
        "dataset_date": days,
        "scheduler_run": [f"scheduled__{day}" for day in days],
        "attempt_id": [f"a{number}" for number in range(runs)],
    }
    tables = {
        "runs": arrow_table([run_row(report)], RUNS_SCHEMA),
        "results": arrow_table(results_rows(report), RESULTS_SCHEMA),
    }
    for name, table in tables.items():
        rows = table.num_rows
        many = table.take(pa.array(list(range(rows)) * runs))
        for key, values in keys.items():
            column = pa.array(
                [value for value in values for _ in range(rows)], many.schema.field(key).type
            )
            many = many.set_column(many.schema.get_field_index(key), key, column)
        write_deltalake(str(root / name), many, target_file_size=4_000_000)


def seconds(ask: Callable[[], Response]) -> float:
    started = time.perf_counter()
    assert ask().status_code == 200
    return time.perf_counter() - started


def test_every_page_loads_within_a_second(get: Get, tab: Get, scene: Scene) -> None:
    dags = ["lake", *(f"dag_{number:02}" for number in range(1, GATES))]
    fill(scene.root, [f"{dag_id}.gate" for dag_id in dags])
    for number, dag_id in enumerate(dags):
        scene.dag(dag_id)
        for place in range(20):
            on: date = DAY - timedelta(days=place)
            at = 1 + number * 100 + place
            report = report_of(at, on=on, dag_id=dag_id, contract=CONTRACT)
            scene.ran(report, dag_id=dag_id, number=at, stored=place == 0)
    pages = {
        "gate": tab,
        "board": lambda: get("board"),
        "datasets": lambda: get("datasets"),
        "dataset": lambda: get("dataset", location=PLACE),
        "contract": lambda: get("contract", id="orders"),
        "incident": lambda: get("incident", dag_id="lake", task_id="gate", date=DAY),
        "slices": lambda: get("slices"),
        "alerts": lambda: get("alerts"),
    }
    for ask in pages.values():
        ask()  # the first request of a process pays for its imports
    taken = {name: min(seconds(ask) for _ in range(3)) for name, ask in pages.items()}
    assert "last 60 runs" in tab().text
    assert "1 of 30 failed" in get("dataset", location=PLACE).text
    assert {name for name, time_s in taken.items() if time_s > MOST_SECONDS} == set(), taken
