"""Demands on data by the rules of a contract, grouped by their subject.

All demands on a column except `Required` and `Presence` are about the values that are not NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, get_args

from dqx_airflow.contracts.demands.base import DemandBase
from dqx_airflow.contracts.demands.columns import (
    AllComplete,
    Complete,
    Distinct,
    OfType,
    OnlyColumns,
    Presence,
    Refers,
    Required,
    Unique,
)
from dqx_airflow.contracts.demands.measured import Condition, MetricRule, QueryGives, RowsSatisfy
from dqx_airflow.contracts.demands.time import (
    Arrives,
    Fresh,
    HourlyVolume,
    Prompt,
    Retained,
    Volume,
)
from dqx_airflow.contracts.demands.values import (
    Bound,
    Digits,
    Length,
    MultipleOf,
    OfFormat,
    OneOf,
    Pattern,
    UniqueItems,
)
from dqx_airflow.contracts.demands.wording import Literal, one_line

__all__ = [
    "VALUE_DEMANDS",
    "AllComplete",
    "AmongRows",
    "Arrives",
    "Bound",
    "Complete",
    "Condition",
    "Demand",
    "Digits",
    "Distinct",
    "Fresh",
    "HourlyVolume",
    "Length",
    "Literal",
    "MetricRule",
    "MultipleOf",
    "OfFormat",
    "OfType",
    "OneOf",
    "OnlyColumns",
    "Pattern",
    "Presence",
    "Prompt",
    "QueryGives",
    "Refers",
    "Required",
    "Retained",
    "RowsSatisfy",
    "Unique",
    "UniqueItems",
    "Volume",
]


@dataclass(frozen=True, slots=True)
class AmongRows(DemandBase):
    """A demand on the rows for which an SQL predicate is true; others are exempt."""

    demand: Demand
    where: str
    sql_dialect: str | None = None

    @property
    def text(self) -> str:
        return f"{self.demand.text} where {one_line(self.where)}"

    @property
    def dimension(self) -> str | None:  # type: ignore[override]
        return self.demand.dimension

    @property
    def named_columns(self) -> tuple[str, ...]:
        return self.demand.named_columns


Demand: TypeAlias = (
    Presence
    | OfType
    | OnlyColumns
    | Required
    | Unique
    | Refers
    | Pattern
    | OfFormat
    | OneOf
    | Bound
    | Length
    | MultipleOf
    | Digits
    | UniqueItems
    | MetricRule
    | Complete
    | AllComplete
    | Distinct
    | RowsSatisfy
    | AmongRows
    | QueryGives
    | Fresh
    | Prompt
    | Retained
    | Volume
    | HourlyVolume
    | Arrives
)

VALUE_DEMANDS = tuple(kind for kind in get_args(Demand) if kind.is_about_each_value)
"""The demands that each value satisfies or not, independently of the others."""
