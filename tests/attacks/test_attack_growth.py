"""A table that grows day by day, judged each evening with the states of earlier evenings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.engine.job import run_gates
from dqx_airflow.results.runs import list_runs
from dqx_airflow.values import DatasetRef, Status
from tests.attacks.attack_gates import gate_request

pytestmark = pytest.mark.spark

DAYS = [pytest.param(60, id="two months", marks=pytest.mark.nightly), pytest.param(4, id="days")]
FIRST = date(2024, 1, 1)
WEEK = 3
"""Days that the windows of the suite look back."""

SUITE = f"""
suite "Growth" {{
    availability_threshold 0%
    check "Days" on t {{
        assert each row: x >= 0 name "row"
        assert sum(x) >= 0 name "sum"
        assert num_rows() <= 2 * mean(num_rows(), n {WEEK}) name "rows"
        assert duplicate_count(id) == 0 name "keys"
    }}
    check "All" on everything {{
        assert duplicate_count(id) == 0 name "all keys"
        assert sum(x) >= 0 name "total"
        assert each row: x >= 0 name "all rows"
    }}
}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("days", DAYS)
def test_a_growing_table_gets_the_verdicts_of_its_rows_every_day(
    days: int, spark: Any, tmp_path: Path, attack: Callable[[str], Any]
) -> None:
    chance, path = Random(days), str(tmp_path / "t")
    refs = [
        DatasetRef("t", path=path, format="delta", date_column="ds"),
        DatasetRef("everything", path=path, format="delta"),
    ]
    tally = attack("growth: verdicts of a table that grows for weeks")
    rows: list[dict[str, Any]] = []
    for number in range(days):
        on = FIRST + timedelta(days=number)
        added = _rows(chance, on, rows)
        rows += added
        write_deltalake(path, pa.Table.from_pylist(added), mode="append")
        if number % 7 == 6:
            DeltaTable(path).optimize.compact()
        gate = gate_request(tmp_path, SUITE, refs, on, sample_rows=0)
        expected = _expected(rows, on)
        for verdict in run_gates([gate], lambda _: spark)[0].verdicts:
            if verdict.name in expected:
                tally.tried(
                    (verdict.status is Status.PASSED) == expected[verdict.name],
                    f"{days} days, {on}: {verdict.name} {verdict.status} {verdict.value!r} by "
                    f"{verdict.origin}",
                )
    runs = list_runs(str(tmp_path / "results"), limit=days + 10)
    tally.tried(len(runs) == days, f"{len(runs)} runs of {days} are in the store")


def _rows(chance: Random, on: date, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [
        {"id": len(before) + i, "x": chance.randint(0, 9), "ds": on}
        for i in range(chance.choice([3, 4, 5, 20]))
    ]
    if chance.random() < 0.15:
        rows[0]["x"] = chance.choice([-1, -1000])
    if chance.random() < 0.15:
        rows[1]["id"] = rows[0]["id"]
    if before and chance.random() < 0.1:
        rows[2]["id"] = before[0]["id"]
    return rows


def _expected(rows: list[dict[str, Any]], on: date) -> dict[str, bool]:
    """Which assertions hold, by plain Python."""
    today = [row for row in rows if row["ds"] == on]
    past = [sum(row["ds"] == on - timedelta(days=back) for row in rows) for back in range(WEEK)]
    known = [count for count in past if count]
    return {
        "row": all(row["x"] >= 0 for row in today),
        "sum": sum(row["x"] for row in today) >= 0,
        "rows": len(today) * len(known) <= 2 * sum(known),
        "keys": len({row["id"] for row in today}) == len(today),
        "all keys": len({row["id"] for row in rows}) == len(rows),
        "total": sum(row["x"] for row in rows) >= 0,
        "all rows": all(row["x"] >= 0 for row in rows),
    }
