"""What becomes of a task and of what stands after it: Airflow's own `dag.test()` on real DAG files.

The outcome table of the design, row for row. Only Spark is a stub.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gate_stubs import SUITE, Log, SparkSubmit

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_database")]

DAG_FILE = """
from datetime import datetime, timedelta

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, task

from dqx_airflow.operators import DqlGateOperator

with DAG(
    {dag_id!r},
    start_date=datetime(2024, 1, 1),
    schedule=None,
    default_args={{"retries": 2, "retry_delay": timedelta(0)}},
    params={{"suite": "orders", "layer": "silver"}},
):
    def gate(**given):
        defaults = {{"suite": "orders.dql", "datasets": {{"orders": "/lake/orders"}}}}
        return DqlGateOperator(task_id="gate", **{{**defaults, **given}})

    {body} >> EmptyOperator(task_id="downstream")
"""


@dataclass(frozen=True)
class Run:
    """A DAG run that came to its end."""

    state: str
    tasks: dict[str, Any]

    def __getitem__(self, task: str) -> str:
        return str(self.tasks[task].state)

    def tries(self, task: str = "gate") -> int:
        return int(self.tasks[task].try_number)

    def xcom(self, key: str, task: str = "gate") -> Any:
        """As the next task would read it."""
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session

        with create_session() as session:
            found = session.scalar(
                XComModel.get_many(
                    run_id=self.tasks[task].run_id, task_ids=task.partition("[")[0], key=key
                )
                .with_only_columns(XComModel.value)
                .limit(1)
            )
        return json.loads(found) if isinstance(found, str) else found


RunDag = Callable[..., Run]


@pytest.fixture
def run_dag(
    airflow_settings: dict[str, str], request: pytest.FixtureRequest, spark_submit: SparkSubmit
) -> Iterator[RunDag]:
    """Runs a DAG whose gate is `body`; a file in the DAGs folder, since Airflow serialises it."""
    folder = Path(airflow_settings["AIRFLOW__CORE__DAGS_FOLDER"])
    dag_id = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    written = [folder / f"{dag_id}.py", folder / "orders.dql"]

    def run(body: str = "gate()", suite: str = SUITE) -> Run:
        written[0].write_text(DAG_FILE.format(dag_id=dag_id, body=body))
        written[1].write_text(suite)
        from airflow.dag_processing.dagbag import DagBag

        bag = DagBag(dag_folder=str(written[0]))
        assert not bag.import_errors
        ended = bag.dags[dag_id].test()
        tasks = {
            f"{ti.task_id}[{ti.map_index}]" if ti.map_index >= 0 else ti.task_id: ti
            for ti in ended.get_task_instances()
        }
        return Run(str(ended.state), tasks)

    yield run
    for path in written:
        path.unlink(missing_ok=True)


def test_passed(run_dag: RunDag, log: Log) -> None:
    run = run_dag()
    assert (run["gate"], run["downstream"]) == ("success", "success")
    print(run.xcom("dqx_report"), run.xcom("return_value"), run.tries())
    print(log.text)
    assert 0


def test_blocked(run_dag: RunDag, log: Log, spark_submit) -> None:
    spark_submit.will("blocked")
    run = run_dag()
    assert (run["gate"], run["downstream"]) == ("failed", "upstream_failed")
    print(run.xcom("dqx_report"), run.xcom("return_value"), run.tries())
    print(log.text)
    assert 0
