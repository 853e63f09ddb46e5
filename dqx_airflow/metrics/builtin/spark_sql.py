"""Metrics written in Spark SQL."""

from __future__ import annotations

from dqx_airflow.metrics.metric import Aggregate, Argument, ArgumentKind, Metric, MetricUnit, Scan

SPARK_SQL = (
    Metric(
        "sql",
        (Argument("expression", ArgumentKind.SQL),),
        MetricUnit.UNKNOWN,
        "One aggregate expression in Spark SQL.",
        'assert sql("sum(amount) / count(*)") > 10',
        lambda arguments: (Aggregate(arguments[0]),),
    ),
    Metric(
        "query",
        (Argument("select", ArgumentKind.SQL),),
        MetricUnit.UNKNOWN,
        "One Spark SQL query that returns a number, over the rows of the date.",
        'assert query("SELECT count(*) FROM orders JOIN returns USING (order_id)") < 100',
        scan=Scan.QUERY,
        no_value="the query returned no row, or NULL",
    ),
)
