"""Demands on each value of a column that is not NULL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dqx_airflow.contracts.demands.base import DemandBase
from dqx_airflow.contracts.demands.wording import (
    Literal,
    values_text,
)


@dataclass(frozen=True, slots=True)
class Pattern(DemandBase):
    """An expression of the ECMA dialect matches the string, or a part of it if it has no
    anchors."""

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True

    expression: str

    @property
    def text(self) -> str:
        return f"matches {self.expression}"


@dataclass(frozen=True, slots=True)
class OfFormat(DemandBase):
    """The string has a format: `email`, or another of `metrics.text_formats`."""

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True

    name: str

    @property
    def text(self) -> str:
        return f"has the format {self.name}"


@dataclass(frozen=True, slots=True)
class OneOf(DemandBase):
    """The value is one of these."""

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True

    values: tuple[Literal, ...]

    @property
    def text(self) -> str:
        return f"one of {values_text(self.values)}"


@dataclass(frozen=True, slots=True)
class Bound(DemandBase):
    """The value satisfies a comparison: op is one of > >= < <=. Dates are ISO strings."""

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True

    op: str
    value: Literal

    @property
    def text(self) -> str:
        return f"{self.op} {self.value}"


@dataclass(frozen=True, slots=True)
class Length(DemandBase):
    """The number of characters of a string, or of items of an array, with `>=` or `<=`."""

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True

    op: str
    count: int

    @property
    def text(self) -> str:
        return f"length {self.op} {self.count}"


@dataclass(frozen=True, slots=True)
class MultipleOf(DemandBase):
    """The value is a multiple of a number."""

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True

    divisor: int | float

    @property
    def text(self) -> str:
        return f"a multiple of {self.divisor}"


@dataclass(frozen=True, slots=True)
class Digits(DemandBase):
    """The maximum number of digits of a number, and of those after the point."""

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True

    precision: int
    scale: int

    @property
    def text(self) -> str:
        return f"at most {self.precision} digits, {self.scale} after the point"


@dataclass(frozen=True, slots=True)
class UniqueItems(DemandBase):
    """No array contains a value twice."""

    dimension: ClassVar[str | None] = "uniqueness"
    is_about_each_value: ClassVar[bool] = True

    @property
    def text(self) -> str:
        return "no duplicate items"
