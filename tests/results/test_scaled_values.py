"""`value` is the measured number and `scaled_value` the compared one, in everything that shows a
verdict whose tag a profile scales."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dqx_airflow import Suite
from dqx_airflow.lineage import events
from dqx_airflow.results.oors import oors_message
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport
from tests.command_line import dql_prints as dql
from tests.tuning.stored_days import day, orders, stored

SUITE = """\
suite "Orders" {
    check "Volume" on orders {
        assert num_rows() >= 30
            name "least"
            tags [volume]
            severity P1
    }
    profile "Holiday" {
        from 2024-12-01
        to   2024-12-02
        scale tag "volume" by 5.0x
    }
}
"""
MEASURED, COMPARED = 5, 25
PERIOD = ("--from", str(day(0)), "--to", str(day(1)))


@pytest.fixture
def report(here: Path, monkeypatch: pytest.MonkeyPatch) -> GateReport:
    """A gate that blocked with 5 rows, which count as 25, where 30 are expected."""
    monkeypatch.setenv("DQX_RESULTS_ROOT", "results")
    Path("suite.dql").write_text(SUITE)
    result = Suite.from_string(SUITE).run(orders({0: (5, 0)}), day(0))
    report = stored(result.report, "orders_gate")
    ResultsStore("results").write(report)
    return report


def numbers_in(found: Any) -> list[tuple[Any, Any]]:
    """The measured and the compared number of each object that has a value and is about the
    assertion, at any depth."""
    if isinstance(found, list):
        return [pair for item in found for pair in numbers_in(item)]
    if not isinstance(found, dict):
        return []
    inner = [pair for item in found.values() for pair in numbers_in(item)]
    if "multiplier" in found and found["multiplier"] in (None, 1, 1.0):
        return inner  # the implicit assertions, which no profile scales
    assert "raw_value" not in found
    return [*inner, (found["value"], found["scaled_value"])] if "scaled_value" in found else inner


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "command",
    [
        ("tune", "alerts", "suite.dql", "--to", str(day(0)), "--format", "json"),
        ("tune", "backtest", "suite.dql", *PERIOD, "--format", "json"),
        ("results", "show", "latest", "--format", "json"),
    ],
    ids=lambda command: command[1],
)
def test_commands_print_both_numbers_as_json(report: GateReport, command: tuple[str, ...]) -> None:
    words = [report.run_id if word == "latest" else word for word in command]
    found = {pair for pair in numbers_in(json.loads(dql(*words))) if pair != (None, None)}
    assert (MEASURED, COMPARED) in found
    assert found <= {(MEASURED, COMPARED), (MEASURED, MEASURED)}  # the second: "has rows"


def test_alerts_have_both_numbers_as_csv_and_the_factor_as_a_table(report: GateReport) -> None:
    period = ("--to", str(day(0)))
    (row,) = csv.DictReader(
        dql("tune", "alerts", "suite.dql", *period, "--format", "csv").splitlines()
    )
    assert (row["value"], row["scaled_value"]) == (str(MEASURED), str(COMPARED))
    assert "25 (5 x 5)" in dql("tune", "alerts", "suite.dql", *period)


def test_stored_rows_messages_and_events_have_both_numbers(report: GateReport) -> None:
    numbers = ("value", "scaled_value")
    (row,) = StoredResults("results").select("results", numbers, ['"multiplier" = 5'])
    assert (row["value"], row["scaled_value"]) == (MEASURED, COMPARED)
    (result,) = [one for one in oors_message(report)["results"] if one["name"] == "least"]
    assert result["measure"]["value"] == MEASURED
    (verdict,) = [one for one in report.verdicts if one.name == "least"]
    params = events._params(verdict, report)
    assert (params["value"], params["scaled_value"]) == (MEASURED, COMPARED)


HEAD = ["run_id", "gate", "date", "map_index", "scheduler_run"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "command",
    [
        ("results", "list"),
        ("results", "show", "latest"),
        ("incidents", "list"),
        ("tune", "alerts", "suite.dql", "--to", str(day(0))),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_json_about_a_run_begins_with_its_key(report: GateReport, command: tuple[str, ...]) -> None:
    found = json.loads(dql(*command, "--format", "json"))
    first = found[0] if isinstance(found, list) else found
    assert [*first][:5] == HEAD
    values = [report.run_id, "orders_gate", str(day(0)), -1, report.run_key.scheduler_run]
    assert [first[key] for key in HEAD] == values
    assert not {key for key in keys_in(found) if key.startswith("is_") or key == "run_key"}


def keys_in(found: Any) -> set[str]:
    """All keys at any depth."""
    if isinstance(found, list):
        return {key for item in found for key in keys_in(item)}
    if not isinstance(found, dict):
        return set()
    return {*found, *(key for item in found.values() for key in keys_in(item))}


@pytest.mark.airflow
def test_the_summary_in_xcom_has_both_numbers(report: GateReport) -> None:
    from dqx_airflow.operators.notifications import gate_notification
    from dqx_airflow.operators.summary import summary
    from dqx_airflow.ui import summary_view

    pushed = json.loads(json.dumps(summary(report)))
    assert [*pushed][:5] == HEAD
    assert numbers_in(pushed) == [(MEASURED, COMPARED)]
    names = {"dag_id": "lake", "task_id": "gate", "run_id": "monday", "map_index": -1}
    ti = SimpleNamespace(**names, try_number=1, xcom_pull=lambda **_: pushed)
    notification = gate_notification({"ti": ti})
    assert "25 (5 x 5)" in notification.markdown
    assert [*notification.payload][:5] == [*HEAD[:4], "dag_run_id"]
    assert numbers_in(notification.payload["report"]) == [(MEASURED, COMPARED)]
    shown = summary_view._verdict(pushed["verdicts"][0])  # on pages, while the store is not read
    assert shown is not None
    assert (shown.value, shown.scaled_value) == (MEASURED, COMPARED)
