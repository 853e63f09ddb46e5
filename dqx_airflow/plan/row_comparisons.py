"""Comparisons of row values in Spark SQL that are exact for all types.

Spark compares a bigint or a decimal with a double as two doubles, and casts two decimals to a
common size before comparing them, which may be too small.
"""

from __future__ import annotations

from datetime import date, datetime

from dqx_airflow.metrics.spark_values import FLOATING, MIRRORED, timestamp_in
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    WHOLE_SIZES,
    Family,
    decimal_size,
    family_of,
    roomless_decimal,
)
from dqx_airflow.plan.row_values import RowValue, as_double

_OPERATORS = {"==": "=", "!=": "<>"}

_LAST_FRACTION, _LAST_BIGINT = "9007199254740992D", "9223372036854775808D"
"""From the first on, every double is an integer; from the second on, none is a bigint."""

_DIGITS_OF_A_DOUBLE = 15
"""A decimal with up to this many digits survives the conversion to a double and back."""

_FRACTION = 22
"""The number of decimal places that a double below `_LAST_FRACTION` has room for."""


def comparison_sql(op: str, left: RowValue, right: RowValue) -> str:
    """`left op right`, with an operator of DQL."""
    exactly = _exactly(op, left, right)
    return exactly or f"({_side(left, right)} {_OPERATORS.get(op, op)} {_side(right, left)})"


def within(value: RowValue, low: RowValue, high: RowValue) -> str:
    """Whether a value lies between two others, inclusive."""
    ends = _exactly(">=", value, low), _exactly("<=", value, high)
    if ends == (None, None) and _side(value, low) == _side(value, high):
        return f"({_side(value, low)} BETWEEN {_side(low, value)} AND {_side(high, value)})"
    return f"({comparison_sql('>=', value, low)} AND {comparison_sql('<=', value, high)})"


def among(value: RowValue, choices: list[RowValue]) -> str:
    """Whether a value is one of some literals."""
    # Spark casts all elements of a list to a single type.
    kinds = {(_exactly("==", value, choice), _side(value, choice)) for choice in choices}
    is_one_kind = kinds == {(None, value.sql)} and _have_room(value, choices)
    if is_one_kind or not choices:
        return f"({value.sql} IN ({', '.join(_side(choice, value) for choice in choices)}))"
    return f"({' OR '.join(comparison_sql('==', value, choice) for choice in choices)})"


def as_key(value: str, value_type: str, other_type: str) -> str:
    """A value of one type for a lookup among values of another type.

    If one of them is floating, or no decimal holds all values of both, it is the value that equals
    it exactly, or NULL.
    """
    if value_type not in FLOATING:
        size = None if other_type in FLOATING else roomless_decimal(value_type, other_type)
        return value if size is None else f"TRY_CAST({value} AS {size})"
    if other_type in FLOATING:
        return value
    double = f"CAST({value} AS DOUBLE)"
    bigint = f"TRY_CAST({double} AS BIGINT)"
    if other_type in WHOLE_SIZES:
        is_same = f"abs({double}) < {_LAST_BIGINT} AND CAST({bigint} AS DOUBLE) = {double}"
        return f"CASE WHEN {is_same} THEN {bigint} END"
    size = f"DECIMAL({LONGEST_DECIMAL},{decimal_size(other_type)[1]})"
    is_whole = f"abs({double}) >= {_LAST_FRACTION} AND abs({double}) < {_LAST_BIGINT}"
    written = f"TRY_CAST({double} AS {size})"
    return (
        f"CASE WHEN {is_whole} THEN TRY_CAST({bigint} AS {size}) "
        f"WHEN CAST({written} AS DOUBLE) = {double} THEN {written} END"
    )


def _side(value: RowValue, other: RowValue) -> str:
    """A side of a comparison that Spark itself does exactly."""
    if value.type == "float" and other.is_number and not other.is_floating:
        return f"CAST({value.sql} AS DOUBLE)"
    if other.is_floating:
        return as_double(value)
    written = _moment_in(value)
    if other.type == "date" and written is not None:
        # Spark would cast the string to a date, and drop the time of day.
        return quote_literal(written) if type(written) is date else f"TIMESTAMP_NTZ'{written}'"
    moment = "timestamp_ntz" if isinstance(_moment_in(other), datetime) else other.type
    if value.type == "date" and moment.startswith("timestamp"):
        # Others count the nanoseconds of both, for which 64 bits have no room before 1678.
        return f"CAST({value.sql} AS {moment.upper()})"
    return value.sql


def _moment_in(value: RowValue) -> date | None:
    """The date in a literal string, or the timestamp if it has a time of day."""
    if not value.is_literal or family_of(value.type) is not Family.TEXT:
        return None
    found = timestamp_in(value.sql.strip("'"))
    return found.date() if found is not None and found.time() == found.min.time() else found


def _have_room(value: RowValue, choices: list[RowValue]) -> bool:
    """True if a decimal can hold the value and all choices, or none is needed."""
    numbers = [side for side in (value, *choices) if side.is_number and not side.is_floating]
    if value.is_floating or not numbers:
        return True
    return roomless_decimal(*(number.type for number in numbers)) is None


def _exactly(op: str, left: RowValue, right: RowValue) -> str | None:
    """None if Spark's own comparison is exact."""
    if not (left.is_number and right.is_number):
        return None
    if right.is_floating and not left.is_floating:
        return _beside_double(op, left, right)
    if left.is_floating and not right.is_floating:
        return _beside_double(MIRRORED[op], right, left)
    if left.is_floating or (left.is_whole and right.is_whole):
        return None
    return _decimals(op, left, right)


def _beside_double(op: str, exact: RowValue, floating: RowValue) -> str | None:
    """The exact comparison with a double; None if the one that Spark makes is exact."""
    if floating.is_literal or (exact.is_literal and _is_a_double(exact)):
        return None
    precision, scale = decimal_size(exact.type)
    is_small = exact.type in ("tinyint", "smallint", "int") or (
        not exact.is_whole and precision <= _DIGITS_OF_A_DOUBLE
    )
    if is_small:
        return None
    sign = _OPERATORS.get(op, op)
    double = floating.sql if floating.type == "double" else f"CAST({floating.sql} AS DOUBLE)"
    near = f"CAST({exact.sql} AS DOUBLE)"
    bigint = f"TRY_CAST({double} AS BIGINT)"
    is_less = "true" if op in ("<", "<=", "!=") else "false"
    if exact.is_whole:
        # No bigint is as large as the first double beyond them.
        equal = (
            f"CASE WHEN {double} < {_LAST_BIGINT} THEN {exact.sql} {sign} {bigint} "
            f"ELSE {is_less} END"
        )
    else:
        whole = RowValue(f"CAST({bigint} AS DECIMAL(20,0))", "decimal(20,0)")
        digits = max(scale, _FRACTION)
        written = RowValue(
            f"TRY_CAST({double} AS DECIMAL({LONGEST_DECIMAL},{digits}))",
            f"decimal({LONGEST_DECIMAL},{digits})",
        )
        large = RowValue(f"TRY_CAST({double} AS DECIMAL(38,0))", "decimal(38,0)")
        equal = (
            f"CASE WHEN abs({double}) >= {_LAST_BIGINT} THEN {comparison_sql(op, exact, large)} "
            f"WHEN abs({double}) >= {_LAST_FRACTION} THEN {comparison_sql(op, exact, whole)} "
            f"ELSE {comparison_sql(op, exact, written)} END"
        )
    return f"(CASE WHEN {near} = {double} THEN {equal} ELSE {near} {sign} {double} END)"


def _is_a_double(literal: RowValue) -> bool:
    """True for a literal of a double, and for an integer that a double holds exactly."""
    return not literal.is_whole or int(float(literal.sql)) == int(literal.sql)


def _decimals(op: str, left: RowValue, right: RowValue) -> str | None:
    size = roomless_decimal(left.type, right.type)
    if size is None:
        return None
    sign = _OPERATORS.get(op, op)
    left_cast, right_cast = (f"TRY_CAST({side.sql} AS {size})" for side in (left, right))
    # If a value does not fit, the other one is NULL.
    return (
        f"coalesce({left_cast} {sign} {right_cast}, "
        f"CASE WHEN {left_cast} IS NULL AND {right.sql} IS NOT NULL THEN sign({left.sql}) {sign} 0 "
        f"WHEN {left.sql} IS NOT NULL THEN 0 {sign} sign({right.sql}) END)"
    )
