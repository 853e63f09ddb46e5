"""A gate that Databricks runs: no Spark on the worker, and no slot while the job runs.

land -> gate -> publish

The run installs this package from PyPI in the version of the worker. Needed: the extra
`databricks`, a connection `databricks_default`, and a results root in an object store that both
the worker and the cluster can write.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator
from dqx_airflow.operators.submitters import DatabricksRuns

LAKE = os.environ.get("ORDERS_LAKE", "s3://lake")
PROFILE = os.environ.get("ORDERS_PROFILE", "arn:aws:iam::1:instance-profile/dqx")

SUITE = """\
suite "Orders" {
    check "Keys" on orders {
        assert null_count(customer_id) == 0
            name "orders.customer"
            severity P0
    }
}
"""

CLUSTER = {
    "spark_version": "17.3.x-scala2.13",
    "node_type_id": "m6gd.large",
    "num_workers": 1,
    "aws_attributes": {"instance_profile_arn": PROFILE},
}

with DAG(
    "orders_databricks",
    description="A gate as a one-time run of a Databricks job.",
    start_date=datetime(2026, 1, 1),
    schedule="@daily",
    catchup=False,
    tags=["dqx", "example"],
):
    gate = DqlGateOperator(
        task_id="gate",
        suite=SUITE,
        datasets={"orders": {"path": f"{LAKE}/landing/orders", "date_column": "ordered_on"}},
        date="{{ ds }}",
        results_root=f"{LAKE}/dqx",
        submit=DatabricksRuns({"new_cluster": CLUSTER}),
        deferrable=True,
        validation_timeout=timedelta(minutes=30),
        retries=1,
    )
    EmptyOperator(task_id="land") >> gate >> EmptyOperator(task_id="publish")
