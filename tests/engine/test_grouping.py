"""Distinct values and keys, counted in separate passes: the same numbers as in one pass."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow.engine.job import run_gates
from dqx_airflow.plan import passes
from dqx_airflow.values import GateReport
from tests.engine.lake import TODAY, YESTERDAY, Run, delta, request
from tests.job_count import jobs_so_far

pytestmark = [pytest.mark.spark, pytest.mark.compiled]

KEYS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 4], pa.int64()),
        "a": pa.array([1, None, 1, None, 2], pa.int32()),
        "b": pa.array([None, 1, 1, None, 2], pa.int32()),
        "text": ["x", "X", "x ", None, ""],
        "zero": [0.0, -0.0, float("nan"), float("nan"), 1.0],
        "cents": pa.array([Decimal("1.0"), Decimal("1.1"), None, None, Decimal("2.0")]),
        "at": pa.array([datetime(2024, 1, 1, hour) for hour in (1, 2, 2, 3, 4)]),
        "ds": pa.array([TODAY, TODAY, TODAY, TODAY, YESTERDAY], pa.date32()),
    }
)

COUNTS = [
    ("duplicate_count(id)", 0),
    ("duplicate_count(id, lag 1)", 0),
    ("duplicate_count([a, b])", 0),
    ("duplicate_count(a)", 2),
    ("duplicate_count(text)", 0),
    ("duplicate_count(zero)", 2),
    ("duplicate_count(cents)", 1),
    ("duplicate_count([cents, at])", 0),
    ("duplicate_count(at)", 1),
    ("repeated_count([a, b])", 0),
    ("repeated_count([a, b], lag 1)", 0),
    ("repeated_count(a)", 1),
    ("repeated_count(cents)", 0),
    ("repeated_count([at, a])", 0),
    ("repeated_count([zero, a])", 0),
    ("duplicate_count([at, id])", 0),
    ("unique_count(a)", 1),
    ("unique_count(b)", 1),
    ("unique_count(zero)", 2),
    ("unique_count(text)", 3),
    ("num_rows()", 4),
    ("average(id)", 2.5),
    ('sql("sum(id) AS total -- of all")', 10),
]


def measured(spark: Any, folder: Path, *, date_column: str | None) -> GateReport:
    orders = replace(delta(folder, "orders", KEYS), date_column=date_column)
    counts = [text for text, _ in COUNTS if date_column or "lag" not in text]
    suite = "\n".join(f"assert {text} is not None name {json.dumps(text)}" for text in counts)
    return run_gates([request(folder, suite, [orders])], lambda _: spark)[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("most_rows_fused", [0, 10**9], ids=["apart", "in one pass"])
def test_keys_and_values_are_counted_exactly(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_rows_fused: int
) -> None:
    monkeypatch.setattr(passes, "MOST_ROWS_FUSED", most_rows_fused)
    report = measured(spark, tmp_path, date_column="ds")
    found = {verdict.name: verdict.value for verdict in report.verdicts}
    assert {text: found[text] for text, _ in COUNTS} == dict(COUNTS)


@pytest.mark.slow
def test_a_dataset_without_dates_is_counted_in_the_same_way(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for most in (0, 10**9):
        monkeypatch.setattr(passes, "MOST_ROWS_FUSED", most)
        (tmp_path / str(most)).mkdir()
        report = measured(spark, tmp_path / str(most), date_column=None)
        found[most] = [verdict.value for verdict in report.verdicts]
    assert found[0] == found[10**9]
    assert None not in found[0]


@pytest.mark.more
def test_unique_keys_take_one_more_job_however_many_they_are(
    spark: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "MOST_ROWS_FUSED", 0)
    orders = replace(delta(tmp_path, "orders", KEYS), date_column="ds")
    suite = """
        assert unique(id) name "one"
        assert unique(id, text) name "two"
        assert unique(at, id) name "three"
        assert average(id) > 0 name "flat"
    """
    before = jobs_so_far(spark)
    report = run(request(tmp_path, suite, [orders]))
    assert jobs_so_far(spark) - before == 2
    assert {verdict.status.value for verdict in report.verdicts} == {"passed"}
