"""Demands on metrics, on row predicates, and on results of queries."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, TypeAlias

from dqx_airflow.contracts.demands.base import DemandBase
from dqx_airflow.contracts.demands.wording import (
    Literal,
    number_text,
    one_line,
    percent_text,
    values_text,
)

_OF_METRICS = {
    "null_count": "completeness",
    "missing_count": "completeness",
    "duplicate_count": "uniqueness",
    "unique_count": "uniqueness",
    "malformed_count": "conformity",
    "invalid_count": "conformity",
    "num_rows": "coverage",
}


Interval: TypeAlias = "tuple[tuple[float, int], tuple[float, int]]"
"""Two bounds of numbers, each with its side of the value: -1 before it, 1 after it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a number: op is one of == != > >= < <= between `not between`.

    The last two take both `bound` and `high`, inclusive.
    """

    op: str
    bound: int | float
    high: int | float | None = None

    @property
    def text(self) -> str:
        """`> 0`, or `between 1 and 5`."""
        if self.high is None:
            return f"{self.op} {number_text(self.bound)}"
        return f"{self.op} {number_text(self.bound)} and {number_text(self.high)}"

    @property
    def accepted(self) -> tuple[Interval, ...]:
        """The intervals of the numbers that satisfy it, in ascending order."""
        bound, high = self.bound, self.high if self.high is not None else self.bound
        bottom, top = (-inf, -1), (inf, 1)
        match self.op:
            case "==":
                return (((bound, -1), (bound, 1)),)
            case "!=":
                return ((bottom, (bound, -1)), ((bound, 1), top))
            case ">":
                return (((bound, 1), top),)
            case ">=":
                return (((bound, -1), top),)
            case "<":
                return ((bottom, (bound, -1)),)
            case "<=":
                return ((bottom, (bound, 1)),)
            case "between":
                return (((bound, -1), (high, 1)),)
        return ((bottom, (bound, -1)), ((high, 1), top))


NONE = Condition("==", 0)
"""Nothing is counted."""


@dataclass(frozen=True, slots=True)
class MetricRule(DemandBase):
    """A condition on a metric of DQL. `arguments` are columns; `metric` is one of `metrics`.

    `is_percent`: the metric is a count, and its percentage of the rows is compared. `values` are
    those that a metric such as `invalid_count` accepts or counts; for `most_common`, those allowed
    as the most common value.
    """

    column_fields: ClassVar[tuple[str, ...]] = ("arguments",)

    metric: str
    arguments: tuple[str, ...]
    condition: Condition
    is_percent: bool = False
    values: tuple[Literal, ...] = ()
    pattern: str | None = None

    @property
    def text(self) -> str:
        share = "% of the rows" if self.is_percent else ""
        of = [f"among {values_text(self.values)}"] if self.values else []
        of += [f"matching {self.pattern}"] if self.pattern is not None else []
        named = f"{self.metric}({', '.join(self.arguments)})"
        return " ".join([named, *of, self.condition.text + share])

    @property
    def dimension(self) -> str | None:  # type: ignore[override]
        return _OF_METRICS.get(self.metric)


@dataclass(frozen=True, slots=True)
class RowsSatisfy(DemandBase):
    """Each row, or at least `share` of them, satisfies a predicate in the SQL dialect of a
    server."""

    predicate: str
    sql_dialect: str | None = None
    share: float = 1.0

    @property
    def text(self) -> str:
        share = "" if self.share >= 1 else f" for {percent_text(self.share)} of the rows"
        return f"{one_line(self.predicate)}{share}"


@dataclass(frozen=True, slots=True)
class QueryGives(DemandBase):
    """A query returns a number that satisfies a condition. `{model}` and `{field}` are filled
    in."""

    query: str
    condition: Condition
    sql_dialect: str | None = None

    @property
    def text(self) -> str:
        return f"{one_line(self.query)} returns {self.condition.text}"
