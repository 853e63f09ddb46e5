"""Staging: a day of generated slot machine telemetry, on request with a fault.

The first run also lands the six days before, in staging and in bronze: the contract limits the
volume of a week, and a day without rows counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import reduce

import pyarrow as pa
from day import Day, arguments
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

ROWS = 20_000
CASINOS = ("RENO", "VEGAS", "TAHOE", "LAUGHLIN", "ELKO")
GAMES = ("SLOT", "VIDEO_POKER", "KENO", "TABLE")


def decimal_slip(frame: DataFrame) -> DataFrame:
    """A firmware that reports cents as dollars, on one machine in a hundred."""
    slipped = F.col("machine_id").endswith("07")
    return frame.withColumn(
        "amount_won",
        F.when(slipped, F.col("amount_wagered") * 250)
        .otherwise(F.col("amount_won"))
        .cast("decimal(18,2)"),
    )


def unknown_casino(frame: DataFrame) -> DataFrame:
    """A new casino that is missing from the dimension table."""
    moved = F.col("machine_id") == "M0042"
    return frame.withColumn("casino_id", F.when(moved, "SPARKS").otherwise(F.col("casino_id")))


def plain_tax_ids(frame: DataFrame) -> DataFrame:
    """A producer that does not hash tax ids."""
    there = F.col("tax_id_hashed").isNotNull()
    return frame.withColumn("tax_id_hashed", F.when(there, F.lit("078-05-1120")))


def replayed_batch(frame: DataFrame) -> DataFrame:
    """A batch that was sent twice."""
    return frame.unionByName(frame.where("second(event_ts) < 3"))


def half_a_day(frame: DataFrame) -> DataFrame:
    """An event stream that stopped at 5 in the morning."""
    return frame.where("hour(event_ts) < 5")


FAULTS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "none": lambda frame: frame,
    "decimal_slip": decimal_slip,
    "unknown_casino": unknown_casino,
    "plain_tax_ids": plain_tax_ids,
    "replayed_batch": replayed_batch,
    "half_a_day": half_a_day,
}


def telemetry(spark: SparkSession, day: Day) -> DataFrame:
    """The events of a day: the same ones in every run."""
    seed = day.date.toordinal()

    def one_of(choices: tuple[str, ...], number: int) -> Column:
        drawn = F.floor(F.rand(seed + number) * len(choices)).cast("int") + 1
        return F.element_at(F.array(*map(F.lit, choices)), drawn)

    events = spark.range(ROWS).select(
        F.format_string("M%04d", F.floor(F.rand(seed) * 400).cast("int")).alias("machine_id"),
        # No two events of a day share a millisecond.
        (
            F.lit(day.date).cast("timestamp")
            + F.make_interval(secs=(F.col("id") * (86_000 / ROWS)).cast("decimal(18,3)"))
        ).alias("event_ts"),
        (F.rand(seed + 1) * 99 + 1).cast("decimal(18,2)").alias("amount_wagered"),
        F.rand(seed + 2).alias("luck"),
        one_of(GAMES, 3).alias("game_type"),
        F.when(F.rand(seed + 4) < 0.65, F.floor(F.rand(seed + 5) * 5_000)).alias("player"),
    )
    return events.select(
        "machine_id",
        F.element_at(
            F.array(*map(F.lit, CASINOS)), F.substring("machine_id", 2, 4).cast("int") % 5 + 1
        ).alias("casino_id"),
        "event_ts",
        "amount_wagered",
        F.when(F.col("luck") < 0.3, F.col("amount_wagered") * F.col("luck") * 10)
        .otherwise(0)
        .cast("decimal(18,2)")
        .alias("amount_won"),
        "game_type",
        F.format_string("P%010d", "player").alias("player_id"),
        F.when(F.col("player").isNotNull(), F.sha2(F.col("player").cast("string"), 256)).alias(
            "tax_id_hashed"
        ),
        F.lit(day.date).alias("event_date"),
    ).withColumn("player_id", F.when(F.col("tax_id_hashed").isNotNull(), F.col("player_id")))


def land_the_week_before(spark: SparkSession, day: Day) -> None:
    """Lands what a pipeline would have left after running for six days."""
    days = (replace(day, date=day.date - timedelta(number)) for number in range(1, 7))
    rows = reduce(DataFrame.unionByName, (telemetry(spark, one) for one in days)).toArrow()
    # Spark marks some columns as not nullable, and a promotion creates tables without such marks.
    rows = rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
    for table in ("staging/slot_telemetry", "bronze/slot_telemetry"):
        write_deltalake(f"{day.lake}/{table}", rows, partition_by=[day.column])


given = arguments("--fault", default="none", choices=sorted(FAULTS))
day = Day(given.lake, given.date, "event_date")
spark = SparkSession.builder.appName("land_telemetry").getOrCreate()
if not DeltaTable.is_deltatable(f"{day.lake}/staging/slot_telemetry"):
    land_the_week_before(spark, day)
day.replace("staging/slot_telemetry", FAULTS[given.fault](telemetry(spark, day)))
casinos = spark.createDataFrame([(name,) for name in CASINOS], "casino_id string")
day.write("silver/dim_casino", casinos)
