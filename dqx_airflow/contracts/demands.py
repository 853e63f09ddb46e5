"""The kinds of demands on data that contracts make, each with all that its readers ask of it.

A kind is a class: its words, its quality dimension, what identifies it, and which of its fields
make it stricter. What it claims in DQL is in `contracts.compile.suite`, its form in another tool
in `contracts.export.great_expectations`. All demands on a column except `Required` and `Presence`
are about the values that are not NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from functools import reduce
from math import floor, inf
from typing import Any, ClassVar, TypeAlias

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.values.exact import is_finite_number

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


def one_line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def printable_line(text: str) -> str:
    """A text without its line breaks and without characters that cannot be printed."""
    return one_line("".join(sign if sign.isprintable() else " " for sign in text))


def share_of_rows(share: float) -> str:
    """` for 99% of the rows`; nothing for all of them."""
    return "" if share >= 1 else f" for {percent_text(share)} of the rows"


# Strictness --------------------------------------------------------------------------------------


class Order(str, Enum):
    """What a new demand allows, compared with the old one. `OTHER`: neither allows everything that
    both do."""

    SAME = "same"
    LOOSER = "looser"
    TIGHTER = "tighter"
    OTHER = "other"

    __str__ = str.__str__  # prints as its value, on every Python


def rising(old: Any, new: Any) -> Order:
    """The order of two values of which the larger one demands more."""
    if old == new:
        return Order.SAME
    return Order.TIGHTER if new > old else Order.LOOSER


def falling(old: Any, new: Any) -> Order:
    """The order of two values of which the smaller one demands more."""
    return rising(new, old)


def admitting(old: Iterable[Any], new: Iterable[Any]) -> Order:
    """The order of two sets of allowed values."""
    before, after = frozenset(old), frozenset(new)
    if before == after:
        return Order.SAME
    if before < after:
        return Order.LOOSER
    return Order.TIGHTER if after < before else Order.OTHER


def all_of(*orders: Order) -> Order:
    """The order of demands that apply together."""
    return reduce(_together, orders, Order.SAME)


def _together(first: Order, second: Order) -> Order:
    if first is second or second is Order.SAME:
        return first
    return second if first is Order.SAME else Order.OTHER


def _lower_end(old: float | None, new: float | None) -> Order:
    return rising(*(-inf if value is None else value for value in (old, new)))


def _upper_end(old: float | None, new: float | None) -> Order:
    return falling(*(inf if value is None else value for value in (old, new)))


def _listed_values(old: tuple[Literal, ...], new: tuple[Literal, ...]) -> Order:
    return admitting(map(_typed, old), map(_typed, new))


def _typed(value: Literal) -> tuple[str, Literal]:
    """A value that equals only itself: `1` is not `true`, but `1.0` is `1`."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return ("number", float(value) if is_finite_number(value) else str(value))
    return ("text", value)


def _multiples(old: int | float, new: int | float) -> Order:
    before, after = Fraction(str(old)), Fraction(str(new))
    if before == after:
        return Order.SAME
    if after and (before / after).denominator == 1:
        return Order.LOOSER
    return Order.TIGHTER if before and (after / before).denominator == 1 else Order.OTHER


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

    def order(self, new: Condition) -> Order:
        """What another condition on the same number allows, compared with this one."""
        gains, loses = new._covers(self), self._covers(new)
        if gains and loses:
            return Order.SAME
        return Order.LOOSER if gains else Order.TIGHTER if loses else Order.OTHER

    def _covers(self, other: Condition) -> bool:
        return all(
            any(low <= start and end <= high for low, high in self.accepted)
            for start, end in other.accepted
        )


NONE = Condition("==", 0)
"""Nothing is counted."""


# The form of all kinds ---------------------------------------------------------------------------

_COLUMNS = ("column", "columns", "arguments", "source", "processed")
"""The fields that hold a column of the model, several, or None."""
_SQL = ("predicate", "query", "where")
_WORDS: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("columns", "other_columns"), columns_text),
    **dict.fromkeys(("share", "duplicates"), percent_text),
    **dict.fromkeys(("demand", "condition"), lambda value: value.text),
    **dict.fromkeys(_SQL, one_line),
    "values": values_text,
}
"""How the words of a demand show a field, by its name."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand on data."""

    words: ClassVar[str] = ""
    """The demand in a few words, with its fields in braces."""
    dimension: ClassVar[str | None] = None
    """The quality dimension that it measures, in the terms of ODCS; None if that depends on its
    rule."""
    subject_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that two versions of it have in common."""
    stricter: ClassVar[Mapping[str, Callable[[Any, Any], Order]]] = {}
    """The fields whose values can be compared; if another one differs, the demands cannot."""
    is_quality: ClassVar[bool] = False
    """Whether it says more about the data than a schema does."""
    is_service_level: ClassVar[bool] = False
    """Whether it is about the time and volume of deliveries."""
    odcs_property: ClassVar[str | None] = None
    """What `slaProperties` of ODCS call it, if they have it."""

    def __init_subclass__(cls, **properties: Any) -> None:
        """Sets the properties of a kind: `class Required(Demand, words="not NULL")`."""
        for name, value in properties.items():
            if not hasattr(Demand, name):
                raise TypeError(f"a demand has no property '{name}'")
            setattr(cls, name, value)

    @property
    def text(self) -> str:
        """The demand in a few words: `>= 1`, `one of A, B`, `unique by (a, b)`."""
        return self.words.format(
            **{name: _WORDS.get(name, str)(value) for name, value in self._values.items()}
        )

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns of the model that it names."""
        columns = (value for name, value in self._values.items() if name in _COLUMNS)
        return tuple(
            name
            for value in columns
            for name in ((value,) if isinstance(value, str) else value or ())
        )

    @property
    def subject(self) -> tuple[Any, ...]:
        """What it is about; two demands with the same subject are versions of one."""
        return (type(self), *(getattr(self, name) for name in self.subject_fields))

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        """What another version of it allows, compared with this one.

        :param is_whole: the values are integers, so that `> 0` is equivalent to `>= 1`.
        """
        other = new._values
        if any(
            value != other[name]
            for name, value in self._values.items()
            if name not in self.stricter
        ):
            return Order.OTHER
        return all_of(
            *(order(self._values[name], other[name]) for name, order in self.stricter.items())
        )

    def renamed(self, names: Mapping[str, str]) -> Demand:
        """The demand after columns were renamed, including those in its SQL."""
        changed: dict[str, Any] = {}
        for name, value in self._values.items() if names else ():
            if name in _COLUMNS:
                is_list = isinstance(value, tuple)
                changed[name] = (
                    tuple(names.get(column, column) for column in value)
                    if is_list
                    else names.get(value, value)
                )
            elif isinstance(value, Demand):
                changed[name] = value.renamed(names)
            elif name in _SQL:
                changed[name] = _in_sql(value, names)
        return replace(self, **changed) if changed else self

    @property
    def _values(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


def _in_sql(text: str, names: Mapping[str, str]) -> str:
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<!\w)({words})(?!\w)", lambda match: names[match[1]], text)


def compare_demands(old: Demand, new: Demand, *, is_whole: bool = False) -> Order:
    """The order of two demands about the same column.

    :param is_whole: the values are integers, so that `> 0` is equivalent to `>= 1`.
    """
    if type(old) is not type(new):
        return Order.OTHER
    # Python takes `1` and `true` for the same value, data does not.
    if old == new and not isinstance(old, OneOf):
        return Order.SAME
    return old.order(new, is_whole=is_whole)


def _same_sql(old: Any, new: Any, text: str) -> bool:
    """Whether the SQL of two demands in the field is equivalent."""
    from dqx_airflow.contracts.same_sql import is_same_sql  # sqlglot is slow to import

    return is_same_sql(getattr(old, text), old.sql_dialect, getattr(new, text), new.sql_dialect)


# Columns and keys --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Presence(Demand, words="the column exists", dimension="conformity"):
    """The column exists."""


@dataclass(frozen=True, slots=True)
class OfType(Demand, words="values of the type", dimension="conformity"):
    """The values of the column are of the type of the field, see `Field.type`."""


@dataclass(frozen=True, slots=True)
class OnlyColumns(Demand, words="no other columns", dimension="conformity"):
    """The model has no columns other than the fields of the contract."""


@dataclass(frozen=True, slots=True)
class Required(Demand, words="not NULL", dimension="completeness"):
    """No value is NULL."""


@dataclass(frozen=True, slots=True)
class Unique(
    Demand,
    words="unique by {columns}",
    dimension="uniqueness",
    subject_fields=("columns",),
    # Two rows that differ in one of these columns differ in any superset of them too.
    stricter={"columns": admitting},
):
    """No two rows have the same values in these columns, except for rows with a NULL in them.

    A key that must not be NULL also has `Required`.
    """

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refers(
    Demand,
    words="found in {dataset} {other_columns}",
    dimension="consistency",
    subject_fields=("columns",),
):
    """The combinations of values exist in the columns of another dataset.

    `dataset` is the name of a model of this contract, or of another table or contract.
    """

    columns: tuple[str, ...]
    dataset: str
    other_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Complete(
    Demand,
    words="{share} of {column} are not NULL",
    dimension="completeness",
    is_quality=True,
    subject_fields=("column",),
    stricter={"share": rising},
):
    """At least this share of the values is not NULL."""

    column: str
    share: float


@dataclass(frozen=True, slots=True)
class AllComplete(
    Demand,
    words="{share} of all values are not NULL",
    dimension="completeness",
    is_quality=True,
    stricter={"share": rising},
):
    """At least this share of the values of all columns of the model together is not NULL."""

    share: float


@dataclass(frozen=True, slots=True)
class Distinct(
    Demand,
    words="at most {duplicates} repeat {columns}",
    dimension="uniqueness",
    is_quality=True,
    subject_fields=("columns",),
    stricter={"columns": admitting, "duplicates": falling},
):
    """At most this share of the rows repeats another row in these columns."""

    columns: tuple[str, ...]
    duplicates: float


# Values ------------------------------------------------------------------------------------------


class ValueDemand(Demand, dimension="conformity"):
    """A demand that each value satisfies or not, independently of the others."""

    __slots__ = ()


class _Limit(ValueDemand):
    """A demand with a side: two are versions of one if both are a minimum, or both a maximum."""

    __slots__ = ()
    op: str

    @property
    def subject(self) -> tuple[Any, ...]:
        return (type(self), self.op[0])


@dataclass(frozen=True, slots=True)
class Pattern(ValueDemand, words="matches {expression}"):
    """An expression of the ECMA dialect matches the string, or a part of it if it has no
    anchors."""

    expression: str


@dataclass(frozen=True, slots=True)
class OfFormat(ValueDemand, words="has the format {name}"):
    """The string has a format: `email`, or another of `metrics.text_formats`."""

    name: str


@dataclass(frozen=True, slots=True)
class OneOf(ValueDemand, words="one of {values}", stricter={"values": _listed_values}):
    """The value is one of these."""

    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Bound(_Limit, words="{op} {value}"):
    """The value satisfies a comparison: op is one of > >= < <=. Dates are ISO strings."""

    op: str
    value: Literal

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        before, after = _comparable(self.value), _comparable(new.value)
        if self.op[0] != new.op[0] or before is None or type(before) is not type(after):
            return Order.OTHER
        ranks = _bound_rank(self.op, before, is_whole), _bound_rank(new.op, after, is_whole)
        return (rising if self.op[0] == ">" else falling)(*ranks)


def _bound_rank(op: str, value: Any, is_whole: bool) -> tuple[Any, int]:
    """The rank of a bound: its value, and for exclusive ones the side."""
    is_exclusive = not op.endswith("=")
    side = 1 if op[0] == ">" else -1
    if is_whole and isinstance(value, Decimal):
        if value != floor(value):
            return (Decimal(floor(value) + (side > 0)), 0)
        return (value + side if is_exclusive else value, 0)
    return (value, side if is_exclusive else 0)


def _comparable(value: Literal) -> Any:
    """A number or a timestamp; None for values without a common order."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = Decimal(str(value))
        return number if number.is_finite() else None
    except InvalidOperation:
        pass
    try:
        timestamp = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return timestamp.replace(tzinfo=None) - (timestamp.utcoffset() or timestamp - timestamp)


@dataclass(frozen=True, slots=True)
class Length(_Limit, words="length {op} {count}"):
    """The number of characters of a string, or of items of an array, with `>=` or `<=`."""

    op: str
    count: int

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        if self.op != new.op:
            return Order.OTHER
        return (rising if self.op == ">=" else falling)(self.count, new.count)


@dataclass(frozen=True, slots=True)
class MultipleOf(ValueDemand, words="a multiple of {divisor}", stricter={"divisor": _multiples}):
    """The value is a multiple of a number."""

    divisor: int | float


@dataclass(frozen=True, slots=True)
class Digits(ValueDemand, words="at most {precision} digits, {scale} after the point"):
    """The maximum number of digits of a number, and of those after the point."""

    precision: int
    scale: int

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        whole = falling(self.precision - self.scale, new.precision - new.scale)
        return all_of(whole, falling(self.scale, new.scale))


@dataclass(frozen=True, slots=True)
class UniqueItems(ValueDemand, words="no duplicate items", dimension="uniqueness"):
    """No array contains a value twice."""


# Measures and SQL --------------------------------------------------------------------------------

_OF_METRICS = {
    "null_count": "completeness",
    "missing_count": "completeness",
    "duplicate_count": "uniqueness",
    "unique_count": "uniqueness",
    "malformed_count": "conformity",
    "invalid_count": "conformity",
    "num_rows": "coverage",
}


@dataclass(frozen=True, slots=True)
class MetricRule(
    Demand,
    is_quality=True,
    subject_fields=("metric", "arguments", "is_percent"),
    stricter={"condition": Condition.order},
):
    """A condition on a metric of DQL. `arguments` are columns; `metric` is one of `metrics`.

    `is_percent`: the metric is a count, and its percentage of the rows is compared. `values` are
    those that a metric such as `invalid_count` accepts or counts; for `most_common`, those allowed
    as the most common value.
    """

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
class RowsSatisfy(Demand, is_quality=True, subject_fields=("predicate", "sql_dialect", "share")):
    """Each row, or at least `share` of them, satisfies a predicate in the SQL dialect of a
    server."""

    predicate: str
    sql_dialect: str | None = None
    share: float = 1.0

    @property
    def text(self) -> str:
        return one_line(self.predicate) + share_of_rows(self.share)

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        return all_of(self._predicate_order(new), rising(self.share, new.share))

    def _predicate_order(self, new: RowsSatisfy) -> Order:
        if _same_sql(self, new, "predicate"):
            return Order.SAME
        from dqx_airflow.contracts.same_sql import comparison

        before = comparison(self.predicate, self.sql_dialect)
        after = comparison(new.predicate, new.sql_dialect)
        if before is None or after is None or before[0] != after[0]:
            return Order.OTHER
        return Condition(*before[1]).order(Condition(*after[1]))


@dataclass(frozen=True, slots=True)
class QueryGives(
    Demand,
    words="{query} returns {condition}",
    is_quality=True,
    subject_fields=("query", "condition", "sql_dialect"),
):
    """A query returns a number that satisfies a condition. `{model}` and `{field}` are filled
    in."""

    query: str
    condition: Condition
    sql_dialect: str | None = None

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        is_same = _same_sql(self, new, "query")
        return self.condition.order(new.condition) if is_same else Order.OTHER


@dataclass(frozen=True, slots=True)
class AmongRows(Demand, words="{demand} where {where}", is_quality=True):
    """A demand on the rows for which an SQL predicate is true; others are exempt."""

    demand: Demand
    where: str
    sql_dialect: str | None = None

    @property
    def dimension(self) -> str | None:  # type: ignore[override]
        return self.demand.dimension

    @property
    def named_columns(self) -> tuple[str, ...]:
        return self.demand.named_columns

    @property
    def subject(self) -> tuple[Any, ...]:
        return (type(self), self.where, *self.demand.subject)

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        if not _same_sql(self, new, "where"):
            return Order.OTHER
        return compare_demands(self.demand, new.demand, is_whole=is_whole)


# Service levels ----------------------------------------------------------------------------------


class ServiceLevel(Demand, is_service_level=True):
    """A demand on the time and volume of deliveries."""

    __slots__ = ()


_PERIODS = ("age_s", "period_s", "interval_s")


class DemandOnPeriod(ServiceLevel):
    """A demand on the time between the values of a column and something else."""

    __slots__ = ()
    column: str | None

    @property
    def seconds(self) -> float:
        seconds: float = next(value for name, value in self._values.items() if name in _PERIODS)
        return seconds


@dataclass(frozen=True, slots=True)
class Fresh(
    DemandOnPeriod,
    dimension="timeliness",
    is_quality=True,
    odcs_property="freshness",
    stricter={"age_s": falling},
):
    """The latest value of the column is at most this many seconds old. Without a column it is the
    only timestamp of the model, or the date column of its dataset."""

    column: str | None
    age_s: float

    @property
    def text(self) -> str:
        return f"{self.column or 'data'} at most {duration_text(self.seconds)} old"


@dataclass(frozen=True, slots=True)
class Prompt(
    ServiceLevel,
    dimension="timeliness",
    is_quality=True,
    stricter={"delay_s": falling, "share": rising},
):
    """`processed` is at most this many seconds after `source`, for this share of the rows."""

    source: str
    processed: str
    delay_s: float
    share: float = 1.0

    @property
    def text(self) -> str:
        between = f"from {self.source} to {self.processed}"
        return f"{between} at most {duration_text(self.delay_s)}{share_of_rows(self.share)}"


@dataclass(frozen=True, slots=True)
class Retained(
    DemandOnPeriod,
    dimension="conformity",
    odcs_property="retention",
    stricter={"period_s": falling},
):
    """The earliest value of the column is at most this many seconds old.

    Without a column it is found as that of `Fresh`.
    """

    column: str | None
    period_s: float

    @property
    def text(self) -> str:
        return f"{self.column or 'data'} at most {duration_text(self.seconds)} back"


@dataclass(frozen=True, slots=True)
class Volume(ServiceLevel, dimension="coverage", is_quality=True):
    """The rows of a day, or their mean over several days, compared with a baseline.

    Without `baseline` it is the mean of the `days` before. `low` and `high` are its multiples.
    """

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

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        if self.days != new.days or (self.baseline is None) != (new.baseline is None):
            return Order.OTHER
        low, high = zip(self._band, new._band, strict=True)
        return all_of(_lower_end(*low), _upper_end(*high))

    @property
    def _band(self) -> tuple[float | None, float | None]:
        """The bounds as numbers of rows if there is a baseline, else as multiples of it."""
        factor = 1.0 if self.baseline is None else self.baseline
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return low, high


@dataclass(frozen=True, slots=True)
class HourlyVolume(
    ServiceLevel,
    dimension="coverage",
    subject_fields=("column",),
    stricter={"low": _lower_end, "high": _upper_end},
):
    """The rows of each hour of the column are within the bounds, including hours without rows.
    Without a column it is found as for `Fresh`."""

    column: str | None
    low: float | None
    high: float | None

    @property
    def text(self) -> str:
        of_column = f" of {self.column}" if self.column else ""
        return f"{range_text(self.low, self.high)} rows an hour{of_column}"


@dataclass(frozen=True, slots=True)
class Arrives(DemandOnPeriod, dimension="timeliness", odcs_property="frequency"):
    """Every interval of this many seconds has new rows, on any day of it; with a `schedule` since
    the last delivery day: `monthly`, or a cron expression."""

    column: str | None
    interval_s: float
    schedule: str | None = None

    @property
    def text(self) -> str:
        when = f" ({self.schedule})" if self.schedule else ""
        return f"new rows every {duration_text(self.seconds)}{when}"

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        if self.column != new.column or self.seconds == new.seconds:
            return Order.OTHER
        return falling(self.seconds, new.seconds)


KINDS: tuple[type[Demand], ...] = tuple(
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Demand) and not kind.__subclasses__()
)
"""All kinds of demands."""
