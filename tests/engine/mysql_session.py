"""What a gate reads from MariaDB, in a session with the driver: `test_jdbc_mysql.py`."""

from __future__ import annotations

import os
import sys
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.spark_session import create_session
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from tests.engine.database_values import TABLE, chosen_types, values_are_read

TODAY = date(2024, 3, 2)


def main(driver: str) -> None:
    os.environ.update(java_environment())
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--master local[1] --jars {driver} --conf spark.log.level=ERROR pyspark-shell"
    )
    spark = create_session("mysql")
    odd = "id % 2 = 1"
    for column in ("ds", "at", "local"):
        found = rows(spark, date_column=column)
        assert (found.count(), found.where(odd).count()) == (500, 500), column
    assert rows(spark, date_column="text_day", date_format="yyyyMMdd").where(odd).count() == 500
    assert rows(spark, date_column="at", time_zone="Europe/Zurich").count() == 1000
    found = rows(spark).where("id = 1")
    row = found.collect()[0]
    assert (row.id, row.small, row.medium) == (Decimal(1), 200, 4_000_000_000)
    assert (row.ok, row.local) == (True, datetime(2024, 3, 2, 0, 30))
    assert row["Mixed Case"] == "x"
    types = dict(found.dtypes)
    assert (types["id"], types["at"], types["local"]) == (
        "decimal(20,0)",
        "timestamp",
        "timestamp_ntz",
    )
    with pytest.raises(Exception, match="column d holds a value that is no date of Spark"):
        rows(spark, table="zero").collect()
    row = rows(spark, table="zero", conn_id="no_zero").first()
    assert (row.d, row.t) == (None, "23:30:00")
    values_are_read("mysql", rows(spark, table=TABLE))
    chosen = {"customSchema": chosen_types("mysql chosen")}
    values_are_read("mysql chosen", rows(spark, table="chosen_values", options=chosen))
    with pytest.raises(DatasetError, match="has no table nothing"):
        rows(spark, table="nothing")
    spark.stop()


def rows(spark: Any, **settings: Any) -> Any:
    given = {"table": "orders", "conn_id": "shop", **settings}
    return rows_of(open_dataset(spark, dataset_ref("orders", given)), TODAY)


if __name__ == "__main__":
    main(*sys.argv[1:])
