"""The contents of a file: suites with their checks and profiles, constants, macros, imports."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from dqx_airflow.dql.nodes.assertions import (
    Annotation,
    Assertion,
    is_among,
)
from dqx_airflow.dql.nodes.expressions import (
    Expression,
    Name,
    Number,
    Text,
)
from dqx_airflow.values import Span


@dataclass(frozen=True, slots=True)
class Use:
    """`use name(arguments)`, or `use alias.name(arguments)` of an imported file."""

    name: Name
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """`for variable in parameter { ... }`, over the arguments of a variadic parameter."""

    variable: Name
    over: Name
    body: tuple[MacroItem, ...]
    span: Span = field(compare=False)


MacroItem: TypeAlias = Assertion | Use | Loop


@dataclass(frozen=True, slots=True)
class Macro:
    """`macro name(parameters) { ... }`; `is_variadic` if the last parameter takes the rest."""

    name: Name
    parameters: tuple[Name, ...]
    is_variadic: bool
    body: tuple[MacroItem, ...]
    span: Span = field(compare=False)
    is_exported: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """`body` as written; after expansion it contains only assertions.

    `where` is a predicate that selects the rows of all of them.
    """

    name: Text
    datasets: tuple[Name, ...]
    body: tuple[Assertion | Use, ...]
    span: Span = field(compare=False)
    where: Expression | None = None

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        return tuple(item for item in self.body if isinstance(item, Assertion))


@dataclass(frozen=True, slots=True)
class Constant:
    """`const NAME = value`, with the bounds for tuning."""

    name: Name
    value: Expression
    bounds: tuple[Expression, Expression] | None
    span: Span = field(compare=False)
    is_exported: bool = False


@dataclass(frozen=True, slots=True)
class Import:
    """`import "path"`, with an alias, or with the imported names."""

    path: Text
    alias: Name | None
    names: tuple[Name, ...]
    span: Span = field(compare=False)


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
    factor: Fraction
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Downgrade:
    selector: Selector
    severity: Name
    span: Span = field(compare=False)


Rule: TypeAlias = Disable | Scale | Downgrade


@dataclass(frozen=True, slots=True)
class Profile:
    """`start` and `end` are date expressions, inclusive; None if they are missing."""

    name: Text
    type: Name | None
    start: Expression | None
    end: Expression | None
    rules: tuple[Rule, ...]
    repeated: tuple[Span, ...] = field(compare=False)
    span: Span = field(compare=False)
    annotations: tuple[Annotation, ...] = ()

    @property
    def allows_required(self) -> bool:
        """True if it may explicitly disable required assertions."""
        return is_among(self.annotations, "allow_required")


@dataclass(frozen=True, slots=True)
class Suite:
    """`availability_threshold` is a fraction; None for the default of 90%."""

    name: Text
    availability_threshold: Number | None
    constants: tuple[Constant, ...]
    checks: tuple[Check, ...]
    profiles: tuple[Profile, ...]
    macros: tuple[Macro, ...]
    imports: tuple[Import, ...]
    repeated: tuple[Span, ...] = field(compare=False)
    span: Span = field(compare=False)
    annotations: tuple[Annotation, ...] = ()

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
