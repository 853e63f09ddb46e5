"""Building blocks of metrics in Python: columns in memory, and decimals rounded as by Spark.

`metrics.comparison` defines how values are held.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

EXACT = Context(prec=200)
"""Decimal arithmetic without loss: what Spark would lose is rounded off afterwards."""


class SumOverflow(ArithmeticError):  # noqa: N818 - named like OverflowError's kin
    """A sum of decimals has more digits than a decimal can hold."""


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of a column in row order, and its type as Spark writes it."""

    type: str
    values: tuple[Any, ...]

    @property
    def present(self) -> list[Any]:
        """The values that are not NULL."""
        return [value for value in self.values if value is not None]


def has_room(value: Decimal, precision: int, scale: int) -> bool:
    """True if the integer digits fit into a decimal of that size."""
    return value.copy_abs() < Decimal(10) ** (precision - scale)


def rounded_half_up(value: Decimal, digits: int) -> Decimal:
    """The number rounded to this many decimal places, halves away from zero, as Spark rounds."""
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, EXACT)
