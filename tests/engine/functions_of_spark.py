"""The built-in functions of a running Spark that are not reviewed yet, for the allow-list.

`python tests/engine/functions_of_spark.py` prints them with what Spark says about each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dqx_airflow.dql.spark_calls import REVIEWED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def built_in(spark: SparkSession) -> set[str]:
    """The names of functions, without those of operators."""
    rows = spark.sql("SHOW SYSTEM FUNCTIONS").collect()
    return {row[0] for row in rows if row[0].replace("_", "").isalnum()} - {"case"}


def unreviewed(spark: SparkSession) -> Iterator[str]:
    """What Spark says about each function that is not entered in `dql/spark_functions.txt`."""
    for name in sorted(built_in(spark) - REVIEWED):
        about = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()]
        yield "\n".join(about)


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").getOrCreate()
    print(f"Spark {session.version}", *unreviewed(session), sep="\n\n")
    session.stop()
