"""A blocked gate that asks, under a real scheduler, with real Spark and Delta: accepted, kept,
without an answer, and with data that changes while it waits.

The gates share a server of Spark Connect, as ten JVMs would take most of the time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.results.decisions import acceptances
from dqx_airflow.results.incidents import notes_from, stored_incidents, write_notes
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.runs import list_runs
from tests.operators.airflow_services import Airflow, airflow_services

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAG_FILE = """
from datetime import datetime
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, Asset

from dqx_airflow.operators import DqlGateOperator, gate_notification

HOME = Path(__file__).parents[1]

def keep_notification(context):
    with (HOME / context["ti"].dag_id / "notifications").open("a") as file:
        file.write(gate_notification(context).text + "\\n")

def dag(dag_id, **given):
    silver = Asset(f"silver_{dag_id}")
    with DAG(dag_id, start_date=datetime(2024, 1, 1), schedule=None):
        DqlGateOperator(
            task_id="gate",
            suite="orders.dql",
            datasets={"orders": {"path": str(HOME / dag_id / "orders"), "date_column": "ds"}},
            date="2024-03-20",
            results_root=str(HOME / dag_id / "results"),
            promote_to=str(HOME / dag_id / "silver"),
            on_violation="ask",
            on_warning_callback=keep_notification,
            on_failure_callback=keep_notification,
            outlets=[silver],
            **given,
        ) >> EmptyOperator(task_id="next")
    with DAG(f"{dag_id}_consumer", start_date=datetime(2024, 1, 1), schedule=[silver]):
        EmptyOperator(task_id="reads")

dag("accepted")
dag("kept")
dag("silent", ask_timeout=2)
dag("changed")
dag("strict", fail_on="P0")
"""
SUITE = """suite "Orders" {
    check "Completeness" on orders {
        assert null_count(id) == 0 name "orders.id" severity P1
        assert num_rows() < 3 name "orders.rows" severity P0
    }
}
"""
DAY = date(2024, 3, 20)


def rows(ids: list[int | None]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "ds": pa.array([DAY] * len(ids))})


@dataclass(frozen=True)
class Stand:
    """The services, and the questions that gates ask."""

    airflow: Airflow
    home: Path

    def state(self, dag_id: str, run_id: str, task_id: str = "gate") -> str | None:
        (task,) = self.airflow.tasks(dag_id, run_id, task_id)
        return task.state

    def ask(self, dag_id: str, ids: list[int | None]) -> str:
        """Runs the gate over these rows until it waits; returns the id of the run."""
        write_deltalake(str(self.home / dag_id / "orders"), rows(ids))
        run_id = self.airflow.run(dag_id)
        self.wait_for_question(dag_id, run_id)
        return run_id

    def wait_for_question(self, dag_id: str, run_id: str, number: int = 1) -> None:
        """Waits until the gate has asked for the n-th time, and the scheduler has seen its process
        end: Airflow takes an answer before that for a task that died."""
        event = re.compile(rf"Received executor event with state \w+ .*{re.escape(run_id)}")
        log = self.airflow.home / "scheduler.log"
        self.airflow.wait_until(
            lambda: (
                self.state(dag_id, run_id) in ("awaiting_input", "deferred")
                and len(event.findall(log.read_text())) >= number
            )
        )

    def question(self, dag_id: str, run_id: str) -> dict[str, Any]:
        place = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/gate/-1/hitlDetails"
        found: dict[str, Any] = self.airflow.ask("GET", place)
        return found

    def answer(self, dag_id: str, run_id: str, option: str, reason: str) -> None:
        place = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/gate/-1/hitlDetails"
        body = {"chosen_options": [option], "params_input": {"reason": reason}}
        self.airflow.ask("PATCH", place, body)

    def outcomes(self, dag_id: str) -> list[str]:
        found = list_runs(str(self.home / dag_id / "results"), all_attempts=True)
        return [run.outcome.value for run in reversed(found)]

    def notifications(self, dag_id: str) -> list[str]:
        """The texts of the notifications about a gate, once there is one about its end."""
        path = self.home / dag_id / "notifications"
        self.airflow.wait_until(lambda: len(path.read_text().splitlines()) > 1)
        return path.read_text().splitlines()

    def silver(self, dag_id: str) -> list[int | None] | None:
        path = str(self.home / dag_id / "silver")
        if not DeltaTable.is_deltatable(path):
            return None
        found: list[int | None] = DeltaTable(path).to_pyarrow_table()["id"].to_pylist()
        return found


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory, connect_address: str) -> Iterator[Stand]:
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    (home / "dags" / "asks.py").write_text(DAG_FILE)
    (home / "dags" / "orders.dql").write_text(SUITE)
    server = urlsplit(connect_address)
    connection = {"conn_type": "spark_connect", "host": server.hostname, "port": server.port}
    settings = {
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    }
    with airflow_services(home, settings) as airflow:
        airflow.start_triggerer()
        yield Stand(airflow, home)


def test_accepted_data_is_promoted_and_announced(stand: Stand) -> None:
    run_id = stand.ask("accepted", [1, None])
    question = stand.question("accepted", run_id)
    assert question["options"] == ["Accept this data", "Keep blocked"]
    assert question["subject"].startswith("blocked: no rows promoted (orders); gate accepted.gate")
    assert "`orders.id`" in question["body"]
    assert "null_count(id) is 1, expected == 0" in question["body"]
    assert "orders.id: id=NULL" in question["body"]
    assert stand.silver("accepted") is None
    assert stand.state("accepted", run_id, "next") is None
    stand.answer("accepted", run_id, "Accept this data", " ")
    stand.wait_for_question("accepted", run_id, 2)
    stand.answer("accepted", run_id, "Accept this data", "the shop was shut")
    assert stand.airflow.wait_for_end("accepted", run_id) == "success"
    assert stand.silver("accepted") == [1, None]
    assert stand.outcomes("accepted") == ["blocked", "accepted"]
    path = "dags/accepted/dagRuns/{}/taskInstances/gate/xcomEntries/dqx_report?deserialize=true"
    pushed = stand.airflow.ask("GET", path.format(run_id))["value"]
    assert "the shop was shut" in str(pushed)
    stand.airflow.wait_until(lambda: len(stand.airflow.runs("accepted_consumer")) == 1)
    (event,) = stand.airflow.ask("GET", "assets/events?source_dag_id=accepted")["asset_events"]
    assert event["extra"]["outcome"] == "accepted"
    assert "the shop was shut" in event["extra"]["accepted"]
    commit = DeltaTable(str(stand.home / "accepted" / "silver")).history(1)[0]
    assert commit["dqx_accepted_reason"] == "the shop was shut"
    results = StoredResults(str(stand.home / "accepted" / "results"))
    (incident,) = stored_incidents(results, RunsWanted())
    assert incident.status == "accepted"
    # The answer holds while the data is the same.
    stand.airflow.clear("accepted", run_id, "gate")
    stand.airflow.wait_until(lambda: stand.airflow.tasks("accepted", run_id, "gate")[0].tries == 2)
    assert stand.airflow.wait_for_end("accepted", run_id) == "success"
    assert stand.silver("accepted") == [1, None]


def test_kept_data_stays_out(stand: Stand) -> None:
    run_id = stand.ask("kept", [1, None])
    kept_results = StoredResults(str(stand.home / "kept" / "results"))
    (waits,) = stored_incidents(kept_results, RunsWanted())
    assert waits.status == "waiting"
    stand.answer("kept", run_id, "Keep blocked", "wait for the source")
    assert stand.airflow.wait_for_end("kept", run_id) == "failed"
    assert stand.state("kept", run_id, "next") == "upstream_failed"
    assert stand.silver("kept") is None
    assert stand.outcomes("kept") == ["blocked"]
    _, note = notes_from(kept_results, ["kept.gate"], DAY, DAY)
    assert (note.kind, note.text) == ("kept blocked", "wait for the source")
    begins, ends = stand.notifications("kept")
    assert begins.startswith("waits for an answer; blocked: no rows promoted (orders); ")
    assert re.match(r"kept blocked by \w+: wait for the source; blocked: no rows", ends)


def test_without_an_answer_the_default_decides(stand: Stand) -> None:
    run_id = stand.ask("silent", [1, None])
    assert stand.airflow.wait_for_end("silent", run_id) == "failed"
    assert stand.silver("silent") is None
    asked, note = notes_from(str(stand.home / "silent" / "results"), ["silent.gate"], DAY, DAY)
    assert (asked.kind, asked.text) == ("asked", "kept blocked")
    assert note.author == "no one within 0:00:02"
    begins, ends = stand.notifications("silent")
    assert re.match(r"waits for an answer until \S+ \S+ UTC, then kept blocked; blocked: ", begins)
    assert ends.startswith("kept blocked by no one within 0:00:02; blocked: ")


def test_data_that_changed_while_it_waited_voids_the_answer(stand: Stand) -> None:
    run_id = stand.ask("changed", [1, None])
    write_deltalake(str(stand.home / "changed" / "orders"), rows([None, None]), mode="overwrite")
    stand.answer("changed", run_id, "Accept this data", "fine")
    assert stand.airflow.wait_for_end("changed", run_id) == "failed"
    assert stand.silver("changed") is None
    assert stand.outcomes("changed") == ["blocked", "blocked"]
    ended = r"the answer by \w+: fine no longer applies, since data or rules have changed; "
    assert re.match(ended, stand.notifications("changed")[-1])
    # Airflow keeps the question of the first try, which is about other data: no one is asked it.
    again(stand, run_id, "failed")
    results = StoredResults(str(stand.home / "changed" / "results"))
    (incident,) = stored_incidents(results, RunsWanted())
    write_notes(results, acceptances(results, incident, "eve", "these, too"))
    again(stand, run_id, "success")
    assert stand.silver("changed") == [None, None]


def again(stand: Stand, run_id: str, state: str) -> None:
    """Clears the gate and waits for its end."""
    (before,) = stand.airflow.tasks("changed", run_id, "gate")
    stand.airflow.clear("changed", run_id, "gate")
    stand.airflow.wait_until(
        lambda: stand.airflow.tasks("changed", run_id, "gate")[0].tries > before.tries
    )
    assert stand.airflow.wait_for_end("changed", run_id) == state


def test_no_one_is_asked_about_p0(stand: Stand) -> None:
    write_deltalake(str(stand.home / "strict" / "orders"), rows([1, 2, 3]))
    run_id = stand.airflow.run("strict")
    assert stand.airflow.wait_for_end("strict", run_id) == "failed"
    assert stand.outcomes("strict") == ["blocked"]
