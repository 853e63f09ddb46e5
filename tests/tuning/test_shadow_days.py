"""Shadow verdicts of past days are compared with those of the gate, and count nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dqx_airflow import Suite
from dqx_airflow.dql import History
from dqx_airflow.results.alerts import alerts, recent_alerts
from dqx_airflow.results.dql_results import query_results
from dqx_airflow.results.past_days import past_days
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport, ShadowReport
from tests.command_line import dql_prints as dql
from tests.json_heads import require_same_head
from tests.tuning.stored_days import FIRST, SUITE, day, orders, stored

LOOSER = SUITE.replace("LEAST = 10 ", "LEAST = 4 ")
LAST = day(9)
ROWS = "orders.volume.min_rows"


@pytest.fixture
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Ten days of which the gate fails on two, and its shadow on one; on one it was not judged."""
    monkeypatch.setenv("DQX_RESULTS_ROOT", "results")
    Path("suite.dql").write_text(SUITE)
    Path("next.dql").write_text(LOOSER)
    counts = [20, 20, 3, 20, 20, 20, 20, 20, 6, 20]
    db = orders({number: (count, 0) for number, count in enumerate(counts)})
    own, other = Suite.from_string(SUITE), Suite.from_string(LOOSER)
    for number in range(10):
        other_report = other.run(db, day(number)).report
        shadow = ShadowReport(
            "next.dql", other_report.suite, other_report.outcome, other_report.verdicts
        )
        if number == 9:
            shadow = ShadowReport("next.dql", problem="an error in next.dql:3: mistake")
        report = own.run(db, day(number)).report
        ResultsStore("results").write(stored(report, "orders_gate", shadow=shadow))
    return here


_RANGE = ("--from", str(FIRST), "--to", str(LAST))


@pytest.mark.slow
def test_alarms_of_gate_and_shadow_are_compared(here: Path) -> None:
    output = dql("tune", "shadow", "suite.dql", *_RANGE)
    (line,) = [line for line in output.splitlines() if line.startswith(ROWS)]
    assert line.split() == [ROWS, "9", "2", "->", "1", "0", "0", "gate", "2024-12-09"]
    assert (
        "gate -> shadow next.dql: 9 days checked by both, from 2024-12-01 to 2024-12-09" in output
    )
    assert "2024-12-10: the shadow was not evaluated: an error in next.dql:3: mistake" in output


@pytest.mark.slow
def test_labels_show_false_alarms_and_missed_issues(here: Path) -> None:
    of_rows = ("--assertion", ROWS, "--author", "ada")
    dql("tune", "label", "suite.dql", "--date", "2024-12-03", "--true-positive", *of_rows)
    dql("tune", "label", "suite.dql", "--date", "2024-12-09", "--true-positive", *of_rows)
    compared = json.loads(dql("tune", "shadow", "suite.dql", *_RANGE, "--format", "json"))
    require_same_head(compared)
    (rows,) = [one for one in compared["assertions"] if one["assertion"] == ROWS]
    assert rows["own"] == {"days": 9, "alarms": 2, "false": 0, "missed": 0}
    assert rows["shadow"] == {"days": 9, "alarms": 1, "false": 0, "missed": 1}
    assert (rows["only_own"], rows["only_shadow"]) == (["2024-12-09"], [])
    assert compared["not_judged"] == {"2024-12-10": "an error in next.dql:3: mistake"}
    dql("tune", "label", "suite.dql", "--date", "2024-12-09", "--false-positive", *of_rows)
    assert "labeled false: 1 -> 0" in dql("tune", "shadow", "suite.dql", *_RANGE)


@pytest.mark.slow
def test_a_missing_shadow_names_the_option(here: Path) -> None:
    output = dql(
        "tune", "shadow", "suite.dql", "--from", "2020-01-01", "--to", "2020-01-31", code=2
    )
    assert "no shadow ran alongside the suite" in output
    assert "--shadow PROPOSED" in output
    assert "shadows were: next.dql" in dql(
        "tune", "shadow", "suite.dql", *_RANGE, "--name", "x", code=2
    )


def without_shadow(report: GateReport) -> GateReport:
    return replace(report, shadow=None)


@pytest.mark.slow
def test_readers_ignore_verdicts_of_a_shadow(here: Path) -> None:
    """Each of them finds the same in a store without shadows."""
    plain = here / "plain"
    for report in StoredResults("results").past_reports({"orders_gate"}, LAST):
        ResultsStore(str(plain)).write(without_shadow(report))
    for reads in (
        lambda root: past_days(root, "Orders", FIRST, LAST),
        lambda root: alerts(root, "Orders", FIRST, LAST),
        lambda root: recent_alerts(StoredResults(root), {"orders_gate"}),
        lambda root: query_results(root, "SELECT count(*) AS number FROM dql_results"),
        lambda root: tuple(
            map(without_shadow, StoredResults(root).past_reports({"orders_gate"}, LAST))
        ),
    ):
        assert reads("results") == reads(str(plain))


@pytest.mark.slow
def test_a_report_comes_back_with_its_shadow(here: Path) -> None:
    store = StoredResults("results")
    for line in store.select("runs", ["attempt_id"], []):
        (report,) = store.reports_of([line["attempt_id"]])
        assert report.shadow is not None
        assert len(report.shadow.verdicts) == (0 if report.run_key.date == LAST else 4)


@pytest.mark.slow
def test_values_of_a_shadow_can_be_applied(here: Path) -> None:
    output = dql("tune", "enforce", "suite.dql", "--assertion", ROWS, "--shadow", "next.dql")
    assert output == "enforced: LEAST: 10 -> 4\n"
    assert Path("suite.dql").read_text() == LOOSER
    (entry,) = History("suite.dql.history").entries
    assert (entry["action"], entry["param"], entry["old"], entry["new"]) == (
        "enforce",
        "LEAST",
        10,
        4,
    )
    assert (entry["agent"], entry["assertion"], entry["shadow"]) == ("human", ROWS, "next.dql")
    again = dql("tune", "enforce", "suite.dql", "--assertion", ROWS, "--shadow", "next.dql", code=2)
    assert "next.dql has no different values" in again
    assert "enforce" in dql("tune", "history", "suite.dql", "--tunable", "LEAST")


@pytest.mark.more
def test_a_shadow_value_out_of_bounds_is_refused(here: Path) -> None:
    Path("next.dql").write_text(SUITE.replace("10 tunable [1, 100]", "500 tunable [1, 1000]"))
    output = dql(
        "tune", "enforce", "suite.dql", "--assertion", ROWS, "--shadow", "next.dql", code=2
    )
    assert "E601" in output
    assert Path("suite.dql").read_text() == SUITE
