"""Nothing is lost between a report and its rows."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from arro3.core import Schema, Table

from dqx_airflow.results.incidents import IncidentNote
from dqx_airflow.results.query import rows_of
from dqx_airflow.results.receipts import Receipt
from dqx_airflow.results.report_rows import (
    failing_rows,
    report_from_rows,
    results_rows,
    run_row,
    shadow_rows,
)
from dqx_airflow.results.schema import (
    FAILING_ROWS,
    FAILING_ROWS_SCHEMA,
    INCIDENT_NOTES,
    LABELS,
    MONTH,
    RECEIPTS,
    RESULTS,
    RESULTS_SCHEMA,
    RUNS,
    RUNS_SCHEMA,
    TABLES,
    Row,
)
from dqx_airflow.results.store import arrow_table
from dqx_airflow.results.stored_labels import Label
from dqx_airflow.values import GateReport, Origin, Outcome, ShadowReport, Verdict
from tests.results.samples import ERROR, FAILED, PASSED, sample_report


def through_rows(report: GateReport) -> GateReport:
    (run,) = through_arrow([run_row(report)], RUNS_SCHEMA)
    results = through_arrow(results_rows(report), RESULTS_SCHEMA)
    failing = through_arrow(failing_rows(report), FAILING_ROWS_SCHEMA)
    return report_from_rows(run, results, failing)


def through_arrow(rows: list[Row], schema: Schema) -> list[dict[str, Any]]:
    return rows_of(Table.from_arrow(arrow_table(rows, schema)))


def test_a_report_survives_a_round_trip() -> None:
    assert through_rows(sample_report()) == sample_report()


def test_every_field_of_a_verdict_has_a_column_and_comes_back() -> None:
    verdict = replace(
        FAILED,
        origin=Origin.STATE,
        disabled_by="black_friday",
        is_experimental=True,
        measured="{}",
        let_by="an acceptance of clause a.b",
        groups=3,
        failed_groups=1,
        worst_group="store = 7",
        is_required=True,
        waived_by="waived until 2024-03-01; owner ben: ticket 7",
        accepted_by="accepted by eve: a holiday",
        rows_left_out=True,
        condition=">= minimum(cost)",
    )
    kept = [field for field in fields(Verdict) if field.compare]
    for field in kept:
        assert getattr(verdict, field.name) != field.default, f"give {field.name} a value above"
    report = sample_report(verdicts=(verdict,))
    (back,) = through_rows(report).verdicts
    for field in kept:
        written, read = getattr(verdict, field.name), getattr(back, field.name)
        assert read == written, f"no column of results keeps {field.name}"


def test_every_column_of_a_report_is_written() -> None:
    report = replace(sample_report(), shadow=ShadowReport("shadow", verdicts=(PASSED,)))
    rows = {
        RUNS: [run_row(report)],
        RESULTS: [*results_rows(report), *shadow_rows(report)],
        FAILING_ROWS: failing_rows(report),
    }
    for table, written in rows.items():
        columns = [name for name in TABLES[table].schema.names if name != MONTH]
        assert written
        assert all([*row] == columns for row in written), f"write the columns of {table} in order"


def test_every_column_that_people_write_is_written() -> None:
    note = IncidentNote("gate", date(2024, 3, 1), "comment", "ben")
    label = Label("gate", date(2024, 3, 1), "amounts", "positive", ground_truth=True, author="ben")
    receipt = Receipt("run", "table", 3, "{}", "{}")
    rows = {INCIDENT_NOTES: note.row, LABELS: label.row, RECEIPTS: receipt.row}
    for table, row in rows.items():
        columns = [name for name in TABLES[table].schema.names if name != MONTH]
        assert [*row] == columns, f"write the columns of {table} in order"


@pytest.mark.parametrize(
    "value",
    [
        None, 0, 1, -1, 2**53 + 1, 2**63, -(2**64), 10**400,
        0.0, 1.0, 0.1, 1e300, 5e-324, 2.0**53,
        "", "2024-02-29", "1", "None", "a\nb\t\N{SNOWMAN}'\"\x00", "[bold]",
    ],
)  # fmt: skip
def test_a_value_keeps_its_type_and_every_digit(value: int | float | str | None) -> None:
    verdict = replace(FAILED, value=value, scaled_value=value, threshold=value)
    (back,) = through_rows(sample_report(verdicts=(verdict,))).verdicts
    assert back == verdict
    assert {type(v) for v in (back.value, back.scaled_value, back.threshold)} == {type(value)}


def test_negative_zero_keeps_its_sign() -> None:
    (back,) = through_rows(sample_report(verdicts=(replace(FAILED, value=-0.0),))).verdicts
    assert str(back.value) == "-0.0"


def test_numbers_have_a_double_and_strings_do_not() -> None:
    verdicts = tuple(replace(FAILED, value=value) for value in (7, 0.5, "7", None, 10**400))
    rows = through_arrow(results_rows(sample_report(verdicts=verdicts)), RESULTS_SCHEMA)
    assert [row["value"] for row in rows] == [7.0, 0.5, None, None, None]
    assert [row["value_text"] for row in rows[:4]] == ["7", "0.5", "7", None]
    assert [row["value_kind"] for row in rows[:4]] == ["integer", "number", "text", None]


def test_a_report_without_verdicts_and_datasets_comes_back() -> None:
    report = sample_report(outcome=Outcome.BROKEN, verdicts=(), datasets=())
    assert through_rows(report) == report


def test_times_of_another_zone_are_converted_to_utc() -> None:
    here = timezone(timedelta(hours=5, minutes=30))
    report = sample_report(finished_at=datetime(2024, 3, 1, 12, tzinfo=here))
    assert through_rows(report) == report
    assert through_rows(report).finished_at.tzinfo is timezone.utc


def test_row_order_does_not_matter_and_duplicates_count_once() -> None:
    report = sample_report()
    run = run_row(report)
    rows, failing = results_rows(report), failing_rows(report)
    doubled = [*reversed(failing), failing[0]]
    assert report_from_rows(run, [*reversed(rows), rows[0]], doubled) == report


def test_missing_rows_are_an_error() -> None:
    report = sample_report()
    run = run_row(report)
    with pytest.raises(ValueError, match="3 of its 4 result rows"):
        report_from_rows(run, results_rows(report)[1:])
    failing = failing_rows(report)[3:]
    with pytest.raises(ValueError, match="2 of its 5 failing rows"):
        report_from_rows(run, results_rows(report), failing)


def test_columns_that_an_older_writer_did_not_know_read_as_absent() -> None:
    report = sample_report(datasets=())
    run = run_row(report)
    rows = results_rows(report)
    optional = [f.name for f in (*Verdict.__dataclass_fields__.values(),) if f.default is None]
    optional += ["tags", "profiles", "multiplier", "span_file", "value_text", "threshold_text"]
    older = [{k: v for k, v in row.items() if k not in optional} for row in rows]
    del run["datasets"], run["failing_rows"]
    back = report_from_rows(run, older)
    assert [verdict.name for verdict in back.verdicts] == [v.name for v in report.verdicts]
    assert back.verdicts[1].tags == ()
    assert back.verdicts[1].span is None
    assert back.verdicts[1].multiplier == 1.0


def test_a_run_row_counts_each_status_and_names_the_worst() -> None:
    run = run_row(sample_report())
    counts = [run[name] for name in ("assertions", "passed", "failed", "skipped", "errors")]
    assert counts == [4, 1, 1, 1, 1]
    assert (run["worst"], run["worst_severity"]) == ("no_negative_amounts", "P0")


def test_the_worst_of_a_broken_run_is_an_unevaluated_assertion() -> None:
    verdicts = (PASSED, FAILED, ERROR)
    run = run_row(sample_report(outcome=Outcome.BROKEN, verdicts=verdicts))
    assert run["worst"] == "typo"
