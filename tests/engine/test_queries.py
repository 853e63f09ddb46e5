"""A query depends on the datasets that its SQL reads, and on no other one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow.values import DatasetRef, Outcome, Status
from tests.engine.lake import Run, delta, request

pytestmark = pytest.mark.spark

SUITE = """
    suite "Test" { check "All" on orders, lost {
        assert query("SELECT count(*) FROM orders") == 2 name "own"
        assert query("SELECT max(x) FROM lost") == 1 name "lost"
        assert query("SELECT count(*) FROM orders, lost") == 2 name "joined"
    } }
"""


def test_a_dataset_that_cannot_be_opened_fails_the_queries_that_read_it(
    spark: Any, run: Run, tmp_path: Path
) -> None:
    orders = delta(tmp_path, "orders", pa.table({"id": [1, 2]}))
    lost = DatasetRef("lost", path=str(tmp_path / "nowhere"))
    # The session knows another table of this name, which is not the dataset.
    spark.sql("SELECT 1 AS x").createOrReplaceTempView("lost")
    try:
        report = run(request(tmp_path, SUITE, [lost, orders]))
    finally:
        spark.catalog.dropTempView("lost")
    assert report.outcome is Outcome.BROKEN
    verdicts = {verdict.name: verdict for verdict in report.verdicts}
    (unreadable,) = (one for one in report.verdicts if one.check == "implicit" and one.reason)
    assert verdicts["own"].status is Status.PASSED
    assert {name: verdicts[name].reason for name in ("lost", "joined")} == dict.fromkeys(
        ("lost", "joined"), unreadable.reason
    )
    assert {name: verdicts[name].datasets for name in ("own", "lost", "joined")} == {
        "own": ("orders",),
        "lost": ("lost",),
        "joined": ("orders", "lost"),
    }
