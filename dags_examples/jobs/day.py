"""What the jobs share: their arguments, their session, and one day of a Delta table in and out.

If the session has Spark's Delta source, it does the writing, and Spark's OpenLineage listener sees
it. Otherwise deltalake does, so that the examples need no package from Maven.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from datetime import date
from typing import Any

from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.session.connection import open_session
from dqx_airflow.engine.sources.delta_table import has_delta
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.values import DatasetRef


def arguments(flag: str | None = None, **settings: Any) -> Any:
    """The arguments of a job: the lake, the date, and one more if named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lake", required=True)
    parser.add_argument("--date", required=True, type=date.fromisoformat)
    if flag is not None:
        parser.add_argument(flag, **settings)
    return parser.parse_args()


def session(name: str) -> SparkSession:
    """The session of a job: of its `spark-submit`, on a Spark Connect server, or on Sail in this
    process."""
    address = os.environ.get("FLIGHTS_SPARK", "local")
    if address.startswith("local"):
        return SparkSession.builder.appName(name).getOrCreate()
    return open_session(connection_of(address), name, {})


@dataclass(frozen=True)
class Day:
    """One day of the lake."""

    lake: str
    date: date
    column: str

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        """The rows of the day in the newest version of the table."""
        path = f"{self.lake}/{table}"
        ref = DatasetRef(table, path=path, date_column=self.column)
        return rows_of(open_dataset(spark, ref), self.date)

    def replace(self, table: str, frame: DataFrame) -> None:
        """Replaces the rows of this day, so that a second run changes nothing."""
        path, condition = f"{self.lake}/{table}", f"{self.column} = '{self.date.isoformat()}'"
        if has_delta(frame.sparkSession):
            writer = frame.write.format("delta").mode("overwrite").partitionBy(self.column)
            writer.option("replaceWhere", condition).save(path)
            return
        write_deltalake(
            path, frame.toArrow(), mode="overwrite", partition_by=[self.column], predicate=condition
        )

    def write(self, table: str, frame: DataFrame) -> None:
        """Replaces a whole table, which has no dates."""
        write_deltalake(f"{self.lake}/{table}", frame.toArrow(), mode="overwrite")
