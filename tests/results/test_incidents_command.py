"""`dql incidents`: what is open, how it ended, and closing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dqx_airflow.cli.main import app
from dqx_airflow.results.incidents import IncidentNote, write_notes
from dqx_airflow.results.missing_reports import missing_reports, write_missing_reports
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import (
    NO_REPORT,
    Attempt,
    DatasetSnapshot,
    GateOrigin,
    GateRequest,
    Outcome,
    PartialRun,
    RunKey,
    Selection,
    SourceFile,
)
from tests.results.samples import PASSED, RUN_KEY, sample_report


def dql(*arguments: str) -> Result:
    variables = {"DQX_RESULTS_ROOT": None, "FORCE_COLOR": None, "NO_COLOR": None}
    return CliRunner().invoke(app, ["incidents", *arguments], env=variables)


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Blocked on two days, of which the first has passed since, and good on the third."""
    store = ResultsStore(str(tmp_path / "store"))
    lacks = DatasetSnapshot("orders", "/o", "delta", rows=7, promote_to="/silver")
    good = {"outcome": Outcome.PASSED, "verdicts": (PASSED,)}
    for number, (day, changes) in enumerate(((1, {}), (2, {}), (3, good), (1, good)), start=1):
        key = replace(RUN_KEY, date=date(2024, 3, day), scheduler_run=f"day {day}")
        report = sample_report(
            number, attempt=number, run_key=key, datasets=(lacks,), minutes=number, **changes
        )
        store.write(report)
    return str(tmp_path / "store")


def test_the_dates_that_are_still_blocked_are_listed(root: str) -> None:
    header, line = dql("--results-root", root).stdout.splitlines()
    assert header.split()[:4] == ["id", "gate", "date", "status"]
    assert line.split()[1:6] == ["orders_to_silver", "2024-03-02", "blocked", "orders:", "7"]
    both = json.loads(dql("--results-root", root, "--all", "--format", "json").stdout)
    assert [(one["date"], one["status"], one["time_to_end_seconds"]) for one in both] == [
        ("2024-03-01", "repaired", 180.0),
        ("2024-03-02", "blocked", None),
    ]
    assert both[1]["not_promoted"] == [
        {"dataset": "orders", "target": "/silver", "row_count": 7, "promoted": None}
    ]
    assert dql("--results-root", root, "--gate", "orders_to_silver").stdout.endswith(f"{line}\n")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ("shop.gate", ["shop.gate[3]", "shop.gate[4]"]),
        ("shop.gate[3]", ["shop.gate[3]"]),
        ("shop.gate[5]", []),
        ("shop.suites", ["shop.suites/Orders", "shop.suites/Strict"]),
        ("shop.suites/Strict", ["shop.suites/Strict"]),
        ("shop.gat", "no results of gate 'shop.gat'\n  help: did you mean 'shop.gate'?"),
    ],
)
def test_a_gate_is_named_as_the_list_names_it(
    tmp_path: Path, gate: str, expected: list[str] | str
) -> None:
    at = ["--results-root", str(tmp_path / "store")]
    names = ("shop.gate", "shop.gate", "shop.suites/Orders", "shop.suites/Strict")
    for number, name in enumerate(names, start=3):
        run = f"r[{number}]" if name == "shop.gate" else f"r{number}"
        key = replace(RUN_KEY, gate=name, scheduler_run=run)
        report = sample_report(number, attempt=number, run_key=key)
        ResultsStore(at[1]).write(report)
    listed = dql(*at, "--gate", gate)
    accepted = CliRunner().invoke(
        app, ["incidents", "accept", gate, str(RUN_KEY.date), "--reason", "x", *at]
    )
    if isinstance(expected, str):
        assert listed.exit_code == accepted.exit_code == 2
        assert expected in listed.output
        assert expected in accepted.output
        return
    assert sorted(line.split()[1] for line in listed.stdout.splitlines()[1:]) == expected
    said = (
        f"the data of {RUN_KEY.date}, run"
        if len(expected) == 1
        else f"{len(expected) or 'no'} open slices"
    )
    assert said in accepted.output


def test_an_incident_is_closed_with_a_reason(root: str) -> None:
    (one,) = json.loads(dql("--results-root", root, "--format", "json").stdout)
    at = ("close", one["id"][:8], "--results-root", root)
    refused = dql(*at)
    assert refused.exit_code == 2
    assert "missing option '--reason'" in refused.output
    assert dql(*at, "--reason", "not needed", "--author", "eve").stdout == (
        "closed: gate orders_to_silver, data of 2024-03-02\n"
    )
    assert dql("--results-root", root).stdout == "no open date\n"
    *_, closed = json.loads(dql("--results-root", root, "--all", "--format", "json").stdout)
    assert closed["status"] == "closed"
    assert closed["notes"][0]["author"] == "eve"
    assert "has ended: closed" in dql(*at, "--reason", "again").output
    unknown = dql("close", "zz", "--results-root", root, "--reason", "x")
    assert "no incident has an id" in unknown.output
    assert closed["time_to_detect_seconds"] >= 0


def test_a_date_without_a_report_is_listed_until_a_run_has_one_or_someone_closes_it(
    root: str,
) -> None:
    results = StoredResults(root)
    days = [date(2024, 3, day) for day in (2, 3, 4, 5)]
    keys = [replace(RUN_KEY, date=day, scheduler_run=f"day {day.day}[7]") for day in days]
    for key in keys:
        write_missing_reports(results, request_of(key), "the Spark job was killed by signal 9")

    def listed(*more: str) -> list[tuple[str, int, str]]:
        facts = json.loads(dql("--results-root", root, "--format", "json", *more).stdout)
        return [(fact["date"], fact["map_index"], fact["status"]) for fact in facts]

    blocked = ("2024-03-02", -1, "blocked")
    missing = [(str(day), 7, "no report") for day in days]
    assert listed() == [blocked, *missing]
    facts = json.loads(dql("--results-root", root, "--format", "json").stdout)
    assert len({frozenset(fact) for fact in facts}) == 1, "all have the same keys"
    assert listed("--gate", "orders_to_silver[7]") == missing
    good = sample_report(9, attempt=9, run_key=keys[1], outcome=Outcome.PASSED, verdicts=(PASSED,))
    now = datetime.now(timezone.utc) + timedelta(minutes=1)
    ResultsStore(root).write(replace(good, started_at=now, finished_at=now))
    assert listed() == [blocked, missing[0], *missing[2:]]
    *_, line = dql("--results-root", root).stdout.splitlines()
    assert "no report" in line
    assert "killed by signal 9" in line
    closed = dql("close", line.split()[0], "--reason", "x", "--results-root", root)
    assert closed.stdout == "closed: gate orders_to_silver[7], data of 2024-03-05\n"
    assert listed() == [blocked, missing[0], missing[2]]


def test_a_date_is_closed_only_by_an_id_of_its_own(root: str) -> None:
    (blocked,) = json.loads(dql("--results-root", root, "--format", "json").stdout)
    shared = blocked["id"][:6]
    notes = [
        IncidentNote(f"shop.{name}", date(2024, 3, 4), NO_REPORT, "shop", "killed", id=one)
        for name, one in (("a", f"{shared}-a"), ("b", "b-1"), ("c", "b-2"))
    ]
    write_notes(StoredResults(root), notes)
    for given in (shared, "b", "b-"):
        refused = dql("close", given, "--reason", "x", "--results-root", root)
        assert refused.exit_code == 2
        assert f"several incidents have an id that starts with '{given}'" in refused.output
    assert len(dql("--results-root", root).stdout.splitlines()) == 5
    for given, gate in ((f"{shared}-a", "shop.a"), ("b-2", "shop.c")):
        closed = dql("close", given, "--reason", "x", "--results-root", root)
        assert closed.stdout == f"closed: gate {gate}, data of 2024-03-04\n"


def request_of(key: RunKey, **changes: Any) -> GateRequest:
    return GateRequest(key, Attempt(1, "a"), SourceFile("s.dql", ""), (), "/results", **changes)


SELECTED = Selection(only=("rows",))
BASEL, BERN = (("store", "basel"),), (("store", "bern"),)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("missing", "judged", "is_listed"),
    [
        ({}, {}, False),
        ({}, {"gate": "shop/orders/nulls"}, False),
        ({}, {"gate": "shop/orders/nulls", "suite": "nulls", "job": "shop/orders"}, False),
        ({}, {"gate": "shop/orders/nulls", "suite": "nulls", "job": "shop/orders/nulls"}, True),
        ({}, {"gate": "shop/returns"}, True),
        ({}, {"gate": "shop"}, True),
        ({}, {"selection": SELECTED}, True),
        ({"selection": SELECTED}, {"selection": SELECTED}, False),
        ({"selection": SELECTED}, {}, False),
        ({"promote_slice": BASEL}, {"promote_slice": BERN}, True),
        ({"promote_slice": BASEL}, {"promote_slice": BASEL}, False),
        ({"promote_slice": BASEL}, {}, True),
    ],
)
def test_only_a_run_that_judges_the_same_ends_a_missing_report(
    tmp_path: Path, missing: dict[str, Any], judged: dict[str, Any], is_listed: bool
) -> None:
    root = str(tmp_path)
    key = replace(RUN_KEY, gate="shop/orders")
    ResultsStore(root).write(sample_report(1))
    write_missing_reports(StoredResults(root), request_of(key, **missing), "Spark failed")
    of_report = {name: judged[name] for name in ("suite", "job") if name in judged}
    options = {name: judged[name] for name in judged if name not in ("gate", "suite", "job")}
    partial = PartialRun(SELECTED, 1, 2) if "selection" in judged else None
    report = sample_report(
        9,
        run_key=replace(key, gate=judged.get("gate", key.gate)),
        outcome=Outcome.PASSED,
        partial=partial,
        slice=request_of(key, **options).slice,
        **of_report,
    )
    now = datetime.now(timezone.utc) + timedelta(minutes=1)
    ResultsStore(root).write(replace(report, started_at=now, finished_at=now))
    listed = json.loads(dql("--results-root", root, "--format", "json").stdout)
    gates = [fact["gate"] for fact in listed if fact["status"] == "no report"]
    assert gates == ["shop/orders"] * is_listed


def test_a_missing_report_changes_no_incident(root: str) -> None:
    def incidents() -> list[dict[str, Any]]:
        listed = json.loads(dql("--results-root", root, "--all", "--format", "json").stdout)
        return [{**fact, "notes": []} for fact in listed if fact["status"] != "no report"]

    before = incidents()
    for key in (RUN_KEY, *(replace(RUN_KEY, date=date(2024, 3, day)) for day in (1, 2, 3))):
        write_missing_reports(StoredResults(root), request_of(key), "Spark failed")
    assert incidents() == before
    for fact in json.loads(dql("--results-root", root, "--format", "json").stdout):
        if fact["status"] == "no report":
            dql("close", fact["id"], "--reason", "x", "--results-root", root)
    assert incidents() == before


def test_a_gate_that_never_left_a_report_is_listed_and_closed_by_its_name(root: str) -> None:
    key = replace(RUN_KEY, gate="shop.new")
    write_missing_reports(StoredResults(root), request_of(key), "Spark failed")
    (fact,) = json.loads(
        dql("--results-root", root, "--gate", "shop.new", "--format", "json").stdout
    )
    assert (fact["gate"], fact["status"]) == ("shop.new", "no report")
    closed = dql("close", fact["id"], "--gate", "shop.new", "--reason", "x", "--results-root", root)
    assert closed.stdout == f"closed: gate shop.new, data of {key.date}\n"
    assert "no results of gate" in dql("--results-root", root, "--gate", "shop.nwe").output


def test_a_blocked_date_whose_new_run_left_no_report_is_listed_once(root: str) -> None:
    key = replace(RUN_KEY, gate=f"{RUN_KEY.gate}/Orders", date=date(2024, 3, 2))
    request = replace(request_of(key), origin=GateOrigin(job=RUN_KEY.gate))
    write_missing_reports(StoredResults(root), request, "the Spark job failed")
    lines = dql("--results-root", root).stdout.splitlines()
    assert [line.split()[3] for line in lines[1:]] == ["blocked"]


def test_who_takes_a_date_without_a_report_is_listed_and_has_the_incident(root: str) -> None:
    store = StoredResults(root)
    key = replace(RUN_KEY, date=date(2024, 3, 4), scheduler_run="day 4")
    write_missing_reports(store, request_of(key, promote_slice=BASEL), "Spark failed")
    (missing,) = missing_reports(store)
    assert missing.time_to_acknowledge is None
    other = replace(missing, slice=request_of(key, promote_slice=BERN).slice)
    write_notes(store, [other.note("acknowledged", "op"), missing.note("acknowledged", "eve")])

    def listed() -> dict[str, Any]:
        *_, fact = json.loads(dql("--results-root", root, "--format", "json").stdout)
        assert dql("--results-root", root).stdout.splitlines()[-1].split()[-1] == "eve"
        return dict(fact)

    fact = listed()
    assert (fact["status"], fact["acknowledgement"]["author"]) == ("no report", "eve")
    assert fact["notes"] == [fact["acknowledgement"]]
    assert fact["time_to_acknowledge_seconds"] >= 0
    slice = request_of(key, promote_slice=BASEL).slice
    now = datetime.now(timezone.utc) + timedelta(minutes=1)
    bad = replace(sample_report(9, attempt=9, run_key=key, slice=slice), started_at=now)
    ResultsStore(root).write(replace(bad, finished_at=now))
    fact = listed()
    assert (fact["status"], fact["acknowledgement"]["author"]) == ("blocked", "eve")
    assert fact["time_to_acknowledge_seconds"] == 0


def test_a_store_without_a_run_gets_no_note(tmp_path: Path) -> None:
    write_missing_reports(StoredResults(str(tmp_path / "none")), request_of(RUN_KEY), "gone")
    assert not (tmp_path / "none").exists()


def test_a_missing_store_is_an_error(tmp_path: Path) -> None:
    missing = dql("--results-root", str(tmp_path / "none"))
    assert missing.exit_code == 2
    assert "no results under" in missing.output
    assert "no results root given" in dql().output


def test_what_changed_before_an_incident_is_printed(root: str) -> None:
    (one,) = json.loads(dql("--results-root", root, "--format", "json").stdout)
    header, line, *changes = dql("show", one["id"][:8], "--results-root", root).stdout.splitlines()
    assert (header.split()[0], line.split()[2]) == ("id", "2024-03-02")
    assert changes == [
        "",
        "First bad and last good content (orders_to_silver)",
        "  orders: first bad 7 rows of 2024-03-02, last good 7 rows of 2024-03-01; /o",
        "",
        "Where the failing rows are (orders_to_silver)",
        "  no_negative_amounts: of the 5 stored failing rows 5 have amount = -1.5",
        "  no_negative_amounts: of the 5 stored failing rows 5 have name = NULL",
        "",
        "What else changed since 2024-03-01 (orders_to_silver)",
        "  profile black_friday: active, was none",
    ]
    shown = json.loads(dql("show", one["id"], "--results-root", root, "--format", "json").stdout)
    assert [(change["gate"], change["title"]) for change in shown["changes"]] == [
        ("orders_to_silver", "First bad and last good content"),
        ("orders_to_silver", "Where the failing rows are"),
        ("orders_to_silver", "What else changed since 2024-03-01"),
    ]
    assert "no incident has an id" in dql("show", "zz", "--results-root", root).output
