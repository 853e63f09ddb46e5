"""Two DAGs linked by an asset: the second gate judges the date that the first one validated.

orders_land:    gate  ->  the asset `orders_validated`
orders_publish: gate_again -> publish, as soon as that asset is updated

A run that an asset triggers has no logical date. Its gate takes the date from the asset event of
the first gate, and the first line of its log says so. Its own asset event carries the same date.
"""

from __future__ import annotations

import os
from datetime import datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset

from dqx_airflow.operators import DqlGateOperator

LAKE = os.environ.get("ORDERS_LAKE", "/data/lake")
VALIDATED = Asset("orders_validated", uri=f"file://{LAKE}/validated/orders")
PUBLISHED = Asset("orders_published", uri=f"file://{LAKE}/published/orders")


def suite(rule: str) -> str:
    return f"""\
suite "Orders" {{
    check "Rules" on orders {{
        assert {rule}
            name "orders.rule"
            severity P0
    }}
}}
"""


with DAG(
    "orders_land",
    description="A gate that updates an asset. The asset event holds the validated date.",
    start_date=datetime(2026, 1, 1),
    schedule="@daily",
    catchup=False,
    tags=["dqx", "example"],
):
    DqlGateOperator(
        task_id="gate",
        suite=suite("null_count(customer_id) == 0"),
        datasets={"orders": {"path": f"{LAKE}/landing/orders", "date_column": "ordered_on"}},
        date="{{ ds }}",
        promote_to=f"{LAKE}/validated/orders",
        outlets=[VALIDATED],
    )

with DAG(
    "orders_publish",
    description="A gate that judges the date in the asset event that triggered it.",
    start_date=datetime(2026, 1, 1),
    schedule=[VALIDATED],
    catchup=False,
    tags=["dqx", "example"],
):
    again = DqlGateOperator(
        task_id="gate_again",
        suite=suite("minimum(amount) > 0"),
        datasets={"orders": {"path": f"{LAKE}/validated/orders", "date_column": "ordered_on"}},
        outlets=[PUBLISHED],
    )
    again >> EmptyOperator(task_id="publish")
