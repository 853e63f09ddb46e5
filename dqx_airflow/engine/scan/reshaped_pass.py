"""Aggregates over reshaped rows: over the distinct values of columns with their row counts, or over
the steps from each row to the next in an order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.engine.scan.collect import collect, date_of
from dqx_airflow.engine.scan.frames import DATE
from dqx_airflow.engine.scan.fused_pass import PassResult, bisected
from dqx_airflow.metrics.metric import COPIES, RANK, VALUE, Aggregate, Frequencies, Steps
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.values import MetricValue

_SMALLER, _LARGER = "ASC", "DESC"


def aggregate_reshaped(
    frame: DataFrame, aggregates: Sequence[Aggregate], dates: Collection[date | None]
) -> PassResult[date | None]:
    """The value of each aggregate by date, and the reason for those that failed. All share one
    `pass_key`.

    :param dates: those of the rows; only None if a dataset has no dates.
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
    :param extra: additional plain aggregates, as Spark SQL.
    """
    over = aggregates[0].over
    if isinstance(over, Frequencies):
        return _over_frequencies(frame, keys, over.columns, aggregates, extra)
    return _over_steps(frame, keys, aggregates, extra)


def pass_key(item: Aggregate) -> object:
    """Equal for aggregates that one reshaping of the rows answers; None for those over the rows."""
    match item.over:
        case None:
            return None
        case Frequencies(columns=columns):
            return columns, item.where
        case Steps():
            return Steps


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
    if any(frequencies.is_ranked for frequencies in over):
        by = f"PARTITION BY {', '.join(names)} " if names else ""
        rank = f"rank() OVER ({by}ORDER BY {COPIES} DESC NULLS LAST) AS {RANK}"
        counted = counted.selectExpr("*", rank)
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
    """Whether a row is one step from the previous row; NULL for a row that is excluded."""
    over = item.over
    assert isinstance(over, Steps)
    column, order = quote_name(over.column), quote_name(over.order)
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
