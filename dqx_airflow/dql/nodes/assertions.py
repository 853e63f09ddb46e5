"""Assertions: their claims and conditions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from dqx_airflow.dql.nodes.expressions import (
    Expression,
    Listing,
    Name,
    Number,
    Text,
    Truth,
)
from dqx_airflow.values import Severity, Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """`op bound`, with op one of < <= > >= == !=."""

    op: str
    bound: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Between:
    low: Expression
    high: Expression
    span: Span = field(compare=False)


class Keyword(str, Enum):
    """The words that may follow `is`."""

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
    """`in values(column, dataset other)`, or `in ["A", "B"]`"""

    choices: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class WithinStddev:
    """`within count stddev of N days`: near the mean of the previous days; None for the default."""

    count: Expression
    days: Number | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ByTime:
    """`by 06:00 UTC`: the time as written, the time zone as a name or a string, None for UTC."""

    time: Text
    zone: Name | Text | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class MatchesShares:
    """`matches {"A": 50%, "B": 30%}`: the expected share of rows with each value."""

    shares: tuple[tuple[Text | Number | Truth, Number], ...]
    span: Span = field(compare=False)


Condition: TypeAlias = Comparison | Between | Is | InValues | WithinStddev | ByTime | MatchesShares


@dataclass(frozen=True, slots=True)
class Measure:
    """An expression over metrics with its condition, which is None for a shortcut."""

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
class HasColumn:
    """`column name exists`, or `column name type decimal(18,2)`, with the type as written.

    If not `is_exact`, it is `column name fits decimal(18,2)`: a narrower type is enough, and words
    such as `number` stand for several types.
    """

    column: Expression
    type: Text | None
    span: Span = field(compare=False)
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class RowsMatch:
    """`rows of dataset match reference on (keys) comparing [columns] tolerance 0.01 allowing 0.1%`.

    Without `compared`, rows match by their keys only; `compares_all` stands for all columns.
    `tolerance` applies to numeric columns, `allowing` is the maximum share of rows that may differ.
    """

    dataset: Expression
    reference: Expression
    keys: Listing
    compared: Listing | None
    compares_all: bool
    tolerance: Number | None
    allowing: Number | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ColumnsMatch:
    """`columns of dataset match reference`: the same names with the same types, in any order."""

    dataset: Expression
    reference: Expression
    span: Span = field(compare=False)


class Junctor(str, Enum):
    """The connective of several claims."""

    ANY = "any"
    ALL = "all"
    IF = "if"


@dataclass(frozen=True, slots=True)
class Composite:
    """`any { assert ... }`, `all { assert ... }`, or `if claim then claim`, which has two parts.

    Its parts have neither names nor severities: they are judged together.
    """

    junctor: Junctor
    parts: tuple[Assertion, ...]
    span: Span = field(compare=False)


Claim: TypeAlias = Measure | Rows | HasColumn | RowsMatch | ColumnsMatch | Composite


@dataclass(frozen=True, slots=True)
class ForEach:
    """`for each (country, channel) in [("CH", "web")]`: an assertion is judged for each group.

    `groups` is a list with a value for each group, or with lists for several columns; None for the
    groups that have rows. `share` is the share of groups that must pass: `for 95% of groups by
    country`; None for all of them.
    """

    columns: tuple[Expression, ...]
    groups: Expression | None
    share: Number | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Annotation:
    name: Name
    arguments: tuple[tuple[Name, Expression], ...]
    span: Span = field(compare=False)


DEFAULT_SEVERITY = Severity.P1
"""The default severity of an assertion."""


def is_among(annotations: tuple[Annotation, ...], name: str) -> bool:
    """True if one of the annotations has the name."""
    return any(annotation.name.text == name for annotation in annotations)


@dataclass(frozen=True, slots=True)
class Assertion:
    """`severity` is the name as written; the checker rejects all but P0 to P3.

    In a macro, `severity` and `tags` may be `{parameter}`, which its expansion replaces. `uses` are
    the positions of the uses that led to an assertion of a macro, the outermost first. `where` is a
    predicate that selects its rows.
    """

    claim: Claim
    name: Text | None
    severity: Name | None
    tolerance: Number | None
    tags: tuple[Name, ...]
    annotations: tuple[Annotation, ...]
    repeated: tuple[Span, ...] = field(compare=False)
    span: Span = field(compare=False)
    uses: tuple[Span, ...] = field(default=(), compare=False)
    where: Expression | None = None
    for_each: ForEach | None = None

    def is_annotated(self, name: str) -> bool:
        return is_among(self.annotations, name)
