"""From a value of a dataset to a metric value."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from dqx_airflow.values import MetricValue


def plain(value: Any) -> MetricValue:
    """A value of a dataset as a plain metric value; NaN, infinity and nested ones are none.

    Moments are in UTC, or of no zone.
    """
    match value:
        case None | str():
            return value
        case bool():
            return int(value)
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return None
