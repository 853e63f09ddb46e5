"""Converts values of a dataset to metric values."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dqx_airflow.metrics.types import decimal_type
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import Number, exact, exact_text, is_decimal, nearest_float


def spark_number(value: Number | Decimal) -> int | Decimal | float:
    """The number as Spark can hold it: an integer, a decimal, or else the nearest float."""
    if isinstance(value, float | Decimal):
        return value
    point = ".0" if isinstance(value, Fraction) and value.denominator == 1 else ""
    decimal = Decimal(exact_text(value) + point) if is_decimal(value) else None
    if decimal is None or decimal_type(decimal) is None:
        return nearest_float(value)
    return value if isinstance(value, int) else decimal


def is_finite(value: Any) -> bool:
    """False for NaN and the infinities."""
    return not isinstance(value, float) or math.isfinite(value)


def plain(value: Any) -> MetricValue:
    """A value of a dataset as a plain metric value; None for NaN, infinite and nested values.

    Decimals and integers are exact, whatever their size. Timestamps are in UTC, or have no time
    zone.
    """
    match value:
        case None | str():
            return value
        case bool():
            return int(value)
        case int():
            return value
        case Decimal() | Fraction():
            return exact(value)
        case float():
            return value if is_finite(value) else None
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return None
