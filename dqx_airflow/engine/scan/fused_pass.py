"""The fused pass: all flat aggregates over a frame at once, grouped by date if there are several.

If the pass fails as a whole, it is halved until the failing aggregate is isolated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from datetime import date
from functools import partial
from typing import TypeAlias, TypeVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.engine.scan.collect import collect, date_of
from dqx_airflow.engine.scan.frames import DATE
from dqx_airflow.engine.session.spark_errors import explain, is_unreadable, spark_failures
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.values import MetricValue

Key = TypeVar("Key", bound=Hashable)

PassResult: TypeAlias = tuple[dict[Key, dict[str, MetricValue]], dict[str, str]]
"""The values of aggregates by key, such as the date or the group, and by their SQL; and the reason
for each aggregate that failed."""


def aggregate(
    frame: DataFrame, expressions: Sequence[str], dates: Collection[date | None]
) -> PassResult[date | None]:
    """The values of the aggregates by date.

    :param dates: those of the rows; only None if a dataset has no dates.
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
    """The values of the aggregates by key. If all of them together fail, they are read in halves.

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
    """Why the rows cannot be read at all, or None if they can.

    If their filter fails, a thousand aggregates would be tried one by one.
    """
    try:
        with spark_failures():
            frame.selectExpr("count(1)").collect()
    except PySparkException as error:
        return explain(error)
    return None


def _own_columns(frame: DataFrame) -> list[str]:
    return [column for column in frame.columns if column != DATE]


def _reason(error: PySparkException, frame: DataFrame) -> str:
    if isinstance(error, AnalysisException):
        parameters = error.getMessageParameters() or {}
        if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            name = parameters.get("objectName", "").strip("`")
            return f"no column '{name}': {did_you_mean(name, _own_columns(frame))}"
    return explain(error)
