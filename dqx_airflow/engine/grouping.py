"""Counts distinct values and keys in passes of their own, where that costs less than the fused one.

In an aggregate with others, `count(DISTINCT ...)` makes Spark carry all of them through a shuffle
of every key, and several of them multiply the rows. Keys that should be unique are counted by a
hash: where no hash comes twice, no key does. Where one does, the keys are counted exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.engine.failures import spark_failures
from dqx_airflow.engine.flat import ByDate, aggregate
from dqx_airflow.engine.frames import DATE
from dqx_airflow.engine.sources import OpenDataset
from dqx_airflow.metrics.registry import Aggregate
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.row_types import Objection
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import MetricValue

MOST_ROWS_FUSED = 250_000
"""Up to so many rows one pass with everything in it takes less than the start of another job."""

_EXACTLY_HASHED = frozenset(
    {"tinyint", "smallint", "int", "bigint", "decimal", "boolean", "string", "date"}
    | {"timestamp", "timestamp_ntz", "binary"}
)
"""The types of which equal values have equal hashes without further ado: floating point has two
zeros and many NaN."""
_CHECK, _HASH, _ROWS, _KEYS = "dqx: check", "dqx: hash", "dqx: rows", "dqx: keys"


def is_apart(
    dataset: OpenDataset, dates: Iterable[date | None], aggregates: Iterable[Aggregate]
) -> bool:
    """True where distinct values are counted in passes of their own."""
    wanted = list(aggregates)
    if not any(item.distinct for item in wanted):
        return False
    if all(item.distinct for item in wanted) or dataset.log is None:
        return True
    rows = [dataset.log.rows_of(on) for on in dates]
    return None in rows or sum(filter(None, rows)) > MOST_ROWS_FUSED


def count_distinct(
    frame: DataFrame, aggregates: Sequence[Aggregate], schema: Schema, *, dated: bool
) -> tuple[ByDate, dict[str, str]]:
    """The value of each aggregate by date; for those that failed, why. All have `distinct`."""
    keys = [item for item in aggregates if item.is_key and _is_hashed(item, schema)]
    unique = _unique_keys(frame, keys, dated=dated) if keys else {}
    rest = [item.sql for item in aggregates if item not in unique]
    by_date, broken = aggregate(frame, rest, dated=dated)
    for item, rows in unique.items():
        for on, count in rows.items():
            by_date.setdefault(on, {})[item.sql] = count
    return by_date, broken


def _is_hashed(item: Aggregate, schema: Schema) -> bool:
    try:
        types = [schema.type_of(column).split("(")[0] for column in item.distinct]
    except Objection:
        return False
    return all(name in _EXACTLY_HASHED for name in types)


def _unique_keys(
    frame: DataFrame, keys: Sequence[Aggregate], *, dated: bool
) -> dict[Aggregate, dict[date | None, MetricValue]]:
    """The number of keys by date, of those aggregates whose keys are unique on every date.

    The others are left to be counted exactly, and so are all where the pass fails.
    """
    dates = [quote_name(DATE)] if dated else []
    hashed = [
        frame.selectExpr(*dates, f"{number} AS `{_CHECK}`", f"{_hash(item)} AS `{_HASH}`")
        for number, item in enumerate(keys)
    ]
    try:
        # Partitioned by the hash first: nearly every key is alone, so counting them before the
        # shuffle would be for nothing.
        rows = reduce(DataFrame.unionAll, hashed).repartition(quote_name(_HASH))
        groups = rows.groupBy(*dates, quote_name(_CHECK), quote_name(_HASH)).agg(
            F.count(F.lit(1)).alias(_ROWS)
        )
        counts = groups.groupBy(*dates, quote_name(_CHECK)).agg(
            F.count(F.lit(1)).alias(_KEYS), F.sum(quote_name(_ROWS)).alias(_ROWS)
        )
        with spark_failures():
            found = counts.collect()
    except PySparkException:
        return {}
    counted: dict[Aggregate, dict[date | None, MetricValue]] = {item: {} for item in keys}
    for row in found:
        item = keys[row[_CHECK]]
        if row[_KEYS] < row[_ROWS]:
            counted.pop(item, None)
        elif item in counted:
            counted[item][row[DATE] if dated else None] = int(row[_ROWS])
    if not dated:
        for rows_of_item in counted.values():
            rows_of_item.setdefault(None, 0)
    return counted


def _hash(item: Aggregate) -> str:
    """A hash of the key. That a column is NULL is part of it: `(1, NULL)` is not `(NULL, 1)`."""
    names = [quote_name(column) for column in item.distinct]
    if len(names) > 1:
        names += [f"{name} IS NULL" for name in names]
    return f"xxhash64({', '.join(names)})"
