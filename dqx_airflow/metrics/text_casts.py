"""Values written as strings, in files with declared columns: which string is a value of a type.

A string is well formed if the cast loses nothing. Surrounding spaces are allowed, but a string of
spaces only is a value of string columns only. A fraction of a second has at most six digits.
"""

from __future__ import annotations

from collections.abc import Mapping

from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import Family, decimal_size, family_of
from dqx_airflow.patterns.bounds import ended

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
