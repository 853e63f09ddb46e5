"""Incidents by slice; a partial run does not change the state of what it did not judge."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone

import pytest

from dqx_airflow.results.incidents import (
    ACKNOWLEDGED,
    ASKED,
    CLOSED,
    COMMENT,
    IncidentNote,
    groups_of,
    incidents_of,
)
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.values import Attempt, Outcome, PartialRun, RunKey, Selection, Severity


def _line(number: int, letter: str, day: int) -> RunRow:
    """The run of an hour on the data of a day: `P` and `B` are whole runs that passed or were
    blocked, `pa` and `ba` those of a tag."""
    on = date(2024, 3, day)
    at = datetime(2024, 3, 20, number, tzinfo=timezone.utc)
    outcome = Outcome.BLOCKED if letter[0] in "Bb" else Outcome.PASSED
    tag = letter[1:]
    partial = PartialRun(Selection(tags=(tag,)), 1, 2) if tag else None
    key = RunKey("lake.gate", on, f"run {number}")
    attempt, counts = Attempt(1, str(number)), (2, 2, 0, 0, 0)
    facts = (outcome, Severity.P0, *counts, None, None, at, at)
    return RunRow(str(number), key, attempt, "orders", *facts, partial)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ("1B 1P", "1: 0 until 1"),
        ("1B 2P", "1: 0"),  # a good tomorrow does not repair yesterday
        ("1P 1B", "1: 1"),
        ("1B 2B 1P", "1: 0 until 2; 2: 1"),
        ("1B 1B 1P 1B", "1: 0 1 until 2; 1: 3"),
        ("1B 1pa", "1: 0"),
        ("1B 1pa 1P", "1: 0 until 2"),
        ("1ba 1pa", "1: 0 until 1"),
        ("1ba 1pb", "1: 0"),
        ("1ba 1bb 1pa 1pb", "1: 0 1 until 3"),
        ("1ba 1P", "1: 0 until 1"),
    ],
)
def test_a_slice_is_repaired_by_a_good_run_that_judges_its_failures(
    runs: str, expected: str
) -> None:
    lines = [_line(number, text[1:], int(text[0])) for number, text in enumerate(runs.split())]
    found = [
        f"{incident.date.day}: {' '.join(run.run_id for run in reversed(incident.runs))}"
        + (f" until {incident.repair.run_id}" if incident.repair else "")
        for incident in reversed(incidents_of(reversed(lines)))
    ]
    assert "; ".join(found) == expected


@pytest.mark.parametrize(
    ("outcome", "worst", "fail_on", "status"),
    [
        (Outcome.PASSED, None, Severity.P1, "repaired"),
        (Outcome.WARNED, Severity.P2, Severity.P1, "repaired"),  # a failure that never stopped it
        (Outcome.WARNED, Severity.P1, Severity.P1, "warned"),  # a waiver covers it
        (Outcome.WARNED, Severity.P1, Severity.P0, "warned"),  # the gate stops at P0 only
        (Outcome.ACCEPTED, Severity.P1, Severity.P1, "accepted"),
    ],
)
def test_data_that_still_fails_is_not_called_repaired(
    outcome: Outcome, worst: Severity | None, fail_on: Severity, status: str
) -> None:
    bad = replace(_line(0, "B", 1), fail_on=Severity.P1)
    good = replace(_line(1, "P", 1), outcome=outcome, failed_severity=worst, fail_on=fail_on)
    (incident,) = incidents_of([bad, good])
    assert (incident.is_open, incident.status) == (False, status)


@pytest.mark.parametrize(
    ("bad", "good", "is_same"),
    [
        ({"rows": {"store": "zurich"}}, {"rows": {"store": "zurich"}}, True),
        ({"rows": {"store": "zurich"}}, {"rows": {"store": "basel"}}, False),
        ({"rows": {"store": "zurich"}}, {}, False),
        ({"read": {"orders": "/a"}}, {"read": {"orders": "/b"}}, False),
        ({"read": {"orders": "/a"}}, {"read": {"orders": "/a", "customers": "/c"}}, True),
        (None, {"rows": {"store": "basel"}}, True),  # a run of an earlier version
    ],
)
def test_a_slice_is_the_same_rows_of_the_same_datasets(
    bad: object, good: object, is_same: bool
) -> None:
    slices = [None if text is None else json.dumps(text) for text in (bad, good)]
    lines = [
        replace(_line(number, letter, 1), slice=text)
        for number, (letter, text) in enumerate(zip("BP", slices, strict=True))
    ]
    (incident,) = incidents_of(lines)
    assert (incident.repair is not None) is is_same


def test_instances_of_a_mapped_gate_have_their_own_incidents() -> None:
    bad, good = _line(0, "B", 1), _line(1, "P", 1)
    bad = replace(bad, run_key=replace(bad.run_key, scheduler_run="r[0]"))
    good = replace(good, run_key=replace(good.run_key, scheduler_run="r[1]"))
    (incident,) = incidents_of([bad, good])
    assert incident.is_open


def test_a_person_closes_an_incident_until_the_slice_is_bad_again() -> None:
    first, again = _line(0, "B", 1), _line(2, "B", 1)
    note = IncidentNote("lake.gate", first.run_key.date, CLOSED, "eve", "not needed")
    closing = replace(note, at=first.finished_at + timedelta(minutes=30))
    (incident,) = incidents_of([first], [closing])
    assert (incident.status, incident.is_open) == ("closed", False)
    assert incident.time_to_end == timedelta(minutes=30)
    (incident,) = incidents_of([first, again], [closing])
    assert (incident.status, incident.is_open) == ("blocked", True)


@pytest.mark.parametrize(
    ("runs", "notes", "expected"),
    [
        ("1B", "-1A", "0: A"),  # taken while it had no report
        ("1B 1P", "-1A", "0: A"),
        ("1B 1P 1B", "0.5A", "0: A; 2: "),  # who took the first has not taken the second
        ("1B 1P 1B", "1.5A", "0: ; 2: A"),  # taken between, when a run left no report
        ("1B 1P 1B 1P", "1.5A", "0: ; 2: A"),
        ("1B 1P 1B", "1.5C", "0: C; 2: "),  # a comment on what has ended
        ("1P 1B", "-1A", "1: "),  # it was good in between
        ("1B", "-2A -1X", "0: "),  # someone closed it in between
        ("1P 1B", "0.5A", "1: A"),
        ("1P 1pa 1B", "0.5A", "2: A"),  # a part that passed is not the date
    ],
)
def test_a_note_on_a_date_without_a_report_is_about_the_incident_that_follows(
    runs: str, notes: str, expected: str
) -> None:
    lines = [_line(number, text[1:], int(text[0])) for number, text in enumerate(runs.split())]
    kinds = {"A": ACKNOWLEDGED, "C": COMMENT, "X": CLOSED}
    key, began = lines[0].run_key, lines[0].finished_at
    given = [
        IncidentNote(
            key.gate, key.date, kinds[note[-1]], "eve", at=began + timedelta(hours=float(note[:-1]))
        )
        for note in notes.split()
    ]
    found = []
    for incident in reversed(incidents_of(lines, given)):
        own = [letter for one in incident.notes for letter in kinds if kinds[letter] == one.kind]
        found.append(f"{incident.id}: {' '.join(own)}")
    assert "; ".join(sorted(found)) == expected


def test_a_note_that_names_a_run_is_about_its_incident_by_whatever_clock() -> None:
    good, bad = _line(0, "P", 1), _line(1, "B", 1)
    before = bad.started_at - timedelta(minutes=5)
    asked = IncidentNote(
        bad.run_key.gate, bad.run_key.date, ASKED, "gate", run_id=bad.run_id, at=before
    )
    (incident,) = incidents_of([good, bad], [asked])
    assert incident.notes == (asked,)


def test_who_took_a_date_of_several_suites_has_it_when_one_of_them_passes_first() -> None:
    good, bad = (
        replace(line, run_key=replace(line.run_key, gate=f"lake.gate/{suite}"), suite=suite)
        for line, suite in ((_line(1, "P", 1), "Keys"), (_line(2, "B", 1), "Rows"))
    )
    taken = IncidentNote(
        "lake.gate", bad.run_key.date, ACKNOWLEDGED, "eve", at=_line(0, "P", 1).started_at
    )
    (incident,) = incidents_of([good, bad], [taken])
    assert incident.notes == (taken,)


def test_open_incidents_of_neighbouring_dates_form_a_group() -> None:
    lines = [_line(number, "B", day) for number, day in enumerate((1, 2, 5, 9, 10, 11))]
    groups = [[one.date.day for one in group] for group in groups_of(incidents_of(lines))]
    assert groups == [[11, 10, 9], [5], [2, 1]]
