"""The example DAGs are imported as Airflow imports them, and their gates find what they name."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from dag_files import read_dags
from gate_stubs import FakeTask, Log

from dqx_airflow.shipped import shipped

EXAMPLES = {"flights_medallion", "orders_notices", "slot_telemetry"}


def example(name: str) -> Any:
    (dag,) = read_dags(shipped(f"dags_examples/{name}.py")).values()
    return dag


@pytest.fixture
def dag(airflow_database: None) -> Any:
    return example("flights_medallion")


@pytest.mark.airflow
def test_the_medallion_has_a_gate_at_each_boundary(dag: Any) -> None:
    edges = {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}
    assert dag.dag_id == "flights_medallion"
    assert edges == {
        "land_bronze": ["bronze_gate"],
        "bronze_gate": ["build_silver"],
        "build_silver": ["silver_gate"],
        "silver_gate": ["build_gold"],
        "build_gold": [],
    }
    assert {task.trigger_rule.value for task in dag.tasks} == {"all_success"}


@pytest.mark.airflow
@pytest.mark.parametrize("task_id", ["bronze_gate", "silver_gate"])
def test_the_gates_of_the_medallion_have_sound_suites(dag: Any, task_id: str, log: Log) -> None:
    task = FakeTask(dag_id=dag.dag_id, task_id=task_id)
    context = {"ti": task, "dag_run": task.dag_run, "dag": dag, "ds": "2013-06-12"}
    gate = dag.get_task(task_id)
    gate.render_template_fields(context)
    request = gate.build_request(context)
    gate.check_source(request)
    assert log.at("warning", "error") == []
    assert request.run_key.date == date(2013, 6, 12)
    assert request.run_key.gate == f"flights_medallion.{task_id}"


@pytest.mark.airflow
@pytest.mark.parametrize("task_id", ["ingest_gate", "boundary_gate"])
def test_the_gates_of_the_telemetry_have_a_sound_contract(
    airflow_database: None, task_id: str, log: Log
) -> None:
    dag = example("slot_telemetry")
    task = FakeTask(dag_id=dag.dag_id, task_id=task_id)
    context = {"ti": task, "dag_run": task.dag_run, "dag": dag, "ds": "2026-06-12"}
    gate = dag.get_task(task_id)
    gate.render_template_fields(context)
    request = gate.check_source(gate.build_request(context))
    assert log.at("warning", "error") == []
    assert request.contract is not None
    assert (request.contract.id, request.contract.unsupported) == ("bronze.slot_telemetry", 0)
    assert [ref.name for ref in request.datasets] == ["slot_telemetry", "lh_silver.dim_casino"]
    bronze = ("slot_telemetry", "/data/lake/bronze/slot_telemetry")
    assert request.promote_to == ((bronze,) if task_id == "ingest_gate" else ())


def test_every_example_is_tested() -> None:
    assert {path.stem for path in shipped("dags_examples").glob("*.py")} == EXAMPLES
