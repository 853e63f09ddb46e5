"""A partial run does not change the state of what it did not judge."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from dqx_airflow.results.incidents import incidents_of
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.values import Attempt, Outcome, PartialRun, RunKey, Selection, Severity

FIRST = date(2024, 3, 1)


def _line(day: int, letter: str) -> RunRow:
    """`P` and `B` are whole runs that passed or were blocked, `pa` and `ba` those of a tag."""
    on = FIRST + timedelta(days=day)
    at = datetime(on.year, on.month, on.day, 6, tzinfo=timezone.utc)
    outcome = Outcome.BLOCKED if letter[0] in "Bb" else Outcome.PASSED
    tag = letter[1:]
    partial = PartialRun(Selection(tags=(tag,)), 1, 2) if tag else None
    key = RunKey("lake.gate", on, f"run {day}")
    attempt, counts = Attempt(1, str(day)), (2, 2, 0, 0, 0)
    facts = (outcome, Severity.P0, *counts, None, None, at, at)
    return RunRow(str(day), key, attempt, "orders", *facts, partial)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ("P B P", "1-1 after 0 until 2"),
        ("P B pa", "1-1 after 0"),
        ("P B pa P", "1-1 after 0 until 3"),
        ("P B pa B P", "1-3 after 0 until 4"),
        ("pa ba pa", "1-1 after 0 until 2"),
        ("pa ba pb", "1-1 after 0"),
        ("P ba pb pa B pa", "1-1 after 0 until 3; 4-4 after 0"),
        ("ba bb pa pb", "0-1 until 3"),
        ("ba P", "0-0 until 1"),
    ],
)
def test_an_incident_ends_with_a_run_that_judges_its_failures(runs: str, expected: str) -> None:
    lines = [_line(day, letter) for day, letter in enumerate(runs.split())]
    found = [
        f"{incident.first.run_id}-{incident.last.run_id}"
        + "".join(f" after {run.run_id}" for run in incident.before.values())
        + (f" until {incident.recovery.run_id}" if incident.recovery else "")
        for incident in reversed(incidents_of(reversed(lines)))
    ]
    assert "; ".join(found) == expected
