"""How strongly the operators of the language bind: the ladder of the grammar."""

from __future__ import annotations

from enum import IntEnum


class Rung(IntEnum):
    """What is on a rung may be wherever a lower one is asked for; else it takes parentheses."""

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
"""The rungs of the operators that have two sides, and of `not`."""
