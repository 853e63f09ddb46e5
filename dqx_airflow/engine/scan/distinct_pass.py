"""Counts distinct values and keys in separate passes, where that is cheaper than the fused one.

Beside other aggregates, `count(DISTINCT ...)` makes Spark carry all of them through a shuffle of
every key, and several of them multiply the rows. Keys that should be unique are counted by a hash:
if no hash occurs twice, no key does. If one does, the keys are counted exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.engine.scan.frames import DATE
from dqx_airflow.engine.scan.fused_pass import PassResult, aggregate
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.row_types import TypeObjection
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import MetricValue

_EXACTLY_HASHED = frozenset(
    {"tinyint", "smallint", "int", "bigint", "decimal", "boolean", "string", "date"}
    | {"timestamp", "timestamp_ntz", "binary"}
)
"""Types whose equal values always have equal hashes: floating point has two zeros and many NaN."""
_CHECK, _HASH, _ROWS, _COPIES = "dqx: check", "dqx: hash", "dqx: rows", "dqx: copies"


def count_distinct(
    frame: DataFrame,
    aggregates: Sequence[Aggregate],
    schema: Schema,
    dates: Collection[date | None],
) -> PassResult[date | None]:
    """The value of each aggregate by date, and the reason for those that failed. All have
    `distinct`.

    :param dates: those of the rows; only None if a dataset has no dates.
    """
    keys = [item for item in aggregates if item.is_key and _is_hashed(item, schema)]
    unique = _unique_keys(frame, keys, dates) if keys else {}
    rest = [item.sql for item in aggregates if item not in unique]
    by_date, broken = aggregate(frame, rest, dates)
    for item, rows in unique.items():
        for on, count in rows.items():
            by_date.setdefault(on, {})[item.sql] = count
    return by_date, broken


def _is_hashed(item: Aggregate, schema: Schema) -> bool:
    try:
        types = [schema.type_of(column).split("(")[0] for column in item.distinct]
    except TypeObjection:
        return False
    return all(name in _EXACTLY_HASHED for name in types)


def _unique_keys(
    frame: DataFrame, keys: Sequence[Aggregate], dates: Collection[date | None]
) -> dict[Aggregate, dict[date | None, MetricValue]]:
    """The number of keys by date, of the aggregates whose keys are unique on every date.

    The others remain to be counted exactly, and so do all of them if the pass fails.
    """
    date_column = [quote_name(DATE)] if len(dates) > 1 else []
    hashed = [
        frame.selectExpr(
            *date_column,
            f"{number} AS `{_CHECK}`",
            f"{_hash(key, number, date_column)} AS `{_HASH}`",
        )
        for number, key in enumerate(keys)
    ]
    try:
        # Partitioned by the hash and sorted: nearly every key occurs once, so a hash table would be
        # as large as the data. A row without a hash has no key.
        rows = reduce(DataFrame.unionAll, hashed).where(f"`{_HASH}` IS NOT NULL")
        copies = f"count(1) OVER (PARTITION BY `{_HASH}`) AS `{_COPIES}`"
        counted = rows.repartition(quote_name(_HASH)).selectExpr("*", copies)
        with spark_failures():
            counts = (
                counted.groupBy(*date_column, quote_name(_CHECK))
                .agg(F.expr(f"count(1) AS `{_ROWS}`"), F.expr(f"max(`{_COPIES}`) AS `{_COPIES}`"))
                .collect()
            )
    except PySparkException:
        return {}
    repeated = {row[_CHECK] for row in counts if row[_COPIES] > 1}
    unique: dict[Aggregate, dict[date | None, MetricValue]] = {
        key: dict.fromkeys(dates, 0) for number, key in enumerate(keys) if number not in repeated
    }
    for row in counts:
        if row[_CHECK] not in repeated:
            on = row[DATE] if date_column else next(iter(dates))
            unique[keys[row[_CHECK]]][on] = int(row[_ROWS])
    return unique


def _hash(item: Aggregate, number: int, date_column: Sequence[str]) -> str:
    """A hash of the key, its date and the check, so that one column tells keys apart.

    NULL columns are part of it: `(1, NULL)` is not `(NULL, 1)`. Some two of `n` different keys have
    the same 64-bit hash with a probability of about `n**2 / 2**65` (the birthday bound): 1 in 3,700
    for a hundred million keys. A collision costs one more pass, never a wrong count.
    """
    names = [quote_name(column) for column in item.distinct]
    missing = [f"{name} IS NULL" for name in names]
    hashed = [*date_column, *names, *([] if item.skips_null else missing), str(number)]
    text = f"xxhash64({', '.join(hashed)})"
    conditions = [f"NOT ({' OR '.join(missing)})"] if item.skips_null else []
    conditions += [item.where] if item.where is not None else []
    return f"CASE WHEN {' AND '.join(conditions)} THEN {text} END" if conditions else text
