"""The syntax tree: frozen nodes, each with the span of its text.

Spans do not take part in equality: two trees are equal when they mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import TypeAlias

from dqx_airflow.values import Span


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier in its place."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A string literal, unescaped."""

    value: str
    span: Span = field(compare=False)


class Unit(str, Enum):
    """How a number was written: plain, `5%` or `2 hours`."""

    PLAIN = "plain"
    PERCENT = "percent"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric literal. Percentages are stored as fractions, durations in seconds."""

    value: int | float
    unit: Unit
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Day:
    """A date literal such as `2024-11-29`."""

    value: date
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Null:
    """The literal `None`."""

    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named argument: `lag 1`, `dataset orders`, `order_by price`, `n 7`."""

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


# Predicates over rows ------------------------------------------------------------------------


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
    """`operand between low and high`, both ends included."""

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
    """`operand matches "pattern"`: the pattern is found somewhere in the text."""

    operand: Expression
    pattern: Text
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    span: Span = field(compare=False)


Expression: TypeAlias = (
    Name
    | Text
    | Number
    | Day
    | Null
    | Call
    | Listing
    | Negative
    | Arithmetic
    | Junction
    | Not
    | Compare
    | Within
    | Member
    | Matches
    | IsNull
)

# Assertions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """`op bound`, op one of < <= > >= == !=."""

    op: str
    bound: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Between:
    low: Expression
    high: Expression
    span: Span = field(compare=False)


class Keyword(str, Enum):
    """What may follow `is`."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NONE = "None"
    NOT_NONE = "not None"


@dataclass(frozen=True, slots=True)
class Is:
    keyword: Keyword
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class InValues:
    """`in values(column, dataset other)`"""

    choices: Expression
    span: Span = field(compare=False)


Condition: TypeAlias = Comparison | Between | Is | InValues


@dataclass(frozen=True, slots=True)
class Measure:
    """An expression over metrics with its condition; None where a shortcut stands for both."""

    expression: Expression
    condition: Condition | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Rows:
    """`each row: predicate` (share None) or `N% of rows: predicate`."""

    predicate: Expression
    share: Number | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Annotation:
    name: Name
    arguments: tuple[tuple[Name, Expression], ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Assertion:
    """`severity` is the name as written; the checker turns down what is not one of P0 to P3."""

    claim: Measure | Rows
    name: Text | None
    severity: Name | None
    tolerance: Number | None
    tags: tuple[Name, ...]
    annotations: tuple[Annotation, ...]
    repeated: tuple[Span, ...] = field(compare=False)
    span: Span = field(compare=False)

    def is_annotated(self, name: str) -> bool:
        return any(annotation.name.text == name for annotation in self.annotations)


@dataclass(frozen=True, slots=True)
class Check:
    name: Text
    datasets: tuple[Name, ...]
    assertions: tuple[Assertion, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """`const NAME = value`, with the bounds within which it may be tuned."""

    name: Name
    value: Expression
    bounds: tuple[Expression, Expression] | None
    span: Span = field(compare=False)


# Profiles ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selector:
    """`check "c"`, `tag "t"` or `assertion "a" in "c"`."""

    kind: str
    name: Text
    check: Text | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Disable:
    selector: Selector
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Scale:
    selector: Selector
    factor: float
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Downgrade:
    selector: Selector
    severity: Name
    span: Span = field(compare=False)


Rule: TypeAlias = Disable | Scale | Downgrade


@dataclass(frozen=True, slots=True)
class Profile:
    """`start` and `end` are date expressions, both ends included; None where they are missing."""

    name: Text
    type: Name | None
    start: Expression | None
    end: Expression | None
    rules: tuple[Rule, ...]
    repeated: tuple[Span, ...] = field(compare=False)
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Suite:
    """`availability_threshold` is a fraction; None where the default of 90% holds."""

    name: Text
    availability_threshold: Number | None
    constants: tuple[Constant, ...]
    checks: tuple[Check, ...]
    profiles: tuple[Profile, ...]
    repeated: tuple[Span, ...] = field(compare=False)
    span: Span = field(compare=False)
