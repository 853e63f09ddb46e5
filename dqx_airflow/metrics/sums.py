"""Exact sums: integers are added as decimals, and decimals without rounding.

Spark adds integers as bigints, and averages them as a double; an average of decimals is rounded to
four more digits. Here a sum has all its digits, and an average is the sum divided by the count.
"""

from __future__ import annotations

from collections.abc import Sequence

from dqx_airflow.metrics.merging import Merge
from dqx_airflow.metrics.metric import Aggregate, TypeOf
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import LONGEST_DECIMAL
from dqx_airflow.values import MetricValue

OVERFLOW = f"the sum overflows: it needs more than {LONGEST_DECIMAL} digits"

# Sums of parts of the bits cannot overflow below 2**42 rows, and are as fast as one of bigints; a
# sum of decimals takes twice the time.
_OF_PARTS = {
    "int": (("shiftright({0}, 16)", 65536), ("{0} & 65535", 1)),
    "bigint": (
        ("shiftright({0}, 42)", 4398046511104),
        ("shiftright({0}, 21) & 2097151", 2097152),
        ("{0} & 2097151", 1),
    ),
}


def sum_of(column: str) -> Aggregate:
    """The sum of a column."""
    name = quote_name(column)
    by_type = tuple((kind, _in_parts(name, kind)) for kind in _OF_PARTS)
    by_type += (("boolean", f"sum(CAST({name} AS INT))"),)
    return Aggregate(f"try_sum({name})", column=column, merge=Merge.SUM, sql_by_type=by_type)


def has_overflown(
    aggregates: Sequence[Aggregate], results: Sequence[MetricValue], type_of: TypeOf
) -> bool:
    """True if a sum of decimals has no value because it is too large: according to the count beside
    it, there are values."""
    first = aggregates[0] if aggregates else None
    if first is None or first.merge is not Merge.SUM or first.column is None:
        return False
    return results[0] is None and bool(results[1]) and type_of(first.column).startswith("decimal")


def typed(item: Aggregate, type_of: TypeOf) -> Aggregate:
    """The aggregate in the form for the type of its column."""
    if not item.sql_by_type or item.column is None:
        return item
    return item.of_type(type_of(item.column))


def _in_parts(name: str, kind: str) -> str:
    parts = (
        f"CAST(sum({part.format(name)}) AS DECIMAL(20,0)) * {factor}BD"
        for part, factor in _OF_PARTS[kind]
    )
    return " + ".join(parts)
