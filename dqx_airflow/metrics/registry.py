"""The definition of a metric: the one entry behind argument checks, hints, docs and the scan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol, TypeAlias

from dqx_airflow.metrics.merging import Merge
from dqx_airflow.metrics.types import Family
from dqx_airflow.values import MetricValue

Arguments: TypeAlias = tuple[Any, ...]
"""The arguments of a metric request: a column name, a tuple of column names, a literal, or a
predicate, which `aggregates` gets as a `RowCondition`. All are hashable."""
TypeOf: TypeAlias = Callable[[str], str]
"""Returns the type of a column by its name."""


class ArgumentKind(str, Enum):
    """The kind of an argument."""

    COLUMN = "a column"
    COLUMNS = "a column, or a list of columns such as [id, date]"
    NAMES = "a list of columns such as [id, date], which need not exist"
    LITERALS = 'a string, a number, true or false, or a list of them such as ["A", "B"]'
    COUNT = "a whole number from 1 to 1000"
    STEP = "a number above 0, or a duration such as 1 hour"
    SHARE = "a share from 0 to 1, such as 0.99 or 99%"
    SQL = "Spark SQL in quotes"
    PREDICATE = "a predicate over rows"
    SHARES = "values with their expected shares"
    DATASET = "another dataset"
    TOLERANCE = "a number that is not negative"


class Scan(str, Enum):
    """What has to be read for a metric."""

    FLAT = "one aggregate, together with all others of the dataset"
    SCHEMA = "nothing but the schema"
    LOG = "nothing but the transaction log"
    QUERY = "a query of its own"
    MATCH = "the rows of two datasets, side by side"

    @property
    def has_dates(self) -> bool:
        """True if what is read belongs to a date, so that the metric can be lagged."""
        return self not in (Scan.SCHEMA, Scan.LOG, Scan.MATCH)


class Statistic(str, Enum):
    """What the transaction log of a Delta table may know about each file."""

    ROWS = "the number of rows"
    VALUES = "the number of rows in which a column is not NULL"
    LEAST = "the smallest value of a column"
    MOST = "the largest value of a column"


class Shortcut(Protocol):
    """An answer to an aggregate without reading the rows."""

    @property
    def asks(self) -> tuple[Aggregate, ...]:
        """The aggregates that it needs."""

    def fits(self, type_of: TypeOf) -> bool:
        """True if the types of the columns allow it."""

    def answer(self, results: tuple[MetricValue, ...], type_of: TypeOf) -> MetricValue:
        """The value of the aggregate, from the results of what it `asks`; None if they do not
        determine it."""


VALUE, COPIES, RANK = "`dqx: value`", "`dqx: copies`", "`dqx: rank`"


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The distinct values of a column, or combinations of several, with their numbers of rows.

    `sql` aggregates over them: `VALUE` is the value of a single column, `COPIES` the number of its
    rows, NULL for NULL and for a combination of NULLs only. If they are `ranked`, `RANK` is one
    more than the number of values that are more common.
    """

    columns: tuple[str, ...]
    sql: str
    is_ranked: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps from each row to the next one in the order of another column.

    Counted are those from a value to one that is `<`, `>` or `=` compared with it. Rows without a
    value in one of the columns are excluded. There is no step between rows of equal order: they are
    taken in the order in which a sorted column has no such step.
    """

    column: str
    order: str
    op: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A Spark SQL aggregate expression, valid on every Spark with ANSI mode on or off.

    `distinct` are the columns whose combinations it counts: such an aggregate may be computed by
    grouping instead, and if they are a key, nearly all of them are expected to be different; with
    `skips_null` combinations with a NULL do not count. `statistic` may be taken from the
    transaction log instead, of `column` if it is about one. `merge` combines results over parts of
    the rows; None if it needs all rows at once. Merged results are counts, values or sums of
    `column`, or integers. With a `shortcut` rows are read only if that has no answer. `sql_by_type`
    replaces `sql` for a column of one of these types. `where` is a condition, as Spark SQL, on its
    rows. An aggregate `over` something else than the rows themselves has a pass of its own, and a
    name for its `sql`.
    """

    sql: str
    distinct: tuple[str, ...] = ()
    is_key: bool = False
    skips_null: bool = False
    statistic: Statistic | None = None
    column: str | None = None
    merge: Merge | None = None
    shortcut: Shortcut | None = None
    sql_by_type: tuple[tuple[str, str], ...] = ()
    where: str | None = None
    over: Frequencies | Steps | None = None

    def of_type(self, spark_type: str) -> Aggregate:
        """The aggregate for a column of a type."""
        sql = dict(self.sql_by_type).get(spark_type, self.sql)
        return replace(self, sql=sql, sql_by_type=())


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A row predicate as Spark SQL. The shortcut proves that no row violates it, if it is about one
    column."""

    sql: str
    shortcut: Shortcut | None = None
    column: str | None = None

    def __str__(self) -> str:
        return self.sql


class MetricUnit(str, Enum):
    """The unit of a value."""

    ROWS = "rows"
    DIFFERENCES = "rows that differ"
    VALUES = "values"
    COLUMN = "the unit of the column"
    SQUARED = "the square of the unit of the column"
    CHARACTERS = "characters"
    COLUMNS = "columns"
    SHARE = "a share"
    TEXT = "a string"
    NUMBER = "a number"
    MISSING = "missing values"
    SECONDS = "seconds"
    UNKNOWN = "depends on the expression"

    @property
    def is_whole(self) -> bool:
        """True if values are integers."""
        return self in _WHOLE

    @property
    def is_part_of_rows(self) -> bool:
        """True if values are at most the number of rows of the same dataset and date."""
        return self in (MetricUnit.ROWS, MetricUnit.VALUES)

    @property
    def is_of_column(self) -> bool:
        """True if values derive from the values of the column."""
        return self in (MetricUnit.COLUMN, MetricUnit.SQUARED)


_WHOLE = (
    MetricUnit.ROWS,
    MetricUnit.DIFFERENCES,
    MetricUnit.VALUES,
    MetricUnit.MISSING,
    MetricUnit.CHARACTERS,
    MetricUnit.COLUMNS,
)

LARGEST_COUNT = 2**63 - 1
"""Spark counts in 64 bits."""

_UNIT_RANGES: dict[MetricUnit, tuple[float, float]] = {
    MetricUnit.ROWS: (0, LARGEST_COUNT),
    MetricUnit.DIFFERENCES: (0, LARGEST_COUNT),
    MetricUnit.VALUES: (0, LARGEST_COUNT),
    MetricUnit.MISSING: (0, math.inf),
    MetricUnit.CHARACTERS: (0, 2**31 - 1),
    MetricUnit.COLUMNS: (0, 2**31 - 1),
    MetricUnit.SQUARED: (0, math.inf),
    MetricUnit.SHARE: (0, 1),
}


_GIVEN = {ArgumentKind.DATASET: "other", ArgumentKind.TOLERANCE: "0.01", ArgumentKind.STEP: "1"}
"""Placeholders for the values of parameters in a signature."""


def _first_result(_: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    return results[0]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. `accepts` restricts the type family of a column; empty accepts all. A parameter
    is optional unless it `is_required`. `refuses` are types for which it has no meaning."""

    name: str
    kind: ArgumentKind
    accepts: frozenset[Family] = frozenset()
    is_required: bool = False
    refuses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RowsBehind:
    """The rows that move the value of a metric in one direction.

    Spark SQL selects them: by a `condition` that is true for them; or by what is `compared` with
    the limit that the value exceeds; or by columns whose values are `repeated`, among the rows of
    the condition if there is one. `words` describe the condition, or what is compared.
    """

    words: str
    condition: str | None = None
    compared: str | None = None
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its arguments, its documentation, and how Spark computes it.

    `aggregates` returns what Spark has to compute for the arguments, `value` computes the metric's
    value from the results. `empty` is the value for a dataset without rows, `no_value` says when
    there is none. `parameters` are named and optional; in the arguments of a request they follow
    the others, as None if not given. `least` and `most` are the bounds of its values if they differ
    from those of its unit. An `is_internal` metric implements other syntax and cannot be called by
    name. `in_python` computes the metric without Spark: from columns (`metrics.in_python.Column`)
    if the arguments name some, and from the rows if there are no arguments; None if only Spark can.
    `raised_by` and `lowered_by` return the rows that make the value larger and smaller, if rows are
    at fault; they get a predicate as text. `of_schema` answers metrics that need only the types of
    the columns by name, with details if the value alone says little. A metric `is_of_texts` if it
    is about the strings of a file before they are cast: its aggregates read
    `metrics.texts.malformed_alias`, and `in_python` gets whether rows are malformed. Without such
    strings, it has the value `empty`. A metric that `is_void_with_nan` has no value if one of its
    columns contains NaN. A metric `is_picked` if its value is a value of the column, which no
    arithmetic has rounded.
    """

    name: str
    arguments: tuple[Argument, ...]
    unit: MetricUnit
    doc: str
    example: str
    aggregates: Callable[[Arguments], tuple[Aggregate, ...]]
    value: Callable[[Arguments, tuple[MetricValue, ...]], MetricValue] = _first_result
    empty: MetricValue = None
    is_internal: bool = False
    parameters: tuple[Argument, ...] = ()
    scan: Scan = Scan.FLAT
    no_value: str = "no rows, only NULL, or a division by zero"
    least: float | None = None
    most: float | None = None
    in_python: Callable[..., Any] | None = None
    raised_by: Callable[[Arguments], RowsBehind] | None = None
    lowered_by: Callable[[Arguments], RowsBehind] | None = None
    of_schema: Callable[[Arguments, Mapping[str, str]], tuple[MetricValue, str]] | None = None
    is_of_texts: bool = False
    is_void_with_nan: bool = False
    is_picked: bool = False

    @property
    def takes_where(self) -> bool:
        """True if it can be measured over some of the rows. SQL written by the user has its own
        filters."""
        is_sql = any(argument.kind is ArgumentKind.SQL for argument in self.arguments)
        return self.scan is Scan.FLAT and not is_sql

    @property
    def signature(self) -> str:
        """The call: `count_values(column, value)`."""
        shown = [argument.name for argument in self.arguments]
        shown += [f"{one.name} {_GIVEN.get(one.kind, 'column')}" for one in self.parameters]
        return f"{self.name}({', '.join(shown)})"

    @property
    def range(self) -> tuple[float, float]:
        """The bounds of all values, inclusive."""
        least, most = _UNIT_RANGES.get(self.unit, (-math.inf, math.inf))
        return (
            least if self.least is None else self.least,
            most if self.most is None else self.most,
        )
