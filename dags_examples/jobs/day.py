"""What the three jobs share: their arguments, and one day of a Delta table in and out.

Spark's own Delta source would do the same with `spark.read.format("delta")` and `replaceWhere`.
Here deltalake does, so that the example needs no package from Maven.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import date

from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from dqx_airflow.engine.frames import rows_of
from dqx_airflow.engine.sources import open_dataset
from dqx_airflow.values import DatasetRef

DATE_COLUMN = "flight_date"


@dataclass(frozen=True)
class Day:
    """One day of the lake."""

    lake: str
    date: date

    @classmethod
    def from_arguments(cls) -> Day:
        parser = argparse.ArgumentParser()
        parser.add_argument("--lake", required=True)
        parser.add_argument("--date", required=True, type=date.fromisoformat)
        given = parser.parse_args()
        return cls(given.lake, given.date)

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        ref = DatasetRef(table, path=f"{self.lake}/{table}", date_column=DATE_COLUMN)
        return rows_of(open_dataset(spark, ref), self.date)

    def replace(self, table: str, frame: DataFrame) -> None:
        """Replaces this day in the table, so that a second run changes nothing."""
        write_deltalake(
            f"{self.lake}/{table}",
            frame.toArrow(),
            mode="overwrite",
            partition_by=[DATE_COLUMN],
            predicate=f"{DATE_COLUMN} = '{self.date.isoformat()}'",
        )
