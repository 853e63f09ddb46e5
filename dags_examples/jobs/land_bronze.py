"""Bronze: the file of the day as it is, with typed columns."""

from __future__ import annotations

from day import Day, arguments, session
from pyspark.sql import functions as F

DATE_COLUMN = "flight_date"
COLUMNS = """
    year bigint, month bigint, day bigint, dep_time bigint, sched_dep_time bigint,
    dep_delay bigint, arr_time bigint, sched_arr_time bigint, arr_delay bigint, carrier string,
    flight bigint, tailnum string, origin string, dest string, air_time bigint, distance bigint,
    hour bigint, minute bigint, time_hour timestamp
"""

given = arguments()
day = Day(given.lake, given.date, DATE_COLUMN)
spark = session("land_bronze")
landed = spark.read.csv(
    f"{day.lake}/landing/flights/{day.date}.csv", schema=COLUMNS, header=True, mode="FAILFAST"
)
day.replace("bronze/flights", landed.withColumn(DATE_COLUMN, F.lit(day.date)))
