"""Fragments of Spark SQL: quoted names, casts of strings, aggregates with a filter.

A string is well formed if the cast loses nothing. Surrounding spaces are allowed, but a string of
spaces only is a value of string columns only. A fraction of a second has at most six digits.

So metrics with many filters share one pass, with each other and with those without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal

from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.metrics.patterns.bounds import ended
from dqx_airflow.metrics.types import Family, decimal_size, decimal_type, family_of

_EXACT_IN_SPARK = 34
"""The number of digits of a decimal that every operation of Spark keeps."""

MAY_STAY_SIGNED = "decimal(38,38)"
"""Of this type Spark reads no string with a zero behind the point, so `negated_decimal` may
be NULL."""


def quote_name(*path: str) -> str:
    """A column name as one identifier, whatever it contains; several lead into structs."""
    quoted = ".".join("`" + name.replace("`", "``") + "`" for name in path)
    # Spark substitutes `${env:NAME}` in all SQL text that it parses, even within quotes: see
    # VariableSubstitution in its SparkSqlParser. In a literal the two characters can be separated.
    return f"identifier({quote_literal(quoted)})" if "${" in quoted else quoted


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
        return f"{float(value)!r}D" if decimal_type(written) is None else f"{written:f}BD"
    return str(value)


def negated_decimal(number: str, spark_type: str) -> str:
    """`-number` for the SQL of a number that is not whole, to the last digit.

    Spark's own minus, and its `abs`, round decimals to 34 digits.
    """
    if not spark_type.startswith("decimal") or decimal_size(spark_type)[0] <= _EXACT_IN_SPARK:
        return f"(- {number})"
    text = f"CAST({number} AS STRING)"
    opposite = f"CASE WHEN {number} < 0 THEN ltrim('-', {text}) ELSE concat('-', {text}) END"
    return f"TRY_CAST({opposite} AS {spark_type.upper()})"


_BLANKS = r"[\x00-\x20]*"
_NUMBER = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
_NO_NUMBER = r"[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)"
_DAY = r"(?!0000)[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
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


def whole_pattern(kind: str) -> str:
    """The pattern of a type with optional surrounding spaces."""
    return f"(?s)^{_BLANKS}{PATTERNS[kind]}{_BLANKS}$"


def excess_digits(scale: int) -> str:
    """A pattern for decimals with more fractional digits than the type has."""
    return rf"[.][0-9]{{{scale}}}[0-9]*[1-9]"


def can_be_cast(spark_type: str) -> bool:
    """True for types whose values a string can represent."""
    return spark_type == "binary" or family_of(spark_type) in (
        *(Family.NUMBER, Family.TEXT, Family.TIME, Family.BOOLEAN),
    )


def cast_sql(text: str, spark_type: str, options: Mapping[str, str]) -> str:
    """The value of a string as Spark SQL, NULL if it is malformed.

    :param text: the string as Spark SQL.
    :param options: those of the file, in any case.
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
        _, scale = decimal_size(spark_type)
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

    What a transaction log knows is about all rows, so that it cannot answer it.
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
