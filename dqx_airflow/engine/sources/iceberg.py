"""Finds the snapshot of an Iceberg table that a dataset reads.

It is looked up before the table is read. Snapshots never change, and a branch does not go back by
itself: if it still has the snapshot later, that is the one that was read.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.datasets.reader_options import option_of
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.values import DatasetRef

MAIN = "main"
_IN_A_NAME = re.compile(
    r"(?P<table>.+)\.`?(?P<kind>branch|tag|snapshot_id|at_timestamp)_(?P<ref>\w+)`?"
)
"""The last part of the name of a table in Spark, which selects rows."""
_OF_TIMES = ("as-of-timestamp", "timestampAsOf")
_OF_CHANGES = ("start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp")
_BRANCH_OF_SESSION = "spark.wap.branch"


def snapshot_read(
    spark: SparkSession, ref: DatasetRef, place: str
) -> tuple[int | None, str | None]:
    """The id of the snapshot that a dataset reads, and the branch or the tag that leads to it; None
    for what is not known.

    :param place: the name of the table, or its path.
    """
    table = place
    named = option_of(ref, "branch") or option_of(ref, "tag")
    number = None
    if ref.table is not None and (parts := _IN_A_NAME.fullmatch(place)) is not None:
        table = parts["table"]
        if parts["kind"] == "at_timestamp":
            return None, None
        if parts["kind"] == "snapshot_id":
            number = parts["ref"]
        else:
            named = parts["ref"]
    if any(option_of(ref, name) is not None for name in (*_OF_TIMES, *_OF_CHANGES)):
        return None, None
    number = number or option_of(ref, "snapshot-id")
    as_of = option_of(ref, "versionAsOf")
    if as_of is not None and as_of.isdecimal():
        number = as_of
    elif as_of is not None:
        named = as_of
    if number is not None:
        return (int(number), None) if number.isdecimal() else (None, None)
    if named is None and spark.conf.get(_BRANCH_OF_SESSION, ""):
        return None, None  # which tables it is about, their properties say
    named = named or MAIN
    try:
        with spark_failures():
            found = _refs(spark, ref, table).where(F.col("name") == named).collect()
    except PySparkException:
        return None, None
    return (int(found[0]["snapshot_id"]), named) if found else (None, None)


def _refs(spark: SparkSession, ref: DatasetRef, place: str) -> DataFrame:
    """The branches and tags of a table: Iceberg, "Metadata Tables"."""
    read: Any = spark.read.format("iceberg")
    frame: DataFrame = read.load(f"{place}#refs") if ref.path else spark.table(f"{place}.refs")
    return frame.select("name", "snapshot_id")
