"""Metrics computed in Python over columns in memory, with the results that Spark has.

`metrics.comparison` says how values are held.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

from dqx_airflow.exact import Exact, Number, exact
from dqx_airflow.metrics.comparison import comparable, literal_type, order_key
from dqx_airflow.metrics.types import LONGEST_DECIMAL, decimal_size

EXACT = Context(prec=200)
"""Decimal arithmetic that loses nothing: what Spark would lose is rounded off afterwards."""


class SumOverflow(ArithmeticError):  # noqa: N818 - named like OverflowError's kin
    """A sum of decimals has more digits than a decimal has room for."""


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a column in the order of the rows, and its type as Spark writes it."""

    type: str
    values: tuple[Any, ...]

    @property
    def present(self) -> list[Any]:
        """The values that are not NULL."""
        return [value for value in self.values if value is not None]


def total(column: Column) -> Any:
    """The sum; None without values.

    :raises SumOverflow: it has no room in a decimal.
    """
    values = column.present
    if not values:
        return None
    if not column.type.startswith("decimal"):
        return sum(values)
    _, scale = decimal_size(column.type)
    found = _exact_sum(values)
    if not has_room(found, LONGEST_DECIMAL, scale):
        raise SumOverflow
    return found


def mean(column: Column) -> Any:
    """The sum by the number of values.

    :raises SumOverflow: the sum has no room in a decimal.
    """
    if not column.present:
        return None
    found, count = total(column), len(column.present)
    return found / count if isinstance(found, float) else Fraction(found) / count


def smallest(column: Column) -> Any:
    return min(column.present, key=order_key, default=None)


def largest(column: Column) -> Any:
    return max(column.present, key=order_key, default=None)


def nan_count(column: Column) -> int:
    return sum(isinstance(value, float) and math.isnan(value) for value in column.values)


def sample_variance(column: Column) -> float | None:
    values = [float(value) for value in column.present]
    if len(values) < 2:
        return None
    return sum(move * move for move in _moves(values)) / (len(values) - 1)


def correlation(one: Column, other: Column) -> float | None:
    """Pearson's correlation over the rows that have both values."""
    pairs = [
        (float(a), float(b))
        for a, b in zip(one.values, other.values, strict=True)
        if a is not None and b is not None
    ]
    if not pairs:
        return None
    moves, other_moves = (_moves(side) for side in zip(*pairs, strict=True))
    spread, other_spread = math.hypot(*moves), math.hypot(*other_moves)
    if not spread or not other_spread:
        return None
    found: float = sum(map(operator.mul, moves, other_moves)) / spread / other_spread
    return found if math.isnan(found) else max(-1.0, min(1.0, found))


def percentile(column: Column, share: Number) -> float | None:
    """The percentile in floating point, interpolated between the two values beside the place."""
    values = [float(value) for value in sorted(column.present, key=order_key)]
    if not values:
        return None
    place = (len(values) - 1) * float(share)
    below, above = math.floor(place), math.ceil(place)
    if below == above or values[below] == values[above]:
        return values[below]
    return (above - place) * values[below] + (place - below) * values[above]


def unique_count(column: Column) -> int:
    return len({order_key(value) for value in column.present})


def duplicate_count(columns: Column | Sequence[Column]) -> int:
    """Rows minus distinct combinations; NULL equals NULL."""
    return _repetitions(_combinations(columns))


def repeated_count(columns: Column | Sequence[Column]) -> int:
    """Rows minus distinct combinations, of the rows without NULL in them."""
    return _repetitions([row for row in _combinations(columns) if None not in row])


def _combinations(columns: Column | Sequence[Column]) -> list[tuple[Any, ...]]:
    several = (columns,) if isinstance(columns, Column) else columns
    return list(zip(*(column.values for column in several), strict=True))


def _repetitions(rows: Sequence[tuple[Any, ...]]) -> int:
    return len(rows) - len({order_key(row) for row in rows})


def first(column: Column, order: Column | None) -> Any:
    """The value in the first row, or in the row with the smallest value of `order`."""
    if order is None:
        return column.values[0] if column.values else None
    pairs = zip(order.values, column.values, strict=True)
    ordered = [(order_key(key), value) for key, value in pairs if key is not None]
    return min(ordered, key=lambda pair: pair[0])[1] if ordered else None


def shortest(column: Column) -> int | None:
    return min(map(len, column.present), default=None)


def longest(column: Column) -> int | None:
    return max(map(len, column.present), default=None)


def equal_count(column: Column, value: Any) -> int:
    """The number of rows in which the column equals a literal."""
    sides = (comparable(found, column.type, value, literal_type(value)) for found in column.present)
    return sum(left == right for left, right in sides)


def share_difference(column: Column, shares: Sequence[tuple[Any, Exact]]) -> Exact | None:
    """The largest difference of a share from the one due; the unlisted count as one value."""
    rows = len(column.present)
    if not rows:
        return None
    found = [Fraction(equal_count(column, value), rows) for value, _ in shares]
    due = [share for _, share in shares]
    unlisted = abs(Fraction(sum(found)) - sum(due))
    return exact(max([unlisted, *(abs(a - b) for a, b in zip(found, due, strict=True))]))


def true_share(truths: Column) -> Exact:
    """The share of true among what is true or false; all, if there is nothing."""
    return Fraction(truths.values.count(True), len(truths.present)) if truths.present else 1


def has_room(value: Decimal, precision: int, scale: int) -> bool:
    """True where the digits before the point fit into a decimal of that size."""
    return value.copy_abs() < Decimal(10) ** (precision - scale)


def rounded_half_up(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, EXACT)


def _exact_sum(values: Sequence[Decimal]) -> Decimal:
    found = Decimal(0)
    for value in values:
        found = EXACT.add(found, value)
    return found


def _moves(values: Sequence[float]) -> list[float]:
    """How far each value is from their mean, which is exact where all of them are equal."""
    center = values[0] + sum(value - values[0] for value in values) / len(values)
    return [value - center for value in values]
