"""A shadow is judged in the scan of its gate and does not change the gate's results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.diagnostics.verdicts import draw_report
from dqx_airflow.dql.import_readers import no_imports
from dqx_airflow.plan.selection import shadow_suite
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import GateReport, GateRequest, Outcome, ShadowSuite, SourceFile, Status
from tests.engine.lake import ORDERS, Run, delta, request
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

SUITE = """\
suite "Test" {
    check "All" on orders {
        assert num_rows() >= 4 name "rows"
        assert average(price) > 1 name "price" severity P2
    }
}
"""
STRICT = """\
suite "Test" {
    check "All" on orders {
        assert num_rows() >= 7 name "rows" severity P0
        assert average(price) > 1 name "price" severity P2
        assert sum(amount) < 100 name "most"
        assert maximum(nowhere) < 100 name "broken"
    }
}
"""


@pytest.fixture
def gate(tmp_path: Path) -> GateRequest:
    return request(tmp_path, SUITE, [delta(tmp_path, "orders", ORDERS)], recompute=True)


def shadow(gate: GateRequest, text: str) -> ShadowSuite:
    return shadow_suite(SourceFile("next.dql", text), no_imports, gate.datasets, "next.dql")


def judged(report: GateReport) -> object:
    """All that a gate says and that may not depend on a shadow."""
    return [replace(one, origin=None) for one in report.verdicts], report.outcome, report.datasets


def test_one_scan_serves_gate_and_shadow_and_the_gate_is_unchanged(
    spark: Any, run: Run, gate: GateRequest
) -> None:
    before = jobs_so_far(spark)
    alone = run(gate)
    jobs = jobs_so_far(spark) - before
    both = replace(gate, shadow=shadow(gate, STRICT), attempt=replace(gate.attempt, id="attempt-2"))
    before = jobs_so_far(spark)
    report = run(both)
    assert jobs_so_far(spark) - before == jobs == 1
    assert judged(report) == judged(alone)
    assert report.outcome is Outcome.PASSED
    assert report.shadow is not None
    assert (report.shadow.name, report.shadow.outcome) == ("next.dql", Outcome.BLOCKED)
    statuses = {one.name: one.status for one in report.shadow.verdicts}
    assert statuses["rows"] is Status.FAILED
    assert statuses["most"] is Status.PASSED
    assert statuses["broken"] is Status.ERROR
    assert read_report(both.results_root, both.run_key, both.attempt.id) == report
    drawn = draw_report(report)
    assert "shadow next.dql: would be blocked, the gate is passed; 3 verdicts differ" in drawn
    assert "rows: passed -> failed; num_rows() is 6, expected >= 4, in the shadow >= 7" in drawn
    assert "most: only in the shadow, passed" in drawn


BROKEN = {
    "a mistake": "suite {",
    "another dataset": 'suite "T" { check "A" on nowhere { assert num_rows() > 0 name "a" } }',
    "a library": "export const A = 1",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_an_invalid_shadow_is_reported_and_does_not_affect_the_gate(
    run: Run, gate: GateRequest, text: str
) -> None:
    from_elsewhere = ShadowSuite("next.dql", SourceFile("next.dql", text))
    for given in (shadow(gate, text), from_elsewhere):
        report = run(replace(gate, shadow=given))
        assert report.outcome is Outcome.PASSED
        assert report.shadow is not None
        assert (report.shadow.outcome, report.shadow.verdicts) == (None, ())
        assert "shadow next.dql was not evaluated; the gate is not affected: " in draw_report(
            report
        )
