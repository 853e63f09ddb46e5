"""The example SQL views, run by DuckDB over a real store."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import Outcome
from dqx_airflow.values.files import shipped
from tests.results import samples

NOW = datetime.now(timezone.utc)


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """Gate `daily` has run every day until yesterday, `silent` until ten days ago, `once` once."""
    store = ResultsStore(str(tmp_path_factory.mktemp("views") / "results"))
    last = {"daily": 1, "silent": 10}
    runs = [(gate, days) for gate, newest in last.items() for days in range(newest, newest + 4)]
    number = 0
    for gate, days in [*runs, ("once", 50)]:
        day = NOW - timedelta(days=days)
        for attempt in (1, 2):
            # The first attempt of each run blocked, the second one counts; the newest are blocked.
            is_bad = attempt == 1 or (gate == "silent" and days == last[gate])
            number += 1
            start = day + timedelta(minutes=attempt)
            verdicts = (samples.PASSED, samples.FAILED if is_bad else samples.PASSED)
            verdicts = (verdicts[0], replace(verdicts[1], name="amounts"))
            report = samples.sample_report(
                run_id=f"00000000-0000-7000-8000-{number:012}",
                run_key=replace(samples.RUN_KEY, gate=gate, date=day.date()),
                attempt=attempt,
                outcome=Outcome.BLOCKED if is_bad else Outcome.PASSED,
                verdicts=verdicts,
                started_at=start,
                finished_at=start + timedelta(seconds=30),
            )
            store.write(report)
    connection = duckdb.connect()
    for table in ("runs", "results"):
        rows = DeltaTable(f"{store.location.root}/{table}").to_pyarrow_table()
        # As a table that a later version has written.
        connection.register(table, rows.append_column("later", rows["run_id"]))
    connection.execute(shipped("dags_examples/sql/results_views.sql").read_text())
    return connection


def asked(views: duckdb.DuckDBPyConnection, question: str) -> list[tuple[Any, ...]]:
    return views.execute(question).fetchall()


def test_only_the_last_attempt_of_a_run_counts(views: duckdb.DuckDBPyConnection) -> None:
    runs = "SELECT gate, count(*), max(seconds), min(attempt) FROM dqx_runs GROUP BY 1 ORDER BY 1"
    assert asked(views, runs) == [("daily", 4, 30, 2), ("once", 1, 30, 2), ("silent", 4, 30, 2)]
    assert asked(views, "SELECT count(*) FROM dqx_results") == [(18,)]
    days = "SELECT sum(runs), sum(passed), sum(blocked), max(average_seconds) FROM dqx_days"
    assert asked(views, days) == [(9, 8, 1, 30)]


def test_a_dashboard_shows_the_state_now(views: duckdb.DuckDBPyConnection) -> None:
    gates = "SELECT gate, outcome, round(hours_ago / 24) FROM dqx_gates ORDER BY gate"
    expected = [("daily", "passed", 1), ("once", "passed", 50), ("silent", "blocked", 10)]
    assert asked(views, gates) == expected
    failures = "SELECT gate, name, severity, status FROM dqx_open_failures"
    assert asked(views, failures) == [("silent", "amounts", "P0", "failed")]


def test_gates_without_runs_for_twice_their_interval_are_overdue(
    views: duckdb.DuckDBPyConnection,
) -> None:
    overdue = "SELECT gate, round(usual_hours), is_overdue FROM dqx_overdue ORDER BY gate"
    expected = [("daily", 24, False), ("once", None, None), ("silent", 24, True)]
    assert asked(views, overdue) == expected
