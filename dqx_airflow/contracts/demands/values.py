"""Demands on each value of a column that is not NULL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dqx_airflow.contracts.demands.base import ValueDemand
from dqx_airflow.contracts.demands.wording import Literal, values_text


@dataclass(frozen=True, slots=True)
class Pattern(ValueDemand):
    """An expression of the ECMA dialect matches the string, or a part of it if it has no
    anchors."""

    expression: str

    @property
    def text(self) -> str:
        return f"matches {self.expression}"


@dataclass(frozen=True, slots=True)
class OfFormat(ValueDemand):
    """The string has a format: `email`, or another of `metrics.text_formats`."""

    name: str

    @property
    def text(self) -> str:
        return f"has the format {self.name}"


@dataclass(frozen=True, slots=True)
class OneOf(ValueDemand):
    """The value is one of these."""

    values: tuple[Literal, ...]

    @property
    def text(self) -> str:
        return f"one of {values_text(self.values)}"


@dataclass(frozen=True, slots=True)
class Bound(ValueDemand):
    """The value satisfies a comparison: op is one of > >= < <=. Dates are ISO strings."""

    op: str
    value: Literal

    @property
    def text(self) -> str:
        return f"{self.op} {self.value}"


@dataclass(frozen=True, slots=True)
class Length(ValueDemand):
    """The number of characters of a string, or of items of an array, with `>=` or `<=`."""

    op: str
    count: int

    @property
    def text(self) -> str:
        return f"length {self.op} {self.count}"


@dataclass(frozen=True, slots=True)
class MultipleOf(ValueDemand):
    """The value is a multiple of a number."""

    divisor: int | float

    @property
    def text(self) -> str:
        return f"a multiple of {self.divisor}"


@dataclass(frozen=True, slots=True)
class Digits(ValueDemand):
    """The maximum number of digits of a number, and of those after the point."""

    precision: int
    scale: int

    @property
    def text(self) -> str:
        return f"at most {self.precision} digits, {self.scale} after the point"


@dataclass(frozen=True, slots=True)
class UniqueItems(ValueDemand):
    """No array contains a value twice."""

    dimension: ClassVar[str | None] = "uniqueness"

    @property
    def text(self) -> str:
        return "no duplicate items"
