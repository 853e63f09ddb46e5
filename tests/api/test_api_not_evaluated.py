"""What was not evaluated has not passed, and every form of a report says so first."""

from __future__ import annotations

from datetime import date
from xml.etree import ElementTree as ET

import pytest

from dqx_airflow.cli.reports import junit_of_reports
from dqx_airflow.diagnostics.verdicts import draw_report, draw_verdict, headline
from dqx_airflow.dql import Suite
from dqx_airflow.results.report_rows import report_from_rows, results_rows, run_row
from dqx_airflow.values import GateReport, Outcome, Verdict, from_json, to_json
from tests.api.python_suites import TODAY, memory

TEXT = """\
suite "Orders" {
    check "Basic" on orders {
        assert num_rows() > 3 name "rows"
        assert num_rows() / num_rows(lag 30) < 2 name "growth" severity P0
        assert null_count(email) == 0 name "email" severity P3
    }
}
"""
FIRST = "1 of 6 assertions not evaluated; "


def report(text: str = TEXT, *, require_history: bool = False) -> GateReport:
    found = Suite.from_string(text).run(memory(), TODAY, require_history=require_history)
    return found.report


def test_a_warned_gate_starts_with_what_was_not_evaluated() -> None:
    warned = report()
    assert warned.outcome is Outcome.WARNED
    assert headline(warned).startswith(f"warned: {FIRST}gate Orders, dataset orders, date ")
    assert "; worst: growth (P0): data is available for 50% of the dates" in headline(warned)
    assert draw_report(warned).startswith("not evaluated: growth (P0): data is available for 50%")
    assert named(warned) == "growth"


@pytest.mark.parametrize("place", ["call", "suite"])
def test_required_history_breaks_a_gate_that_lacks_it(place: str) -> None:
    text = f"@require_history\n{TEXT}" if place == "suite" else TEXT
    broken = report(text, require_history=place == "call")
    assert broken.outcome is Outcome.BROKEN
    assert headline(broken).startswith(f"broken: {FIRST}gate Orders")
    assert named(broken) == "growth"
    assert broken.validated == {}


def test_of_a_blocked_gate_the_violation_is_the_worst() -> None:
    blocked = report(TEXT.replace("> 3", "> 300"))
    assert blocked.outcome is Outcome.BLOCKED
    assert headline(blocked).startswith("blocked: gate Orders")
    assert "worst: rows (P1): num_rows() is 4, expected > 300" in headline(blocked)
    assert named(blocked) == "rows"


def test_a_build_ends_as_the_run_does() -> None:
    counts = [
        ET.fromstring(junit_of_reports([results]))
        for results in (report(), report(require_history=True))
    ]
    assert [(root.get("errors"), root.get("skipped")) for root in counts] == [
        ("0", "1"),
        ("1", "0"),
    ]


def test_a_stored_report_has_the_same_headline() -> None:
    text = TEXT.replace("}\n}", '} profile "P" { from 2000-01-01 to 2100-01-01 %s } }')
    disabled = report(text % 'disable assertion "email" in "Basic"')
    assert [verdict.disabled_by for verdict in disabled.verdicts].count("P") == 1
    read = report_from_rows(run_row(disabled), results_rows(disabled))
    assert headline(read) == headline(disabled)
    assert read.not_evaluated == disabled.not_evaluated
    assert from_json(GateReport, to_json(disabled)) == disabled
    old = [{**row, "disabled_by": None} for row in results_rows(disabled)]
    assert report_from_rows(run_row(disabled), old) == read


def test_a_scaled_value_and_its_limit_are_shown_with_their_raw_values() -> None:
    text = TEXT.replace("}\n}", '} profile "P" { from 2000-01-01 to 2100-01-01 %s } }')
    scaled = report(text.replace("> 3", "> 300") % 'scale assertion "rows" in "Basic" by 1.5x')
    verdict = next(candidate for candidate in scaled.verdicts if candidate.name == "rows")
    assert "worst: rows (P1): num_rows() is 6 (4 x 1.5), expected > 300" in headline(scaled)
    drawn = draw_verdict(verdict, scaled)
    assert "scaled value: 6 (4 x 1.5)" in drawn
    assert "limit: 300, for the metric value 200" in drawn


def named(found: GateReport) -> str:
    worst: Verdict | None = found.worst
    return worst.name if worst else ""


def test_what_one_cause_keeps_from_being_evaluated_is_drawn_once() -> None:
    lines = (f'assert maximum(lost) < {number} name "lost.{number}"' for number in range(9))
    text = f'suite "Orders" {{ check "Basic" on orders {{ {chr(10).join(lines)} }} }}'
    drawn = draw_report(report(text))
    assert drawn.count("assertion could not be evaluated") == 1
    assert "also: lost.1, lost.2, lost.3, lost.4, lost.5 and 3 more" in drawn


def test_what_fails_since_a_date_has_no_rows_is_drawn_once() -> None:
    text = TEXT.replace("check", 'check "Other" on returns { assert num_rows() == 200 } check', 1)
    drawn = draw_report(Suite.from_string(text).run(memory(), date(2020, 1, 1)).report)
    assert drawn.count("assertion failed") == 2, drawn
    assert "assertion failed: orders.not_empty" in drawn
    assert "also: rows" in drawn
