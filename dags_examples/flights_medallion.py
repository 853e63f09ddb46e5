"""Flights from bronze to silver to gold, with a gate at each boundary.

land_bronze -> bronze_gate -> build_silver -> silver_gate -> build_gold

A gate does not retry a violation: the day stops at the gate, and every task downstream is
`upstream_failed`. Silver has the rows that its gate promotes from staging. `dql demo` runs this DAG
for three days of 2013, on a Spark Connect server, with `spark-submit`, or without Java on Sail.
"""

from __future__ import annotations

import os
import shlex
import sys
from datetime import datetime, timedelta
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Asset, BaseOperator

from dqx_airflow.operators import DqlGateOperator

HERE = Path(__file__).parent
LAKE = os.environ.get("FLIGHTS_LAKE", "/data/lake")
# On a Spark Connect server or on Sail, jobs run in processes of the worker, without a JVM.
HAS_JVM = os.environ.get("FLIGHTS_SPARK", "local").startswith("local")
# A day of flights is small: a JVM that starts fast matters more than one that compiles well.
SPARK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
}


def data(name: str) -> Asset:
    return Asset(f"{LAKE}/{name}" if "://" in LAKE else f"file://{LAKE}/{name}")


def flights_job(name: str, reads: str, writes: str) -> BaseOperator:
    """A job before or after a gate.

    Lineage takes its datasets from the inlets and outlets. Spark's OpenLineage listener would find
    them by itself: see `docker-compose.yaml`.
    """
    program = str(HERE / "jobs" / f"{name}.py")
    arguments = ["--lake", LAKE, "--date", "{{ ds }}"]
    datasets = {"inlets": [data(reads)], "outlets": [data(writes)]}
    if HAS_JVM:
        return SparkSubmitOperator(
            task_id=name,
            application=program,
            application_args=arguments,
            conf=SPARK,
            name=name,
            **datasets,
        )
    command = shlex.join([sys.executable, program, *arguments])
    return BashOperator(task_id=name, bash_command=command, **datasets)


with DAG(
    "flights_medallion",
    description="Bronze, silver and gold flights, with a gate at each boundary.",
    start_date=datetime(2013, 1, 1),
    schedule=None,
    catchup=False,
    max_active_runs=2,
    default_args={"retries": 1, "retry_delay": timedelta(seconds=15)},
    tags=["dqx", "example"],
):
    bronze_gate = DqlGateOperator(
        task_id="bronze_gate",
        suite="suites/flights_bronze.dql",
        datasets={
            "flights": {"path": f"{LAKE}/bronze/flights", "date_column": "flight_date"},
            "airports": f"{LAKE}/bronze/airports",
            "airlines": f"{LAKE}/bronze/airlines",
            "planes": f"{LAKE}/bronze/planes",
        },
        date="{{ ds }}",
        conf=SPARK,
    )
    silver_gate = DqlGateOperator(
        task_id="silver_gate",
        suite="suites/flights_silver.dql",
        datasets={
            "departures": {"path": f"{LAKE}/staging/departures", "date_column": "flight_date"}
        },
        promote_to=f"{LAKE}/silver/departures",
        date="{{ ds }}",
        conf=SPARK,
    )
    (
        flights_job("land_bronze", "landing/flights", "bronze/flights")
        >> bronze_gate
        >> flights_job("build_silver", "bronze/flights", "staging/departures")
        >> silver_gate
        >> flights_job("build_gold", "silver/departures", "gold/punctuality")
    )
