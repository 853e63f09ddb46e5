"""Constants that algorithms may change within their bounds, and how users write their values: `3%`,
`1_200`, `2 hours`."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold, settle
from dqx_airflow.dql.printer import show_number
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile, Span
from dqx_airflow.values.exact import NUMBERS, exact_as_written, nearest_float

T = TypeVar("T")
N = TypeVar("N", bound=float)
K = TypeVar("K", bound="Tunable[Any]")

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")


class Tunable(Mapping[str, Any], Generic[T]):
    """A named value that can only be set to what its kind and its bounds allow.

    It is also a mapping of its properties: `dict(tunable)` has its name, type, value and bounds.
    """

    type: str
    facts: tuple[str, ...] = ("name", "type", "value", "bounds")
    # A named value is equal to no other, as objects are; mappings would be compared by content.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, name: str, value: T) -> None:
        if not _NAME.match(name):
            raise RequestError(
                f"invalid name of a tunable: {name!r}", "write a name such as MAX_NULL_RATE"
            )
        self.name = name
        self._value = self._checked(value)

    @property
    def value(self) -> T:
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        self._value = self._checked(value)

    @property
    @abstractmethod
    def normalized_value(self) -> float:
        """The position of the value: 0 at the first or smallest one that is allowed, 1 at the
        last."""

    @abstractmethod
    def _checked(self, value: T) -> T:
        """The value in its stored form.

        :raises RequestError: it is not allowed.
        """

    @abstractmethod
    def constant(self, span: Span) -> nodes.Constant:
        """Returns the tunable as a constant of DQL."""

    def __getitem__(self, fact: str) -> Any:
        """A property by its name, as in `tunable["bounds"]`.

        :raises KeyError: a tunable has no such property.
        """
        if not isinstance(fact, str) or fact.startswith("_") or not hasattr(self, fact):
            raise KeyError(fact)
        return getattr(self, fact)

    def __iter__(self) -> Iterator[str]:
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)

    def __contains__(self, fact: object) -> bool:
        return fact in self.facts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, value={self.value!r})"


class _Bounded(Tunable[N]):
    """A number between two bounds, inclusive."""

    unit = nodes.Unit.PLAIN

    def __init__(self, name: str, value: N, bounds: tuple[N, N]) -> None:
        low, high = self._number(name, bounds[0]), self._number(name, bounds[1])
        if low > high:
            raise RequestError(f"the bounds of {name} are empty: {low} is above {high}")
        self.bounds = (low, high)
        super().__init__(name, value)

    @property
    def min_bound(self) -> N:
        return self.bounds[0]

    @property
    def max_bound(self) -> N:
        return self.bounds[1]

    @property
    def normalized_value(self) -> float:
        low, high = self.bounds
        return (self.value - low) / (high - low) if high > low else 0.0

    def constant(self, span: Span) -> nodes.Constant:
        value, low, high = (
            nodes.Number(written_number(number), self.unit, span=span)
            for number in (self.value, *self.bounds)
        )
        return nodes.Constant(nodes.Name(self.name, span=span), value, (low, high), span=span)

    def number(self, value: float) -> N:
        """The value as a number of this kind, within the bounds or not.

        :raises RequestError: it is not one.
        """
        untyped: Any = value
        return self._number(self.name, untyped)

    def _checked(self, value: N) -> N:
        number = self._number(self.name, value)
        low, high = self.bounds
        if not low <= number <= high:
            raise RequestError(
                f"{self.name} cannot be {value!r}: it is outside its bounds [{low}, {high}]"
            )
        return number

    @abstractmethod
    def _number(self, name: str, value: N) -> N:
        """The value as a number of this kind.

        :raises RequestError: it is not one.
        """


def written_number(number: float) -> int | Fraction:
    """The number that the parser would read from the digits that Python prints."""
    return number if isinstance(number, int) else Fraction(exact_as_written(number))


class TunableFloat(_Bounded[float]):
    """A number: `TunableFloat("TOLERANCE", value=0.001, bounds=(0.0001, 0.01))`."""

    type = "float"

    def _number(self, name: str, value: float) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if isinstance(value, str | bool) or not math.isfinite(number):
            raise RequestError(f"{name} cannot be {value!r}: it must be a number")
        return number


class TunablePercent(TunableFloat):
    """A share, 0.05 for 5%: `TunablePercent("MAX_NULLS", value=0.05, bounds=(0.0, 0.20))`."""

    type = "percent"
    unit = nodes.Unit.PERCENT


class TunableInt(_Bounded[int]):
    """An integer: `TunableInt("MIN_ORDERS", value=1000, bounds=(100, 10_000))`."""

    type = "int"

    def _number(self, name: str, value: int) -> int:
        try:
            whole = int(value)
        except (TypeError, ValueError, OverflowError):
            whole = None
        if isinstance(value, str | bool) or whole is None or whole != value:
            raise RequestError(f"{name} cannot be {value!r}: it must be a whole number")
        return whole


class TunableChoice(Tunable[str]):
    """One of several strings: `TunableChoice("METHOD", value="mean", choices=("mean", "max"))`."""

    type = "choice"
    facts = (*Tunable.facts, "choices")

    def __init__(self, name: str, value: str, choices: Sequence[str]) -> None:
        self.choices = tuple(choices)
        super().__init__(name, value)

    @property
    def bounds(self) -> tuple[str, str]:
        """The first and the last choice, where `normalized_value` is 0 and 1."""
        return self.choices[0], self.choices[-1]

    @property
    def min_bound(self) -> str:
        return self.bounds[0]

    @property
    def max_bound(self) -> str:
        return self.bounds[1]

    @property
    def normalized_value(self) -> float:
        last = len(self.choices) - 1
        return self.choices.index(self.value) / last if last else 0.0

    def constant(self, span: Span) -> nodes.Constant:
        return nodes.Constant(
            nodes.Name(self.name, span=span), nodes.Text(self.value, span=span), None, span=span
        )

    def _checked(self, value: str) -> str:
        if value not in self.choices:
            choices = ", ".join(map(repr, self.choices)) or "nothing"
            raise RequestError(f"{self.name} cannot be {value!r}: the choices are {choices}")
        return value


class Tunables(Generic[K]):
    """The tunables of a suite, by name."""

    def __init__(self, tunables: Iterable[K]) -> None:
        self._by_name: dict[str, K] = {}
        for tunable in tunables:
            if tunable.name in self._by_name:
                raise RequestError(f"duplicate tunable {tunable.name}")
            self._by_name[tunable.name] = tunable

    def __iter__(self) -> Iterator[K]:
        return iter(self._by_name.values())

    def __getitem__(self, name: str) -> K:
        if name not in self._by_name:
            hint = did_you_mean(name, self._by_name) or "mark a constant with tunable [low, high]"
            raise RequestError(f"the suite has no tunable '{name}'", hint)
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def copies(self) -> tuple[K, ...]:
        """Copies of all tunables: changing a copy changes nothing here."""
        return tuple(map(copy, self))


TunableNumber: TypeAlias = TunableFloat | TunableInt


def tunables_of(suite: nodes.Suite) -> Tunables[TunableNumber]:
    """The tunable constants of the suite's own file, without imported ones."""
    constants = settle(suite.constants)
    return Tunables(
        _tunable(constant, constants)
        for constant in suite.constants
        if constant.bounds is not None and constant.span.file == suite.span.file
    )


def literal_of(constant: nodes.Constant, value: float) -> nodes.Number:
    """A value as written in the constant: a share as a percentage, a duration with a unit.

    :param constant: a constant that has been evaluated.
    """
    unit = constant.value.unit if isinstance(constant.value, nodes.Number) else nodes.Unit.PLAIN
    return nodes.Number(written_number(value), unit, span=constant.value.span)


def units_of(suite: nodes.Suite) -> dict[str, nodes.Unit]:
    """The notations of the constants of a suite, by name; plain for computed ones."""
    return {
        constant.name.text: constant.value.unit
        if isinstance(constant.value, nodes.Number)
        else nodes.Unit.PLAIN
        for constant in suite.constants
    }


def with_values(suite: nodes.Suite, values: Mapping[str, float]) -> nodes.Suite:
    """The suite with other values of its tunables, and of the constants computed from them."""
    settled = settle(suite.constants)
    return replace(
        suite,
        constants=tuple(
            replace(constant, value=literal_of(settled[name], values[name]))
            if (name := constant.name.text) in values
            else constant
            for constant in suite.constants
        ),
    )


def _tunable(constant: nodes.Constant, constants: nodes.Constants) -> TunableNumber:
    assert constant.bounds is not None
    name = constant.name.text
    literal = constants[name].value
    value, low, high = (fold(node, constants) for node in (literal, *constant.bounds))
    is_whole = all(isinstance(number, int) for number in (value, low, high))
    bounds: Any = (low, high)
    untyped: Any = value
    if isinstance(literal, nodes.Number) and literal.unit is nodes.Unit.PERCENT:
        return TunablePercent(name, untyped, bounds)
    return (TunableInt if is_whole else TunableFloat)(name, untyped, bounds)


def typed_values(arguments: Iterable[str]) -> dict[str, float]:
    """The values of arguments such as `MAX_NULLS=3%`.

    :raises RequestError: one is not such an argument.
    """
    values = {}
    for text in arguments:
        name, equals, literal = text.partition("=")
        if not equals:
            raise RequestError(f"--set {text}: missing =", "write --set MAX_NULLS=3%")
        values[name.strip()] = _number_of_argument(text, literal.strip())
    return values


def number_text(value: float, unit: nodes.Unit) -> str:
    """A value in a notation: 0.05 as `5%`, 7200 as `2 hours`."""
    return show_number(nodes.Number(written_number(value), unit, span=Span("", 1, 1, 1, 1)))


def _number_of_argument(text: str, literal: str) -> float:
    parsed = parse(SourceFile("--set", f"export const X = {literal}\n"))
    constants = parsed.file.constants if parsed.file and not parsed.diagnostics else ()
    value = fold(constants[0].value, {}) if len(constants) == 1 else None
    if not isinstance(value, NUMBERS):
        raise RequestError(f"--set {text}: not a number", "write 0.03, 3%, 1200 or 2 hours")
    return value if isinstance(value, int) else nearest_float(value)
