"""Arithmetic over row values like Spark's `try_` functions: NULL, never an error."""

from __future__ import annotations

import math
import operator
import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from dqx_airflow.metrics.comparison import timestamp_of
from dqx_airflow.metrics.in_python import EXACT, has_room, rounded_half_up
from dqx_airflow.metrics.types import WHOLE_SIZES, decimal_size

_OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_WHOLE_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def calculate(op: str, left: Any, right: Any, result_type: str) -> Any:
    """`left op right`, neither of them NULL; None if it has no value or does not fit the type.

    :param result_type: the result of `plan.row_types.arithmetic_type`.
    """
    try:
        if result_type in WHOLE_SIZES:
            whole = _OPERATORS[op](left, right)
            return whole if has_bits_for(whole, result_type) else None
        if result_type in ("float", "double"):
            return _floating(op, float(left), float(right), result_type)
        if result_type.startswith("decimal"):
            return _decimal(op, Decimal(left), Decimal(right), result_type)
        return _timestamps(op, left, right, result_type)
    except (ArithmeticError, ValueError):
        return None


def fitted(value: Any, operand_type: str) -> Any:
    """An operand in its type from `plan.row_types.operand_types`; None if it does not fit."""
    if value is None or not operand_type.startswith("decimal"):
        return value
    precision, scale = decimal_size(operand_type)
    decimal = Decimal(value)
    is_exact = rounded_half_up(decimal, scale) == decimal
    return value if is_exact and has_room(decimal, precision, scale) else None


def negated(value: Any, result_type: str) -> Any:
    """`-value`; None if it does not fit the type."""
    if result_type in WHOLE_SIZES:
        return -value if has_bits_for(-value, result_type) else None
    return value.copy_negate() if isinstance(value, Decimal) else -value


def has_bits_for(value: int, whole_type: str) -> bool:
    """Whether an integer type can hold the value."""
    most = 1 << (_WHOLE_BITS[whole_type] - 1)
    return -most <= value < most


def _floating(op: str, left: float, right: float, result_type: str) -> float | None:
    if op == "/" and right == 0:
        return None
    result: float = _OPERATORS[op](left, right)
    return narrowed(result) if result_type == "float" else result


def narrowed(value: float) -> float:
    """The nearest number of type float."""
    try:
        narrow: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return narrow


def _decimal(op: str, left: Decimal, right: Decimal, result_type: str) -> Decimal | None:
    exact = {
        "+": EXACT.add,
        "-": EXACT.subtract,
        "*": EXACT.multiply,
        "/": EXACT.divide,
    }[op](left, right)
    precision, scale = decimal_size(result_type)
    rounded = rounded_half_up(exact, scale)
    return rounded if has_room(rounded, precision, scale) else None


def _timestamps(op: str, left: Any, right: Any, result_type: str) -> Any:
    """Dates, timestamps and durations; a date next to a duration is its midnight in UTC."""
    if result_type == "date":
        day, days = (left, right) if isinstance(left, date) else (right, left)
        return day + timedelta(days=days if op == "+" else -days)
    if op in "*/":
        span, factor = (left, right) if isinstance(left, timedelta) else (right, left)
        return timedelta(seconds=_OPERATORS[op](span.total_seconds(), float(factor)))
    return _OPERATORS[op](*(_zoneless(x) if isinstance(x, date) else x for x in (left, right)))


def _zoneless(value: date) -> datetime:
    timestamp = timestamp_of(value)
    assert timestamp is not None
    return timestamp
