"""Metrics that compare two datasets: rows that are missing, extra or changed, and columns.

`plan.matching.Match` defines the comparison; a scan of both counts the differences, and each metric
takes its value from the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Arguments, Metric, MetricUnit, Scan
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import exact

_KEYS = Argument("keys", ArgumentKind.COLUMNS)
_COMPARED = Argument("compared", ArgumentKind.COLUMNS)
_OTHER = Argument("dataset", ArgumentKind.DATASET)
_TOLERANCE = Argument("tolerance", ArgumentKind.TOLERANCE)

_Value = Callable[[Arguments, tuple[MetricValue, ...]], MetricValue]


def _count(position: int) -> _Value:
    """One of the counts of missing, extra and changed rows."""
    return lambda _, counts: counts[position]


def _differing(_: Arguments, counts: tuple[MetricValue, ...]) -> MetricValue:
    return sum(int(count or 0) for count in counts[:3])


def _differing_share(arguments: Arguments, counts: tuple[MetricValue, ...]) -> MetricValue:
    """The share of differing rows among those of the dataset and those it lacks; 0 without rows."""
    differing, rows = _differing(arguments, counts), int(counts[3] or 0) + int(counts[0] or 0)
    return exact(0) if not rows else apply("/", (differing, rows))


_comparison = partial(Metric, empty=0, scan=Scan.MATCH)
"""A metric of two datasets."""

MATCHING = (
    _comparison(
        "missing_count",
        (_KEYS,),
        MetricUnit.DIFFERENCES,
        "The number of rows of the other dataset whose key is missing in this dataset. A "
        "repeated key counts once for each row that is missing here.",
        "assert missing_count(order_id, dataset raw_orders) == 0",
        value=_count(0),
        parameters=(_OTHER,),
    ),
    _comparison(
        "extra_count",
        (_KEYS,),
        MetricUnit.DIFFERENCES,
        "The number of rows of this dataset whose key is missing in the other one. A repeated "
        "key counts once for each row that is missing there.",
        "assert extra_count([order_id, line], dataset raw_orders) == 0",
        value=_count(1),
        parameters=(_OTHER,),
    ),
    _comparison(
        "changed_count",
        (_KEYS, _COMPARED),
        MetricUnit.DIFFERENCES,
        "The number of rows whose key is in both datasets, but whose values in the compared "
        "columns differ by more than the tolerance.",
        "assert changed_count(order_id, [amount, status], dataset raw_orders, tolerance 0.01) == 0",
        value=_count(2),
        parameters=(_OTHER, _TOLERANCE),
    ),
    _comparison(
        "mismatch_count",
        (_KEYS, _COMPARED),
        MetricUnit.DIFFERENCES,
        "The number of rows that are missing, extra or changed.",
        "assert rows of orders match raw_orders on (order_id)",
        value=_differing,
        parameters=(_OTHER, _TOLERANCE),
        is_internal=True,
    ),
    _comparison(
        "mismatch_share",
        (_KEYS, _COMPARED),
        MetricUnit.SHARE,
        "The share of rows that are missing, extra or changed.",
        "assert rows of orders match raw_orders on (order_id) allowing 0.1%",
        value=_differing_share,
        parameters=(_OTHER, _TOLERANCE),
        is_internal=True,
    ),
    _comparison(
        "column_mismatch_count",
        (),
        MetricUnit.COLUMNS,
        "The number of columns that are missing in one of the datasets or differ in type.",
        "assert columns of orders match raw_orders",
        parameters=(_OTHER,),
        is_internal=True,
    ),
)
