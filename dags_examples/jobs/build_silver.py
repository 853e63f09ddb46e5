"""Staging for silver: the flights that departed, with the time of departure."""

from __future__ import annotations

from day import Day, arguments, session
from pyspark.sql import functions as F

DATE_COLUMN = "flight_date"

given = arguments()
day = Day(given.lake, given.date, DATE_COLUMN)
spark = session("build_silver")
departures = (
    day.read(spark, "bronze/flights")
    .where(F.col("dep_time").isNotNull())
    .select(
        "carrier",
        "flight",
        "tailnum",
        "origin",
        "dest",
        "distance",
        "dep_delay",
        "arr_delay",
        # `time_hour` is the scheduled hour, `minute` the scheduled minute of that hour.
        (F.col("time_hour") + F.make_interval(mins=F.col("minute") + F.col("dep_delay"))).alias(
            "departed_at"
        ),
        DATE_COLUMN,
    )
)
day.replace("staging/departures", departures)
