"""The plan that an engineer writes by hand after measuring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from pyspark.sql import functions as F
from simple_checks import Kind, SimpleCheck
from workload import copied_keys_by_hash, of_days
from workload import tuned as judge

__all__ = ["judge", "verify"]


def verify(
    spark: Any, table: str, dates: Sequence[date], checks: Sequence[SimpleCheck]
) -> dict[str, bool]:
    """Judges several days in one grouping, which computes extremes and nulls once per column."""
    whole = spark.read.parquet(table)
    frame = of_days(whole, dates) if dates else whole
    day = ("event_date",) if len(dates) > 1 else ()
    flat = [check for check in checks if check.kind is not Kind.UNIQUE]
    verdicts: dict[str, bool] = {}
    if flat:
        wanted = dict.fromkeys(sql for check in flat for sql in _aggregates(check))
        columns = [F.expr(sql).alias(sql) for sql in wanted]
        found = [row.asDict() for row in frame.groupBy(*day).agg(*columns).collect()]
        verdicts = {check.name: all(_holds(check, values) for values in found) for check in flat}
    for check in checks:
        if check.kind is Kind.UNIQUE:
            verdicts[check.name] = copied_keys_by_hash(frame, (*day, *check.columns)) == 0
    return verdicts


def _aggregates(check: SimpleCheck) -> Iterator[str]:
    if check.kind is Kind.COMPLETE:
        yield f"count_if({check.column} IS NULL)"
    if check.least is not None:
        yield f"min({check.column})"
    if check.most is not None:
        yield f"max({check.column})"


def _holds(check: SimpleCheck, values: Mapping[str, Any]) -> bool:
    if check.kind is Kind.COMPLETE:
        return bool(values[f"count_if({check.column} IS NULL)"] == 0)
    return (check.least is None or check.least <= values[f"min({check.column})"]) and (
        check.most is None or values[f"max({check.column})"] <= check.most
    )
