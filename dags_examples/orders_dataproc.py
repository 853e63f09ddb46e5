"""A gate that Dataproc Serverless runs: no Spark on the worker, and no slot while the batch runs.

land -> gate -> publish

The batch runs in an image that has this package in the version of the worker. Needed: the extra
`google`, a connection `google_cloud_default`, and a results root that both the worker and the batch
can write.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from dqx_airflow import __version__
from dqx_airflow.operators import DqlGateOperator
from dqx_airflow.operators.submitters import DataprocBatches

LAKE = os.environ.get("ORDERS_LAKE", "gs://lake")
IMAGES = os.environ.get("ORDERS_IMAGES", "europe-west1-docker.pkg.dev/lake/jobs")

SUITE = """\
suite "Orders" {
    check "Keys" on orders {
        assert null_count(customer_id) == 0
            name "orders.customer"
            severity P0
    }
}
"""

BATCH = {
    "pysparkBatch": {"mainPythonFileUri": f"{LAKE}/jobs/gate_job.py"},
    "runtimeConfig": {"version": "2.3", "containerImage": f"{IMAGES}/dqx:{__version__}"},
}

with DAG(
    "orders_dataproc",
    description="A gate as a batch of Dataproc Serverless.",
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
        submit=DataprocBatches(BATCH, region="europe-west1"),
        deferrable=True,
        validation_timeout=timedelta(minutes=30),
        retries=1,
    )
    EmptyOperator(task_id="land") >> gate >> EmptyOperator(task_id="publish")
