"""What a metric is: the one entry that argument checks, hints, docs and the scan all read."""

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
"""The arguments of a metric request: a column name, a tuple of column names, a literal, a
predicate, which `aggregates` gets as a `RowCondition`. All hashable."""
TypeOf: TypeAlias = Callable[[str], str]
"""The type of a column by its name."""


class ArgumentKind(str, Enum):
    """What an argument has to be."""

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
        """True where what is read belongs to a date, so that it can be asked of another one."""
        return self not in (Scan.SCHEMA, Scan.LOG, Scan.MATCH)


class Statistic(str, Enum):
    """What the transaction log of a Delta table may know of each file."""

    ROWS = "the number of rows"
    VALUES = "the number of rows in which a column is not NULL"
    LEAST = "the smallest value of a column"
    MOST = "the largest value of a column"


class Shortcut(Protocol):
    """What may answer an aggregate without a look at the rows."""

    @property
    def asks(self) -> tuple[Aggregate, ...]:
        """The aggregates that have to be known for it."""

    def fits(self, type_of: TypeOf) -> bool:
        """True where the types of the columns allow it."""

    def answer(self, results: tuple[MetricValue, ...], type_of: TypeOf) -> MetricValue:
        """The value of the aggregate, given the results of what it `asks`; None where these do not
        tell."""


VALUE, COPIES, RANK = "`dqx: value`", "`dqx: copies`", "`dqx: rank`"


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The different values of a column, or combinations of several, with the number of their rows.

    `sql` aggregates over them: `VALUE` is the value of a single column, `COPIES` the number of its
    rows, NULL for NULL and for a combination of nothing but NULL. Where they are `ranked`, `RANK`
    is one more than the number of values that are more common.
    """

    columns: tuple[str, ...]
    sql: str
    is_ranked: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps from each row to the next one in the order of another column.

    Counted are those from a value to one that is `<`, `>` or `=` compared with it. Rows without a
    value of one of the columns are left out. Between rows of one rank in the order there is none:
    they come as a column should be sorted in which that step is a mistake.
    """

    column: str
    order: str
    op: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A Spark SQL aggregate expression; it holds on every Spark, ANSI mode on or off.

    `distinct` are the columns whose combinations it counts: such an aggregate may be computed by
    grouping instead, and where they are a key, nearly all of them are expected to be different;
    with `skips_null` combinations with a NULL in them do not count.
    `statistic` is what may be taken from the transaction log instead, of
    `column` where it is about one.
    `merge` makes the result over all rows of those over parts of them; None where it takes all
    rows. What is merged are counts, values or sums of `column`, or whole numbers.
    With a `shortcut` rows are read only where that has no answer. `sql_by_type` takes the place of
    `sql` where the column is of one of these types. `where` is the condition, as Spark SQL, of the
    rows that it is about. What is aggregated `over` something else than the rows themselves has a
    pass of its own, and a name for its `sql`.
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
        """The aggregate over a column of a type."""
        sql = dict(self.sql_by_type).get(spark_type, self.sql)
        return replace(self, sql=sql, sql_by_type=())


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A predicate over rows as Spark SQL. The shortcut tells that no row violates it, where it is
    about one column."""

    sql: str
    shortcut: Shortcut | None = None
    column: str | None = None

    def __str__(self) -> str:
        return self.sql


class MetricUnit(str, Enum):
    """What the value counts."""

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
        """True where values are whole numbers."""
        return self in _WHOLE

    @property
    def is_part_of_rows(self) -> bool:
        """True where values are at most the number of rows of the same dataset and date."""
        return self in (MetricUnit.ROWS, MetricUnit.VALUES)

    @property
    def is_of_column(self) -> bool:
        """True where values are made of what the column holds."""
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
"""What stands for the value of a parameter in a signature."""


def _first_result(_: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    return results[0]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. `accepts` restricts the type family of a column; empty accepts all. A parameter
    may be left out, unless it `is_required`. `refuses` are types that make no sense for it."""

    name: str
    kind: ArgumentKind
    accepts: frozenset[Family] = frozenset()
    is_required: bool = False
    refuses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RowsBehind:
    """The rows that move the value of a metric to one side.

    Spark SQL tells which they are: a `condition` that is true for them; or what is `compared` with
    the limit that the value exceeds; or the columns whose values are `repeated`, of the rows of
    the condition where there is one. `words` are the condition, or what is compared, for people.
    """

    words: str
    condition: str | None = None
    compared: str | None = None
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its arguments, its documentation, and how Spark computes it.

    `aggregates` gives what Spark has to compute for the arguments, `value` makes the metric's
    value of the results. `empty` is the value for a dataset without rows, `no_value` says when
    there is none. `parameters` are named and optional; in the arguments of a request they follow
    the others, None where not given. `least` and `most` are the ends of its values where its unit
    has others. An `is_internal` metric stands behind other syntax and cannot be called by name.
    `in_python` computes the metric without Spark: it gets columns (`metrics.in_python.Column`)
    where the arguments name them, and the rows where there are no arguments; None where only
    Spark can. `raised_by` and `lowered_by` give the rows that make the value larger and smaller,
    where rows can be blamed for it; a predicate they get as text. `of_schema` answers what needs
    nothing but the types of the columns by name, with words about the value where it says little.
    A metric `is_of_texts` where it is about the texts of a file before they are cast: what its
    aggregates read is `metrics.texts.malformed_alias`, what `in_python` gets whether rows are
    malformed. Where there are no texts, it has the value `empty`. A metric that `is_void_with_nan`
    has no value where a column that it is about holds NaN. A metric `is_picked` where its value is
    one that the column holds: no arithmetic has rounded it.
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
        """True where it can be measured over some of the rows. SQL of the user's has its own
        filters."""
        is_sql = any(argument.kind is ArgumentKind.SQL for argument in self.arguments)
        return self.scan is Scan.FLAT and not is_sql

    @property
    def signature(self) -> str:
        """How it is called: `count_values(column, value)`."""
        shown = [argument.name for argument in self.arguments]
        shown += [f"{one.name} {_GIVEN.get(one.kind, 'column')}" for one in self.parameters]
        return f"{self.name}({', '.join(shown)})"

    @property
    def range(self) -> tuple[float, float]:
        """Between which numbers all values lie, both included."""
        least, most = _UNIT_RANGES.get(self.unit, (-math.inf, math.inf))
        return (
            least if self.least is None else self.least,
            most if self.most is None else self.most,
        )
