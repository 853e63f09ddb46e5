"""What data has to satisfy: the demands that rules of a contract carry.

Of a column, all demands but `Required` and `Presence` are about the values that are not NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Literal: TypeAlias = "str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class Presence:
    """The column exists."""


@dataclass(frozen=True, slots=True)
class OfType:
    """The values of the column are values of the type of the field, see `Field.type`."""


@dataclass(frozen=True, slots=True)
class OnlyColumns:
    """The model has no columns but the fields of the contract."""


@dataclass(frozen=True, slots=True)
class Required:
    """No value is NULL."""


@dataclass(frozen=True, slots=True)
class Unique:
    """No two rows have the same values in these columns; rows with a NULL among them aside.

    A key that must not be NULL has `Required` beside it.
    """

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refers:
    """The values, taken together, are found in the columns of another dataset.

    `dataset` is the name of a model of this contract, or of a table or contract elsewhere.
    """

    columns: tuple[str, ...]
    dataset: str
    other_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The text matches an expression of the ECMA dialect, somewhere unless it has anchors."""

    expression: str


@dataclass(frozen=True, slots=True)
class HasFormat:
    """The text has a format: `email`, or another of `metrics.text_formats`."""

    name: str


@dataclass(frozen=True, slots=True)
class OneOf:
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """The value compares so with a bound: op is one of > >= < <=. Dates are ISO texts."""

    op: str
    value: Literal


@dataclass(frozen=True, slots=True)
class Length:
    """So many characters a text has, or items an array: op is >= or <=."""

    op: str
    count: int


@dataclass(frozen=True, slots=True)
class MultipleOf:
    divisor: int | float


@dataclass(frozen=True, slots=True)
class Digits:
    """A number has at most so many digits, and so many of them after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class UniqueItems:
    """No array holds a value twice."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of one number: op is one of == != > >= < <= between `not between`.

    The last two take both `bound` and `high`, ends included.
    """

    op: str
    bound: int | float
    high: int | float | None = None


@dataclass(frozen=True, slots=True)
class MetricRule:
    """A metric of DQL compares so. `arguments` are columns; `metric` is one of `metrics`.

    `is_percent`: the metric is a count, and its percentage of the rows is compared.
    `values` are those that a metric such as `invalid_count` accepts or counts; of `most_common`,
    those that the most common value is one of.
    """

    metric: str
    arguments: tuple[str, ...]
    condition: Condition
    is_percent: bool = False
    values: tuple[Literal, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Complete:
    """At least this share of the values is not NULL."""

    column: str
    share: float


@dataclass(frozen=True, slots=True)
class AllComplete:
    """Of all values of all columns of the model taken together, at least this share is not NULL."""

    share: float


@dataclass(frozen=True, slots=True)
class Distinct:
    """At most this share of the rows repeats another row in these columns."""

    columns: tuple[str, ...]
    duplicates: float


@dataclass(frozen=True, slots=True)
class RowsSatisfy:
    """Each row satisfies a predicate of SQL, in the dialect of a server; at least `share` do."""

    predicate: str
    sql_dialect: str | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class AmongRows:
    """A demand on the rows for which a predicate of SQL is true: the others may be as they are."""

    demand: Demand
    where: str
    sql_dialect: str | None = None


@dataclass(frozen=True, slots=True)
class QueryGives:
    """A query gives one number that compares so. `{model}` and `{field}` are filled in."""

    query: str
    condition: Condition
    sql_dialect: str | None = None


@dataclass(frozen=True, slots=True)
class Fresh:
    """The youngest value of the column is at most so many seconds old. Without a column it is the
    only timestamp of the model, or the date column of its dataset."""

    column: str | None
    age_s: float


@dataclass(frozen=True, slots=True)
class Prompt:
    """From `source` to `processed` it takes at most so many seconds, for this share of the rows."""

    source: str
    processed: str
    delay_s: float
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Retained:
    """The oldest value of the column is at most so many seconds old. Without a column it is found
    as that of `Fresh`."""

    column: str | None
    period_s: float


@dataclass(frozen=True, slots=True)
class Volume:
    """The rows of a day, or the mean of those of so many days, compare so with a baseline.

    Without `baseline` it is the mean of the `days` before. `low` and `high` are its multiples.
    """

    low: float | None
    high: float | None
    baseline: float | None = None
    days: int = 1


@dataclass(frozen=True, slots=True)
class HourlyVolume:
    """The rows of each hour of the column stay within the bounds; hours without rows count too.
    Without a column it is found as that of `Fresh`."""

    column: str | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Arrives:
    """There are new rows within every interval of so many seconds, on whatever day of it; with a
    `schedule` since the last day on which it has data delivered: `monthly`, or a cron expression.
    """

    column: str | None
    interval_s: float
    schedule: str | None = None


Demand: TypeAlias = (
    Presence
    | OfType
    | OnlyColumns
    | Required
    | Unique
    | Refers
    | Pattern
    | HasFormat
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


VALUE_DEMANDS = (Pattern, HasFormat, OneOf, Bound, Length, MultipleOf, Digits, UniqueItems)
"""The demands that each value satisfies or not, whatever the others are."""
