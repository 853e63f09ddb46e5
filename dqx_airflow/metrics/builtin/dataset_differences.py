"""Metrics of the differences between two datasets: rows that are missing, extra or changed, and
columns.

`plan.schema_check.Match` defines the comparison; a scan of both counts the differences, and each
metric takes its value from the counts.
"""

from __future__ import annotations

from functools import partial

from dqx_airflow.metrics import metric
from dqx_airflow.metrics.derived import apply
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import exact

_KEYS = metric.Argument("keys", metric.ArgumentKind.COLUMNS)
_COMPARED = metric.Argument("compared", metric.ArgumentKind.COLUMNS)
_OTHER = metric.Argument("dataset", metric.ArgumentKind.DATASET)
_TOLERANCE = metric.Argument("tolerance", metric.ArgumentKind.TOLERANCE)


def _differing(_: metric.Arguments, counts: tuple[MetricValue, ...]) -> MetricValue:
    return sum(int(count or 0) for count in counts[:3])


def _differing_share(arguments: metric.Arguments, counts: tuple[MetricValue, ...]) -> MetricValue:
    """The share of differing rows among the rows of the dataset and the rows missing in it; 0
    without rows."""
    differing = _differing(arguments, counts)
    rows = int(counts[3] or 0) + int(counts[0] or 0)
    return exact(0) if not rows else apply("/", (differing, rows))


_comparison = partial(
    metric.Metric,
    unit=metric.MetricUnit.DIFFERENCES,
    empty=0,
    parameters=(_OTHER,),
    scan=metric.Scan.MATCH,
)
"""A metric of two datasets."""

MATCHING = (
    _comparison(
        "missing_count",
        (_KEYS,),
        "The number of rows of the other dataset whose key is missing in this dataset. A "
        "repeated key counts once for each row that is missing here.",
        "assert missing_count(order_id, dataset raw_orders) == 0",
        value=lambda _, counts: counts[0],
    ),
    _comparison(
        "extra_count",
        (_KEYS,),
        "The number of rows of this dataset whose key is missing in the other one. A repeated "
        "key counts once for each row that is missing there.",
        "assert extra_count([order_id, line], dataset raw_orders) == 0",
        value=lambda _, counts: counts[1],
    ),
    _comparison(
        "changed_count",
        (_KEYS, _COMPARED),
        "The number of rows whose key is in both datasets, but whose values in the compared "
        "columns differ by more than the tolerance.",
        "assert changed_count(order_id, [amount, status], dataset raw_orders, tolerance 0.01) == 0",
        value=lambda _, counts: counts[2],
        parameters=(_OTHER, _TOLERANCE),
    ),
    _comparison(
        "mismatch_count",
        (_KEYS, _COMPARED),
        "The number of rows that are missing, extra or changed.",
        "assert rows of orders match raw_orders on (order_id)",
        value=_differing,
        parameters=(_OTHER, _TOLERANCE),
        is_internal=True,
    ),
    _comparison(
        "mismatch_share",
        (_KEYS, _COMPARED),
        "The share of rows that are missing, extra or changed.",
        "assert rows of orders match raw_orders on (order_id) allowing 0.1%",
        value=_differing_share,
        parameters=(_OTHER, _TOLERANCE),
        is_internal=True,
        unit=metric.MetricUnit.SHARE,
    ),
    _comparison(
        "column_mismatch_count",
        (),
        "The number of columns that are missing in one of the datasets or differ in type.",
        "assert columns of orders match raw_orders",
        is_internal=True,
        unit=metric.MetricUnit.COLUMNS,
    ),
)
