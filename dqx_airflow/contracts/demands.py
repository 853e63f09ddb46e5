"""Demands on data by the rules of a contract, by their subject: columns, values, measures, times.

All demands on a column except `Required` and `Presence` are about the values that are not NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import ClassVar, TypeAlias, get_args

from dqx_airflow.diagnostics.diagnostic import listed

Literal: TypeAlias = "str | int | float | bool | None"
"""A value in a contract."""

_MOST_VALUES = 12
_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def literal_text(value: object) -> str:
    """A value as contracts write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def columns_text(columns: Iterable[str]) -> str:
    """`(a, b)`."""
    return f"({', '.join(columns)})"


def values_text(values: tuple[Literal, ...]) -> str:
    """`A, B and 3 more`."""
    return listed(list(map(literal_text, values)), most=_MOST_VALUES)


def percent_text(share: float) -> str:
    """A share as `99.5%`."""
    return f"{round(share * 100, 6):g}%"


def number_text(value: float) -> str:
    """A number without `.0`."""
    return str(int(value)) if float(value).is_integer() else str(value)


def range_text(low: float | None, high: float | None) -> str:
    """`at least 5`, `at most 5`, `1 to 5`."""
    if low is None:
        return f"at most {number_text(high)}" if high is not None else "any"
    if high is None:
        return f"at least {number_text(low)}"
    return f"{number_text(low)} to {number_text(high)}"


def duration_text(seconds: float) -> str:
    """Seconds as `2 hours`, in the largest unit with an integer amount."""
    for unit, length in _UNITS:
        if seconds % length == 0 and seconds:
            count = int(seconds // length)
            return f"{count} {unit if count != 1 else unit[:-1]}"
    return f"{seconds:g} seconds"


def one_line(sql: str) -> str:
    """SQL without its line breaks."""
    return " ".join(sql.split())


class DemandBase:
    """A demand on data. `contracts.compile.demands` defines its claim in DQL,
    `contracts.diff.demands` which of two is stricter, and `contracts.export` its form in other
    formats."""

    __slots__ = ()

    dimension: ClassVar[str | None] = None
    """The quality dimension that it measures, in the terms of ODCS; None if that depends on its
    rule."""
    is_about_each_value: ClassVar[bool] = False
    """Whether each value satisfies it or not, independently of the others."""
    is_service_level: ClassVar[bool] = False
    """Whether it is about the time and volume of deliveries."""

    column_fields: ClassVar[tuple[str, ...]] = ()
    """Its fields that hold a column of the model, several, or None."""

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns of the model that it names."""
        columns = (getattr(self, name) for name in self.column_fields)
        return tuple(
            name
            for value in columns
            for name in ((value,) if isinstance(value, str) else value or ())
        )

    @property
    def text(self) -> str:
        """The demand in a few words: `>= 1`, `one of A, B`, `unique by (a, b)`."""
        raise NotImplementedError


class ValueDemand(DemandBase):
    """A demand that each value satisfies or not, independently of the others."""

    __slots__ = ()

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True


class ServiceLevel(DemandBase):
    """A demand on the time and volume of deliveries."""

    __slots__ = ()

    is_service_level: ClassVar[bool] = True


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


class DemandOnPeriod(ServiceLevel):
    """A demand on the time between the values of a column and something else."""

    __slots__ = ()

    odcs_property: ClassVar[str]
    """What `slaProperties` of ODCS call it."""
    column: str | None

    @property
    def seconds(self) -> float:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Fresh(DemandOnPeriod):
    """The latest value of the column is at most this many seconds old. Without a column it is the
    only timestamp of the model, or the date column of its dataset."""

    dimension: ClassVar[str | None] = "timeliness"
    odcs_property: ClassVar[str] = "freshness"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str | None
    age_s: float

    @property
    def seconds(self) -> float:
        return self.age_s

    @property
    def text(self) -> str:
        return f"{self.column or 'data'} at most {duration_text(self.age_s)} old"


@dataclass(frozen=True, slots=True)
class Prompt(ServiceLevel):
    """`processed` is at most this many seconds after `source`, for this share of the rows."""

    dimension: ClassVar[str | None] = "timeliness"
    column_fields: ClassVar[tuple[str, ...]] = ("source", "processed")

    source: str
    processed: str
    delay_s: float
    share: float = 1.0

    @property
    def text(self) -> str:
        share = "" if self.share >= 1 else f" for {percent_text(self.share)} of the rows"
        between = f"from {self.source} to {self.processed}"
        return f"{between} at most {duration_text(self.delay_s)}{share}"


@dataclass(frozen=True, slots=True)
class Retained(DemandOnPeriod):
    """The earliest value of the column is at most this many seconds old.

    Without a column it is found as that of `Fresh`.
    """

    dimension: ClassVar[str | None] = "conformity"
    odcs_property: ClassVar[str] = "retention"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str | None
    period_s: float

    @property
    def seconds(self) -> float:
        return self.period_s

    @property
    def text(self) -> str:
        return f"{self.column or 'data'} at most {duration_text(self.period_s)} back"


@dataclass(frozen=True, slots=True)
class Volume(ServiceLevel):
    """The rows of a day, or their mean over several days, compared with a baseline.

    Without `baseline` it is the mean of the `days` before. `low` and `high` are its multiples.
    """

    dimension: ClassVar[str | None] = "coverage"

    low: float | None
    high: float | None
    baseline: float | None = None
    days: int = 1

    @property
    def text(self) -> str:
        times = range_text(self.low, self.high)
        base = "the mean of the days before"
        if self.baseline is not None:
            base = f"{number_text(self.baseline)} rows"
        return f"{times} times {base}" + (f", over {self.days} days" * (self.days > 1))


@dataclass(frozen=True, slots=True)
class HourlyVolume(ServiceLevel):
    """The rows of each hour of the column are within the bounds, including hours without rows.
    Without a column it is found as for `Fresh`."""

    dimension: ClassVar[str | None] = "coverage"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str | None
    low: float | None
    high: float | None

    @property
    def text(self) -> str:
        of_column = f" of {self.column}" if self.column else ""
        return f"{range_text(self.low, self.high)} rows an hour{of_column}"


@dataclass(frozen=True, slots=True)
class Arrives(DemandOnPeriod):
    """Every interval of this many seconds has new rows, on any day of it; with a `schedule` since
    the last delivery day: `monthly`, or a cron expression."""

    dimension: ClassVar[str | None] = "timeliness"
    odcs_property: ClassVar[str] = "frequency"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str | None
    interval_s: float
    schedule: str | None = None

    @property
    def seconds(self) -> float:
        return self.interval_s

    @property
    def text(self) -> str:
        when = f" ({self.schedule})" if self.schedule else ""
        return f"new rows every {duration_text(self.interval_s)}{when}"


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
