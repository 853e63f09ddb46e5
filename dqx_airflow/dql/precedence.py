"""The precedence of operators, as in the grammar."""

from __future__ import annotations

from enum import IntEnum


class Rung(IntEnum):
    """An operator needs parentheses where a higher rung is required."""

    OR = 0
    AND = 1
    NOT = 2
    TEST = 3
    SUM = 4
    PRODUCT = 5
    SIGN = 6
    ATOM = 7


RUNG_OF = {
    "or": Rung.OR,
    "and": Rung.AND,
    "not": Rung.NOT,
    "+": Rung.SUM,
    "-": Rung.SUM,
    "*": Rung.PRODUCT,
    "/": Rung.PRODUCT,
}
"""The rungs of the binary operators, and of `not`."""
