"""Silver: the amounts wagered and won per casino on the day, from data that keeps the contract."""

from __future__ import annotations

from pathlib import Path

from day import Day, arguments
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dqx_airflow import assert_contract

CONTRACT = Path(__file__).parents[1] / "contracts" / "slot_telemetry.contract.yaml"

given = arguments()
day = Day(given.lake, given.date, "event_date")
spark = SparkSession.builder.appName("build_floor").getOrCreate()
events = day.read(spark, "bronze/slot_telemetry")
assert_contract(events, CONTRACT, version="2")
floor = events.groupBy("casino_id", "event_date").agg(
    F.count("*").alias("hands"),
    F.sum("amount_wagered").alias("coin_in"),
    F.sum("amount_won").alias("coin_out"),
)
day.replace("silver/floor", floor)
