"""How a result over some rows and one over others become the result over all of them.

Results are plain metric values, as states hold them. What is merged is the very value that one
pass over all rows has: where a result says too little for that, it is not merged.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    WHOLE_SIZES,
    Family,
    decimal_size,
    family_of,
)
from dqx_airflow.values import MetricValue

_UNREADABLE = "\ufffd"
"""What stands for bytes that are no text; Spark orders by the bytes."""


class Merge(str, Enum):
    """What becomes of two results over different rows."""

    COUNT = "counts are added"
    SUM = "sums are added"
    LEAST = "the smaller one is taken"
    MOST = "the larger one is taken"

    def merged(self, one: MetricValue, other: MetricValue) -> MetricValue:
        """The result over the rows of both. None, the result over no rows, changes nothing."""
        if one is None or other is None:
            return other if one is None else one
        pair: tuple[Any, Any] = (one, other)
        match self:
            case Merge.COUNT | Merge.SUM:
                return plain(pair[0] + pair[1])
            case Merge.LEAST:
                return plain(min(pair))
            case Merge.MOST:
                return plain(max(pair))

    def is_exact(self, spark_type: str, result: MetricValue) -> bool:
        """True where a result over values of a type says all that has to be known to merge it.

        No value may mean no values, and also what no metric value can hold: a sum that overflowed,
        a moment in the year 10000, NaN.
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
