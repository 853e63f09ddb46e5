"""Demands on columns: presence, completeness, uniqueness, references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dqx_airflow.contracts.demands.base import DemandBase
from dqx_airflow.contracts.demands.wording import (
    columns_text,
    percent_text,
)


@dataclass(frozen=True, slots=True)
class Presence(DemandBase):
    """The column exists."""

    dimension: ClassVar[str | None] = "conformity"

    @property
    def text(self) -> str:
        return "the column exists"


@dataclass(frozen=True, slots=True)
class OfType(DemandBase):
    """The values of the column are of the type of the field, see `Field.type`."""

    dimension: ClassVar[str | None] = "conformity"

    @property
    def text(self) -> str:
        return "values of the type"


@dataclass(frozen=True, slots=True)
class OnlyColumns(DemandBase):
    """The model has no columns other than the fields of the contract."""

    dimension: ClassVar[str | None] = "conformity"

    @property
    def text(self) -> str:
        return "no other columns"


@dataclass(frozen=True, slots=True)
class Required(DemandBase):
    """No value is NULL."""

    dimension: ClassVar[str | None] = "completeness"

    @property
    def text(self) -> str:
        return "not NULL"


@dataclass(frozen=True, slots=True)
class Unique(DemandBase):
    """No two rows have the same values in these columns, except for rows with a NULL in them.

    A key that must not be NULL also has `Required`.
    """

    dimension: ClassVar[str | None] = "uniqueness"
    column_fields: ClassVar[tuple[str, ...]] = ("columns",)

    columns: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"unique by {columns_text(self.columns)}"


@dataclass(frozen=True, slots=True)
class Refers(DemandBase):
    """The combinations of values exist in the columns of another dataset.

    `dataset` is the name of a model of this contract, or of another table or contract.
    """

    dimension: ClassVar[str | None] = "consistency"
    column_fields: ClassVar[tuple[str, ...]] = ("columns",)

    columns: tuple[str, ...]
    dataset: str
    other_columns: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"found in {self.dataset} {columns_text(self.other_columns)}"


@dataclass(frozen=True, slots=True)
class Complete(DemandBase):
    """At least this share of the values is not NULL."""

    dimension: ClassVar[str | None] = "completeness"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str
    share: float

    @property
    def text(self) -> str:
        return f"{percent_text(self.share)} of {self.column} are not NULL"


@dataclass(frozen=True, slots=True)
class AllComplete(DemandBase):
    """At least this share of the values of all columns of the model together is not NULL."""

    dimension: ClassVar[str | None] = "completeness"

    share: float

    @property
    def text(self) -> str:
        return f"{percent_text(self.share)} of all values are not NULL"


@dataclass(frozen=True, slots=True)
class Distinct(DemandBase):
    """At most this share of the rows repeats another row in these columns."""

    dimension: ClassVar[str | None] = "uniqueness"
    column_fields: ClassVar[tuple[str, ...]] = ("columns",)

    columns: tuple[str, ...]
    duplicates: float

    @property
    def text(self) -> str:
        return f"at most {percent_text(self.duplicates)} repeat {columns_text(self.columns)}"
