"""The definition of a metric: the one entry behind argument checks, hints, docs and the scan.

A result over some rows is merged with one over others. Results are metric values, as in stored
states. A merged value equals the value of one pass over all rows; results that do not determine it
are not merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol, TypeAlias

from dqx_airflow.metrics.spark_values import metric_value
from dqx_airflow.metrics.types import LONGEST_DECIMAL, WHOLE_SIZES, Family, decimal_size, family_of
from dqx_airflow.values import MetricValue

_UNREADABLE = "\ufffd"
"""The replacement for bytes that are not text; Spark orders by the bytes."""


class Merge(str, Enum):
    """The merge of two results over different rows."""

    COUNT = "counts are added"
    SUM = "sums are added"
    LEAST = "the smaller one is taken"
    MOST = "the larger one is taken"

    def merged(self, first: MetricValue, second: MetricValue) -> MetricValue:
        """The result over the rows of both. None, the result over no rows, is neutral."""
        if first is None or second is None:
            return second if first is None else first
        pair: tuple[Any, Any] = (first, second)
        match self:
            case Merge.COUNT | Merge.SUM:
                return metric_value(pair[0] + pair[1])
            case Merge.LEAST:
                return metric_value(min(pair))
            case Merge.MOST:
                return metric_value(max(pair))

    def is_exact(self, spark_type: str, result: MetricValue) -> bool:
        """True if a result over values of a type suffices to merge it.

        No value may mean no values, or a result that no metric value can hold: a sum that
        overflowed, a timestamp in the year 10000, NaN.
        """
        if self is Merge.COUNT:
            return True
        if isinstance(result, float):
            return False
        if spark_type in WHOLE_SIZES:
            return True
        if spark_type.startswith("decimal"):
            return self._is_exact_decimal(decimal_size(spark_type)[1], result)
        if spark_type == "string":
            return _UNREADABLE not in str(result)
        if family_of(spark_type) is Family.TIME:
            return result is not None
        return spark_type == "boolean"

    def _is_exact_decimal(self, scale: int, result: MetricValue) -> bool:
        if result is None:
            return self is not Merge.SUM
        return not isinstance(result, str) and abs(result) < 10 ** (LONGEST_DECIMAL - scale)


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
    """The kind of read that a metric needs."""

    FLAT = "one aggregate, together with all others of the dataset"
    SCHEMA = "nothing but the schema"
    LOG = "nothing but the transaction log"
    QUERY = "a query of its own"
    MATCH = "the rows of two datasets, side by side"

    @property
    def has_dates(self) -> bool:
        """True if the rows that are read belong to a date, so that the metric can be lagged."""
        return self not in (Scan.SCHEMA, Scan.LOG, Scan.MATCH)


class Statistic(str, Enum):
    """The statistics of each file that the log of a Delta table may contain."""

    ROWS = "the number of rows"
    VALUES = "the number of rows in which a column is not NULL"
    LEAST = "the smallest value of a column"
    MOST = "the largest value of a column"


class Shortcut(Protocol):
    """An answer to an aggregate without reading the rows."""

    @property
    def needs(self) -> tuple[Aggregate, ...]:
        """The aggregates that it needs."""

    def fits(self, type_of: TypeOf) -> bool:
        """True if the types of the columns allow it."""

    def answer(self, results: tuple[MetricValue, ...], type_of: TypeOf) -> MetricValue:
        """The value of the aggregate, from the results of what it `needs`; None if they do not
        determine it."""


VALUE = "`dqx: value`"
COPIES = "`dqx: copies`"
RANK = "`dqx: rank`"
UP_TO = "`dqx: up to`"
PRESENT = "`dqx: present`"
DIFFERENT = "`dqx: different`"


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The distinct values of a column, or combinations of several, with their numbers of rows.

    `sql` aggregates over them: `VALUE` is the value of a single column, `COPIES` the number of its
    rows, NULL for NULL and for a combination of NULLs only. If they are `ranked`, `RANK` is one
    more than the number of values that are more common. If they are `running`, `UP_TO` is the
    number of rows with this value or a smaller one, `PRESENT` the number of all rows with a value,
    `DIFFERENT` the number of values.
    """

    columns: tuple[str, ...]
    sql: str
    is_ranked: bool = False
    is_running: bool = False


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
    """A Spark SQL aggregate expression, valid on every Spark with ANSI mode on or off."""

    sql: str
    """The expression. For an aggregate `over` values or steps, it is also their name."""
    distinct: tuple[str, ...] = ()
    """The columns whose combinations it counts: they may be counted by grouping instead."""
    is_key: bool = False
    """True if nearly all combinations of `distinct` are expected to differ."""
    skips_null: bool = False
    """True if combinations with a NULL do not count."""
    statistic: Statistic | None = None
    """The statistic by which a transaction log may answer it instead."""
    column: str | None = None
    """The column of the statistic, or of the values that are merged."""
    merge: Merge | None = None
    """How results over parts of the rows are combined; None if it needs all rows at once."""
    shortcut: Shortcut | None = None
    """Answers without reading rows. Rows are read only if it has no answer."""
    sql_by_type: tuple[tuple[str, str], ...] = ()
    """Replaces `sql` for a column of one of these types."""
    where: str | None = None
    """A condition on its rows, as Spark SQL."""
    over: Frequencies | Steps | None = None
    """The values or steps that it aggregates instead of the rows, in a separate pass."""

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
        return self in _LARGEST

    @property
    def is_part_of_rows(self) -> bool:
        """True if values are at most the number of rows of the same dataset and date."""
        return self in (MetricUnit.ROWS, MetricUnit.VALUES)

    @property
    def is_of_column(self) -> bool:
        """True if values derive from the values of the column."""
        return self in (MetricUnit.COLUMN, MetricUnit.SQUARED)


LARGEST_COUNT = 2**63 - 1
"""Spark counts in 64 bits."""

_LARGEST: dict[MetricUnit, float] = {
    MetricUnit.ROWS: LARGEST_COUNT,
    MetricUnit.DIFFERENCES: LARGEST_COUNT,
    MetricUnit.VALUES: LARGEST_COUNT,
    MetricUnit.MISSING: math.inf,
    MetricUnit.CHARACTERS: 2**31 - 1,
    MetricUnit.COLUMNS: 2**31 - 1,
}
"""The largest values of the units that count something."""

_UNIT_RANGES: dict[MetricUnit, tuple[float, float]] = {
    **{unit: (0, largest) for unit, largest in _LARGEST.items()},
    MetricUnit.SQUARED: (0, math.inf),
    MetricUnit.SHARE: (0, 1),
}


_GIVEN = {ArgumentKind.DATASET: "other", ArgumentKind.TOLERANCE: "0.01", ArgumentKind.STEP: "1"}
"""Placeholders for the values of parameters in a signature."""


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


NO_VALUE = "no rows, only NULL, or a division by zero"
"""The reason why a metric has no value, unless its entry has another one."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its arguments, its documentation, and how Spark and Python compute it.

    A name, arguments, texts, aggregates and a unit are enough for a metric that Spark computes in
    one aggregate:

        Metric(
            "spread",
            (NUMBER,),
            "The largest value of the column minus the smallest.",
            "assert spread(price) < 100",
            lambda arguments: tuple(extreme_aggregate(f, arguments[0]) for f in ("max", "min")),
            unit=MetricUnit.COLUMN,
            value=lambda _, results: apply("-", results),
            in_python=lambda column: apply("-", (_largest(column), _smallest(column))),
            is_void_with_nan=True,
        )
    """

    name: str
    arguments: tuple[Argument, ...]
    unit: MetricUnit = field(kw_only=True)
    doc: str
    """The description in one or two sentences: the text of pages, completions and hovers."""
    example: str
    """An assertion that uses it."""
    aggregates: Callable[[Arguments], tuple[Aggregate, ...]] = lambda _: ()
    """The aggregates for the arguments; names are quoted with `metrics.sql.quote_name`."""
    value: Callable[[Arguments, tuple[MetricValue, ...]], MetricValue] = lambda _, found: found[0]
    """The value of the metric, from the results of the aggregates in the same order."""
    empty: MetricValue = None
    """The value for a dataset without rows."""
    is_internal: bool = False
    """True if it implements other syntax, and cannot be called by name."""
    parameters: tuple[Argument, ...] = ()
    """Named, optional arguments. In a request they follow the others, as None if not given."""
    scan: Scan = Scan.FLAT
    """The kind of read that it needs."""
    no_value: str = NO_VALUE
    """The cases in which it has no value, for messages."""
    least: float | None = None
    """The lower bound of its values, if it differs from the bound of the unit."""
    most: float | None = None
    """The upper bound of its values, if it differs from the bound of the unit."""
    in_python: Callable[..., Any] | None = None
    """Computes the value without Spark, for the reference engine: from
    `metrics.spark_values.ColumnValues`, one for each column among the arguments, or from the rows
    if there are no arguments.

    None if only Spark can compute it."""
    raised_by: Callable[[Arguments], RowsBehind] | None = None
    """The rows that make the value larger, for samples of failing rows."""
    lowered_by: Callable[[Arguments], RowsBehind] | None = None
    """The rows that make the value smaller."""
    of_schema: Callable[[Arguments, Mapping[str, str]], tuple[MetricValue, str]] | None = None
    """The value from the types of the columns by name, with details if a number alone explains
    little; for metrics of `Scan.SCHEMA`."""
    is_of_texts: bool = False
    """True if it is about the strings of a file before they are cast. Its aggregates read
    `metrics.sql.malformed_alias`, and `in_python` gets whether rows are malformed. Without
    such strings the value is `empty`."""
    is_void_with_nan: bool = False
    """True if it has no value when one of its columns contains NaN."""
    is_picked: bool = False
    """True if its value is a value of the column, which no arithmetic has rounded."""

    @property
    def takes_where(self) -> bool:
        """True if it can be measured over some of the rows. SQL written by the user has its own
        filters."""
        return self.scan is Scan.FLAT and not self.is_sql

    @property
    def is_sql(self) -> bool:
        """True if an argument is SQL written by the user."""
        return any(argument.kind is ArgumentKind.SQL for argument in self.arguments)

    @property
    def signature(self) -> str:
        """The call: `count_values(column, value)`."""
        shown = [argument.name for argument in self.arguments]
        shown += [
            f"{parameter.name} {_GIVEN.get(parameter.kind, 'column')}"
            for parameter in self.parameters
        ]
        return f"{self.name}({', '.join(shown)})"

    @property
    def range(self) -> tuple[float, float]:
        """The bounds of all values, inclusive."""
        least, most = _UNIT_RANGES.get(self.unit, (-math.inf, math.inf))
        return (
            least if self.least is None else self.least,
            most if self.most is None else self.most,
        )
