"""Fragments of Spark SQL: quoted names, casts of strings, aggregates with a filter, aggregates
that others answer, and exact sums.

A string is well formed if the cast loses nothing. Surrounding spaces are allowed, but a string of
spaces only is a value of string columns only. A fraction of a second has at most six digits.

So metrics with many filters share one pass, with each other and with those without.

Shortcuts read no row: the extremes of a column answer how many values are out of a range as long
as none is. For any number of ranges on a column, two aggregates are computed.

Spark adds integers as bigints, and averages them as a double; an average of decimals is rounded to
four more digits. Here a sum has all its digits: integers are added as decimals, and decimals
without rounding. An average is the sum divided by the count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from dqx_airflow.metrics import types
from dqx_airflow.metrics.metric import Aggregate, Merge, Statistic, TypeOf
from dqx_airflow.metrics.patterns.bounds import ended
from dqx_airflow.metrics.spark_values import COMPARATORS, comparable, literal_type
from dqx_airflow.values import MetricValue

_EXACT_IN_SPARK = 34
"""The number of digits of a decimal that every operation of Spark keeps."""

MAY_STAY_SIGNED = "decimal(38,38)"
"""Of this type Spark reads no string with a zero behind the point, so `negated_decimal` may
be NULL."""


def quote_name(*path: str) -> str:
    """A column name as one identifier, whatever it contains; several lead into structs."""
    quoted = quote_path(*path)
    # Spark substitutes `${env:NAME}` in all SQL text that it parses, even within quotes: see
    # VariableSubstitution in its SparkSqlParser. In a literal the two characters can be separated.
    return f"identifier({quote_literal(quoted)})" if "${" in quoted else quoted


def quote_path(*path: str) -> str:
    """A column name for `select`. For each SQL expression, as in `selectExpr`, Sail 0.7 keeps 25 kB
    until its server ends."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def quote_literal(value: str | int | float | Decimal | bool | date) -> str:
    """A literal of Spark SQL. No string can end the literal early.

    A number with a decimal point is a decimal, as written; next to a double, Spark casts it to the
    nearest double. One with more digits than a decimal has is a double.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Spark unescapes backslashes in quoted strings. `$\{` keeps it from substituting variables.
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{")
        return f"'{escaped}'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, float | Decimal):
        written = Decimal(str(value))
        return f"{float(value)!r}D" if types.decimal_type(written) is None else f"{written:f}BD"
    return str(value)


def negated_decimal(number: str, spark_type: str) -> str:
    """`-number` for the SQL of a number that is not whole, to the last digit.

    Spark's own minus, and its `abs`, round decimals to 34 digits.
    """
    if not spark_type.startswith("decimal") or types.decimal_size(spark_type)[0] <= _EXACT_IN_SPARK:
        return f"(- {number})"
    text = f"CAST({number} AS STRING)"
    opposite = f"CASE WHEN {number} < 0 THEN ltrim('-', {text}) ELSE concat('-', {text}) END"
    return f"TRY_CAST({opposite} AS {spark_type.upper()})"


_BLANKS = r"[\x00-\x20]*"
_NUMBER = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
_NO_NUMBER = r"[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)"
_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DAY = f"{_YEAR}-[0-9]{{1,2}}-[0-9]{{1,2}}"
_FRACTION = r"[.][0-9]{0,6}0*"

PATTERNS = {
    "decimal": _NUMBER,
    "float": f"({_NUMBER}|{_NO_NUMBER})",
    "double": f"({_NUMBER}|{_NO_NUMBER})",
    "date": rf"{_DAY}([ T]00:00(:00([.]0*)?)?)?",  # a time of day would be lost
    # Without a date it would be a time of today.
    "timestamp": rf"{_DAY}([ T][^.]*({_FRACTION}([^0-9.].*)?)?)?",
    "timestamp_ntz": rf"{_DAY}([ T][0-9:]*({_FRACTION})?)?",  # a time zone would be lost
}
"""A pattern that the whole string must also match, where Spark's cast accepts more."""

OPTIONS = {
    "date": "dateFormat",
    "timestamp": "timestampFormat",
    "timestamp_ntz": "timestampNTZFormat",
}
"""File options by which timestamps have another format than ISO 8601."""


BEGINS_WITH_DAY = ended(f"(?s)^{_BLANKS}{_YEAR}(-[0-9]{{1,2}}(-[0-9]{{1,2}}([ T].*)?)?)?{_BLANKS}$")
"""A pattern for strings with a date, or its beginning, in the years from 1 to 9999, and whatever
follows it."""


def whole_pattern(kind: str) -> str:
    """The pattern of a type with optional surrounding spaces."""
    return f"(?s)^{_BLANKS}{PATTERNS[kind]}{_BLANKS}$"


def excess_digits(scale: int) -> str:
    """A pattern for decimals with more fractional digits than the type has."""
    return rf"[.][0-9]{{{scale}}}[0-9]*[1-9]"


def can_be_cast(spark_type: str) -> bool:
    """True for types whose values a string can represent."""
    return spark_type == "binary" or types.family_of(spark_type) in (
        *(types.Family.NUMBER, types.Family.TEXT, types.Family.TIME, types.Family.BOOLEAN),
    )


def cast_sql(text: str, spark_type: str, options: Mapping[str, str]) -> str:
    """The value of a string as Spark SQL, NULL if it is malformed.

    :param text: the string as Spark SQL.
    :param options: the options of the file, with names in any case.
    """
    kind = spark_type.split("(", 1)[0]
    value = f"TRY_CAST({text} AS {spark_type})"
    formats = {name.lower(): written for name, written in options.items()}
    written = formats.get(OPTIONS.get(kind, "").lower())
    if written is not None:
        timestamp = f"try_to_timestamp({text}, {quote_literal(written)})"
        return timestamp if kind == "timestamp" else f"CAST({timestamp} AS {spark_type})"
    conditions = []
    if kind in PATTERNS:
        conditions.append(f"{text} RLIKE {quote_literal(ended(whole_pattern(kind)))}")
    if kind == "decimal":
        _, scale = types.decimal_size(spark_type)
        # With an exponent, the digits do not decide.
        is_same = f"CAST({value} AS DOUBLE) = TRY_CAST({text} AS DOUBLE)"
        is_cut = f"{text} RLIKE {quote_literal(excess_digits(scale))}"
        conditions.append(f"CASE WHEN {text} RLIKE '[eE]' THEN {is_same} ELSE NOT {is_cut} END")
    if kind in ("float", "double"):
        is_infinite = f"abs({value}) = double('infinity')"
        conditions.append(f"NOT ({is_infinite} AND {text} RLIKE '[0-9]')")
    return f"CASE WHEN {' AND '.join(conditions)} THEN {value} END" if conditions else value


def malformed_alias(metric: str, columns: str | tuple[str, ...]) -> str:
    """The column that is true in the rows that a metric of strings counts."""
    listed = columns if isinstance(columns, str) else ", ".join(columns)
    return f"dqx: {metric} {listed}"


def malformed_sql(metric: str, columns: str | tuple[str, ...]) -> str:
    """The name of the column with the malformed strings, as Spark SQL."""
    return quote_name(malformed_alias(metric, columns))


FUNCTIONS = (
    *("count", "sum", "try_sum", "min", "max", "first", "min_by", "percentile"),
    *("var_samp", "covar_pop", "stddev_pop"),
)
"""The functions of Spark that the built-in metrics aggregate by."""

_TOKEN = re.compile(
    rf"`(?:[^`]|``)*`|'(?:\\.|[^'\\])*'|(?P<opens>\b(?:{'|'.join(FUNCTIONS)})\()|[()]", re.DOTALL
)


def filtered(item: Aggregate, condition: str) -> Aggregate:
    """The aggregate over the rows for which a condition, in Spark SQL, is true.

    A transaction log contains facts about all rows only, so that it cannot answer this aggregate.
    """
    if item.over is not None:
        return replace(item, sql=f"{item.sql} where {condition}", where=condition)
    sql = "".join(_with_filters(item.sql, condition))
    return replace(item, sql=sql, statistic=None, shortcut=None, where=condition)


def _with_filters(sql: str, condition: str) -> Iterator[str]:
    """The text in pieces, with the condition behind each call of an aggregate function."""
    done = depth = 0
    for token in _TOKEN.finditer(sql):
        if depth:
            depth += (token[0][-1] == "(") - (token[0] == ")")
            if not depth:
                yield f"{sql[done : token.end()]} FILTER (WHERE {condition})"
                done = token.end()
        elif token["opens"]:
            depth = 1
    yield sql[done:]


OVERFLOW = f"the sum overflows: it needs more than {types.LONGEST_DECIMAL} digits"

# Sums of parts of the bits cannot overflow below 2**42 rows, and are as fast as one of bigints; a
# sum of decimals takes twice the time.
_OF_PARTS = {
    "int": (("shiftright({0}, 16)", 65536), ("{0} & 65535", 1)),
    "bigint": (
        ("shiftright({0}, 42)", 4398046511104),
        ("shiftright({0}, 21) & 2097151", 2097152),
        ("{0} & 2097151", 1),
    ),
}


def sum_of(column: str) -> Aggregate:
    """The sum of a column."""
    name = quote_name(column)
    by_type = tuple((kind, _in_parts(name, kind)) for kind in _OF_PARTS)
    by_type += (("boolean", f"sum(CAST({name} AS INT))"),)
    return Aggregate(f"try_sum({name})", column=column, merge=Merge.SUM, sql_by_type=by_type)


def has_overflown(
    aggregates: Sequence[Aggregate], results: Sequence[MetricValue], type_of: TypeOf
) -> bool:
    """True if a sum of decimals has no value because it is too large: according to the count beside
    it, there are values."""
    first = aggregates[0] if aggregates else None
    if first is None or first.merge is not Merge.SUM or first.column is None:
        return False
    return results[0] is None and bool(results[1]) and type_of(first.column).startswith("decimal")


def typed(item: Aggregate, type_of: TypeOf) -> Aggregate:
    """The aggregate in the form for the type of its column."""
    if not item.sql_by_type or item.column is None:
        return item
    return item.of_type(type_of(item.column))


def _in_parts(name: str, kind: str) -> str:
    parts = (
        f"CAST(sum({part.format(name)}) AS DECIMAL(20,0)) * {factor}BD"
        for part, factor in _OF_PARTS[kind]
    )
    return " + ".join(parts)


Limit: TypeAlias = int | Decimal | float | str | date

_NAN = "NaN"


@dataclass(frozen=True, slots=True)
class ValueBound:
    """`op` is `<`, `<=`, `>`, `>=` or `==`; its left operand is the value of the column."""

    op: str
    limit: Limit


@dataclass(frozen=True, slots=True)
class WithinRanges:
    """Answers 0 if all values of a column lie within one of some ranges.

    A range is a set of bounds that hold together. NULL lies in every range.
    """

    column: str
    ranges: tuple[tuple[ValueBound, ...], ...]

    @property
    def needs(self) -> tuple[Aggregate, ...]:
        """The aggregates that answer it."""
        return _extremes_of(self.column)

    def fits(self, type_of: TypeOf) -> bool:
        """True for a column whose order is the same here as in Spark."""
        kind = type_of(self.column)
        is_text = any(isinstance(bound.limit, str) for range_ in self.ranges for bound in range_)
        if kind == "date":
            return True
        return not is_text and (
            kind in (*types.WHOLE_SIZES, "double") or kind.startswith("decimal")
        )

    def answer(self, results: tuple[MetricValue, ...], type_of: TypeOf) -> MetricValue:
        """0, or None if the rows have to be counted.

        :param results: the results of the aggregates that it `needs`.
        """
        if results == (None, None):
            return 0
        if _NAN in results:
            return None
        kind = type_of(self.column)
        try:
            extremes = [_value(str(result), kind) for result in results]
        except ValueError:  # a date in the year 10000
            return None
        is_within = any(
            all(_holds(extreme, kind, bound) for extreme in extremes for bound in range_)
            for range_ in self.ranges
        )
        return 0 if is_within else None


@dataclass(frozen=True, slots=True)
class NeverNan:
    """Answers 0 if the largest value of a column is not NaN, which Spark sorts after infinity."""

    column: str

    @property
    def needs(self) -> tuple[Aggregate, ...]:
        """The aggregates that answer it."""
        return _extremes_of(self.column)[1:]

    def fits(self, type_of: TypeOf) -> bool:
        """True for every column."""
        return True

    def answer(self, results: tuple[MetricValue, ...], type_of: TypeOf) -> MetricValue:
        """0 if no value is NaN; None if that is unknown."""
        return None if results == (_NAN,) else 0


@lru_cache
def _extremes_of(column: str) -> tuple[Aggregate, ...]:
    # A string loses no digit, and distinguishes NaN from NULL.
    return tuple(
        Aggregate(
            f"CAST({function}({quote_name(column)}) AS STRING)", statistic=statistic, column=column
        )
        for function, statistic in (("min", Statistic.LEAST), ("max", Statistic.MOST))
    )


def _value(text: str, kind: str) -> Limit:
    if kind == "date":
        return date.fromisoformat(text)
    if kind == "double":
        return float(text)
    return Decimal(text) if kind.startswith("decimal") else int(text)


def _holds(value: Limit, kind: str, bound: ValueBound) -> bool:
    left, right = comparable(value, kind, bound.limit, literal_type(bound.limit))
    return left is not None and right is not None and COMPARATORS[bound.op](left, right)
