"""Merges a result over some rows with one over others.

Results are plain metric values, as in states. A merged value equals that of one pass over all rows;
results that do not determine it are not merged.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.metrics.types import LONGEST_DECIMAL, WHOLE_SIZES, Family, decimal_size, family_of
from dqx_airflow.values import MetricValue

_UNREADABLE = "\ufffd"
"""The replacement for bytes that are not text; Spark orders by the bytes."""


class Merge(str, Enum):
    """The merge of two results over different rows."""

    COUNT = "counts are added"
    SUM = "sums are added"
    LEAST = "the smaller one is taken"
    MOST = "the larger one is taken"

    def merged(self, first: MetricValue, second: MetricValue) -> MetricValue:
        """The result over the rows of both. None, the result over no rows, is neutral."""
        if first is None or second is None:
            return second if first is None else first
        pair: tuple[Any, Any] = (first, second)
        match self:
            case Merge.COUNT | Merge.SUM:
                return plain(pair[0] + pair[1])
            case Merge.LEAST:
                return plain(min(pair))
            case Merge.MOST:
                return plain(max(pair))

    def is_exact(self, spark_type: str, result: MetricValue) -> bool:
        """True if a result over values of a type suffices to merge it.

        No value may mean no values, or a result that no metric value can hold: a sum that
        overflowed, a timestamp in the year 10000, NaN.
        """
        if self is Merge.COUNT:
            return True
        if isinstance(result, float):
            return False
        if spark_type in WHOLE_SIZES:
            return True
        if spark_type.startswith("decimal"):
            return self._is_exact_decimal(decimal_size(spark_type)[1], result)
        if spark_type == "string":
            return _UNREADABLE not in str(result)
        if family_of(spark_type) is Family.TIME:
            return result is not None
        return spark_type == "boolean"

    def _is_exact_decimal(self, scale: int, result: MetricValue) -> bool:
        if result is None:
            return self is not Merge.SUM
        return not isinstance(result, str) and abs(result) < 10 ** (LONGEST_DECIMAL - scale)
