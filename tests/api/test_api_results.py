"""Results in notebooks, tests and data frames, and the fixture of pytest."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from dqx_airflow import MemoryDatabase, Outcome, SuiteFailedError
from dqx_airflow.api import Results, Suite

pytest_plugins = ["pytester"]

DAY = date(2024, 5, 17)
SUITE = """suite "Orders" {
    check "Prices" on orders {
        assert minimum(price) >= 0
            name "orders.price"
            severity P2
        assert each row: status in ["open", "<b>"]
            name "orders.status"
    }
}
"""
GOOD = [{"price": 1, "status": "open"}, {"price": 2, "status": "<b>"}]
CHEAP = [{"price": -1, "status": "open"}]
BAD = [{"price": 1, "status": "lost"}]


def run(rows: list[dict[str, object]]) -> Results:
    return Suite.from_string(SUITE).run(MemoryDatabase({"orders": rows}), DAY)


def test_a_pass_raises_nothing() -> None:
    results = run(GOOD)
    assert results.raise_for_failures() is results


def test_a_warning_raises_on_request() -> None:
    results = run(CHEAP)
    assert results.outcome is Outcome.WARNED
    assert results.raise_for_failures() is results
    with pytest.raises(SuiteFailedError):
        results.raise_for_failures(allow_warnings=False)


def test_a_blocking_failure_raises_with_the_results() -> None:
    with pytest.raises(
        SuiteFailedError, match=r"error: assertion failed: orders\.status"
    ) as raised:
        run(BAD).raise_for_failures()
    assert raised.value.results.outcome is Outcome.BLOCKED


def test_a_frame_has_the_columns_of_the_store() -> None:
    frame = run(BAD).to_pandas()
    assert list(frame["name"]) == ["orders.not_empty", "orders.price", "orders.status"]
    assert list(frame["status"]) == ["passed", "passed", "failed"]
    assert {"check", "severity", "value", "value_text", "expected", "reason"} <= {*frame.columns}


def test_a_notebook_shows_failures_first_and_escapes_values() -> None:
    shown = run(BAD)._repr_html_()
    assert shown.index("orders.status") < shown.index("orders.not_empty")
    assert "<details open>" in shown
    assert "&lt;b&gt;" in shown
    assert '"<b>"' not in shown
    assert "<details>" in run(GOOD)._repr_html_()


def test_the_fixture_runs_a_suite_beside_the_test(pytester: pytest.Pytester) -> None:
    Path(pytester.path, "orders.dql").write_text(SUITE)
    pytester.makepyfile(
        """
        from datetime import date

        DAY = date(2024, 5, 17)

        def test_good(dql_suite):
            rows = [{"price": 1, "status": "open", "day": DAY}]
            results = dql_suite("orders.dql", DAY, orders=rows, date_columns={"orders": "day"})
            results.raise_for_failures()

        def test_bad(dql_suite):
            rows = [{"price": 1, "status": "lost"}]
            dql_suite("orders.dql", DAY, orders=rows).raise_for_failures()
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:xdist", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*error: assertion failed: orders.status*"])
