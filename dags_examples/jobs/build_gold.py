"""Gold: the punctuality of each airline on the day."""

from __future__ import annotations

from day import Day, arguments, session
from pyspark.sql import functions as F

DATE_COLUMN = "flight_date"

given = arguments()
day = Day(given.lake, given.date, DATE_COLUMN)
spark = session("build_gold")
punctuality = (
    day.read(spark, "silver/departures")
    .groupBy("carrier", DATE_COLUMN)
    .agg(
        F.count("*").alias("departures"),
        F.avg("dep_delay").alias("average_delay"),
        F.avg((F.col("dep_delay") <= 15).cast("double")).alias("on_time_share"),
    )
)
day.replace("gold/punctuality", punctuality)
