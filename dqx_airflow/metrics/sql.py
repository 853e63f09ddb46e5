"""Spark SQL text for names and literals. Identifiers are always quoted."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from dqx_airflow.metrics.types import decimal_size, decimal_type

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
