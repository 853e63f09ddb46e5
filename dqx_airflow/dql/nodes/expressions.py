"""Expressions over metrics, and row predicates."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from dqx_airflow.values import Span


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier with its position."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A string literal, unescaped."""

    value: str
    span: Span = field(compare=False)


class Unit(str, Enum):
    """The notation of a number: plain, `5%` or `2 hours`."""

    PLAIN = "plain"
    PERCENT = "percent"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric literal, exact. Percentages are stored as shares, durations in seconds.

    A number with a point, an exponent or a percent sign is a `Fraction`, even if it is an integer:
    `1.0` prints as it was written. A float is a number that is too large to be exact.
    """

    value: int | Fraction | float
    unit: Unit
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Day:
    """A date literal such as `2024-11-29`."""

    value: date
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`."""

    value: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Null:
    """The literal `None`."""

    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named argument: `lag 1`, `dataset orders`, `order_by price`, `n 7`, `where price > 0`."""

    name: Name
    value: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`name(arguments, parameters)`: a metric, a function, a shortcut or a date."""

    name: Name
    arguments: tuple[Expression, ...]
    parameters: tuple[Parameter, ...]
    span: Span = field(compare=False)

    @property
    def where(self) -> Expression | None:
        """The predicate that selects its rows; None for all rows."""
        return next((item.value for item in self.parameters if item.name.text == "where"), None)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`{name}` in the body of a macro: the argument for a parameter."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """`[a, b]`"""

    items: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right`, op one of + - * /."""

    op: str
    left: Expression
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Junction:
    """`left and right`, `left or right`."""

    op: str
    left: Expression
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right` over a row, op one of < <= > >= == !=."""

    op: str
    left: Expression
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Within:
    """`operand between low and high`, inclusive."""

    operand: Expression
    low: Expression
    high: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """`operand in [..]`, or `operand in values(column, dataset other)`."""

    operand: Expression
    choices: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Matches:
    """`operand matches "pattern"`: the pattern matches a part of the string."""

    operand: Expression
    pattern: Text
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Like:
    """`operand like "pattern"`: matches the whole string, `%` any characters and `_` one."""

    operand: Expression
    pattern: Text
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class HasFormat:
    """`operand is email`, or another format of `metrics.text_formats`."""

    operand: Expression
    format: Name
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class IsNan:
    operand: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Quantified:
    """`every(array, predicate)` or `some(array, predicate)`, with a predicate over an `Item`."""

    name: Name
    array: Expression
    predicate: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Item:
    """`item`, or `item.price.amount` with its path: an item of the innermost array."""

    path: tuple[str, ...]
    span: Span = field(compare=False)


Expression: TypeAlias = (
    Name
    | Text
    | Number
    | Day
    | Truth
    | Null
    | Call
    | Placeholder
    | Listing
    | Negative
    | Arithmetic
    | Junction
    | Not
    | Compare
    | Within
    | Member
    | Matches
    | Like
    | HasFormat
    | IsNull
    | IsNan
    | Quantified
    | Item
)
