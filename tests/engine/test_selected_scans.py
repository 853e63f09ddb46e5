"""A gate with a selection computes less, says so, and supersedes no complete run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.diagnostics.verdicts import headline
from dqx_airflow.engine.job import run_gates
from dqx_airflow.errors import RequestError
from dqx_airflow.results.alerts import alerts
from dqx_airflow.results.dql_results import query_results
from dqx_airflow.results.runs import list_runs, read_report
from dqx_airflow.values import DatasetRef, GateReport, GateRequest, Outcome, Status
from dqx_airflow.values.request import selection_of
from tests.engine.lake import ORDERS, Run, delta, request
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

SUITE = """\
suite "Test" {
    check "Cheap" on orders {
        assert num_rows() >= 4 name "rows" tags [fast]
        assert average(price) > 1 name "price" severity P2
    }
    check "Dear" on orders {
        assert unique_count(id) == 1 name "ids" severity P0
        assert most_rows > 1 name "sql"
    }
    check "Elsewhere" on nowhere {
        assert num_rows() > 0 name "nowhere"
    }
}
""".replace("most_rows > 1", 'query("SELECT count(*) FROM orders") > 100')


@pytest.fixture
def gate(tmp_path: Path) -> GateRequest:
    datasets = [delta(tmp_path, "orders", ORDERS), DatasetRef("nowhere", path=f"{tmp_path}/none")]
    return request(tmp_path, SUITE, datasets, recompute=True)


def attempt(gate: GateRequest, number: int, **selection: Any) -> GateRequest:
    return replace(
        gate,
        attempt=replace(gate.attempt, number=number, id=f"attempt-{number}"),
        selection=selection_of(**selection),
    )


def ran(gate: GateRequest, spark: Any) -> GateReport:
    return run_gates([gate], lambda _: spark)[0]


def test_only_the_selection_is_computed_and_stored_as_partial(
    spark: Any, run: Run, gate: GateRequest
) -> None:
    chosen = attempt(gate, 1, only="Cheap")
    before = jobs_so_far(spark)
    report = run(chosen)
    assert jobs_so_far(spark) - before == 1
    assert [one.name for one in report.verdicts] == ["orders.not_empty", "rows", "price"]
    assert [one.name for one in report.datasets] == ["orders"]
    assert report.partial is not None
    assert (report.partial.selected, report.partial.assertions) == (2, 5)
    assert headline(report).startswith(
        "passed: partial, 2 of 5 assertions selected (only Cheap), "
        "P0 or @required left out: ids; gate "
    )
    assert read_report(gate.results_root, gate.run_key, chosen.attempt.id) == report
    (line,) = list_runs(gate.results_root)
    assert line.partial == report.partial


@pytest.mark.slow
def test_a_partial_pass_supersedes_no_whole_run_and_a_partial_failure_does(
    spark: Any, gate: GateRequest
) -> None:
    root, on = gate.results_root, gate.run_key.date

    def failures() -> list[str]:
        return [one.verdict.name for one in alerts(root, "Test", on, on)]

    def standing() -> list[int]:
        return [run.attempt.number for run in list_runs(root)]

    ran(attempt(gate, 1, only="rows"), spark)
    assert (failures(), standing()) == ([], [1])
    whole = ran(attempt(gate, 2), spark)
    assert whole.partial is None
    assert whole.outcome is Outcome.BLOCKED
    assert (failures(), standing()) == (["ids", "sql"], [2])
    assert ran(attempt(gate, 3, only="rows"), spark).outcome is Outcome.PASSED
    elsewhere = attempt(gate, 4, tags="fast")
    key = replace(gate.run_key, scheduler_run="another")
    assert ran(replace(elsewhere, run_key=key), spark).outcome is Outcome.PASSED
    assert failures() == ["ids", "sql"]
    assert {run.attempt.number for run in list_runs(root)} == {2, 4}
    passed = query_results(root, "SELECT assertion_name FROM dql_results WHERE NOT passed")
    assert {row["assertion_name"] for row in passed} == {"ids", "sql"}
    assert ran(attempt(gate, 5, only="sql"), spark).outcome is Outcome.BLOCKED
    assert failures() == ["sql"]
    tomorrow = on + timedelta(days=1)
    assert alerts(root, "Test", tomorrow, tomorrow) == ()


def test_an_empty_selection_is_refused_before_spark(gate: GateRequest) -> None:
    for chosen, problem in (
        (attempt(gate, 1, only="idz"), "no assertion or check is named 'idz'"),
        (attempt(gate, 1, tags="fast", min_severity="P0"), "no assertion is selected"),
    ):
        with pytest.raises(RequestError, match=problem):
            run_gates([chosen], lambda _: pytest.fail("a session was opened"))


def test_a_selection_promotes_only_on_request_and_with_all_required_assertions(
    run: Run, gate: GateRequest, tmp_path: Path
) -> None:
    def selecting(only: str, *, promote_partial: bool) -> GateRequest:
        chosen = attempt(gate, 1, only=only)
        targets = (("orders", f"{tmp_path}/promoted"),)
        return replace(chosen, promote_to=targets, promote_partial=promote_partial)

    for chosen, problem in (
        (selecting("rows", promote_partial=False), "promote_to promotes rows that satisfy all"),
        (selecting("rows", promote_partial=True), "ids would not be evaluated"),
    ):
        with pytest.raises(RequestError, match=problem):
            run_gates([chosen], lambda _: pytest.fail("a session was opened"))
    report = run(selecting("*s", promote_partial=True))
    assert report.with_status(Status.ERROR) == ()
    assert report.outcome is Outcome.BLOCKED
