"""Finds the snapshot of an Iceberg table that a dataset reads.

It is looked up before the table is read. Snapshots never change, and a branch does not go back by
itself: if it still has the snapshot later, that is the one that was read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.datasets.reader_options import WrongOption, option_of
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.values import DatasetRef

MAIN = "main"
_IN_A_NAME = re.compile(
    r"(?P<table>.+)\.`?(?P<kind>branch|tag|snapshot_id|at_timestamp)_(?P<ref>\w+)`?"
)
"""The last part of the name of a table in Spark, which selects rows."""
_OF_TIMES = ("as-of-timestamp", "timestampAsOf")
_OF_CHANGES = ("start-snapshot-id", "end-snapshot-id")
_BRANCH_OF_SESSION = "spark.wap.branch"
_REFUSALS = (
    (
        r"Time travel option `(?P<option>[\w-]+)`.* no longer supported, .*`(?P<instead>\w+)`",
        "has the option '{option}', which this version of Iceberg does not take",
        "write {instead}={value} in place of it",
    ),
    (
        r"Cannot use branch \(does not exist\): (?P<missing>.+)",
        "has no branch '{missing}'",
        "correct the option 'branch'",
    ),
    (
        r"Cannot find matching snapshot ID or reference name for version (?P<missing>.*)",
        "has no snapshot, branch or tag '{missing}'",
        "correct the option 'versionAsOf'",
    ),
    (
        r"Cannot find (a )?snapshot older than (?P<missing>.+)",
        "has no snapshot as old as {missing}",
        "give it a later timestamp",
    ),
    (
        r"Can(no|')t time travel in branch",
        "selects both a branch and a version",
        "remove the option 'branch', 'versionAsOf' or 'timestampAsOf'",
    ),
    (
        r"Cannot set only `end-snapshot-id`",
        "has the option 'end-snapshot-id' alone",
        "write start-snapshot-id, too",
    ),
)
"""Messages of Iceberg about options, what is wrong in the words of a user, and what to write."""
_OF_ICEBERG = re.compile(r"IllegalArgumentException|org\.apache\.iceberg\.")
_JAVA = re.compile(r"^\S+ \[JAVA_EXCEPTION\] |^\(?(\w+\.)+\w+\)?:? ")


@dataclass(frozen=True, slots=True)
class _Selection:
    """The rows of a table that a dataset selects: by the id of a snapshot, by a branch or a tag, or
    the current ones.

    :param table: the name of the table, or its path.
    """

    table: str
    snapshot: str | None
    named: str | None


def snapshot_read(
    spark: SparkSession, ref: DatasetRef, place: str
) -> tuple[int | None, str | None]:
    """The id of the snapshot that a dataset reads, and the branch or the tag that leads to it; None
    for what is not known.

    :param place: the name of the table, or its path.
    """
    selection = _selection(ref, place)
    if selection is None:
        return None, None
    if selection.snapshot is not None:
        return (int(selection.snapshot) if selection.snapshot.isdecimal() else None), None
    if selection.named is None and spark.conf.get(_BRANCH_OF_SESSION, ""):
        return None, None  # the properties of a table decide whether it applies
    named = selection.named or MAIN
    try:
        with spark_failures():
            refs = _refs(spark, ref, selection.table)
            found = refs.where(F.col("name") == named).collect()
    except PySparkException:
        return None, None
    return (int(found[0]["snapshot_id"]), named) if found else (None, None)


def refusal_of_options(ref: DatasetRef, message: str) -> WrongOption | None:
    """What Iceberg refuses about the options of a dataset, in the words of the user; None for an
    error that is not about them.

    >>> ref = DatasetRef("orders", "/lake/orders", format="iceberg", options=(("tag", "v1"),))
    >>> said = "Time travel option `tag` is no longer supported, use `versionAsOf` instead"
    >>> refusal_of_options(ref, said).hint
    'write versionAsOf=v1 in place of it'
    """
    for pattern, problem, hint in _REFUSALS:
        found = re.search(pattern, message)
        if found is not None:
            words = found.groupdict()
            words["value"] = _in_place_of(ref, words.get("option", ""))
            return WrongOption(problem.format_map(words), hint.format_map(words))
    if not ref.options or not _OF_ICEBERG.search(message):
        return None
    names = ", ".join(name for name, _ in ref.options)
    return WrongOption(
        f"cannot be read with its options: {_JAVA.sub('', message)}", f"check {names}"
    )


def _in_place_of(ref: DatasetRef, option: str) -> str:
    """The value for an option of Spark in place of one of Iceberg, which has milliseconds."""
    value = option_of(ref, option) or ""
    if option != "as-of-timestamp" or not value.isdecimal():
        return value
    moment = datetime.fromtimestamp(int(value) / 1000, timezone.utc)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def table_in(name: str) -> str:
    """The name of the table in a name that may also select a branch, a tag or a snapshot.

    >>> table_in("lake.sales.orders.branch_audit")
    'lake.sales.orders'
    """
    in_name = _IN_A_NAME.fullmatch(name)
    return in_name["table"] if in_name else name


def _selection(ref: DatasetRef, place: str) -> _Selection | None:
    """The rows that a dataset selects; None if it selects them by time, or changes of rows."""
    if any(option_of(ref, name) is not None for name in (*_OF_TIMES, *_OF_CHANGES)):
        return None
    table = place
    snapshot = option_of(ref, "snapshot-id")
    named = option_of(ref, "branch") or option_of(ref, "tag")
    in_name = None if ref.table is None else _IN_A_NAME.fullmatch(place)
    if in_name is not None:
        table = in_name["table"]
        match in_name["kind"]:
            case "at_timestamp":
                return None
            case "snapshot_id":
                snapshot = in_name["ref"]
            case _:
                named = in_name["ref"]
    version = option_of(ref, "versionAsOf")
    if version is not None and version.isdecimal():
        snapshot = version
    elif version is not None:
        named = version
    return _Selection(table, snapshot, named)


def _refs(spark: SparkSession, ref: DatasetRef, place: str) -> DataFrame:
    """The branches and tags of a table: Iceberg, "Metadata Tables"."""
    read: Any = spark.read.format("iceberg")
    frame: DataFrame = read.load(f"{place}#refs") if ref.path else spark.table(f"{place}.refs")
    return frame.select("name", "snapshot_id")
