"""The button in the details of a task that opens the report of its gate."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.operators.gate_stubs import SUITE, Gates, Run, SparkSubmit, dag_file

pytestmark = pytest.mark.airflow

DAG_FILE = dag_file("""
    DqlGateOperator(task_id="gate", suite="orders.dql", datasets={"orders": "/lake/orders"})
""")


class Task:
    """The argument that Airflow gives a link: a task instance, or its key."""

    def __init__(self, **given: Any) -> None:
        whole = {"dag_id": "lake", "run_id": "r", "task_id": "gate", "map_index": -1, **given}
        self.__dict__.update(whole)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, "/dags/lake/runs/r/tasks/gate/plugin/dqx-gate"),
        ({"map_index": 3}, "/dags/lake/runs/r/tasks/gate/mapped/3/plugin/dqx-gate"),
        (
            {"run_id": "manual__2024-05-17T00:00:00+00:00"},
            "/dags/lake/runs/manual__2024-05-17T00%3A00%3A00%2B00%3A00/tasks/gate/plugin/dqx-gate",
        ),
        ({"run_id": "a/b c?d#e"}, "/dags/lake/runs/a%2Fb%20c%3Fd%23e/tasks/gate/plugin/dqx-gate"),
    ],
)
def test_the_link_leads_to_the_tab(
    operators: ModuleType, given: dict[str, Any], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators.links import GateReportLink

    for base in ("https://airflow.example.com/team", "https://airflow.example.com/team/"):
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", base)
        link = GateReportLink().get_link(None, ti_key=Task(**given))
        assert link == f"https://airflow.example.com/team{address}"
    monkeypatch.delenv("AIRFLOW__API__BASE_URL")
    assert GateReportLink().get_link(None, ti_key=Task(**given)).endswith(address)


def test_every_gate_has_the_link(gate: Gates) -> None:
    assert [link.name for link in gate().operator_extra_links] == ["Gate report"]


@pytest.mark.parametrize("outcome", ["passed", "blocked"])
def test_the_link_is_stored_for_every_outcome(
    run_file: Callable[..., Run], spark_submit: SparkSubmit, outcome: str
) -> None:
    spark_submit.will(outcome)
    run = run_file(DAG_FILE, {"orders.dql": SUITE})
    assert run.xcom("_link_GateReportLink").endswith("/tasks/gate/plugin/dqx-gate")
