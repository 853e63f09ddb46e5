"""`pytest --dql` runs the assertions of a suite as tests."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SUITE = """suite "Orders" {
    check "Prices" on orders {
        assert minimum(price) > 0 name "orders.price" severity P0
        assert unique(id) name "orders.id"
        assert average(price) < 5 name "orders.cheap" severity P3
        assert sql("sum(price)") > 0 name "orders.sql"
        assert num_rows(lag 1) > 0 name "orders.yesterday"
    }
}
"""
CONFTEST = """
from dqx_airflow import MemoryDatabase

def pytest_dql_database(path, on):
    rows = [{"id": 1, "price": -1, "day": on}, {"id": 2, "price": 30, "day": on}]
    return MemoryDatabase({"orders": rows}, date_columns={"orders": "day"})
"""
LIBRARY = "export const MOST = 5\n"


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        "-p", "no:xdist", "-p", "no:cacheprovider", "-v", "-rx", *arguments
    )


@pytest.fixture
def suites(pytester: pytest.Pytester) -> Path:
    folder = Path(pytester.path, "suites")
    folder.mkdir()
    (folder / "orders.dql").write_text(SUITE)
    (folder / "library.dql").write_text(LIBRARY)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("def test_of_its_own(): pass")
    return folder


def test_each_assertion_is_a_test(pytester: pytest.Pytester, suites: Path) -> None:
    result = run(pytester, "--dql", "suites", "--dql-date", "2024-05-17")
    result.assert_outcomes(passed=2, failed=2, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*suites/orders.dql::implicit assertions PASSED*",
            "*suites/orders.dql::Prices/orders.price FAILED*",
            "*suites/orders.dql::Prices/orders.id PASSED*",
            "*suites/orders.dql::Prices/orders.cheap XFAIL*",
            "*suites/orders.dql::Prices/orders.sql FAILED*",
            "*error: assertion failed: orders.price*",
            "*metric value: -1*",
            "*error: assertion could not be evaluated: orders.sql*",
        ]
    )
    assert "test_of_its_own" not in result.stdout.str()


def test_suites_are_added_to_other_tests(pytester: pytest.Pytester, suites: Path) -> None:
    tests = Path(pytester.path, "test_suites_are_added_to_other_tests.py")
    result = run(pytester, str(tests), "--dql", "suites/orders.dql")
    result.assert_outcomes(passed=3, failed=2, skipped=1, xfailed=1)


def test_without_the_option_suites_are_no_tests(pytester: pytest.Pytester, suites: Path) -> None:
    run(pytester).assert_outcomes(passed=1)


def test_errors_in_a_suite_are_collection_errors(pytester: pytest.Pytester, suites: Path) -> None:
    (suites / "orders.dql").write_text(SUITE.replace("minimum", "minmum"))
    result = run(pytester, "--dql", "suites")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unknown metric 'minmum'*"])


def test_a_missing_dataset_fails_every_test(pytester: pytest.Pytester, suites: Path) -> None:
    pytester.makeconftest("def pytest_dql_database(): return {}")
    result = run(pytester, "--dql", "suites")
    result.assert_outcomes(failed=6)
    result.stdout.fnmatch_lines(["*the gate has no dataset 'orders'*"])


def test_an_invalid_date_is_a_usage_error(pytester: pytest.Pytester, suites: Path) -> None:
    result = run(pytester, "--dql", "suites", "--dql-date", "2024-13-01")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--dql-date 2024-13-01: write 2024-12-25, today, yesterday or -3d*"]
    )


@pytest.mark.spark
@pytest.mark.slow
def test_the_datasets_of_the_settings_are_read_with_spark(pytester: pytest.Pytester) -> None:
    Path(pytester.path, "orders.dql").write_text(SUITE)
    Path(pytester.path, "orders.csv").write_text("id;price;day\n1;3;2024-05-17\n2;4;2024-05-16\n")
    Path(pytester.path, "dqx.toml").write_text(
        """
[datasets.orders]
path = "orders.csv"
format = "csv"
schema = "id int, price int, day date"
date_column = "day"

[reader.csv]
sep = ";"
"""
    )
    result = pytester.runpytest_subprocess(
        "-p", "no:xdist", "-p", "no:cacheprovider", "--dql", ".", "--dql-date", "2024-05-17"
    )
    result.assert_outcomes(passed=6)
