"""A DQL suite as a Python object: its parts, its profiles, its tunables."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.dql import Suite
from dqx_airflow.errors import RequestError, SourceError
from tests.api.python_suites import TODAY, memory

SUITE = """\
suite "Orders" {
    const MAX_NULLS = 5% tunable [0%, 20%]
    const MIN_ORDERS = 1000 tunable [1, 10_000]
    const LIMIT = 0.5 tunable [0.1, 1.0]
    const MOST = MIN_ORDERS * 2

    check "Volume" on orders, returns {
        assert num_rows(dataset orders) between MIN_ORDERS and MOST
            name "orders.volume.rows"
            tags [volume]

        assert null_count(email, dataset orders) / num_rows(dataset orders) < MAX_NULLS
        assert day_over_day(num_rows(dataset orders)) < LIMIT name "stable"
    }

    profile "Black Friday" {
        from 2024-11-29
        to   2024-12-02
        scale tag "volume" by 2.0x
        scale tag "volume" by 1.5x
        scale assertion "stable" in "Volume" by 0.5x
        downgrade tag "volume" to P3
    }

    profile "Month End" {
        type recurring
        from last_day_of_month() - 2
        to   last_day_of_month()
        disable assertion "stable" in "Volume"
    }
}
"""


@pytest.fixture
def suite() -> Suite:
    return Suite.from_string(SUITE)


def test_a_suite_has_its_name_and_checks(suite: Suite) -> None:
    assert suite.name == "Orders"
    (check,) = suite.checks
    assert (check.name, check.datasets) == ("Volume", ("orders", "returns"))
    assert check.assertions == (
        "orders.volume.rows",
        "null_count(email, dataset orders) / num_rows(dataset orders) < MAX_NULLS",
        "stable",
    )
    assert [warning.code for warning in suite.warnings] == ["W001"]


def test_a_suite_is_loaded_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "orders.dql"
    path.write_text(SUITE)
    assert Suite.load(str(path)).name == "Orders"
    path.write_bytes(b"suite \xff")
    with pytest.raises(SourceError, match="E010"):
        Suite.load(path)


def test_profiles_have_active_dates_and_multipliers(suite: Suite) -> None:
    friday, month_end = suite.get_profiles()
    assert (friday.name, friday.type) == ("Black Friday", "holiday")
    assert (month_end.name, month_end.type) == ("Month End", "recurring")
    assert friday.get_multipliers() == {'tag "volume"': 3.0, 'assertion "stable" in "Volume"': 0.5}
    assert month_end.get_multipliers() == {}
    assert suite.get_active_profiles(date(2024, 11, 29)) == (friday, month_end)
    assert suite.get_active_profiles(date(2024, 12, 2)) == (friday,)
    assert suite.get_active_profiles(date(2024, 12, 3)) == ()
    assert suite.is_profile_active("Month End", date(2024, 2, 29))
    assert not suite.is_profile_active("Month End", date(2024, 3, 1))
    with pytest.raises(RequestError, match="no profile 'Easter'"):
        suite.is_profile_active("Easter", TODAY)


def test_tunables_have_their_bounds(suite: Suite) -> None:
    bounds = [
        (param.name, param.type, param.value, param.min_bound, param.max_bound)
        for param in suite.get_tunable_params()
    ]
    assert bounds == [
        ("MAX_NULLS", "percent", 0.05, 0.0, 0.2),
        ("MIN_ORDERS", "int", 1000, 1, 10_000),
        ("LIMIT", "float", 0.5, 0.1, 1.0),
    ]
    assert [param.normalized_value for param in suite.get_tunable_params()] == [
        pytest.approx(0.25),
        pytest.approx(0.0999, abs=1e-4),
        pytest.approx(0.4444, abs=1e-4),
    ]


def test_a_changed_tunable_applies_to_the_next_run(suite: Suite) -> None:
    def rows() -> Any:
        results = suite.run(memory(), date(2024, 11, 28), allow_empty=True)
        return next(result for result in results if result.name == "orders.volume.rows")

    assert (rows().passed, rows().expected) == (False, "between MIN_ORDERS (1000) and MOST (2000)")
    suite.set_param("MIN_ORDERS", 1)
    assert suite.get_param("MIN_ORDERS") == 1
    assert (rows().passed, rows().expected) == (True, "between MIN_ORDERS (1) and MOST (2)")
    suite.set_param("MAX_NULLS", 0.125)
    second = suite.plan(memory(), TODAY, allow_empty=True).assertions[1]
    assert second.condition.text == "< MAX_NULLS (12.5%)"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "MAX_NULLS",
            0.3,
            r"(?s)E601.*MAX_NULLS cannot be 30%: it is outside its bounds \[0%, 20%\].*:2:23",
        ),
        ("MIN_ORDERS", 1.5, "MIN_ORDERS cannot be 1.5: it must be a whole number"),
        ("LIMIT", "high", "LIMIT cannot be 'high': it must be a number"),
        ("MOST", 5, "the suite has no tunable 'MOST'"),
        ("MIN_ORDER", 5, "(?s)no tunable 'MIN_ORDER'.*did you mean 'MIN_ORDERS'"),
    ],
)
def test_a_disallowed_value_is_refused_and_changes_nothing(
    suite: Suite, name: str, value: Any, message: str
) -> None:
    before = suite.plan(memory(), TODAY)
    with pytest.raises(RequestError, match=message):
        suite.set_param(name, value)
    assert suite.plan(memory(), TODAY) == before


def test_a_changed_tunable_applies_within_macros(tmp_path: Path) -> None:
    (tmp_path / "common.dql").write_text(
        'export macro at_least(rows) { assert num_rows() >= {rows} name "common" }'
    )
    suite = Suite.from_string(
        'import "common.dql"\nsuite "S" { const LEAST = 9 tunable [1, 9]\n'
        'macro enough() { assert num_rows() >= LEAST name "own" }\n'
        'check "C" on orders { use enough() use at_least(LEAST) } }',
        folder=tmp_path,
    )
    assert [r.passed for r in suite.run(memory(), TODAY) if r.check == "C"] == [False, False]
    suite.set_param("LEAST", 4)
    assert [r.passed for r in suite.run(memory(), TODAY) if r.check == "C"] == [True, True]


def test_tunables_of_imported_files_are_not_those_of_the_suite(tmp_path: Path) -> None:
    (tmp_path / "limits.dql").write_text("export const MOST = 3 tunable [1, 5]")
    suite = Suite.from_string(
        'import "limits.dql"\nsuite "S" { check "C" on orders { assert num_rows() <= MOST } }',
        folder=tmp_path,
    )
    assert suite.get_tunable_params() == ()


def test_a_tunable_duration_keeps_its_unit() -> None:
    suite = Suite.from_string(
        'suite "S" { const AGE = 2 hours tunable [1 hour, 1 day]\n'
        'check "C" on orders { assert freshness(ds) < AGE name "a" } }'
    )
    assert suite.get_param("AGE") == 7200
    suite.set_param("AGE", 3600)
    (assertion,) = suite.plan(memory(), TODAY, allow_empty=True).assertions
    assert assertion.condition.text == "< AGE (1 hour)"
