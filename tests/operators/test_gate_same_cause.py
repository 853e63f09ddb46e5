"""Two gates of a DAG that fail for one cause: real runs of a DAG, on a real Spark."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dqx_airflow.results.incidents import stored_incidents
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport, Outcome, RunKey, Status
from tests.command_line import dql
from tests.http_stub import Asked, Reply, http_stub
from tests.made_reports import report_at, verdict_of
from tests.operators.dag_files import read_dags
from tests.operators.gate_stubs import FakeTask

pytestmark = pytest.mark.airflow

DAG_FILE = '''
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator, notify_on_change

HERE = Path(__file__).parent


class Sent:
    """A notifier that notes what it would send."""

    def __init__(self, notification):
        self.line = notification.markdown.splitlines()[0]

    def notify(self, context):
        with (HERE / "sent.txt").open("a") as file:
            print(self.line, file=file)


with DAG("night.shop", start_date=datetime(2024, 1, 1), schedule=None, catchup=False):
    before = None
    for name in ("orders", "items", "refunds"):
        gate = DqlGateOperator(
            task_id=name,
            suite=f"{name}.dql",
            datasets={name: {"path": str(HERE / f"{name}.csv"), "format": "csv"}},
            trigger_rule="all_done",
            on_failure_callback=notify_on_change(Sent),
        )
        if before is not None:
            before >> gate
        before = gate
'''
SUITE = """suite "NAME" {
    check "Volume" on NAME {
        assert num_rows() >= 3 name "NAME.rows" severity P0
        assert null_count(id) == 0 name "NAME.id" severity P0
    }
}
"""


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch, airflow_environment: None) -> Iterator[list[Any]]:
    """The events that a webhook received."""
    events: list[Any] = []

    def answer(asked: Asked) -> Reply:
        events.append(json.loads(asked.body))
        return Reply(200)

    with http_stub(answer) as address:
        connection = {"conn_type": "http", "host": f"{address}/hook"}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(connection))
        monkeypatch.setenv("AIRFLOW__DQX__WEBHOOK_CONN_ID", "hook")
        yield events


@pytest.mark.e2e
@pytest.mark.spark
@pytest.mark.usefixtures("airflow_database")
def test_the_second_gate_names_the_first_and_a_third_with_more_does_not(
    airflow_settings: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    posted: list[Any],
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    folder = Path(airflow_settings["AIRFLOW__CORE__DAGS_FOLDER"], "same_cause")
    folder.mkdir()
    for name, rows in {"orders": "1\n", "items": "1\n2\n", "refunds": '1\n""\n'}.items():
        (folder / f"{name}.csv").write_text(f"id\n{rows}")
        (folder / f"{name}.dql").write_text(SUITE.replace("NAME", name))
    (folder / "night.py").write_text(DAG_FILE)
    dag = read_dags(folder / "night.py")["night.shop"]
    ended = dag.test(logical_date=datetime(2024, 5, 17, tzinfo=timezone.utc))
    assert {str(ti.state) for ti in ended.get_task_instances()} == {"failed"}
    lines = (folder / "sent.txt").read_text().splitlines()
    assert len(lines) == 3, "none is suppressed"
    heads = [line.partition(": ")[0] for line in lines]
    assert heads[0] == "Gate `night.shop.orders` blocked"
    assert heads[1].startswith(
        "Gate `night.shop.items` blocked, same cause as gate `night.shop.orders` (stopped at "
    )
    assert heads[2] == "Gate `night.shop.refunds` blocked"
    first, second, third = [event["data"] for event in posted]
    assert first["cause"] == second["cause"] == first["incident"]
    assert second["incident"] != first["incident"]
    assert third["cause"] == third["incident"]
    listed = dql("incidents", "--results-root", tmp_path / "results")
    assert "3 incidents have 2 causes" in listed.output


NIGHT = datetime(2024, 5, 18, 2, 14, tzinfo=timezone.utc)
MADE = {"status": Status.FAILED, "metric": "num_rows", "value": 3, "threshold": 10}


def stopped(gate: str, minute: int = 14, *, value: int = 3, index: int = -1) -> GateReport:
    instance = f"run_1[{index}]" if index >= 0 else "run_1"
    return report_at(
        NIGHT.replace(minute=minute),
        verdict_of(f"{gate}.rows", **{**MADE, "value": value}),
        run_key=RunKey(gate, NIGHT.date(), instance),
        outcome=Outcome.BLOCKED,
    )


class SummaryTask(FakeTask):
    """A task that has left a summary."""

    def __init__(self, left: object) -> None:
        super().__init__()
        self.left = left

    def xcom_pull(self, **_: object) -> object:
        return self.left


def gates_of(*names: str, dag_id: str = "lake") -> Any:
    """A DAG with tasks; one that begins with `=` gives its gate this name, and one with `*` as a
    mapped task."""
    tasks = []
    for number, name in enumerate(names):
        given = name.lstrip("=*")
        task_id = given if given == name else f"task_{number}"
        task = SimpleNamespace(task_id=task_id)
        if name[0] == "=":
            task.gate = given
        if name[0] == "*":
            task.partial_kwargs = {"gate": given}
        tasks.append(task)
    return SimpleNamespace(dag_id=dag_id, tasks=tasks)


@pytest.mark.parametrize(
    ("first", "own", "dag", "is_same"),
    [
        ("lake.orders", "lake.items", gates_of("orders", "items"), True),
        ("lake.a.orders", "lake.b.items", gates_of("a.orders", "b.items"), True),
        ("silver", "gold", gates_of("=silver", "*gold"), True),
        ("lake.orders/orders.dql", "lake.items", gates_of("orders", "items"), True),
        ("lake.orders", "lake.items", gates_of("items"), False),
        ("lake.b.orders", "lake.items", gates_of("items", "orders"), False),
        ("lake.orders", "lake.items", None, False),
    ],
)
def test_the_gates_of_a_dag_are_those_of_its_tasks(
    operators: ModuleType, tmp_path: Path, first: str, own: str, dag: Any, is_same: bool
) -> None:
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.same_cause import same_cause

    earlier, report = stopped(first), stopped(own, 20)
    for one in (earlier, report):
        ResultsStore(str(tmp_path / "results")).write(one)
    found = same_cause({"dag": dag}, [report], ResultsLocation(str(tmp_path / "results")))
    gate = first.partition("/")[0]
    expected = {"gate": gate, "incident": earlier.run_id, "at": NIGHT.isoformat()}
    assert found == (expected if is_same else None)


def test_a_store_that_cannot_be_read_changes_nothing_else(
    operators: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.same_cause import same_cause

    (tmp_path / "results" / "runs" / "_delta_log").mkdir(parents=True)
    (tmp_path / "results" / "runs" / "_delta_log" / f"{0:020}.json").write_text("{")
    context = {"dag": gates_of("orders", "items")}
    with caplog.at_level(logging.ERROR):
        location = ResultsLocation(str(tmp_path / "results"))
        assert same_cause(context, [stopped("lake.items")], location) is None
    assert "it is unknown whether an earlier gate" in caplog.text


def test_instances_of_two_mapped_gates_are_compared_by_their_index(
    operators: ModuleType, tmp_path: Path
) -> None:
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.same_cause import same_cause

    root = str(tmp_path / "results")
    own = [stopped("lake.items", 20 + index, index=index) for index in range(3)]
    for one in (stopped("lake.orders", index=1), stopped("lake.orders", value=30, index=2), *own):
        ResultsStore(root).write(one)
    context = {"dag": gates_of("orders", "items")}
    found = [same_cause(context, [one], ResultsLocation(root)) for one in own]
    assert [one and one["gate"] for one in found] == [None, "lake.orders", None]


def test_the_first_line_of_each_form_names_the_gate_as_text(operators: ModuleType) -> None:
    from dqx_airflow.operators.summary import summary

    hostile = "lake.`<!channel>`</b>"
    same = {"gate": hostile, "incident": "1", "at": "2024-05-18T04:14:00+02:00"}
    task = SummaryTask({**summary(stopped("lake.items")), "same_cause": same})
    found = operators.gate_notification({"ti": task})
    assert found.text.startswith("same cause as gate lake.`<!channel>`</b> (stopped at 2024-05-18 ")
    assert found.markdown.splitlines()[0].startswith(
        "Gate `lake.items` blocked, same cause as gate `lake.'< !channel>'< /b>` "
        "(stopped at 2024-05-18 02:14 UTC): data of"
    )
    assert "<b>lake.`&lt;!channel&gt;`&lt;/b&gt;</b> (stopped at" in found.html
    assert found.payload["same_cause"] == same


def test_the_end_of_a_gate_with_the_cause_of_another_ends_its_own_incident(
    operators: ModuleType, tmp_path: Path, posted: list[Any]
) -> None:
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.webhooks import sender

    location = ResultsLocation(str(tmp_path / "results"))
    context = {"ti": SummaryTask(None), "dag": gates_of("orders", "items")}
    good = report_at(NIGHT.replace(minute=40), run_key=RunKey("lake.items", NIGHT.date(), "run_2"))
    reports = [stopped("lake.orders"), stopped("lake.items", 20), good]
    for report in reports:
        ResultsStore(location.root).write(report)
        sender([report], location)(context)
    first, second, end = [event["data"] for event in posted]
    assert [one["action"] for one in (first, second, end)] == ["trigger", "trigger", "resolve"]
    assert end["incident"] == second["incident"] != first["incident"]
    assert {one["cause"] for one in (first, second, end)} == {first["incident"]}
    (still,) = [one for one in stored_incidents(location.root, RunsWanted()) if one.is_open]
    assert still.id == first["incident"]
