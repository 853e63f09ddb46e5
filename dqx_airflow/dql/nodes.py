"""The syntax tree: frozen nodes, each with the span of its text.

Spans are ignored in comparisons: two trees are equal if they mean the same. First the expressions
over metrics and rows, then the assertions, then the rest of a file. All of them are used as
`nodes.Call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from dqx_airflow.metrics.calls import USUAL, USUAL_LIMITS
from dqx_airflow.values import Severity, Span

NOWHERE = Span("", 1, 1, 1, 1)
"""The span of nodes that are not in a text: they have no position until they are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of a file, with its position."""

    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionNode(Node):
    """A node that may also be made without a file."""

    span: Span = field(default=NOWHERE, compare=False)


# Expressions over metrics, and row predicates


@dataclass(frozen=True, slots=True)
class Name(ExpressionNode):
    """An identifier with its position."""

    text: str


@dataclass(frozen=True, slots=True)
class Text(ExpressionNode):
    """A string literal, unescaped."""

    value: str


class Unit(str, Enum):
    """The notation of a number: without a unit, `5%` or `2 hours`."""

    PLAIN = "plain"
    PERCENT = "percent"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class Number(ExpressionNode):
    """A numeric literal, exact. Percentages are stored as shares, durations in seconds.

    A number with a point, an exponent or a percent sign is a `Fraction`, even if it is an integer:
    `1.0` prints as it was written. A float is a number that is too large to be exact.
    """

    value: int | Fraction | float
    unit: Unit


@dataclass(frozen=True, slots=True)
class Day(ExpressionNode):
    """A date literal such as `2024-11-29`."""

    value: date


@dataclass(frozen=True, slots=True)
class Truth(ExpressionNode):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Null(ExpressionNode):
    """The literal `None`."""


@dataclass(frozen=True, slots=True)
class Parameter(ExpressionNode):
    """A named argument: `lag 1`, `dataset orders`, `order_by price`, `n 7`, `where price > 0`."""

    name: Name
    value: Expression


@dataclass(frozen=True, slots=True)
class Call(ExpressionNode):
    """`name(arguments, parameters)`: a metric, a function, a shortcut or a date."""

    name: Name
    arguments: tuple[Expression, ...]
    parameters: tuple[Parameter, ...] = ()

    @property
    def where(self) -> Expression | None:
        """The predicate that selects its rows; None for all rows."""
        return self.parameter("where")

    def parameter(self, name: str) -> Expression | None:
        """The value of a named argument; None if it is not given."""
        return next(
            (parameter.value for parameter in self.parameters if parameter.name.text == name), None
        )


@dataclass(frozen=True, slots=True)
class Placeholder(ExpressionNode):
    """`{name}` in the body of a macro: the argument for a parameter."""

    name: str


@dataclass(frozen=True, slots=True)
class Listing(ExpressionNode):
    """`[a, b]`"""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Negative(ExpressionNode):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(ExpressionNode):
    """`left op right`, op one of + - * /."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Junction(ExpressionNode):
    """`left and right`, `left or right`."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(ExpressionNode):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Compare(ExpressionNode):
    """`left op right` over a row, op one of < <= > >= == !=."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Within(ExpressionNode):
    """`operand between low and high`, inclusive."""

    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Member(ExpressionNode):
    """`operand in [..]`, or `operand in values(column, dataset other)`."""

    operand: Expression
    choices: Expression


@dataclass(frozen=True, slots=True)
class Matches(ExpressionNode):
    """`operand matches "pattern"`: the pattern matches a part of the string."""

    operand: Expression
    pattern: Text


@dataclass(frozen=True, slots=True)
class Like(ExpressionNode):
    """`operand like "pattern"`: matches the whole string, `%` any characters and `_` one."""

    operand: Expression
    pattern: Text


@dataclass(frozen=True, slots=True)
class HasFormat(ExpressionNode):
    """`operand is email`, or another format of `metrics.text_formats`."""

    operand: Expression
    format: Name


@dataclass(frozen=True, slots=True)
class IsNull(ExpressionNode):
    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNan(ExpressionNode):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Quantified(ExpressionNode):
    """`every(array, predicate)` or `some(array, predicate)`, with a predicate over an `Item`."""

    name: Name
    array: Expression
    predicate: Expression


@dataclass(frozen=True, slots=True)
class Item(ExpressionNode):
    """`item`, or `item.price.amount` with its path: an item of the innermost array."""

    path: tuple[str, ...]


Literal: TypeAlias = Text | Number | Day | Truth | Null
Test: TypeAlias = Compare | Within | Member | Matches | Like | HasFormat | IsNull | IsNan
Predicate: TypeAlias = Junction | Not | Test | Quantified
Value: TypeAlias = Name | Literal | Item | Call | Placeholder | Listing | Negative | Arithmetic
Expression: TypeAlias = Value | Predicate


def operands_of(test: Expression) -> tuple[Expression, ...]:
    """The operands of a test: its subject, then the compared expressions; for a lookup, the column
    alone."""
    match test:
        case Compare(left=left, right=right):
            return left, right
        case Within(operand=operand, low=low, high=high):
            return operand, low, high
        case Member(operand=operand, choices=Listing(items=items)):
            return operand, *items
        case Member() | Matches() | Like() | HasFormat() | IsNull() | IsNan():
            return (test.operand,)
        case _:
            raise AssertionError(f"not a test: {test}")


# Assertions: their claims and conditions


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`op bound`, with op one of < <= > >= == !=."""

    op: str
    bound: Expression


@dataclass(frozen=True, slots=True)
class Between(Node):
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class NotBetween(Node):
    """`not between low and high`: below the first or above the second."""

    low: Expression
    high: Expression


class Keyword(str, Enum):
    """The words that may follow `is`."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NONE = "None"
    NOT_NONE = "not None"


@dataclass(frozen=True, slots=True)
class Is(Node):
    keyword: Keyword


@dataclass(frozen=True, slots=True)
class InValues(Node):
    """`in values(column, dataset other)`, or `in ["A", "B"]`"""

    choices: Expression


@dataclass(frozen=True, slots=True)
class WithinStddev(Node):
    """`within count stddev of N days`: near the mean of the previous days; None for the default."""

    count: Expression
    days: Number | None


def within_usual(usual: Call, span: Span) -> Between:
    """`within usual(metric)`: between its limits, `lowest_usual` and `highest_usual`."""
    if usual.name.text != USUAL:
        return Between(usual, usual, span=span)
    low, high = (replace(usual, name=Name(limit, span=usual.name.span)) for limit in USUAL_LIMITS)
    return Between(low, high, span=span)


def usual_of(condition: Between) -> Call | None:
    """The call of `within usual(metric)`; None for other limits."""
    match condition:
        case Between(low=Call() as low, high=Call() as high) if (
            low.name.text,
            high.name.text,
        ) == USUAL_LIMITS and replace(low, name=high.name) == high:
            return replace(low, name=replace(low.name, text=USUAL))
    return None


@dataclass(frozen=True, slots=True)
class ByTime(Node):
    """`by 06:00 UTC`: the time as written, the time zone as a name or a string, None for UTC."""

    time: Text
    zone: Name | Text | None


@dataclass(frozen=True, slots=True)
class MatchesShares(Node):
    """`matches {"A": 50%, "B": 30%}`: the expected share of rows with each value."""

    shares: tuple[tuple[Text | Number | Truth, Number], ...]


Condition: TypeAlias = (
    Comparison | Between | NotBetween | Is | InValues | WithinStddev | ByTime | MatchesShares
)


def bounds_of(condition: Condition | None) -> tuple[Expression, ...]:
    """The expressions that a value is compared with by an operator, or by `between`."""
    match condition:
        case Comparison(bound=bound):
            return (bound,)
        case Between(low=low, high=high) | NotBetween(low=low, high=high):
            return (low, high)
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class Measure(Node):
    """An expression over metrics with its condition, which is None for a shortcut."""

    expression: Expression
    condition: Condition | None


@dataclass(frozen=True, slots=True)
class Rows(Node):
    """`each row: predicate` (share None) or `N% of rows: predicate`."""

    predicate: Expression
    share: Number | None


@dataclass(frozen=True, slots=True)
class HasColumn(Node):
    """`column name exists`, or `column name type decimal(18,2)`, with the type as written.

    If not `is_exact`, it is `column name fits decimal(18,2)`: a narrower type is enough, and words
    such as `number` stand for several types.
    """

    column: Expression
    type: Text | None
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class RowsMatch(Node):
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


@dataclass(frozen=True, slots=True)
class ColumnsMatch(Node):
    """`columns of dataset match reference`: the same names with the same types, in any order."""

    dataset: Expression
    reference: Expression


class Junctor(str, Enum):
    """The connective of several claims."""

    ANY = "any"
    ALL = "all"
    IF = "if"


@dataclass(frozen=True, slots=True)
class Composite(Node):
    """`any { assert ... }`, `all { assert ... }`, or `if claim then claim`, which has two parts.

    Its parts have neither names nor severities: they are judged together.
    """

    junctor: Junctor
    parts: tuple[Assertion, ...]


Claim: TypeAlias = Measure | Rows | HasColumn | RowsMatch | ColumnsMatch | Composite


@dataclass(frozen=True, slots=True)
class ForEach(Node):
    """`for each (country, channel) in [("CH", "web")]`: an assertion is judged for each group.

    `groups` is a list with a value for each group, or with lists for several columns; None for the
    groups that have rows. `share` is the share of groups that must pass: `for 95% of groups by
    country`; None for all of them.
    """

    columns: tuple[Expression, ...]
    groups: Expression | None
    share: Number | None


@dataclass(frozen=True, slots=True)
class Annotation(Node):
    name: Name
    arguments: tuple[tuple[Name, Expression], ...]


DEFAULT_SEVERITY = Severity.P1
"""The default severity of an assertion."""


def is_among(annotations: tuple[Annotation, ...], name: str) -> bool:
    """True if one of the annotations has the name."""
    return any(annotation.name.text == name for annotation in annotations)


@dataclass(frozen=True, slots=True)
class Assertion(Node):
    """`severity` is the name as written; the checker rejects all but P0 to P3.

    In a macro, `severity` and `tags` may be `{parameter}`, which its expansion replaces. `uses` are
    the positions of the uses that led to an assertion of a macro, the outermost first. `where` is a
    predicate that selects its rows.
    """

    claim: Claim
    name: Text | None = None
    severity: Name | None = None
    tolerance: Number | None = None
    tags: tuple[Name, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    repeated: tuple[Span, ...] = field(default=(), compare=False)
    uses: tuple[Span, ...] = field(default=(), compare=False)
    where: Expression | None = None
    for_each: ForEach | None = None

    def is_annotated(self, name: str) -> bool:
        return is_among(self.annotations, name)


# The contents of a file: suites with their checks and profiles, constants, macros, imports


@dataclass(frozen=True, slots=True)
class Use(Node):
    """`use name(arguments)`, or `use alias.name(arguments)` of an imported file."""

    name: Name
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """`for variable in parameter { ... }`, over the arguments of a variadic parameter."""

    variable: Name
    over: Name
    body: tuple[MacroItem, ...]


MacroItem: TypeAlias = Assertion | Use | Loop


@dataclass(frozen=True, slots=True)
class Watch(Node):
    """`watch dataset`, or `watch dataset drift holidays "US"`: everything about it is usual, with
    `drift` its distributions, too. `known` is that parameter of `usual`."""

    dataset: Name
    drift: str | None
    known: Parameter | None


CheckItem: TypeAlias = Assertion | Use | Watch


@dataclass(frozen=True, slots=True)
class Macro(Node):
    """`macro name(parameters) { ... }`; `is_variadic` if the last parameter takes the rest."""

    name: Name
    parameters: tuple[Name, ...]
    is_variadic: bool
    body: tuple[MacroItem, ...]
    is_exported: bool = False


@dataclass(frozen=True, slots=True)
class Check(Node):
    """`body` as written; after expansion it contains only assertions, and watches of datasets
    whose columns are not known yet.

    `where` is a predicate that selects the rows of all of them.
    """

    name: Text
    datasets: tuple[Name, ...]
    body: tuple[CheckItem, ...]
    where: Expression | None = None

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        return tuple(item for item in self.body if isinstance(item, Assertion))

    @property
    def watches(self) -> tuple[Watch, ...]:
        return tuple(item for item in self.body if isinstance(item, Watch))


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """`const NAME = value`, with the bounds for tuning."""

    name: Name
    value: Expression
    bounds: tuple[Expression, Expression] | None
    is_exported: bool = False


Constants: TypeAlias = Mapping[str, Constant]
"""The constants of a scope by their names."""


@dataclass(frozen=True, slots=True)
class Import(Node):
    """`import "path"`, with an alias, or with the imported names."""

    path: Text
    alias: Name | None
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Selector(Node):
    """`check "c"`, `tag "t"` or `assertion "a" in "c"`."""

    kind: str
    name: Text
    check: Text | None


@dataclass(frozen=True, slots=True)
class Disable(Node):
    selector: Selector


@dataclass(frozen=True, slots=True)
class Scale(Node):
    selector: Selector
    factor: Fraction


@dataclass(frozen=True, slots=True)
class Downgrade(Node):
    selector: Selector
    severity: Name


Rule: TypeAlias = Disable | Scale | Downgrade


@dataclass(frozen=True, slots=True)
class Profile(Node):
    """`start` and `end` are date expressions, inclusive; None if they are missing."""

    name: Text
    type: Name | None
    start: Expression | None
    end: Expression | None
    rules: tuple[Rule, ...]
    repeated: tuple[Span, ...] = field(compare=False)
    annotations: tuple[Annotation, ...] = ()

    @property
    def allows_required(self) -> bool:
        """True if it may explicitly mute required assertions."""
        return is_among(self.annotations, "allow_required")


@dataclass(frozen=True, slots=True)
class Suite(Node):
    """`availability_threshold` is a fraction; None for the default of 90%."""

    name: Text
    availability_threshold: Number | None = None
    constants: tuple[Constant, ...] = ()
    checks: tuple[Check, ...] = ()
    profiles: tuple[Profile, ...] = ()
    macros: tuple[Macro, ...] = ()
    imports: tuple[Import, ...] = ()
    repeated: tuple[Span, ...] = field(default=(), compare=False)
    annotations: tuple[Annotation, ...] = ()

    @property
    def watched(self) -> tuple[str, ...]:
        """The watched datasets whose columns are not known yet."""
        names = (watch.dataset.text for check in self.checks for watch in check.watches)
        return tuple(dict.fromkeys(names))

    @property
    def requires_history(self) -> bool:
        """True if a gate is broken as soon as an assertion lacks data of other dates."""
        return is_among(self.annotations, "require_history")


@dataclass(frozen=True, slots=True)
class File:
    """A suite file, or a library file, whose `suite` is None.

    `constants` and `macros` are those outside of the suite, exported or not.
    """

    imports: tuple[Import, ...]
    constants: tuple[Constant, ...]
    macros: tuple[Macro, ...]
    suites: tuple[Suite, ...]

    @property
    def suite(self) -> Suite | None:
        return self.suites[0] if self.suites else None

    @property
    def all_imports(self) -> tuple[Import, ...]:
        """The imports of the file, then of its suite."""
        return (*self.imports, *(self.suite.imports if self.suite else ()))

    @property
    def all_constants(self) -> tuple[Constant, ...]:
        """The constants of the file, then of its suite."""
        return (*self.constants, *(self.suite.constants if self.suite else ()))

    @property
    def all_macros(self) -> tuple[Macro, ...]:
        """The macros of the file, then of its suite."""
        return (*self.macros, *(self.suite.macros if self.suite else ()))
