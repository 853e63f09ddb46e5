"""DQL run from Python: files, strings, their imports, and the results."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path

import pytest

from dqx_airflow.dql import Interpreter
from dqx_airflow.errors import RequestError, SourceError
from dqx_airflow.values import GateReport, Outcome, Severity, Status, from_json, to_json
from tests.api.python_suites import TODAY, YESTERDAY, memory

SUITE = """\
suite "Orders" {
    check "Basic" on orders {
        assert num_rows() > 3 name "rows"
        assert null_count(email) == 0 name "email" severity P2
    }
}
"""


@pytest.fixture
def interpreter() -> Interpreter:
    return Interpreter(db=memory(), target_date=TODAY)


def test_results_print_as_the_seed_prints_them(interpreter: Interpreter) -> None:
    results = interpreter.run_string(SUITE)
    assert [f"{r.check}/{r.assertion}: {r.status}" for r in results if r.check == "Basic"] == [
        "Basic/rows: passed",
        "Basic/email: failed",
    ]


def test_results_hold_what_a_report_holds(interpreter: Interpreter) -> None:
    results = interpreter.run_string(SUITE)
    assert results.outcome is Outcome.WARNED
    assert f"{results.outcome}" == "warned"
    *implicit, rows, email = results.assertions
    assert [result.name for result in implicit] == [
        "orders.not_empty",
        "returns.not_empty",
        "countries.not_empty",
    ]
    assert (rows.name, rows.passed, rows.metric_value) == ("rows", True, 4)
    assert (email.name, email.passed, email.metric_value) == ("email", False, 1)
    assert (email.severity, email.expected, email.threshold) == (Severity.P2, "== 0", 0)
    assert [(data.name, data.rows) for data in results.datasets][:2] == [
        ("orders", 4),
        ("returns", 1),
    ]
    assert len(results) == 5
    assert results.report.run_key.date == TODAY
    assert from_json(GateReport, to_json(results.report)) == results.report


def test_a_failure_is_drawn_as_a_gate_draws_it(interpreter: Interpreter) -> None:
    drawn = str(interpreter.run_string(SUITE))
    assert "4 |         assert null_count(email) == 0" in drawn
    assert "= metric value: 1" in drawn


def test_a_file_imports_from_its_folder_and_from_dql_path(
    interpreter: Interpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "rows.dql").write_text(
        'export macro some() { assert num_rows() > 0 name "some" }'
    )
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "limits.dql").write_text("export const MOST = 3")
    monkeypatch.setenv("DQL_PATH", str(tmp_path / "shared"))
    (tmp_path / "suite.dql").write_text(
        'import "common/rows.dql"\nimport "limits.dql"\n'
        'suite "S" { check "C" on orders { use some() assert num_rows() <= MOST name "few" } }'
    )
    results = interpreter.run_file(tmp_path / "suite.dql")
    assert {r.name: r.status for r in results if r.check == "C"} == {
        "some": Status.PASSED,
        "few": Status.FAILED,
    }


def test_a_string_imports_from_the_given_folder(interpreter: Interpreter, tmp_path: Path) -> None:
    (tmp_path / "limits.dql").write_text("export const MOST = 3")
    text = (
        'import "limits.dql"\n'
        'suite "S" { check "C" on orders { assert num_rows() <= MOST name "few" } }'
    )
    assert interpreter.run_string(text, folder=tmp_path).outcome is Outcome.BLOCKED
    with pytest.raises(SourceError, match="imports need a file"):
        interpreter.run_string(text)


def test_all_errors_of_a_suite_are_drawn(interpreter: Interpreter) -> None:
    with pytest.raises(SourceError) as raised:
        interpreter.run_string(SUITE.replace("num_rows", "num_row").replace("P2", "P9"))
    assert [found.code for found in raised.value.diagnostics] == ["E001", "E004"]
    assert str(raised.value).startswith("error[E001]: unknown metric 'num_row'\n --> <text>:3:16\n")


def test_a_missing_dataset_is_an_error_of_the_suite(interpreter: Interpreter) -> None:
    with pytest.raises(SourceError, match="E009"):
        interpreter.run_string(SUITE.replace("orders", "invoices"))


def test_a_lag_on_an_undated_dataset_is_an_error_of_the_suite(interpreter: Interpreter) -> None:
    with pytest.raises(SourceError, match="E111"):
        interpreter.run_string(
            'suite "S" { check "C" on countries { assert num_rows(lag 1) > 0 name "a" } }'
        )


def test_a_missing_file_is_reported(interpreter: Interpreter, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="file not found"):
        interpreter.run_file(tmp_path / "suite.dql")


def test_a_library_is_not_a_suite(interpreter: Interpreter) -> None:
    with pytest.raises(SourceError, match="E008"):
        interpreter.run_string("export const A = 1")


def test_the_severity_that_blocks_can_be_set() -> None:
    results = Interpreter(memory(), TODAY, fail_on="P2").run_string(SUITE)
    assert results.outcome is Outcome.BLOCKED
    with pytest.raises(RequestError, match="fail_on='P7': write P0, P1, P2 or P3"):
        Interpreter(memory(), TODAY, fail_on="P7").run_string(SUITE)


def test_empty_datasets_pass_if_allowed() -> None:
    suite = 'suite "S" { check "C" on orders { assert null_count(email) == 0 name "a" } }'
    long_ago = date(2000, 1, 1)
    assert Interpreter(memory(), long_ago).run_string(suite).outcome is Outcome.BLOCKED
    results = Interpreter(memory(), long_ago, allow_empty=True).run_string(suite)
    assert results.outcome is Outcome.PASSED


def test_skipped_dates_need_no_data() -> None:
    suite = 'suite "S" { check "C" on orders { assert num_rows(lag 1) > 5 name "a" } }'
    (*_, result) = Interpreter(memory(), TODAY, skip_dates=[YESTERDAY]).run_string(suite)
    assert result.status is Status.SKIPPED


def test_ages_are_measured_from_the_given_time() -> None:
    suite = 'suite "S" { check "C" on orders { assert freshness(ds) < 1 day name "a" } }'
    noon = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)
    (*_, result) = Interpreter(memory(), TODAY, now=noon).run_string(suite)
    assert (result.status, result.metric_value) == (Status.PASSED, 12 * 3600)
    (*_, result) = Interpreter(memory(), TODAY).run_string(suite)
    assert result.status is Status.FAILED
    with pytest.raises(RequestError, match="`now` has no time zone"):
        Interpreter(memory(), TODAY, now=datetime(2024, 11, 29)).run_string(suite)


def test_a_datetime_is_read_as_its_date() -> None:
    results = Interpreter(memory(), datetime(2024, 11, 29, 23, 30)).run_string(SUITE)
    assert results.report.run_key.date == TODAY


def test_a_string_is_not_a_date() -> None:
    with pytest.raises(RequestError, match="'2024-11-29' is not a date"):
        Interpreter(memory(), "2024-11-29").run_string(SUITE)  # type: ignore[arg-type]
