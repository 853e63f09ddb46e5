"""Flights from bronze over silver to gold, with a gate at each boundary.

land_bronze -> bronze_gate -> build_silver -> silver_gate -> build_gold

The gates never retry a violation, so a day that breaks a rule stops where it stands and
everything below is `upstream_failed`. `dql demo` runs this DAG for three days of the year 2013.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator

HERE = Path(__file__).parent
LAKE = os.environ.get("FLIGHTS_LAKE", "/data/lake")
# A day of flights is small: what counts is how fast a JVM starts, not how fast it gets.
SPARK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
}


def flights_job(name: str) -> SparkSubmitOperator:
    return SparkSubmitOperator(
        task_id=name,
        application=str(HERE / "jobs" / f"{name}.py"),
        application_args=["--lake", LAKE, "--date", "{{ ds }}"],
        conf=SPARK,
        name=name,
    )


with DAG(
    "flights_medallion",
    description="Bronze, silver and gold flights, with a gate at each boundary.",
    start_date=datetime(2013, 1, 1),
    schedule=None,
    catchup=False,
    default_args={"retries": 1},
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
            "departures": {"path": f"{LAKE}/silver/departures", "date_column": "flight_date"},
        },
        date="{{ ds }}",
        conf=SPARK,
    )
    (
        flights_job("land_bronze")
        >> bronze_gate
        >> flights_job("build_silver")
        >> silver_gate
        >> flights_job("build_gold")
    )
