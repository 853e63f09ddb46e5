"""Row values as Spark SQL, and comparisons of two of them: nothing in it raises, and nothing is
lost without a trace.

Integers are widened so that they do not overflow. If an operation may still have no result although
its operands have values, a cause is recorded next to the SQL. Spark compares a bigint or a decimal
with a double as two doubles, and casts two decimals to a common size before comparing them, which
may be too small: comparisons are exact here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import ITEM
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.spark_values import (
    FLOATING,
    MIRRORED,
    literal_type,
    spark_number,
    timestamp_in,
)
from dqx_airflow.metrics.sql import MAY_STAY_SIGNED, negated_decimal, quote_literal, quote_name
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    WHOLE_SIZES,
    Family,
    decimal_size,
    family_of,
    fields_of,
    parts_of,
    roomless_decimal,
)
from dqx_airflow.plan.row_types import DURATION, RowTypes, arithmetic_type, operand_types

UNKNOWN = "void"
"""The type of NULL, and of unknown values."""

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide"}
_INFINITY = "double('infinity')"
_FIRST_DAY, _LAST_DAY = -719162, 2932896
"""0001-01-01 and 9999-12-31, in days since 1970-01-01."""
_AFTER_LAST = {
    "timestamp": "TIMESTAMP_LTZ'+10000-01-01 00:00:00'",
    "timestamp_ntz": "TIMESTAMP_NTZ'+10000-01-01 00:00:00'",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a predicate cannot be true for a row: in words, and as Spark SQL that is true for such
    rows and never NULL."""

    words: str
    sql: str


@dataclass(frozen=True, slots=True)
class RowValue:
    """A value as Spark SQL with its type, and possible failures of its computation."""

    sql: str
    type: str = UNKNOWN
    causes: tuple[Cause, ...] = ()
    is_literal: bool = False

    @property
    def is_floating(self) -> bool:
        return self.type in FLOATING

    @property
    def is_whole(self) -> bool:
        return self.type in WHOLE_SIZES

    @property
    def is_number(self) -> bool:
        return family_of(self.type) is Family.NUMBER


def value_of(node: nodes.Expression, types: RowTypes) -> RowValue:
    """A part of a predicate that `types` accepted."""
    match node:
        case nodes.Name(text=name):
            return RowValue(quote_name(name), types.of_column(name))
        case nodes.Item(path=path):
            return RowValue(quote_name(ITEM, *path), types.type_of(node))
        case nodes.Number(value=seconds, unit=nodes.Unit.DURATION):
            return RowValue(f"INTERVAL '{seconds}' SECOND", DURATION, is_literal=True)
        case nodes.Number(value=number):
            spark_value = spark_number(number)
            return RowValue(quote_literal(spark_value), literal_type(spark_value), is_literal=True)
        case nodes.Text(value=value) | nodes.Truth(value=value):
            return RowValue(quote_literal(value), literal_type(value), is_literal=True)
        case nodes.Day(value=day):
            return RowValue(quote_literal(day), literal_type(day), is_literal=True)
        case nodes.Negative(operand=operand):
            return _negative(value_of(operand, types), show(node))
        case nodes.Arithmetic(left=left, right=right):
            return _arithmetic(node, value_of(left, types), value_of(right, types))
        case nodes.Call():
            return _call(node, [value_of(argument, types) for argument in node.arguments])
        case _:
            return RowValue("NULL")


def nan_in(value: RowValue, depth: int = 0) -> str | None:
    """Spark SQL that is true if a value is NaN, or contains it; None if it cannot."""
    sql = value.sql
    if value.is_literal:
        return None
    if value.is_floating:
        return f"isnan({sql})"
    if value.type.startswith("array<"):
        (inner,) = parts_of(value.type)
        part = f"part{depth}"
        nan = nan_in(RowValue(part, inner), depth + 1)
        return nan and f"coalesce(exists({sql}, {part} -> {nan}), false)"
    fields = (
        nan_in(RowValue(f"{sql}.{quote_name(name)}", inner), depth)
        for name, inner in fields_of(value.type).items()
    )
    parts = [part for part in fields if part is not None]
    return f"({' OR '.join(parts)})" if len(parts) > 1 else next(iter(parts), None)


def _negative(value: RowValue, words: str) -> RowValue:
    if not value.is_number:
        return replace(value, sql=f"try_subtract(0, {value.sql})", is_literal=False)
    if not value.is_whole:
        sql = negated_decimal(value.sql, value.type)
        causes = value.causes
        if value.type == MAY_STAY_SIGNED:
            causes = (*causes, _lost("overflow", words, sql, value))
        return RowValue(sql, value.type, causes)
    if value.type != "bigint":
        return RowValue(f"(- CAST({value.sql} AS BIGINT))", "bigint", value.causes)
    sql = f"try_subtract(0L, {value.sql})"
    return RowValue(sql, "bigint", (*value.causes, _lost("overflow", words, sql, value)))


def _arithmetic(node: nodes.Arithmetic, left: RowValue, right: RowValue) -> RowValue:
    op, words = node.op, show(node)
    causes = (*left.causes, *right.causes)
    types = operand_types(node, left.type, right.type)
    result = UNKNOWN if UNKNOWN in types else arithmetic_type(op, *types) or UNKNOWN
    if result == "date":
        return _days_away(op, left, right, words)
    first, second = _narrowed(left, types[0]), _narrowed(right, types[1])
    is_narrowed = (first, second) != (left.sql, right.sql)
    if left.is_whole and right.is_whole and op != "/":
        wide = "DECIMAL(20,0)" if result.startswith("decimal") else "BIGINT"
        first = f"CAST({first} AS {wide})"
    sql = f"{_TRY[op]}({first}, {second})"
    if result in _AFTER_LAST:
        sql = f"CASE WHEN {sql} < {_AFTER_LAST[result]} THEN {sql} END"
    if is_narrowed or not _has_room(op, left, right, result):
        causes = (*causes, *_losses(op, left, right, RowValue(sql, result), words))
    return RowValue(sql, result, causes)


def _narrowed(value: RowValue, operand_type: str) -> str:
    """The value as an operand of a type; NULL if it does not fit exactly."""
    if value.type == operand_type or not operand_type.startswith("decimal"):
        return value.sql
    if value.is_literal and value.is_whole:
        return f"{value.sql}BD"
    size, narrower = decimal_size(value.type), decimal_size(operand_type)
    if size == narrower:
        return value.sql
    narrow = f"TRY_CAST({value.sql} AS {operand_type.upper()})"
    if size[1] == narrower[1]:
        return narrow
    widened = f"TRY_CAST({narrow} AS {value.type.upper()})"
    return f"CASE WHEN {widened} = {value.sql} THEN {narrow} END"


def _has_room(op: str, left: RowValue, right: RowValue, result: str) -> bool:
    """True if every result of the operation fits its type."""
    if op == "/" or not (left.is_number and right.is_number) or result in (UNKNOWN, *FLOATING):
        return False
    if result in WHOLE_SIZES:
        return "bigint" not in (left.type, right.type)
    (precision, scale), (other_precision, other_scale) = map(decimal_size, (left.type, right.type))
    if op == "*":
        # The product of two bigints has at most 38 digits: each is smaller than 10 to the 19th.
        digits = 38 if left.is_whole and right.is_whole else precision + other_precision + 1
        return digits <= LONGEST_DECIMAL
    whole = max(precision - scale, other_precision - other_scale)
    return whole + max(scale, other_scale) + 1 <= LONGEST_DECIMAL


def _days_away(op: str, left: RowValue, right: RowValue, words: str) -> RowValue:
    """A date this many days away; Spark's own arithmetic wraps around after its last date."""
    day, days = (left, right) if left.type == "date" else (right, left)
    added = f"{_TRY[op]}(CAST(unix_date({day.sql}) AS BIGINT), {days.sql})"
    sql = (
        f"CASE WHEN {added} BETWEEN {_FIRST_DAY} AND {_LAST_DAY} "
        f"THEN date_from_unix_date(TRY_CAST({added} AS INT)) END"
    )
    causes = (*left.causes, *right.causes, _lost("overflow", words, sql, left, right))
    return RowValue(sql, "date", causes)


def _losses(
    op: str, left: RowValue, right: RowValue, result: RowValue, words: str
) -> Iterator[Cause]:
    """Why an operation may have no result."""
    if op == "/":
        yield Cause(
            f"division by zero in {words}",
            f"coalesce({right.sql} = 0 AND {left.sql} IS NOT NULL, false)",
        )
    if result.is_floating:
        finite = (f"abs({side.sql}) <> {_INFINITY}" for side in (left, right) if side.is_floating)
        parts = " AND ".join((f"abs({result.sql}) = {_INFINITY}", *finite))
        yield Cause(f"overflow in {words}", f"coalesce({parts}, false)")
    else:
        yield _lost("overflow", words, result.sql, left, right)


def _lost(problem: str, words: str, result: str, *operands: RowValue) -> Cause:
    """True if there is no result although all operands have values."""
    given = (f"{side.sql} IS NOT NULL" for side in operands if not side.is_literal)
    return Cause(f"{problem} in {words}", f"({' AND '.join((*given, f'{result} IS NULL'))})")


def _call(call: nodes.Call, arguments: list[RowValue]) -> RowValue:
    function = ROW_FUNCTIONS[call.name.text]
    typed = arguments[: function.literals]
    written = (show(argument) for argument in call.arguments[len(typed) :])
    result = function.type_of(*(argument.type for argument in typed), *written)
    if function.takes_null and result.startswith("decimal"):
        arguments = _held(arguments, show(call))
    first = arguments[0]
    if first.is_whole and function.of_bigint is not None:
        wide = (
            first if first.type == "bigint" else replace(first, sql=f"CAST({first.sql} AS BIGINT)")
        )
        sql = function.of_bigint(wide.sql, *(argument.sql for argument in arguments[1:]))
    else:
        sql = function.sql(*(argument.sql for argument in arguments))
    if function.of_decimal is not None and first.type.startswith("decimal"):
        sql = function.of_decimal(
            first.sql, first.type, *(argument.sql for argument in arguments[1:])
        )
    if function.gives_own_type and result.startswith("decimal"):
        sql = f"TRY_CAST({sql} AS {result.upper()})"
    if function.takes_null:
        return RowValue(sql, result, tuple(_reached(arguments)))
    causes = tuple(cause for argument in arguments for cause in argument.causes)
    loses = function.loses_of(first.type) or first.type == MAY_STAY_SIGNED
    if function.lost is not None and (first.type == UNKNOWN or loses):
        if result in FLOATING:
            parts = f"abs({sql}) = {_INFINITY} AND abs({first.sql}) <> {_INFINITY}"
            cause = Cause(f"{function.lost} in {show(call)}", f"coalesce({parts}, false)")
        else:
            cause = _lost(function.lost, show(call), sql, first)
        causes = (*causes, cause)
    return RowValue(sql, result, causes)


def _held(values: list[RowValue], words: str) -> list[RowValue]:
    """The arguments of `coalesce`, as decimals of one type if no decimal type holds them all. Spark
    would then choose a type that rounds off fractional digits."""
    size = roomless_decimal(*(value.type for value in values if value.type != UNKNOWN))
    if size is None:
        return values
    casts = [replace(value, sql=f"TRY_CAST({value.sql} AS {size})") for value in values]
    return [
        replace(cast, causes=(*value.causes, _lost("overflow", words, cast.sql, value)))
        for value, cast in zip(values, casts, strict=True)
    ]


def _reached(arguments: list[RowValue]) -> Iterator[Cause]:
    """The causes in arguments of which the first one that is not NULL counts."""
    before: list[str] = []
    for argument in arguments:
        for cause in argument.causes:
            sql = " AND ".join((*before, cause.sql))
            yield Cause(cause.words, f"({sql})" if before else cause.sql)
        before.append(f"{argument.sql} IS NULL")


_OPERATORS = {"==": "=", "!=": "<>"}

_LAST_FRACTION, _LAST_BIGINT = "9007199254740992D", "9223372036854775808D"
"""From the first on, every double is an integer; from the second on, none is a bigint."""
_DIGITS_OF_A_DOUBLE = 15
"""A decimal with up to this many digits survives the conversion to a double and back."""
_FRACTION = 22
"""The number of decimal places that a double below `_LAST_FRACTION` has room for."""


def compared(op: str, left: RowValue, right: RowValue) -> str:
    """`left op right`, with an operator of DQL."""
    exactly = _exactly(op, left, right)
    return exactly or f"({_side(left, right)} {_OPERATORS.get(op, op)} {_side(right, left)})"


def within(value: RowValue, low: RowValue, high: RowValue) -> str:
    """Whether a value lies between two others, inclusive."""
    ends = _exactly(">=", value, low), _exactly("<=", value, high)
    if ends == (None, None) and _side(value, low) == _side(value, high):
        return f"({_side(value, low)} BETWEEN {_side(low, value)} AND {_side(high, value)})"
    return f"({compared('>=', value, low)} AND {compared('<=', value, high)})"


def among(value: RowValue, choices: list[RowValue]) -> str:
    """Whether a value is one of some literals."""
    # Spark casts all elements of a list to a single type.
    kinds = {(_exactly("==", value, choice), _side(value, choice)) for choice in choices}
    is_one_kind = kinds == {(None, value.sql)} and _have_room(value, choices)
    if is_one_kind or not choices:
        return f"({value.sql} IN ({', '.join(_side(choice, value) for choice in choices)}))"
    return f"({' OR '.join(compared('==', value, choice) for choice in choices)})"


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
    if value.is_literal and family_of(value.type) is Family.TEXT and other.type == "date":
        # Spark would cast the string to a date, and drop the time of day.
        timestamp = timestamp_in(value.sql.strip("'"))
        if timestamp is not None and timestamp.time() != timestamp.min.time():
            return f"TIMESTAMP_NTZ'{timestamp.isoformat(sep=' ')}'"
    return value.sql


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
            f"CASE WHEN abs({double}) >= {_LAST_BIGINT} THEN {compared(op, exact, large)} "
            f"WHEN abs({double}) >= {_LAST_FRACTION} THEN {compared(op, exact, whole)} "
            f"ELSE {compared(op, exact, written)} END"
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
