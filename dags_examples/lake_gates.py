"""A gate for each table of a lake, from the [gates] of `lake/dqx.toml`.

lake_gates:   the gates of orders and customers, in a task group each -> publish; the task
              `gate_batch` checks both in one Spark, before their own tasks begin
lake_visits:  the gate of visits, as soon as the asset `visits_written` is updated

`dql init` drafted the suites. `orders.key` blocks since someone has decided so, and everything else
warns. `lake/make_lake.py` writes a lake of 40 tables to try this with.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset

from dqx_airflow.operators import gates_of

SETTINGS = Path(__file__).parent / "lake" / "dqx.toml"

with DAG(
    "lake_gates",
    description="A gate for each table of a lake, from one file of settings.",
    start_date=datetime(2026, 1, 1),
    schedule="@daily",
    catchup=False,
    max_active_tasks=4,
    tags=["dqx", "example"],
):
    gates = gates_of(SETTINGS, only="sales*", date="{{ ds }}", retries=2, batch=True)
    [*gates.values()] >> EmptyOperator(task_id="publish")

with DAG(
    "lake_visits",
    description="A gate that runs when its table was written.",
    start_date=datetime(2026, 1, 1),
    schedule=[Asset("visits_written")],
    catchup=False,
    tags=["dqx", "example"],
):
    gates_of(SETTINGS, only="visits")
