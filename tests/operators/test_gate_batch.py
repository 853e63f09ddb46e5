"""Gates that are checked in one Spark, before their tasks begin, and end as if each were alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.results.runs import list_runs
from tests.operators.gate_stubs import FakeRun, FakeTask, Log, Run, SparkSubmit, dag_file
from tests.processes import PROGRAMS

pytestmark = pytest.mark.airflow


@dataclass
class BatchTask(FakeTask):
    """A running task instance that knows the states of the others."""

    max_tries: int = 0
    states: dict[str, str] = field(default_factory=dict)

    def get_task_states(self, dag_id: str, run_ids: list[str]) -> dict[str, dict[str, str]]:
        return {run_ids[0]: self.states}


@dataclass
class Scene:
    """A DAG with a batch before some gates, and how their tasks are run."""

    operators: ModuleType
    folder: Path
    results: Path
    run: FakeRun = field(default_factory=FakeRun)
    states: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from airflow.sdk import DAG

        self.dag = DAG("lake", start_date=datetime(2024, 1, 1), schedule=None)
        self.dag.fileloc = str(self.folder / "lake.py")

    def gate(self, name: str, **given: Any) -> Any:
        """A gate about a dataset whose path ends with the outcome that the stub reports."""
        settings = {"suite": "orders.dql", "datasets": {"orders": "/lake/passed"}, **given}
        return self.operators.DqlGateOperator(task_id=name, dag=self.dag, **settings)

    def batch(self, *gates: Any, **given: Any) -> Any:
        settings = {"task_id": "batch", "gates": gates, "dag": self.dag, **given}
        return self.operators.GateBatchOperator(**settings)

    def context(self, task_id: str, attempt: str = "", **given: Any) -> dict[str, Any]:
        ti = BatchTask(
            task_id=task_id,
            dag_run=self.run,
            id=attempt or f"{task_id} 1",
            states=self.states,
            **given,
        )
        return {"ti": ti, "dag_run": self.run, "dag": self.dag, "ds": "2024-05-17"}

    def ends(self, task_id: str, attempt: str = "", **given: Any) -> str:
        """The return value of a task, or the name of its error."""
        task = self.dag.get_task(task_id).prepare_for_execution()
        context = self.context(task_id, attempt, **given)
        context["task"] = task
        task.render_template_fields(context)
        self.last_task = task
        try:
            return str(task.execute(context))
        except Exception as error:
            return type(error).__name__

    def runs(self, gate: str) -> int:
        return len(list_runs(str(self.results), gate=f"lake.{gate}", all_attempts=True))


@pytest.fixture
def scene(operators: ModuleType, dag_folder: Path, tmp_path: Path) -> Scene:
    return Scene(operators, dag_folder, tmp_path / "results")


def test_one_job_judges_all_gates_and_each_ends_by_its_own_report(
    scene: Scene, spark_submit: SparkSubmit, log: Log
) -> None:
    outcomes = ("passed", "warned", "blocked", "broken")
    gates = [scene.gate(name, datasets={"orders": f"/lake/{name}"}) for name in outcomes]
    scene.batch(*gates)
    spark_submit.will("by_dataset")
    assert scene.ends("batch") == "4 of 4 gates were checked in one Spark"
    ended = {name: scene.ends(name) for name in outcomes}
    assert ended == {
        "passed": "passed",
        "warned": "warned",
        "blocked": "GateBlockedError",
        "broken": "GateBrokenError",
    }
    assert len(spark_submit.calls) == 1
    assert "checked in the batch 'batch', where the log of Spark is" in log.text
    reports = list_runs(str(scene.results))
    assert {(one.run_key.gate, one.attempt.id) for one in reports} == {
        (f"lake.{name}", f"{name} 1") for name in outcomes
    }
    assert [*(scene.results / "_dqx_requests").iterdir()] == []


def test_a_gate_that_runs_again_judges_again(scene: Scene, spark_submit: SparkSubmit) -> None:
    scene.batch(scene.gate("orders"), scene.gate("items"))
    spark_submit.will("passed", "blocked", "passed", "blocked")
    scene.ends("batch")
    assert scene.ends("orders", "try 1") == "passed"
    assert scene.ends("orders", "try 2") == "GateBlockedError", "a retry of one gate alone"
    assert len(spark_submit.calls) == 2
    scene.run.clear_number = 1  # something in the DAG run was cleared, such as what writes the data
    assert scene.ends("items") == "passed"
    assert scene.runs("items") == 1
    assert len(spark_submit.calls) == 3
    assert scene.ends("batch", "batch 2") == "2 of 2 gates were checked in one Spark"
    assert scene.ends("orders", "try 3") == "GateBlockedError", "checked in the second batch"
    assert len(spark_submit.calls) == 4


def test_a_run_that_was_deleted_and_created_again_takes_nothing_from_before(
    scene: Scene, spark_submit: SparkSubmit
) -> None:
    """It has the same id, and has not been cleared."""
    scene.batch(scene.gate("orders"))
    spark_submit.will("passed", "blocked")
    scene.ends("batch", "batch 1")
    scene.run.start_date = datetime(2024, 5, 18, 3, 2, tzinfo=timezone.utc)
    assert scene.ends("batch", "batch 2") == "1 of 1 gates were checked in one Spark"
    assert scene.ends("orders") == "GateBlockedError", "the data of the second run"
    assert len(spark_submit.calls) == 2


def test_a_batch_that_is_cleared_in_a_running_run_leaves_nothing_from_before(
    scene: Scene, spark_submit: SparkSubmit
) -> None:
    """Airflow 3.1 counts a clear only if the DAG run had ended."""
    scene.batch(scene.gate("orders"), retries=1)
    spark_submit.will("passed", "blocked")
    scene.ends("batch", "batch 1", max_tries=1)
    ended = scene.ends("batch", "batch 2", try_number=2, max_tries=2)
    assert ended == "1 of 1 gates were checked in one Spark"
    assert scene.ends("orders") == "GateBlockedError", "the data after the clear"
    assert len(spark_submit.calls) == 2


@pytest.mark.parametrize("tries", [0, 1])
def test_gates_take_their_reports_from_a_batch_that_was_cleared_with_them(
    scene: Scene, spark_submit: SparkSubmit, tries: int
) -> None:
    """Those that had not begun before are in their first attempt, and the others in a later one."""
    scene.batch(scene.gate("orders"), retries=1)
    spark_submit.will("passed", "blocked")
    scene.ends("batch", "batch 1", max_tries=1)
    scene.run.clear_number = 1
    scene.ends("batch", "batch 2", try_number=2, max_tries=2)
    assert scene.ends("orders", try_number=tries + 1) == "GateBlockedError"
    assert len(spark_submit.calls) == 2


def test_a_batch_that_is_cleared_while_it_runs_leaves_nothing_from_before(
    scene: Scene, spark_submit: SparkSubmit
) -> None:
    """Airflow 3.1 ends the task, and counts neither a clear nor another try that it may have."""
    scene.batch(*(scene.gate(name) for name in "ab"), retries=1)
    spark_submit.will("first=1 killed", "blocked", "blocked", "blocked")
    assert scene.ends("batch", "batch 1", max_tries=1) == "GateInfrastructureError"
    scene.last_task.on_kill()
    scene.ends("batch", "batch 2", try_number=2, max_tries=1)
    assert scene.ends("a") == "GateBlockedError"


def test_in_a_run_without_a_start_each_gate_judges_for_itself(
    scene: Scene, spark_submit: SparkSubmit, log: Log
) -> None:
    scene.batch(scene.gate("orders"))
    scene.run.start_date = None
    assert scene.ends("batch") == "0 gates"
    assert "when the DAG run started: each submits a job of its own" in log.text
    assert spark_submit.calls == []
    assert scene.ends("orders") == "passed"


def test_a_restart_of_the_same_try_finds_its_report(
    scene: Scene, spark_submit: SparkSubmit
) -> None:
    scene.batch(scene.gate("orders"))
    scene.ends("batch")
    assert [scene.ends("orders"), scene.ends("orders")] == ["passed", "passed"]
    assert len(spark_submit.calls) == 1
    assert scene.runs("orders") == 1


def test_a_gate_that_renders_otherwise_in_its_own_task_judges_for_itself(
    scene: Scene, spark_submit: SparkSubmit, log: Log
) -> None:
    same = {"orders": "/lake/{{ task.task_id }}/{{ ds }}/{{ ti.run_id }}"}
    scene.batch(
        scene.gate("same", datasets=same),
        scene.gate("other", datasets={"orders": "/lake/{{ ti.id }}"}),
        scene.gate("wrong", date="{{ 'soon' }}"),
    )
    assert scene.ends("batch") == "2 of 2 gates were checked in one Spark"
    assert scene.ends("same") == "passed"
    assert len(spark_submit.calls) == 1
    assert scene.ends("other") == "passed"
    assert "no report from the batch 'batch': not checked there" in log.text
    assert [one.datasets[0].location for one in spark_submit.requests] == ["/lake/other 1"]
    assert scene.ends("wrong") == "GateMisconfiguredError"
    assert "gate wrong submits a job of its own: GateMisconfiguredError: date" in log.text


def test_a_job_that_is_lost_leaves_the_others_to_the_next_try_and_to_themselves(
    scene: Scene, spark_submit: SparkSubmit, log: Log
) -> None:
    names = ("a", "b", "c")
    scene.batch(*(scene.gate(name) for name in names), retries=1)
    spark_submit.will("first=1 killed", "passed", "passed")
    assert scene.ends("batch", "batch 1", max_tries=1) == "GateInfrastructureError"
    assert scene.ends("batch", "batch 2", try_number=2, max_tries=1) == (
        "2 of 3 gates were checked in one Spark"
    ), "not the gate at which the first job was lost"
    assert len(spark_submit.calls) == 2
    assert [scene.ends(name) for name in names] == ["passed"] * 3
    (alone,) = spark_submit.requests
    assert alone.run_key.gate == "lake.b"
    assert "no report from the batch 'batch': it ended while it checked this gate" in log.text


def test_after_its_last_try_the_batch_lets_its_gates_judge_for_themselves(
    scene: Scene, spark_submit: SparkSubmit, log: Log
) -> None:
    scene.batch(scene.gate("a"), scene.gate("b"))
    spark_submit.will("exit=1", "passed", "blocked")
    assert scene.ends("batch") == "0 of 2 gates were checked in one Spark"
    (error,) = log.at("error")
    assert "the Spark job failed (exit code 1)" in error
    assert error.endswith("lake.a, lake.b submit jobs of their own")
    assert [scene.ends("a"), scene.ends("b")] == ["passed", "GateBlockedError"]


def test_two_gates_with_equal_rules_have_a_report_each(
    scene: Scene, spark_submit: SparkSubmit
) -> None:
    scene.batch(scene.gate("a"), scene.gate("b"))
    scene.ends("batch")
    assert [scene.ends("a"), scene.ends("b")] == ["passed", "passed"]
    assert (scene.runs("a"), scene.runs("b"), len(spark_submit.calls)) == (1, 1, 1)


def test_a_gate_that_will_not_begin_is_not_judged(scene: Scene, spark_submit: SparkSubmit) -> None:
    """Its rows may be incomplete, and nothing may be promoted for it."""
    from airflow.providers.standard.operators.empty import EmptyOperator

    gates = {name: scene.gate(name) for name in ("after_land", "after_failed", "skipped", "mapped")}
    for name in ("land", "failed", "parts"):
        EmptyOperator(task_id=name, dag=scene.dag)
    scene.dag.get_task("land") >> [gates["after_land"], gates["skipped"]]
    scene.dag.get_task("failed") >> gates["after_failed"]
    scene.dag.get_task("parts") >> gates["mapped"]
    batch = scene.batch(*gates.values())
    batch.prepare_template()
    assert batch.upstream_task_ids == {"land", "failed", "parts"}
    assert batch.trigger_rule == "all_done"
    scene.states |= {"land": "success", "failed": "failed", "skipped": "skipped"}
    scene.states |= {"parts_0": "success", "parts_1": "failed"}
    assert scene.ends("batch") == "1 of 1 gates were checked in one Spark"
    assert scene.ends("after_land") == "passed"
    assert len(spark_submit.calls) == 1


def test_a_gate_that_has_ended_is_not_judged_in_a_batch_that_is_cleared_alone(
    scene: Scene, spark_submit: SparkSubmit
) -> None:
    """It does not begin again, and would take no report of rows that were promoted."""
    scene.batch(scene.gate("ended"), scene.gate("cleared"))
    scene.states |= {"ended": "success", "batch": "running"}
    scene.run.clear_number = 1
    assert scene.ends("batch") == "1 of 1 gates were checked in one Spark"
    assert scene.ends("cleared") == "passed"
    assert len(spark_submit.calls) == 1
    scene.states["cleared"] = "failed"
    scene.run.clear_number = 2
    assert scene.ends("batch") == "0 gates"


@pytest.mark.parametrize("rule", ["always", "one_done", "one_failed", "one_success"])
def test_each_gate_of_a_batch_waits_for_it(scene: Scene, rule: str) -> None:
    """Otherwise both could promote the rows of a gate at the same time."""
    with pytest.raises(scene.operators.GateMisconfiguredError) as caught:
        scene.batch(scene.gate("a"), scene.gate("early", trigger_rule=rule))
    assert f"early has the trigger rule '{rule}', by which it may begin before" in str(caught.value)


def test_a_gate_in_a_mapped_task_group_belongs_to_no_batch(scene: Scene) -> None:
    from airflow.sdk import task_group

    def part(number: int) -> None:
        scene.batch(scene.gate("gate"))

    message = "part.gate is in a mapped task group: leave it out of the batch"
    with scene.dag, pytest.raises(scene.operators.GateMisconfiguredError, match=message):
        task_group(part).expand(number=[1, 2])


def test_the_gates_of_a_batch_are_a_list(scene: Scene) -> None:
    gate = scene.gate("gate")
    for given, message in (
        (None, "gates=None: write a list of gates"),
        ("gate", "gates='gate': write a list of gates"),
        (gate, "gate>: write a list of gates"),
        ({"gate": gate}, "gates is a mapping: write its values, such as gates=gates_of"),
        ([gate, gate], "gate is there 2 times: give it once"),
    ):
        with pytest.raises(scene.operators.GateMisconfiguredError) as caught:
            scene.operators.GateBatchOperator(task_id="batch", gates=given)
        assert message in str(caught.value)


def test_a_batch_runs_after_everything_that_its_gates_run_after(
    scene: Scene, dag_folder: Path
) -> None:
    from airflow.providers.standard.operators.empty import EmptyOperator

    first, second, other = (scene.gate(name) for name in ("first", "second", "other"))
    land, between = (EmptyOperator(task_id=name, dag=scene.dag) for name in ("land", "between"))
    batch = scene.batch(first, second)
    land >> first
    batch.prepare_template()
    batch.prepare_template()
    assert batch.upstream_task_ids == {"land"}
    assert batch.downstream_task_ids == {"first", "second"}
    first >> between >> second
    with pytest.raises(scene.operators.GateMisconfiguredError, match="'between' runs between two"):
        batch.prepare_template()
    assert other.batch is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"conf": {"spark.sql.ansi.enabled": "false"}}, "a and b have conf=None and conf={"),
        ({"conn_id": "other"}, "conn_id='spark_default' and conn_id='other'"),
        ({"ansi": False}, "ansi=True and ansi=False"),
        ({"results_root": "/elsewhere"}, "results_root="),
    ],
)
def test_gates_of_a_batch_have_one_spark(scene: Scene, given: dict[str, Any], message: str) -> None:
    batch = scene.batch(scene.gate("a"), scene.gate("b", **given))
    with pytest.raises(scene.operators.GateMisconfiguredError) as caught:
        batch.prepare_template()
    assert message in str(caught.value)
    assert "give each of them its own batch" in str(caught.value)


def test_only_single_gates_belong_to_a_batch(scene: Scene) -> None:
    from airflow.providers.standard.operators.empty import EmptyOperator

    error = scene.operators.GateMisconfiguredError
    mapped = scene.operators.DqlGateOperator.partial(
        task_id="mapped", suite="orders.dql", dag=scene.dag
    ).expand(datasets=[{"orders": "/lake/passed"}])
    gate = scene.gate("gate")
    scene.batch(gate)
    with pytest.raises(error, match="mapped is a MappedOperator, not a single gate") as caught:
        scene.batch(
            mapped, EmptyOperator(task_id="empty", dag=scene.dag), gate, task_id="second", at_once=0
        )
    for part in ("empty is a EmptyOperator", "gate belongs to the batch 'batch'", "at_once=0"):
        assert part in str(caught.value)
    with pytest.raises(error, match="give at least one gate"):
        scene.batch(task_id="third")


DAG_OF_FOUR = dag_file(
    """
    passed = DqlGateOperator(task_id="passed", suite=SUITE, datasets=sound, **given)
    blocked = DqlGateOperator(task_id="blocked", suite=SUITE, datasets=damaged, **given)
    broken = DqlGateOperator(task_id="broken", suite=SUITE, datasets=missing, **given)
    other = DqlGateOperator(
        task_id="other", suite=SUITE, datasets=sound, gate="door", doc_md="Rules", **given
    )
    land = EmptyOperator(task_id="land")
    land >> [passed, blocked, broken, other]
    GateBatchOperator(task_id="gate_batch", gates=[passed, blocked, broken, other], **spark)
    passed >> EmptyOperator(task_id="next")
    blocked >> EmptyOperator(task_id="stopped")
""",
    """
from dqx_airflow.operators import GateBatchOperator

SUITE = 'suite "Orders" { check "A" on orders { assert null_count(id) == 0 name "orders.id" } }'
CONF = {"spark.log.level": "ERROR"}
spark = {"conf": CONF, "spark_binary": "PROGRAM"}
given = {**spark, "allow_empty": False}
sound, damaged, missing = (
    {"orders": {"path": f"LAKE/{name}", "format": "parquet"}}
    for name in ("sound", "damaged", "missing")
)
""",
)


@pytest.mark.slow
def test_a_dag_of_four_gates_has_one_driver(
    run_file: Callable[..., Run],
    lake: Path,
    tmp_path: Path,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    program = str(PROGRAMS / "spark-submit")
    ended = run_file(DAG_OF_FOUR.replace("LAKE", str(lake)).replace("PROGRAM", program))
    assert {task: str(ti.state) for task, ti in ended.tasks.items()} == {
        "land": "success",
        "gate_batch": "success",
        "passed": "success",
        "blocked": "failed",
        "broken": "failed",
        "other": "success",
        "next": "success",
        "stopped": "upstream_failed",
    }, log.text
    assert log.text.count("checked in the batch 'gate_batch'") == 4
    summary = ended.xcom("dqx_report", "blocked")
    assert summary["outcome"] == "blocked"
    assert summary["verdicts"][0]["assertion"] == "orders.id"
    runs = list_runs(str(tmp_path / "results"))
    assert {one.attempt.id for one in runs} == {
        str(ended.tasks[name].id) for name in ("passed", "blocked", "broken", "other")
    }
