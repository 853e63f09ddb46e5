"""Gates as decorated functions, which Airflow offers once the package is installed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dqx_airflow.values import DatasetRef
from tests.operators.gate_stubs import CONTRACT, SUITE, Run, SparkSubmit

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_database")]


DAG_FILE = """
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, task

HERE = Path(__file__).parent

with DAG("DAG_ID", start_date=datetime(2024, 1, 1), schedule=None):

    @task
    def land():
        return "/lake/passed"

    @task.dql_gate(suite="orders.dql", promote_to="/published/{{ task.task_id }}")
    def by_datasets(path, ds=None):
        return {"orders": {"path": path, "filter": f"ds = '{ds}'"}}

    @task.dql_gate(datasets={"orders": "/lake/passed"})
    def by_suite():
        return (HERE / "orders.dql").read_text()

    @task.dql_gate(suite=["orders.dql"])
    def by_suites():
        return {"orders": "/lake/passed"}

    @task.dql_gate(datasets={"orders": "/lake/passed"})
    def by_list():
        return ["orders.dql"]

    @task.contract_gate(contract="orders.yaml")
    def by_contract(path):
        return {"orders": path}

    @task.dql_gate(suite="orders.dql")
    def by_mistake():
        return None

    by_datasets(land()) >> [by_suite(), by_suites(), by_list(), by_mistake()]
    by_contract.expand(path=["/lake/passed", "/lake/blocked"])
"""


@pytest.mark.slow
def test_a_function_returns_the_datasets_or_the_source(
    run_file: Callable[..., Run], spark_submit: SparkSubmit
) -> None:
    spark_submit.will("by_dataset")
    run = run_file(DAG_FILE, {"orders.dql": SUITE, "orders.yaml": CONTRACT})
    states = {name: str(task.state) for name, task in run.tasks.items()}
    assert states == {
        "land": "success",
        "by_datasets": "success",
        "by_suite": "success",
        "by_suites": "success",
        "by_list": "success",
        "by_mistake": "failed",
        "by_contract[0]": "success",
        "by_contract[1]": "failed",
    }
    asked = {request.run_key.gate.rpartition(".")[2]: request for request in spark_submit.requests}
    today = run.tasks["land"].dag_run.logical_date.date().isoformat()
    assert asked["by_datasets"].datasets == (
        DatasetRef("orders", path="/lake/passed", filter=f"ds = '{today}'"),
    )
    assert asked["by_datasets"].promote_to == (("orders", "/published/by_datasets"),)
    assert (asked["by_suite"].suite.name, asked["by_suite"].suite.text) == ("<inline suite>", SUITE)
    assert asked["by_contract"].contract is not None
    assert len(spark_submit.calls) == 6
