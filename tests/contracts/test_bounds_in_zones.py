"""Bounds and values of timestamps are in UTC, whatever the time zone of the session is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from dqx_airflow import Contract, SparkDatabase

DOCUMENT = """\
apiVersion: v3.1.0
kind: DataContract
id: o
version: 1.0.0
status: active
schema:
  - name: o
    properties:
      - name: a
        logicalType: {logical}
        physicalType: {physical}
        {clause}
"""
OPTIONS = "logicalTypeOptions: {%s}"
CLAUSES = [
    ("timestamp", OPTIONS % 'maximum: "2024-02-01T00:00:00"', 1),
    ("timestamp", OPTIONS % 'maximum: "2024-02-01"', 1),
    ("timestamp", OPTIONS % 'exclusiveMaximum: "2024-02-01T00:00"', 2),
    ("timestamp", OPTIONS % 'maximum: "2024-01-31T19:00:00-05:00"', 1),
    ("date", OPTIONS % 'minimum: "2024-02-01"', 1),
]


@pytest.fixture(params=["America/New_York", "Asia/Tokyo", "UTC"])
def zone(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The time zone of the session."""
    key = "spark.sql.session.timeZone"
    before = spark.conf.get(key)
    spark.conf.set(key, request.param)
    yield request.param
    spark.conf.set(key, before)


@pytest.mark.few(2)
@pytest.mark.spark
@pytest.mark.parametrize("physical", ["timestamp", "timestamp_ntz"])
def test_a_bound_without_a_zone_is_in_utc(spark: Any, zone: str, physical: str) -> None:
    zoned = "" if physical == "timestamp_ntz" else "Z"
    days = ("2024-01-31 23:59:59", "2024-02-01 00:00:00", "2024-02-01 00:00:01")
    rows = ", ".join(f"({physical} '{day}{zoned}')" for day in days)
    spark.sql(f"SELECT * FROM VALUES {rows} AS t(a)").createOrReplaceTempView("bounds_in_zones")
    database = SparkDatabase(spark, {"o": {"table": "bounds_in_zones"}})
    for logical, clause, due in CLAUSES:
        text = DOCUMENT.format(logical=logical, physical=physical, clause=clause)
        results = Contract.from_string(text).run(database, date(2024, 1, 1))
        bounds = [one for one in results.report.verdicts if "imum" in (one.name or "")]
        assert [one.value for one in bounds] == [due], (clause, str(results))
