"""Alerts and labels: failures, users' judgements, and that none of them is lost."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.results.stored_labels import Label, read_labels, write_labels
from dqx_airflow.results.upkeep import optimize, prune
from tests.command_line import dql as called
from tests.command_line import dql_prints as dql
from tests.tuning.stored_days import SUITE, day, orders, store_days

COUNTS = {0: (20, 0), 1: (20, 2), 2: (9, 0), 3: (4, 0), 4: (6, 0), 5: (4, 0), 6: (20, 0)}


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = str(tmp_path_factory.mktemp("results"))
    store_days(root, orders(COUNTS), range(7))
    store_days(root, orders(COUNTS), range(2, 3), gate="other_gate")
    return root


@pytest.fixture
def root(days: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the store, the suite beside it, and the root known."""
    monkeypatch.setenv("DQX_RESULTS_ROOT", "results")
    shutil.copytree(days, "results")
    Path("suite.dql").write_text(SUITE)
    return here / "results"


def alerts(*more: str) -> list[dict[str, Any]]:
    until = ("--to", day(6).isoformat(), "--gate", "orders_gate")
    listed = dql("tune", "alerts", "suite.dql", "--format", "json", *until, *more)
    found: list[dict[str, Any]] = json.loads(listed)
    return found


def label(*more: str, code: int = 0) -> str:
    return dql("tune", "label", "suite.dql", "--gate", "orders_gate", *more, code=code)


def test_alerts_are_the_failures_of_the_last_days(root: Path) -> None:
    assert [(one["date"], one["assertion"]) for one in alerts()] == [
        ("2024-12-02", "orders.completeness.email_null"),
        ("2024-12-03", "orders.volume.min_rows"),
        ("2024-12-03", "orders.volume.stable"),
        ("2024-12-04", "orders.volume.min_rows"),
        ("2024-12-04", "orders.volume.stable"),
        ("2024-12-05", "orders.volume.stable"),
        ("2024-12-06", "orders.volume.min_rows"),
        ("2024-12-07", "orders.volume.stable"),
    ]
    assert [one["date"] for one in alerts("--days", "1")] == ["2024-12-07"]
    table = dql("tune", "alerts", "suite.dql", "--days", "7", "--to", "2024-12-07").splitlines()
    assert table[0].split() == ["date", "gate", "assertion", "value", "expected", "status", "label"]
    assert "10%" in table[1]
    assert "< MAX_NULLS (5%)" in table[1]
    assert "8 (4 x 2)" in "\n".join(table)


def test_failures_of_one_cause_are_named_together(root: Path) -> None:
    listed = alerts()
    by_cause: dict[int, list[tuple[str, str]]] = {}
    for one in listed:
        by_cause.setdefault(one["cause"], []).append((one["since"], one["date"]))
    assert len(by_cause) < len(listed)
    assert [own for own in by_cause.values() if {since for since, _ in own} != {min(own)[1]}] == []
    printed = dql("tune", "alerts", "suite.dql", "--to", "2024-12-07", "--gate", "orders_gate")
    assert f"8 failures have {len(by_cause)} causes:" in printed
    assert "  2024-12-03 to 2024-12-04: orders.volume.min_rows, orders.volume.stable" in printed


def test_a_suite_with_errors_can_be_labelled(root: Path) -> None:
    """Only its name is needed, which identifies it in the results."""
    alert = ("--date", "2024-12-03", "--assertion", "orders.volume.min_rows", "--false-positive")
    Path("suite.dql").write_text(SUITE.replace("num_rows() >= LEAST", "unknown_metric() >= MOST"))
    assert label(*alert) == "1 labeled\n"
    assert len(alerts()) == 8
    Path("suite.dql").write_text(SUITE.replace("check", "chekc"))
    assert "suite.dql:5" in label(*alert, code=2)


def test_the_last_label_applies_and_all_are_kept(root: Path) -> None:
    alert = ("--date", "2024-12-03", "--assertion", "orders.volume.min_rows", "--author", "ada")
    assert label(*alert, "--false-positive", "--reason", "Planned maintenance") == "1 labeled\n"
    output = label(*alert, "--false-positive", "--reason", "Planned maintenance")
    assert output == "0 labeled, 1 already had the label\n"
    (found,) = [one for one in alerts() if one["label"]]
    kept = {name: found["label"][name] for name in ("kind", "author", "reason")}
    assert kept == {"kind": "false positive", "author": "ada", "reason": "Planned maintenance"}
    label(*alert, "--true-positive")
    assert [one["label"]["kind"] for one in alerts() if one["label"]] == ["true positive"]
    assert len(alerts("--unlabeled")) == 7
    (last,) = read_labels(str(root))
    assert (last.ground_truth, last.gate, last.check, last.suite) == (
        True,
        "orders_gate",
        "Volume",
        "Orders",
    )
    versions = read_labels(str(root), all_versions=True)
    assert [one.ground_truth for one in versions] == [False, True]
    assert last.run_id == found["run_id"]


ROWS = ("--date", "2024-12-03", "--assertion", "orders.volume.min_rows", "--author", "ada")
"""The verdict on the third day, which has 9 rows where 10 are the least."""


@pytest.mark.parametrize(
    ("again", "least", "kind", "shown"),
    [
        pytest.param((9, 1), 10, "--false-positive", "false positive", id="same value"),
        pytest.param((9, 0), 5, "--true-positive", "missed", id="same value, another limit"),
        pytest.param((9, 0), 5, "--false-positive", None, id="same value, now a pass"),
        pytest.param((2, 0), 10, "--false-positive", "", id="damaged since"),
        pytest.param((2, 0), 10, "--true-positive", "", id="damaged in another way"),
        pytest.param((20, 0), 10, "--true-positive", None, id="repaired"),
        pytest.param((20, 0), 10, "--false-positive", None, id="other data that passes"),
    ],
)
def test_a_label_is_about_what_its_author_saw(
    root: Path, again: tuple[int, int], least: int, kind: str, shown: str | None
) -> None:
    """A run again of other data takes no label over: neither is a new failure a false alarm, nor
    has someone called repaired data a missed issue."""
    assert label(*ROWS, kind) == "1 labeled\n"
    suite = SUITE.replace("LEAST = 10", f"LEAST = {least}")
    store_days(str(root), orders({**COUNTS, 2: again}), range(2, 3), suite=suite)
    of_day = [one for one in alerts() if (one["date"], one["assertion"]) == (ROWS[1], ROWS[3])]
    assert [one["label"]["kind"] if one["label"] else "" for one in of_day] == (
        [] if shown is None else [shown]
    )
    if shown == "":
        assert label(*ROWS, kind) == "1 labeled\n"
        assert len(alerts("--unlabeled")) == 7


@pytest.mark.more
def test_labels_of_different_data_do_not_contradict_each_other(root: Path) -> None:
    label(*ROWS, "--false-positive")
    store_days(str(root), orders({**COUNTS, 2: (2, 0)}), range(2, 3))
    assert label(*ROWS[:-2], "--author", "grace", "--true-positive") == "1 labeled\n"
    assert "what grace said" in label(*ROWS, "--false-positive")  # now of the same data


def test_what_people_labelled_stays_evidence_after_a_repair(root: Path) -> None:
    """A known issue is judged by the data that had it, not by that which replaced it."""
    label(*ROWS, "--true-positive")
    period = ("--from", "2024-12-01", "--to", "2024-12-07", "--gate", "orders_gate")

    def backtest() -> dict[str, str]:
        printed = dql("tune", "backtest", "suite.dql", *period)
        return dict(line.split(": ") for line in printed.splitlines() if ": " in line)

    before = backtest()
    store_days(str(root), orders({**COUNTS, 2: (20, 0)}), range(2, 3))
    assert backtest() == before
    assert before["missed issues, by label"] == "0"
    label(*ROWS[:-2], "--true-negative", "--author", "grace")  # of the repaired data
    assert backtest() == before


@pytest.mark.more
def test_people_who_contradict_each_other_are_named(root: Path) -> None:
    alert = ("--date", "2024-12-03", "--assertion", "orders.volume.min_rows")
    assert label(*alert, "--false-positive", "--author", "ada") == "1 labeled\n"
    assert label(*alert, "--true-positive", "--author", "ada") == "1 labeled\n"
    assert label(*alert, "--true-positive", "--author", "grace") == "1 labeled\n"
    said = label(*alert, "--false-positive", "--author", "grace")
    opposite = (
        "1 label says the opposite of what ada said; the last one counts: "
        "orders.volume.min_rows on 2024-12-03 (grace)\n"
    )
    assert said == f"1 labeled\n{opposite}"
    other = ("--date", "2024-12-02", "--assertion", "orders.completeness.email_null")
    assert label(*other, "--true-positive", "--author", "grace") == "1 labeled\n"
    days = ("--from", "2024-12-01", "--to", "2024-12-07", "--gate", "orders_gate")
    assert opposite in dql("tune", "suite.dql", *days)


def test_without_a_label_it_lists_the_failures_whose_labels_would_help_most(root: Path) -> None:
    offered: list[tuple[str, str]] = []
    nothing = "no failure without a label in the 180 days up to 2024-12-07\n"
    while (printed := label()) != nothing:
        head, *lines, last = printed.splitlines()
        assert head.split("  ")[0] == "date"
        assert last.startswith("to label: dql tune label suite.dql --date DATE --assertion NAME")
        assert 1 <= len(lines) <= 5
        for on, name, *_ in map(str.split, lines):
            offered.append((on, name))
            label("--date", on, "--assertion", name, "--false-positive")
    assert offered[0] == ("2024-12-04", "orders.volume.min_rows"), "it fails with another"
    assert len({on for on, _ in offered}) == len(offered), "one label for the failures of a day"


def test_tune_names_the_tunables_with_alarms_to_label_and_all_others_in_one_line(
    root: Path,
) -> None:
    few = "".join(f"const LEAST_{n} = {n} tunable [0, 100]\n" for n in range(1, 9))
    claims = "".join(f'assert num_rows() >= LEAST_{n} name "rows {n}"\n' for n in range(1, 9))
    suite = SUITE.replace("const LEAST", f"{few}const LEAST")
    Path("suite.dql").write_text(suite.replace("assert day_over", f"{claims}assert day_over"))
    days = ("--from", "2024-12-01", "--to", "2024-12-07", "--gate", "orders_gate")
    printed = dql("tune", "suite.dql", *days)
    named = [line.partition(":")[0] for line in printed.splitlines() if ": no proposal:" in line]
    assert named == ["LEAST_7", "LEAST_8", "LEAST_5", "LEAST_6", "LEAST"]
    assert "no proposal for 5 more, 4 without alarms: see --format json" in printed
    assert "the labels that would help most: dql tune label suite.dql" in printed


def test_a_missed_issue_becomes_an_alert(root: Path) -> None:
    passed = ("--date", "2024-12-01", "--assertion", "orders.volume.min_rows")
    label(*passed, "--missed")
    first = alerts()[0]
    assert (first["date"], first["status"], first["label"]["kind"]) == (
        "2024-12-01",
        "passed",
        "missed",
    )
    label(*passed, "--true-negative")
    assert alerts()[0]["date"] == "2024-12-02"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--date", "2024-12-01", "--assertion", "orders.volume.min_rows", "--false-positive"],
         "it passed, so it cannot be a false positive; say --missed"),
        (["--date", "2024-12-03", "--assertion", "orders.volume.min_rows", "--missed"],
         "it failed, so it cannot be a missed; say --false-positive or --true-positive"),
        (["--date", "2024-12-03", "--assertion", "orders.volume.min_row", "--false-positive"],
         "did you mean 'orders.volume.min_rows'?"),
        (["--date", "2023-01-01", "--assertion", "orders.volume.min_rows", "--missed"],
         "has no results for this date"),
        (["--date", "2024-12-03", "--false-positive"],
         "the label, the date or the assertion is missing"),
        (["--date", "2024-12-03", "--assertion", "x", "--false-positive", "--missed"],
         "--false-positive and --missed contradict each other"),
    ],
)  # fmt: skip
def test_incomplete_labels_are_refused(root: Path, arguments: list[str], message: str) -> None:
    assert message in " ".join(label(*arguments, code=2).split())
    assert read_labels(str(root)) == ()


def test_a_gate_is_named_where_several_ran_the_suite(root: Path) -> None:
    alert = ("--date", "2024-12-03", "--assertion", "orders.volume.min_rows", "--false-positive")
    output = dql("tune", "label", "suite.dql", *alert, code=2)
    assert "several gates ran it: orders_gate, other_gate; add --gate NAME" in output


def test_many_alerts_are_labelled_from_a_file(root: Path) -> None:
    until = ("--to", "2024-12-07", "--gate", "orders_gate")
    Path("alerts.csv").write_text(dql("tune", "alerts", "suite.dql", "--format", "csv", *until))
    rows = [*csv.DictReader(Path("alerts.csv").read_text().splitlines())]
    for row in rows[:5]:
        row["label"], row["reason"] = "false_positive", "a, b"
    with Path("alerts.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert "would set 5 labels" in label("--from-csv", "alerts.csv", "--dry-run")
    assert "add --yes" in label("--from-csv", "alerts.csv", code=2)
    assert label("--from-csv", "alerts.csv", "--yes") == "5 labeled\n"
    assert [one["label"] and one["label"]["kind"] for one in alerts()] == (
        ["false positive"] * 5 + [None] * 3
    )
    Path("wrong.csv").write_text("date,assertion,label\n2024-12-03,a,maybe\nx,a,missed\n")
    output = label("--from-csv", "wrong.csv", code=2)
    assert "line 2: 'maybe' is not a label" in output
    assert "line 3: 'x' is not a date" in output
    Path("other.csv").write_text("date,assertion\n")
    assert "has no column label" in label("--from-csv", "other.csv", code=2)


@pytest.mark.more
def test_labels_survive_prune_and_optimize(root: Path) -> None:
    label("--date", "2024-12-03", "--assertion", "orders.volume.min_rows", "--false-positive")
    label("--date", "2024-12-04", "--assertion", "orders.volume.min_rows", "--true-positive")
    later = datetime.now(timezone.utc) + timedelta(days=2)
    prune(str(root), timedelta(days=1), now=later)
    optimize(str(root))
    assert [one.ground_truth for one in read_labels(str(root))] == [False, True]
    assert "error: no results under" in dql("tune", "alerts", "suite.dql", code=2)


def test_no_results_are_not_reported_as_no_alerts(root: Path) -> None:
    output = dql("tune", "alerts", "suite.dql", "--to", "2025-03-01", "--days", "3")
    assert output == "no results in the 3 days up to 2025-03-01: the newest are of 2024-12-07\n"
    elsewhere = ("--results-root", "elsewhere")
    assert "error: no results under elsewhere" in dql(
        "tune", "alerts", "suite.dql", *elsewhere, code=2
    )
    Path("other.dql").write_text(SUITE.replace('suite "Orders"', 'suite "Invoices"'))
    output = dql("tune", "alerts", "other.dql", code=2)
    assert "error: suite 'Invoices' has no results under results" in output
    assert "Orders (gate orders_gate)" in output
    for verb in ("propose", "backtest"):
        output = dql(
            "tune", verb, "suite.dql", "--from", "2025-03-01", "--to", "2025-03-02", code=2
        )
        assert "suite 'Orders' has no results from 2025-03-01 to 2025-03-02" in output
        assert "the newest are of 2024-12-07" in output


WRITER = """
import sys
from datetime import date
from dqx_airflow.dql import History
from dqx_airflow.results.stored_labels import Label, write_labels
root, writer = sys.argv[1:]
for number in range(10_000):
    label = Label(f"gate{writer}", date.fromordinal(738_000 + number), "C", "rows", True, writer)
    write_labels(root, [label])
    History(f"{root}/s.dql.history").log({"writer": writer, "number": number})
    print(number, flush=True)
"""


@pytest.mark.nightly
def test_sixteen_killed_writers_neither_lose_nor_duplicate_labels(tmp_path: Path) -> None:
    root = str(tmp_path)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, root, str(number)], stdout=subprocess.PIPE, text=True
        )
        for number in range(16)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "0\n"
    time.sleep(3)
    acknowledged = {}
    for number, writer in enumerate(writers):
        writer.send_signal(signal.SIGKILL)
        out, _ = writer.communicate()
        acknowledged[str(number)] = len(
            [line for line in out.splitlines(True) if line.endswith("\n")]
        )
    found = read_labels(root, all_versions=True)
    assert len(found) == len({one.id for one in found}) == len({one.key for one in found})
    for number, count in acknowledged.items():
        own = [one.date.toordinal() - 738_000 for one in found if one.author == number]
        assert own == [*range(len(own))]
        assert len(own) > count
    late = Label("gate0", day(0), "C", "rows", True, "late")
    assert write_labels(root, [late]) == (late,)


@pytest.mark.parametrize(
    "command",
    [
        ("alerts", "--days", "9" * 30),
        ("alerts", "--to", "0001-01-02"),
        ("backtest", "--to", "0001-01-02"),
        ("propose", "--to", "0001-01-02"),
    ],
    ids=" ".join,
)
def test_a_range_that_begins_before_all_dates_is_cut(root: Path, command: tuple[str, ...]) -> None:
    verb, *options = command
    result = called("tune", verb, "suite.dql", "--gate", "orders_gate", *options)
    assert "dql failed" not in result.output
