"""The row functions that predicates may call. One entry each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from dqx_airflow.metrics import types
from dqx_airflow.metrics.spark_values import date_in, order_key, rounded_half_up, timestamp_of
from dqx_airflow.metrics.sql import BEGINS_WITH_DAY, negated_decimal, quote_literal

_TEXT = frozenset({types.Family.TEXT})
_NUMBER = frozenset({types.Family.NUMBER})
_MOMENT = frozenset({types.Family.TIME, types.Family.TEXT})
_COLLECTION = frozenset({types.Family.ARRAY, types.Family.MAP})
_TEXTS = frozenset({"string", "varchar", "char"})
_NO_MOMENT = "not a date or timestamp"


@dataclass(frozen=True, slots=True)
class RowFunction:
    """A function: Spark SQL for the arguments' SQL, and the minimum and maximum number of
    arguments.

    The first argument is of the families in `accepts`, any if there are none, and the others are
    comparable with it; from the index `literals` on, they must be literals. `type_of` returns the
    type of the result for the types of the arguments, and for the text of such literals;
    `in_python` the result for their values. If one of these is NULL, so is the result, unless the
    function `takes_null`. `of_bigint` is the SQL for integers, cast to bigint before, `of_floats`
    the SQL for an array of floating-point numbers, `of_text` for a string, `of_decimal` for a
    decimal, its type and the other arguments. `lost` is the reason for no result although the
    arguments have values, which is possible only for the types in `loses`. A function
    `gives_own_type` if its SQL has to be cast to a decimal of the size that `type_of` returns:
    Spark's own size also depends on the values of arguments.
    """

    name: str
    doc: str
    sql: Callable[..., str]
    accepts: frozenset[types.Family]
    type_of: Callable[..., str]
    in_python: Callable[..., Any]
    fewest: int = 1
    most: int = 1
    literals: int | None = None
    takes_null: bool = False
    of_bigint: Callable[..., str] | None = None
    of_floats: Callable[..., str] | None = None
    of_text: Callable[..., str] | None = None
    of_decimal: Callable[..., str] | None = None
    lost: str | None = None
    loses: frozenset[str] = frozenset()
    gives_own_type: bool = False

    def loses_of(self, spark_type: str) -> bool:
        """True if it may have no result for a value of the type."""
        return spark_type.split("(", maxsplit=1)[0] in self.loses


def _called(function: str) -> Callable[..., str]:
    return lambda *arguments: f"{function}({', '.join(arguments)})"


def _of_text(
    name: str, doc: str, sql: str, gives: str, in_python: Callable[[str], Any]
) -> RowFunction:
    return RowFunction(name, doc, _called(sql), _TEXT, lambda _: gives, in_python)


def _with_day(text: str, sql: str) -> str:
    """SQL that is NULL for a string without a day: Spark would take a time for one of today, and
    years of more digits than others have for years."""
    return f"CASE WHEN {text} RLIKE {quote_literal(BEGINS_WITH_DAY)} THEN {sql} END"


def _of_timestamp(name: str, doc: str, take: Callable[[datetime], int]) -> RowFunction:
    # TRY_CAST, since a string that is not a date would end the whole scan in ANSI mode.
    def sql(timestamp: str) -> str:
        return f"{name}(TRY_CAST({timestamp} AS TIMESTAMP))"

    def in_python(value: Any) -> int | None:
        timestamp = timestamp_of(value)
        return None if timestamp is None else take(timestamp)

    return RowFunction(
        *(name, doc, sql, _MOMENT, lambda _: "int", in_python),
        of_text=lambda text: _with_day(text, sql(text)),
        lost=_NO_MOMENT,
        loses=_TEXTS,
    )


def _weekday(name: str, doc: str) -> RowFunction:
    # Sunday is 1 for `dayofweek`, which every engine counts alike.
    from_sunday = _of_timestamp("dayofweek", doc, datetime.isoweekday)

    def sql(moment: str) -> str:
        return f"(pmod({from_sunday.sql(moment)} + 5, 7) + 1)"

    return replace(from_sunday, name=name, sql=sql, of_text=lambda text: _with_day(text, sql(text)))


def _abs(value: Any) -> Any:
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _round(value: Any, digits: int = 0) -> Any:
    if isinstance(value, float):
        written = Decimal(repr(value))
        exponent = written.as_tuple().exponent
        # NaN and infinity have no numeric exponent.
        is_rounded = not isinstance(exponent, int) or digits >= -exponent
        return value if is_rounded else float(rounded_half_up(written, digits))
    if isinstance(value, int):
        return value if digits >= 0 else int(rounded_half_up(Decimal(value), digits))
    return rounded_half_up(value, digits) if digits < -value.as_tuple().exponent else value


def _round_bigint(number: str, digits: str = "0") -> str:
    if int(digits) >= 0:
        return number
    return f"TRY_CAST(round(CAST({number} AS DECIMAL(20,0)), {digits}) AS BIGINT)"


def _round_decimal(number: str, kind: str, digits: str = "0") -> str:
    sql = f"round({number}, {digits})"
    step = -int(digits)
    if (
        types.decimal_size(kind) != (types.LONGEST_DECIMAL, 0)
        or not 0 < step <= types.LONGEST_DECIMAL
    ):
        return sql
    # Compiled, Spark raises an error where the result would have one more digit; interpreted, it
    # is NULL.
    bound = 10**types.LONGEST_DECIMAL - 5 * 10 ** (step - 1)
    return f"CASE WHEN {number} > -{bound} AND {number} < {bound} THEN {sql} END"


def _widened(number: str, *_: str) -> str:
    return "bigint" if number in types.WHOLE_SIZES else number


def _rounded(number: str, digits: str = "0") -> str:
    if not number.startswith("decimal"):
        return _widened(number)
    precision, scale = types.decimal_size(number)
    if precision == types.LONGEST_DECIMAL and int(digits) < scale:
        # There is no room for one more digit, except where rounding removes digits.
        return f"decimal({types.LONGEST_DECIMAL},{max(0, int(digits))})"
    return f"decimal({min(precision + 1, types.LONGEST_DECIMAL)},{scale})"


def _date(value: Any) -> date | None:
    if isinstance(value, str):
        return date_in(value)
    timestamp = timestamp_of(value)
    return None if timestamp is None else timestamp.date()


def _entries_type(spark_type: str) -> str:
    key, value = types.parts_of(spark_type) or ("void", "void")
    return f"array<struct<key:{key},value:{value}>>"


def _distinct(items: tuple[Any, ...]) -> tuple[Any, ...]:
    first: dict[Any, Any] = {}
    for item in items:
        first.setdefault(order_key(item), item)
    return tuple(first.values())


_ENTRIES = (
    _of_text("length", "The number of characters of a string.", "char_length", "int", len),
    _of_text("lower", "The string in lower case.", "lower", "string", str.lower),
    _of_text("upper", "The string in upper case.", "upper", "string", str.upper),
    _of_text(
        "trim",
        "The string without leading and trailing spaces.",
        "trim",
        "string",
        lambda x: x.strip(" "),
    ),
    RowFunction(
        "abs",
        "The absolute value of a number.",
        _called("abs"),
        _NUMBER,
        type_of=_widened,
        in_python=_abs,
        # Without this it is negative for the smallest number if ANSI mode is off.
        of_bigint=lambda n: f"CASE WHEN {n} < 0 THEN try_subtract(0L, {n}) ELSE {n} END",
        of_decimal=lambda n, kind: (
            f"CASE WHEN {n} < 0 THEN {negated_decimal(n, kind)} ELSE {n} END"
        ),
        lost="overflow",
        loses=frozenset({"bigint"}),
    ),
    RowFunction(
        "round",
        "The number rounded half up to the given number of digits.",
        _called("round"),
        _NUMBER,
        type_of=_rounded,
        in_python=_round,
        most=2,
        literals=1,
        of_bigint=_round_bigint,
        of_decimal=_round_decimal,
        lost="overflow",
        loses=frozenset({"bigint", "decimal", "float", "double"}),
        gives_own_type=True,
    ),
    RowFunction(
        "coalesce",
        "The first value that is not NULL.",
        _called("coalesce"),
        frozenset(),
        type_of=types.widest,
        in_python=lambda *values: next((value for value in values if value is not None), None),
        most=99,
        takes_null=True,
    ),
    RowFunction(
        "size",
        "The number of items of an array, or of entries of a map.",
        # Without this it is -1 for NULL if ANSI mode is off.
        lambda items: f"CASE WHEN {items} IS NOT NULL THEN size({items}) END",
        _COLLECTION,
        type_of=lambda _: "int",
        in_python=len,
    ),
    RowFunction(
        "distinct",
        "The distinct items of the array.",
        _called("array_distinct"),
        frozenset({types.Family.ARRAY}),
        type_of=lambda array: array,
        in_python=_distinct,
        # Spark 3.5 distinguishes 0.0 from -0.0 there, and their sum is 0.0.
        of_floats=lambda items: f"array_distinct(transform({items}, x -> x + CAST(0 AS FLOAT)))",
    ),
    RowFunction(
        "entries",
        "The entries of a map as an array; each has the fields `key` and `value`.",
        _called("map_entries"),
        frozenset({types.Family.MAP}),
        type_of=_entries_type,
        in_python=lambda pairs: tuple({"key": key, "value": value} for key, value in pairs),
    ),
    _of_timestamp("year", "The year of a date or timestamp.", lambda moment: moment.year),
    _of_timestamp(
        "month", "The month of a date or timestamp, from 1.", lambda moment: moment.month
    ),
    _of_timestamp("day", "The day of the month of a date or timestamp.", lambda moment: moment.day),
    _of_timestamp("hour", "The hour of a timestamp, from 0 to 23.", lambda moment: moment.hour),
    _of_timestamp("minute", "The minute of a timestamp.", lambda moment: moment.minute),
    _of_timestamp("second", "The second of a timestamp.", lambda moment: moment.second),
    _weekday("weekday", "The day of the week of a date or timestamp, from 1 for Monday to 7."),
    RowFunction(
        "date",
        "The day of a timestamp.",
        lambda moment: f"TRY_CAST({moment} AS DATE)",
        _MOMENT,
        type_of=lambda _: "date",
        in_python=_date,
        of_text=lambda text: _with_day(text, f"TRY_CAST({text} AS DATE)"),
        lost=_NO_MOMENT,
        loses=_TEXTS,
    ),
)

ROW_FUNCTIONS: dict[str, RowFunction] = {entry.name: entry for entry in _ENTRIES}

QUANTIFIERS: dict[str, str] = {
    "every": "The predicate is true for every `item` of the array. True for an empty array.",
    "some": "The predicate is true for at least one `item` of the array.",
}
"""Predicates over the items of an array, with what makes them true."""
