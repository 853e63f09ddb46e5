"""Slot machine telemetry: one contract, enforced before bronze and again after it.

land_telemetry -> ingest_gate -> boundary_gate -> build_floor

`ingest_gate` blocks bad data and drops nothing: staging stays as it is, and the gate promotes
exactly the table version that it validated. `boundary_gate` belongs to the next team: it checks the
bronze table against the version of the contract on which that team relies. The job `build_floor`
compares what it reads with the contract once more. To land a day with a fault, trigger the DAG with
`--conf '{"fault": "decimal_slip"}'`; `jobs/land_telemetry.py` lists the faults.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

from dqx_airflow.operators import ContractGateOperator

HERE = Path(__file__).parent
LAKE = os.environ.get("TELEMETRY_LAKE", "/data/lake")
CONTRACT = "contracts/slot_telemetry.contract.yaml"
SPARK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}


def telemetry_job(name: str, *arguments: str) -> SparkSubmitOperator:
    return SparkSubmitOperator(
        task_id=name,
        application=str(HERE / "jobs" / f"{name}.py"),
        application_args=["--lake", LAKE, "--date", "{{ ds }}", *arguments],
        conf=SPARK,
        name=name,
    )


def telemetry_gate(
    task_id: str, table: str, promote_to: dict[str, str] | None = None
) -> ContractGateOperator:
    return ContractGateOperator(
        task_id=task_id,
        contract=CONTRACT,
        expect_version="2",
        data={"path": f"{LAKE}/{table}", "date_column": "event_date"},
        datasets={"lh_silver.dim_casino": f"{LAKE}/silver/dim_casino"},
        date="{{ ds }}",
        promote_to=promote_to,
        conf=SPARK,
    )


with DAG(
    "slot_telemetry",
    description="A data contract between staging, bronze and silver.",
    start_date=datetime(2026, 1, 1),
    schedule=None,
    catchup=False,
    default_args={"retries": 1},
    params={"fault": "none"},
    tags=["dqx", "example"],
):
    (
        telemetry_job("land_telemetry", "--fault", "{{ params.fault }}")
        >> telemetry_gate(
            "ingest_gate",
            "staging/slot_telemetry",
            promote_to={"slot_telemetry": f"{LAKE}/bronze/slot_telemetry"},
        )
        >> telemetry_gate("boundary_gate", "bronze/slot_telemetry")
        >> telemetry_job("build_floor")
    )
