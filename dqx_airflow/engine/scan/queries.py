"""The queries of a suite.

A query sees the datasets of the gate under their names, with the rows of the date, and nothing
else: `WITH` gives these names priority over all others, and a query in parentheses can only read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.scan.collected_values import NESTED, collect
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.session.spark_versions import formatted, query_over
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.spark_values import is_finite
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.model import MetricRequest, Scanned
from dqx_airflow.plan.schema_check import INFINITE, void
from dqx_airflow.values import MetricValue


def run_queries(
    spark: SparkSession,
    requests: Sequence[MetricRequest],
    opened: Mapping[str, OpenDataset],
    on: date,
) -> Scanned:
    """Runs queries: the value of each, or the reason why it has none.

    :param requests: requests of the metric `query`.
    :param opened: the datasets that could be opened, by name.
    """
    scanned = Scanned()

    def run(request: MetricRequest) -> None:
        text = request.arguments[0]
        try:
            with jobs_called(spark, f"query: {' '.join(text.split())}"), spark_failures():
                value = _value_of_query(spark, text, opened, on)
        except (PySparkException, DatasetError, ValueError) as error:
            reason = explain(error) if isinstance(error, PySparkException) else str(error)
            scanned.failures[request] = f"the query failed: {reason}"
            return
        if is_finite(value):
            scanned.values[request] = value
        else:
            void(request, INFINITE, scanned)

    side_by_side(spark, run, requests)
    return scanned


def _value_of_query(
    spark: SparkSession, text: str, opened: Mapping[str, OpenDataset], on: date
) -> MetricValue:
    tables = {f"table_{number}": name for number, name in enumerate(opened)}
    named = ", ".join(
        f"{formatted(quote_name(name))} AS (SELECT * FROM {{{table}}})"  # noqa: S608
        for table, name in tables.items()
    )
    # The closing parenthesis has a line of its own, because the query may end with a comment.
    query = f"WITH {named} SELECT * FROM (\n{formatted(text)}\n)"  # noqa: S608
    frames = {table: rows_of(opened[name], on) for table, name in tables.items()}
    frame = query_over(spark, query, frames)
    if len(frame.columns) != 1:
        raise ValueError(f"the query returned {len(frame.columns)} columns; expected one number")
    if isinstance(frame.schema.fields[0].dataType, NESTED):
        raise ValueError("the query returned a nested or binary value; expected one number")
    rows = collect(frame.limit(2))
    if len(rows) > 1:
        raise ValueError("the query returned several rows; expected one number")
    return rows[0][0] if rows else None
