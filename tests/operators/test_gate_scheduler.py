"""The gate under a real scheduler when something goes wrong: each row of `faults.md`."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import dqx_airflow
from dqx_airflow.results.runs import list_runs
from tests.markdown_cases import REWRITE
from tests.operators.airflow_services import Airflow, DagOfTest, TaskState, airflow_services
from tests.operators.gate_stubs import SUITE, install_stub, needs_airflow
from tests.processes import free_port

pytestmark = pytest.mark.airflow

DAG_FILE = """
from datetime import datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset

from dqx_airflow.operators import ContractGateOperator, DqlGateOperator

HOME = Path(__file__).parents[1]
CORRUPT, OTHER = str(HOME / "corrupt"), str(HOME / "other")

def gate(home, mapped=(), column=None, **given):
    settings = {
        "task_id": "gate",
        "spark_binary": str(home / "bin" / "spark-submit"),
        "results_root": str(home / "results"),
        "conf": {"spark.log.level": "ERROR"},
        "retries": 1,
        "retry_delay": timedelta(0),
        **given,
    }
    data = {"path": str(home / "spark" / "data"), "format": "parquet"}
    data["date_column"] = column
    if "contract" in given:
        return ContractGateOperator(data=data, **settings)
    settings = {"suite": "orders.dql", **settings}
    if mapped:
        datasets = [{"orders": f"/lake/{name}"} for name in mapped]
        return DqlGateOperator.partial(**settings).expand(datasets=datasets)
    return DqlGateOperator(datasets={"orders": data}, **settings)

def dag(dag_id, **given):
    with DAG(dag_id, start_date=datetime(2024, 1, 1), schedule=None, max_active_runs=2):
        gate(HOME / dag_id, **given) >> EmptyOperator(task_id="next")

dag("twice")
dag("promoted", promote_to=str(HOME / "promoted" / "target"))
for name in ("passed", "blocked"):
    validated = Asset(f"validated_{name}")
    dag(name, outlets=[validated], date="2026-11-14")
    with DAG(f"{name}_consumer", start_date=datetime(2024, 1, 1), schedule=[validated]):
        gate(HOME / name, column="ds")

try:
    from airflow.sdk import (
        MonthWindow,
        PartitionedAssetTimetable,
        RollupMapper,
        StartOfMonthMapper,
    )
except ImportError:  # Airflow before 3.3 has no such windows
    pass
else:
    orders = Asset("certified_orders")
    dag(
        "certified",
        outlets=[orders],
        certify_partitions=True,
        on_violation="warn",
        date="{{ dag_run.conf['dates'] }}",
    )
    whole_months = RollupMapper(
        upstream_mapper=StartOfMonthMapper(input_format="%Y-%m-%d"), window=MonthWindow()
    )
    with DAG(
        "month_end",
        start_date=datetime(2024, 1, 1),
        schedule=PartitionedAssetTimetable(assets=orders, default_partition_mapper=whole_months),
    ):
        EmptyOperator(task_id="close")
    days = Asset("certified_days")
    dag(
        "daily",
        outlets=[days],
        certify_partitions=True,
        on_violation="warn",
        date="2024-05-01..2024-05-02",
    )
    with DAG(
        "daily_consumer",
        start_date=datetime(2024, 1, 1),
        schedule=PartitionedAssetTimetable(assets=days),
    ):
        gate(HOME / "daily", column="ds")
"""

CONTRACT = """dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 1.0.0}
models:
  orders:
    fields:
      id: {type: long, required: true}
"""

PAGE = Path(dqx_airflow.__file__).parent / "docs" / "outcomes.md"
TABLE_HEAD = "| what happens | gate | next task | attempts | runs |\n|---|---|---|---|---|\n"

# Airflow's own events take a process for each; one DAG is enough to see them fail.
LINEAGE_OF_ONE = [
    {"scope": {}, "controls": {"emit": False}},
    {"scope": {"dag_id": "the_lineage_server_is_down"}, "controls": {"emit": True}},
]

DATA = {"good": [1, 2, 3], "bad": [1, None, 3]}


@dataclass(frozen=True)
class Fault:
    """A row of the table; `due` are its last four cells."""

    title: str
    gate: str
    spark: tuple[str, ...]
    then: str
    due: tuple[str, ...]

    @property
    def dag_id(self) -> str:
        return re.sub(r"\W+", "_", self.title).strip("_")

    def __str__(self) -> str:
        return self.title


def faults(section: str) -> list[Fault]:
    text = Path(__file__).with_name("faults.md").read_text(encoding="utf-8")
    text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    _, *rows = re.findall(r"^\|([^-].*)\|$", text, re.M)
    return [read_fault(*(cell.strip() for cell in row.split("|"))) for row in rows]


def read_fault(title: str, gate: str, spark: str, then: str, *due: str) -> Fault:
    lines = tuple(line.strip("`") for line in spark.split(", "))
    return Fault(title, gate.strip("`"), lines, then, due)


QUICK, NIGHTLY = faults("Quick"), faults("Nightly")


@dataclass(frozen=True)
class Scene(DagOfTest):
    """What a test tells its Spark, and what became of its runs."""

    @property
    def runs(self) -> int:
        """The number of runs that the results store holds."""
        root = self.home / "results"
        return len(list_runs(str(root), all_attempts=True)) if (root / "runs").exists() else 0

    def start(self, *spark: str, **conf: str) -> str:
        """Starts a run; `spark` says what each submission does. Returns the id of the run."""
        home = self.home
        install_stub(home / "bin" / "spark-submit", self.spark.home, home / "results").will(*spark)
        for name, ids in DATA.items():
            (self.spark.home / name).mkdir()
            table = pa.table({"id": pa.array(ids, pa.int64())})
            pq.write_table(table, self.spark.home / name / "orders.parquet")
        (self.spark.home / "data").mkdir()
        return self.airflow.run(self.dag_id, **conf)

    def tasks(self, run_id: str, task_id: str = "gate") -> list[TaskState]:
        return self.airflow.tasks(self.dag_id, run_id, task_id)

    def wait_for_spark(self) -> None:
        self.airflow.wait_until(lambda: self.spark.processes != [])

    def wait_for_end(self, run_id: str) -> str:
        """Waits for the end of the run, and of all that it started; returns its state."""
        state = self.airflow.wait_for_end(self.dag_id, run_id)
        self.airflow.wait_until(lambda: self.spark.processes == [], seconds=20)
        return state


def kill_spark(scene: Scene, run_id: str) -> None:
    os.kill(scene.spark.processes[0], signal.SIGKILL)


def kill_the_task(scene: Scene, run_id: str) -> None:
    (task,) = scene.tasks(run_id)
    assert task.pid is not None
    os.kill(task.pid, signal.SIGKILL)


def kill_the_scheduler(scene: Scene, run_id: str) -> None:
    scene.airflow.kill_scheduler()


def mark_failed(scene: Scene, run_id: str) -> None:
    scene.airflow.mark(scene.dag_id, run_id, "gate", "failed")


def mark_success(scene: Scene, run_id: str) -> None:
    scene.airflow.mark(scene.dag_id, run_id, "gate", "success")


def clear(scene: Scene, run_id: str) -> None:
    scene.airflow.clear(scene.dag_id, run_id, "gate")


Act = Callable[[Scene, str], None]

WHILE_SPARK_RUNS: dict[str, Act] = {
    "kill Spark": kill_spark,
    "kill the task": kill_the_task,
    "kill the scheduler": kill_the_scheduler,
    "mark it failed at once": mark_failed,
    "mark it success at once": mark_success,
}
AFTERWARDS: dict[str, Act] = {"clear it": clear, "mark it success": mark_success}


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    home = tmp_path_factory.mktemp("scheduler")
    nowhere = f"http://127.0.0.1:{free_port()}"
    dags = "\n".join(f"dag({fault.dag_id!r}, {fault.gate})" for fault in (*QUICK, *NIGHTLY))
    files = {
        "dags/faults.py": DAG_FILE + dags,
        "dags/orders.dql": SUITE,
        "dags/broken.dql": SUITE.replace("null_count", "nil_count"),
        "dags/orders.yaml": CONTRACT,
        "corrupt/runs/_delta_log/00000000000000000000.json": "{",
    }
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    write_deltalake(home / "other", pa.table({"name": ["Ada"]}))
    settings = {
        "AIRFLOW__OPENLINEAGE__EMISSION_POLICY": json.dumps(LINEAGE_OF_ONE),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "http", "url": nowhere}),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "OPENLINEAGE_URL": nowhere,
    }
    with airflow_services(home, settings) as services:
        yield services


@pytest.fixture(scope="module")
def started(airflow: Airflow, request: pytest.FixtureRequest) -> dict[Fault, str]:
    """The runs of the chosen faults that nobody has to disturb, all at once."""
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    chosen = [spec.params["fault"] for spec in specs if spec and "fault" in spec.params]
    return {
        fault: Scene(airflow, fault.dag_id).start(*fault.spark)
        for fault in chosen
        if fault.then not in WHILE_SPARK_RUNS
    }


@pytest.mark.e2e
@pytest.mark.parametrize(
    "fault",
    [*QUICK, *(pytest.param(fault, marks=pytest.mark.nightly) for fault in NIGHTLY)],
    ids=str,
)
def test_the_table_of_faults_is_true(
    fault: Fault, airflow: Airflow, started: dict[Fault, str]
) -> None:
    scene = Scene(airflow, fault.dag_id)
    if act := WHILE_SPARK_RUNS.get(fault.then):
        run_id = scene.start(*fault.spark)
        scene.wait_for_spark()
        act(scene, run_id)
    else:
        run_id = started[fault]
    scene.wait_for_end(run_id)
    if act := AFTERWARDS.get(fault.then):
        act(scene, run_id)
        scene.wait_for_end(run_id)
    gates, (after,) = scene.tasks(run_id), scene.tasks(run_id, "next")
    states = ", ".join(str(gate.state) for gate in gates)
    tries = ", ".join(str(gate.tries) for gate in gates)
    assert (states, after.state, tries, str(scene.runs)) == fault.due


def test_the_page_about_outcomes_has_the_table_of_faults() -> None:
    head, tail = PAGE.read_text(encoding="utf-8").split(TABLE_HEAD)
    rows = (" | ".join((fault.title, *fault.due)) for fault in (*QUICK, *NIGHTLY))
    table = "".join(f"| {row} |\n" for row in rows)
    if REWRITE:
        rest = re.sub(r"\A(\|.*\n)*", "", tail)
        PAGE.write_text(head + TABLE_HEAD + table + rest, encoding="utf-8")
    else:
        assert tail.startswith(f"{table}\n")


@pytest.mark.nightly
def test_two_runs_over_the_same_date_do_not_disturb_each_other(airflow: Airflow) -> None:
    scene = Scene(airflow, "twice")
    first = scene.start("slow passed")
    second = airflow.run("twice")
    assert {scene.wait_for_end(first), scene.wait_for_end(second)} == {"success"}
    assert scene.runs == 2


@pytest.mark.nightly
def test_a_consumer_starts_only_after_a_pass_and_gets_the_validated_version(
    airflow: Airflow,
) -> None:
    blocked, passed = Scene(airflow, "blocked"), Scene(airflow, "passed")
    assert blocked.wait_for_end(blocked.start("blocked")) == "failed"
    assert passed.wait_for_end(passed.start("passed")) == "success"
    airflow.wait_until(lambda: airflow.runs("passed_consumer") != [])
    (run,) = airflow.runs("passed_consumer")
    path = f"dags/passed_consumer/dagRuns/{run['dag_run_id']}/upstreamAssetEvents"
    (event,) = airflow.ask("GET", path)["asset_events"]
    assert event["extra"]["outcome"] == "passed"
    assert event["extra"]["validated"]["orders"]["version"] == 3
    airflow.wait_for_end("passed_consumer", run["dag_run_id"])
    first, second = passed.spark.requests
    assert first.run_key.date == second.run_key.date == date(2026, 11, 14)
    assert second.date_from == "from the asset event of passed.gate"
    assert airflow.runs("blocked_consumer") == []


@pytest.mark.nightly
def test_data_that_went_bad_is_not_promoted_when_the_gate_is_cleared(airflow: Airflow) -> None:
    scene = Scene(airflow, "promoted")
    run_id = scene.start("data=good real", "data=bad real")
    assert scene.wait_for_end(run_id) == "success"
    target = DeltaTable(str(scene.home / "target"))
    assert target.to_pyarrow_table().num_rows == len(DATA["good"])
    clear(scene, run_id)
    assert scene.wait_for_end(run_id) == "failed"
    assert DeltaTable(str(scene.home / "target")).version() == target.version()


@pytest.mark.e2e
@needs_airflow(3, 3)
def test_a_month_closes_when_each_of_its_days_is_certified(airflow: Airflow) -> None:
    scene = Scene(airflow, "certified")
    blocked = ["2024-05-11", "2024-05-20"]
    month = scene.start(f"blocked_on={','.join(blocked)}", "passed", dates="2024-05-01..2024-05-31")
    assert scene.wait_for_end(month) == "success"
    events = airflow.ask("GET", "assets/events?source_dag_id=certified&limit=100")["asset_events"]
    keys = {event["partition_key"] for event in events}
    assert keys == {f"2024-05-{day:02}" for day in range(1, 32)} - set(blocked)
    for on in blocked:
        assert airflow.runs("month_end") == []
        assert scene.wait_for_end(airflow.run("certified", dates=on)) == "success"
    airflow.wait_until(lambda: airflow.runs("month_end") != [])
    (closed,) = airflow.runs("month_end")
    assert closed["partition_key"] == "2024-05"


@pytest.mark.e2e
@needs_airflow(3, 3)
def test_a_gate_of_a_certified_day_judges_that_day(airflow: Airflow) -> None:
    scene = Scene(airflow, "daily")
    scene.start("blocked_on=2024-05-02", "passed")
    airflow.wait_until(lambda: airflow.runs("daily_consumer") != [])
    (consumer,) = airflow.runs("daily_consumer")
    assert consumer["partition_key"] == "2024-05-01"
    assert airflow.wait_for_end("daily_consumer", consumer["dag_run_id"]) == "success"
    judged = list_runs(str(scene.home / "results"), gate="daily_consumer.gate")
    assert [run.run_key.date.isoformat() for run in judged] == ["2024-05-01"]
