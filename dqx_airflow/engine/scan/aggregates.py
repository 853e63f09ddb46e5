"""Computes the aggregates of one pass over the rows of a frame, by date: over rows, over values,
over steps, and over distinct keys.

A distinct count over keys that should be unique is read from their hashes. Sail groups by the keys
themselves, however few the rows. If a pass fails as a whole, it is halved until the failing
aggregate is isolated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from datetime import date
from functools import partial, reduce
from typing import TypeAlias, TypeVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.engine.scan.collected_values import collect, date_of
from dqx_airflow.engine.scan.frames import DATE
from dqx_airflow.engine.session.sail import sail_version
from dqx_airflow.engine.session.spark_errors import explain, is_unreadable, spark_failures
from dqx_airflow.engine.session.spark_versions import condition_of
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics import metric
from dqx_airflow.metrics.metric import COPIES, VALUE, Aggregate, Frequencies, Steps
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.row_types import TypeObjection
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import MetricValue


def describe_pass(aggregates: Sequence[Aggregate]) -> str:
    """A short description of a pass, whose aggregates have one `pass_key`."""
    match aggregates[0].over:
        case Frequencies():
            return "values and the numbers of their rows"
        case Steps():
            return "rows in order"
    if all(aggregate.distinct for aggregate in aggregates):
        return "keys" if all(aggregate.is_key for aggregate in aggregates) else "distinct values"
    return f"{len(aggregates)} aggregates" if len(aggregates) > 1 else "one aggregate"


_SMALLER = "ASC"
_LARGER = "DESC"


def aggregate_reshaped(
    frame: DataFrame, aggregates: Sequence[Aggregate], dates: Collection[date | None]
) -> PassResult[date | None]:
    """Computes each aggregate by date, or the reason why it failed. All share one `pass_key`.

    :param dates: the dates of the rows; only None if a dataset has no dates.
    :raises DatasetError: a file cannot be read.
    """
    by_sql = {aggregate.sql: aggregate for aggregate in aggregates}

    def rows(texts: Sequence[str]) -> list[tuple[date | None, tuple[MetricValue, ...]]]:
        items = [by_sql[text] for text in texts]
        if len(dates) > 1:
            collected = collect(reshaped(frame, [quote_name(DATE)], items))
            return [(date_of(row[0]), row[1:]) for row in collected]
        (on,) = dates
        (row,) = collect(reshaped(frame, [], items, "count(1)"))
        *values, count = row
        return [(on, tuple(values))] if count or on is None else []

    return bisected(frame, [*by_sql], rows)


def reshaped(
    frame: DataFrame, keys: Sequence[str], aggregates: Sequence[Aggregate], *extra: str
) -> DataFrame:
    """One row for each combination of the keys, which are Spark SQL: the keys, then the aggregates.

    Every combination has a row, even if no row satisfies the filter of an aggregate.

    :param aggregates: of one `pass_key`.
    :param extra: additional aggregates over rows, as Spark SQL.
    """
    over = aggregates[0].over
    if isinstance(over, Frequencies):
        return _over_frequencies(frame, keys, over.columns, aggregates, extra)
    return _over_steps(frame, keys, aggregates, extra)


def _over_frequencies(
    frame: DataFrame,
    keys: Sequence[str],
    columns: Sequence[str],
    aggregates: Sequence[Aggregate],
    extra: Sequence[str],
) -> DataFrame:
    names = _key_names(keys)
    values = [VALUE] if len(columns) == 1 else [f"`dqx: value {n}`" for n in range(len(columns))]
    present = " OR ".join(f"{quote_name(column)} IS NOT NULL" for column in columns)
    where = aggregates[0].where
    chosen = f"({present})" if where is None else f"({present}) AND ({where})"
    grouped = [
        F.expr(sql).alias(_bare(name))
        for sql, name in zip((*keys, *map(quote_name, columns)), (*names, *values), strict=True)
    ]
    copies = F.expr(f"nullif(count(CASE WHEN {chosen} THEN 1 END), 0)").alias(_bare(COPIES))
    counted = frame.groupBy(*grouped).agg(copies)
    over = [aggregate.over for aggregate in aggregates if isinstance(aggregate.over, Frequencies)]
    by = f"PARTITION BY {', '.join(names)} " if names else ""
    if any(frequencies.is_ranked for frequencies in over):
        rank = f"rank() OVER ({by}ORDER BY {COPIES} DESC NULLS LAST) AS {metric.RANK}"
        counted = counted.selectExpr("*", rank)
    if any(frequencies.is_running for frequencies in over):
        counted = counted.selectExpr(
            "*",
            f"sum({COPIES}) OVER ({by}ORDER BY {VALUE}) AS {metric.UP_TO}",
            f"sum({COPIES}) OVER ({by}) AS {metric.PRESENT}",
            f"count({COPIES}) OVER ({by}) AS {metric.DIFFERENT}",
        )
    return _grouped(counted, names, [*(frequencies.sql for frequencies in over), *extra])


def _over_steps(
    frame: DataFrame, keys: Sequence[str], aggregates: Sequence[Aggregate], extra: Sequence[str]
) -> DataFrame:
    names = _key_names(keys)
    marks = [f"`dqx: step {n}`" for n in range(len(aggregates))]
    columns = [f"{sql} AS {name}" for sql, name in zip(keys, names, strict=True)]
    columns += [
        f"{_step(aggregate, keys)} AS {mark}"
        for aggregate, mark in zip(aggregates, marks, strict=True)
    ]
    counts = (f"count(CASE WHEN {mark} THEN 1 END)" for mark in marks)
    return _grouped(frame.selectExpr(*columns), names, [*counts, *extra])


def _step(item: Aggregate, keys: Sequence[str]) -> str:
    """A Spark SQL condition: a row is one step from the previous row. NULL for an excluded row."""
    over = item.over
    assert isinstance(over, Steps)
    column = quote_name(over.column)
    order = quote_name(over.order)
    taken = f"{column} IS NOT NULL AND {order} IS NOT NULL"
    if item.where is not None:
        taken += f" AND coalesce({item.where}, false)"
    # Excluded rows are a partition of their own, so that they are never neighbors.
    by = ", ".join([*keys, taken])
    direction = _LARGER if over.op == ">" else _SMALLER
    before = f"lag({column}) OVER (PARTITION BY {by} ORDER BY {order}, {column} {direction})"
    return f"CASE WHEN {taken} THEN {column} {over.op} {before} END"


def _grouped(frame: DataFrame, names: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    return frame.groupBy(*map(F.expr, names)).agg(*map(F.expr, aggregates))


def _key_names(keys: Sequence[str]) -> list[str]:
    return [f"`dqx: key {number}`" for number in range(len(keys))]


def _bare(name: str) -> str:
    return name.strip("`")


_EXACTLY_HASHED = frozenset(
    {"tinyint", "smallint", "int", "bigint", "decimal", "boolean", "string", "date"}
    | {"timestamp", "timestamp_ntz", "binary"}
)
"""Types whose equal values always have equal hashes: floating point has two zeros and many NaN."""
_CHECK = "dqx: check"
_HASH = "dqx: hash"
_ROWS = "dqx: rows"
_COPIES = "dqx: copies"


def count_distinct(
    frame: DataFrame,
    aggregates: Sequence[Aggregate],
    schema: Schema,
    dates: Collection[date | None],
) -> PassResult[date | None]:
    """Computes each distinct count by date, or the reason why it failed. All have `distinct`.

    :param dates: the dates of the rows; only None if a dataset has no dates.
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
    """The number of keys by date, for the aggregates whose keys are unique on every date.

    The other aggregates remain to be counted exactly; if the pass fails, all aggregates do.

    """
    date_column = [quote_name(DATE)] if len(dates) > 1 else []
    rows_of = _different_keys if sail_version(frame.sparkSession) else _hashed_keys
    try:
        counted = rows_of(frame, keys, date_column)
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


def _hashed_keys(
    frame: DataFrame, keys: Sequence[Aggregate], date_column: Sequence[str]
) -> DataFrame:
    """A row for each row with a key, with the number of rows that have the same hash.

    The hash is of the key, its date and the aggregate, so that one column distinguishes keys. NULL
    columns are part of it: `(1, NULL)` is not `(NULL, 1)`. Some two of `n` different keys have the
    same 64-bit hash with a probability of about `n**2 / 2**65` (the birthday bound): 1 in 3,700 for
    a hundred million keys. A collision costs one more pass, never a wrong count.

    Partitioned by the hash and sorted: nearly every key occurs once, so a hash table would be as
    large as the data.
    """
    hashed = []
    for number, key in enumerate(keys):
        names = [quote_name(column) for column in key.distinct]
        missing = [] if key.skips_null else [f"{name} IS NULL" for name in names]
        text = f"xxhash64({', '.join([*date_column, *names, *missing, str(number)])})"
        columns = (*date_column, f"{number} AS `{_CHECK}`", f"{text} AS `{_HASH}`")
        hashed.append(frame.where(_has_key(key)).selectExpr(*columns))
    rows = reduce(DataFrame.unionAll, hashed).repartition(quote_name(_HASH))
    return rows.selectExpr("*", f"count(1) OVER (PARTITION BY `{_HASH}`) AS `{_COPIES}`")


def _different_keys(
    frame: DataFrame, keys: Sequence[Aggregate], date_column: Sequence[str]
) -> DataFrame:
    """A row for each distinct key: Sail finds keys in a tenth of the time that it needs to sort
    hashes."""
    different = [
        frame.where(_has_key(key))
        .selectExpr(*date_column, *map(quote_name, key.distinct))
        .distinct()
        .selectExpr(*date_column, f"{number} AS `{_CHECK}`", f"1 AS `{_COPIES}`")
        for number, key in enumerate(keys)
    ]
    return reduce(DataFrame.unionAll, different)


def _has_key(item: Aggregate) -> str:
    missing = " OR ".join(f"{quote_name(column)} IS NULL" for column in item.distinct)
    present = f"NOT ({missing})" if item.skips_null else "true"
    return present if item.where is None else f"{present} AND ({item.where})"


Key = TypeVar("Key", bound=Hashable)

PassResult: TypeAlias = tuple[dict[Key, dict[str, MetricValue]], dict[str, str]]
"""The values of aggregates by key, such as the date or the group, and by their SQL; and the reason
for each aggregate that failed."""


def aggregate(
    frame: DataFrame, expressions: Sequence[str], dates: Collection[date | None]
) -> PassResult[date | None]:
    """Computes the aggregates by date.

    :param dates: the dates of the rows; only None if a dataset has no dates.
    :raises DatasetError: a file cannot be read.
    """
    return bisected(frame, expressions, partial(_values_by_date, frame, dates=dates))


def bisected(
    frame: DataFrame,
    expressions: Sequence[str],
    rows_of: Callable[[Sequence[str]], Sequence[tuple[Key, Sequence[MetricValue]]]],
    *,
    is_whole: bool = True,
) -> PassResult[Key]:
    """Computes the aggregates by key. If all of them together fail, they are read in halves.

    :param rows_of: reads some of the aggregates: their values for each key.
    :param is_whole: false for a part of a pass that has failed.
    :raises DatasetError: a file cannot be read.
    """
    if not expressions:
        return {}, {}
    try:
        with spark_failures():
            rows = rows_of(expressions)
    except PySparkException as error:
        if is_unreadable(error):
            raise DatasetError(explain(error)) from error
        if len(expressions) == 1:
            return {}, {expressions[0]: _reason(error, frame)}
        if is_whole and (reason := _objection_to_rows(frame)) is not None:
            return {}, dict.fromkeys(expressions, reason)
        half = len(expressions) // 2
        return merged(
            bisected(frame, expressions[:half], rows_of, is_whole=False),
            bisected(frame, expressions[half:], rows_of, is_whole=False),
        )
    return {key: dict(zip(expressions, values, strict=True)) for key, values in rows}, {}


def merged(first: PassResult[Key], second: PassResult[Key]) -> PassResult[Key]:
    """The results of two passes over the same rows."""
    (left, broken_left), (right, broken_right) = first, second
    by_key = {key: {**left.get(key, {}), **right.get(key, {})} for key in {**left, **right}}
    return by_key, {**broken_left, **broken_right}


def _values_by_date(
    frame: DataFrame, expressions: Sequence[str], dates: Collection[date | None]
) -> list[tuple[date | None, tuple[MetricValue, ...]]]:
    """The values of the aggregates for each date that has rows."""
    if len(dates) > 1:
        by_date = collect(frame.groupBy(quote_name(DATE)).agg(*map(F.expr, expressions)))
        return [(date_of(row[0]), row[1:]) for row in by_date]
    # Without grouping, the buffers are plain variables of the generated code rather than rows of a
    # hash map, and the smallest string is found without sorting.
    (on,) = dates
    # Passed as strings: each column built in Python takes half a dozen calls to the JVM.
    (row,) = collect(frame.selectExpr(*expressions, "count(1)"))
    *values, count = row
    return [(on, tuple(values))] if count or on is None else []


def _objection_to_rows(frame: DataFrame) -> str | None:
    """The reason why the rows cannot be read at all; None if they can.

    If their filter fails, a thousand aggregates would be tried one by one.
    """
    try:
        with spark_failures():
            frame.selectExpr("count(1)").collect()
    except PySparkException as error:
        return explain(error)
    return None


def _reason(error: PySparkException, frame: DataFrame) -> str:
    if isinstance(error, AnalysisException):
        parameters = error.getMessageParameters() or {}
        if condition_of(error).startswith("UNRESOLVED_COLUMN"):
            name = parameters.get("objectName", "").strip("`")
            columns = [column for column in frame.columns if column != DATE]
            return f"no column '{name}': {did_you_mean(name, columns)}"
    return explain(error)
