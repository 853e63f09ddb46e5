"""What a metric is: the one entry that argument checks, hints, docs and the scan all read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from dqx_airflow.values import MetricValue

Arguments: TypeAlias = tuple[Any, ...]
"""The arguments of a metric request: a column name, a tuple of column names, a literal, a
predicate as SQL text. All hashable."""


class Kind(str, Enum):
    """What an argument has to be."""

    COLUMN = "a column"
    COLUMNS = "a column, or a list of columns such as [id, date]"
    LITERAL = "a text or a number"
    PREDICATE = "a predicate over rows"


class Family(str, Enum):
    """The families of Spark types that metrics tell apart."""

    NUMBER = "number"
    TEXT = "text"
    TIME = "date or timestamp"
    BOOLEAN = "boolean"
    OTHER = "nested or binary"


class Unit(str, Enum):
    """What the value counts."""

    ROWS = "rows"
    VALUES = "values"
    COLUMN = "the unit of the column"
    SQUARED = "the square of the unit of the column"
    CHARACTERS = "characters"
    SHARE = "share of the rows"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. `accepts` restricts the type family of a column; empty accepts all."""

    name: str
    kind: Kind
    accepts: frozenset[Family] = frozenset()
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its arguments, its documentation, and how Spark computes it.

    `aggregates` gives Spark SQL aggregate expressions for the arguments; they hold on every
    Spark, ANSI mode on or off. `value` makes the metric's value of their results. `empty` is the
    value for a dataset without rows. An `is_internal` metric stands behind other syntax and
    cannot be called by name.
    """

    name: str
    arguments: tuple[Argument, ...]
    unit: Unit
    doc: str
    example: str
    aggregates: Callable[[Arguments], tuple[str, ...]]
    value: Callable[[tuple[MetricValue, ...]], MetricValue] = lambda results: results[0]
    empty: MetricValue = None
    is_internal: bool = False

    @property
    def signature(self) -> str:
        """How it is called: `count_values(column, value)`."""
        return f"{self.name}({', '.join(argument.name for argument in self.arguments)})"


def family_of(spark_type: str) -> Family:
    """The family of a Spark type as written in a schema, such as `decimal(18,2)`."""
    name = spark_type.split("(", 1)[0].split("<", 1)[0]
    return _FAMILIES.get(name, Family.OTHER)


_FAMILIES = {
    **dict.fromkeys(
        ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"), Family.NUMBER
    ),
    **dict.fromkeys(("string", "varchar", "char"), Family.TEXT),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), Family.TIME),
    "boolean": Family.BOOLEAN,
}
