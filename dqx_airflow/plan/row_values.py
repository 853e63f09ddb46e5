"""Translates row values to Spark SQL that never raises and that detects every operation without a
result.

Integers are widened so that they do not overflow. If an operation may still have no result
although its operands have values, a cause is recorded next to the SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import ITEM
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS, RowFunction
from dqx_airflow.metrics.spark_values import FLOATING, literal_type, spark_number
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
    widest,
)
from dqx_airflow.plan.row_types import (
    DURATION,
    RowTypes,
    arithmetic_type,
    is_timestamp,
    operand_types,
)

UNKNOWN = "void"
"""The type of NULL, and of unknown values."""

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide"}
_CAST_EXPLICITLY = ("decimal", "interval", "timestamp")
_INFINITY = "double('infinity')"
_FIRST_DAY, _LAST_DAY = -719162, 2932896
"""0001-01-01 and 9999-12-31, in days since 1970-01-01."""
_FIRST_MOMENT, _LAST_MOMENT = "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"
_KINDS_OF_MOMENTS = {"timestamp": "TIMESTAMP_LTZ", "timestamp_ntz": "TIMESTAMP_NTZ"}
"""The words before a literal of each type of timestamps."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why a predicate cannot be true for a row: in words, and as Spark SQL that is true
    for such rows and never NULL."""

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
    """The result of an operation, with the causes for which it may have none."""
    op = node.op
    words = show(node)
    causes = (*left.causes, *right.causes)
    types = operand_types(node, left.type, right.type)
    result = UNKNOWN if UNKNOWN in types else arithmetic_type(op, *types) or UNKNOWN
    if result == "date":
        return _days_away(op, left, right, words)
    first, second = _narrowed(left, types[0]), _narrowed(right, types[1])
    is_narrowed = (first, second) != (left.sql, right.sql)
    if left.is_whole and right.is_whole and op != "/":
        wide = "DECIMAL(20,0)" if result.startswith("decimal") else "BIGINT"
        first, second = f"CAST({first} AS {wide})", f"CAST({second} AS {wide})"
    has_room = _has_room(op, replace(left, type=types[0]), replace(right, type=types[1]), result)
    # What cannot fail is written in the way that every engine reads.
    if result in FLOATING:
        first, second = as_double(left), as_double(right)
        sql = f"({first} {op} {second})" if op != "/" else f"({first} / nullif({second}, 0))"
    else:
        sql = f"({first} {op} {second})" if has_room else _tried(op, first, second, types)
    if (kind := _KINDS_OF_MOMENTS.get(result)) is not None:
        years = f"BETWEEN {kind}{_FIRST_MOMENT} AND {kind}{_LAST_MOMENT}"
        sql = f"CASE WHEN {sql} {years} THEN {sql} END"
    if is_narrowed or not has_room:
        causes = (*causes, *_losses(op, left, right, RowValue(sql, result), words))
    return RowValue(sql, result, causes)


def _tried(op: str, first: str, second: str, types: tuple[str, str]) -> str:
    """The SQL of an operation that is NULL where it has no result. Decimals, dates, timestamps and
    intervals are cast explicitly: Spark leaves that out, other engines need it."""
    left, right = types
    if is_timestamp(left) and is_timestamp(right):
        left = right = widest(left, right, "timestamp_ntz")
    elif "date" in types:
        left, right = (kind.replace("date", "timestamp") for kind in types)
    if left.startswith(_CAST_EXPLICITLY) and right.startswith(_CAST_EXPLICITLY):
        first, second = f"CAST({first} AS {left.upper()})", f"CAST({second} AS {right.upper()})"
    return f"{_TRY[op]}({first}, {second})"


def _narrowed(value: RowValue, operand_type: str) -> str:
    """The value as an operand of a type; NULL if it does not fit exactly."""
    if value.type == operand_type or not operand_type.startswith("decimal"):
        return value.sql
    if value.is_literal and value.is_whole:
        return f"{value.sql}BD"
    size = decimal_size(value.type)
    narrower = decimal_size(operand_type)
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
    added = f"{_TRY[op]}(CAST(unix_date({day.sql}) AS BIGINT), CAST({days.sql} AS BIGINT))"
    sql = (
        f"CASE WHEN {added} BETWEEN {_FIRST_DAY} AND {_LAST_DAY} "
        f"THEN date_from_unix_date(TRY_CAST({added} AS INT)) END"
    )
    causes = (*left.causes, *right.causes, _lost("overflow", words, sql, left, right))
    return RowValue(sql, "date", causes)


def _losses(
    op: str, left: RowValue, right: RowValue, result: RowValue, words: str
) -> Iterator[Cause]:
    """The causes for which an operation may have no result."""
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
    """The cause that an operation has no result although all operands have values."""
    given = (f"{side.sql} IS NOT NULL" for side in operands if not side.is_literal)
    return Cause(f"{problem} in {words}", f"({' AND '.join((*given, f'{result} IS NULL'))})")


def _call(call: nodes.Call, arguments: list[RowValue]) -> RowValue:
    function = ROW_FUNCTIONS[call.name.text]
    typed = arguments[: function.literals]
    written = (show(argument) for argument in call.arguments[len(typed) :])
    result = function.type_of(*(argument.type for argument in typed), *written)
    if function.takes_null and result.startswith("decimal"):
        arguments = _held(arguments, show(call))
    sql = _call_sql(function, arguments)
    if function.gives_own_type and result.startswith("decimal"):
        sql = f"TRY_CAST({sql} AS {result.upper()})"
    if function.takes_null:
        return RowValue(sql, result, tuple(_reached(arguments)))
    causes = [cause for argument in arguments for cause in argument.causes]
    first = arguments[0]
    loses = function.loses_of(first.type) or first.type == MAY_STAY_SIGNED
    if function.lost is not None and (first.type == UNKNOWN or loses):
        causes.append(_lost_by_call(function.lost, call, RowValue(sql, result), first))
    return RowValue(sql, result, tuple(causes))


def _call_sql(function: RowFunction, arguments: Sequence[RowValue]) -> str:
    """The SQL of a function for the type of its first argument."""
    first, *others = arguments
    rest = [argument.sql for argument in others]
    if function.of_decimal is not None and first.type.startswith("decimal"):
        return function.of_decimal(first.sql, first.type, *rest)
    if function.of_bigint is not None and first.is_whole:
        is_wide = first.type == "bigint"
        return function.of_bigint(first.sql if is_wide else f"CAST({first.sql} AS BIGINT)", *rest)
    if function.of_floats is not None and first.type in ("array<float>", "array<double>"):
        return function.of_floats(first.sql)
    if function.of_text is not None and family_of(first.type) is Family.TEXT:
        return function.of_text(first.sql, *rest)
    return function.sql(first.sql, *rest)


def _lost_by_call(problem: str, call: nodes.Call, result: RowValue, first: RowValue) -> Cause:
    """The cause that a call has no result, or an infinite one, although its first argument has a
    value."""
    if result.type not in FLOATING:
        return _lost(problem, show(call), result.sql, first)
    overflows = f"abs({result.sql}) = {_INFINITY} AND abs({first.sql}) <> {_INFINITY}"
    return Cause(f"{problem} in {show(call)}", f"coalesce({overflows}, false)")


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
    """The causes in the arguments of `coalesce`, up to the first one that is not NULL."""
    before: list[str] = []
    for argument in arguments:
        for cause in argument.causes:
            sql = " AND ".join((*before, cause.sql))
            yield Cause(cause.words, f"({sql})" if before else cause.sql)
        before.append(f"{argument.sql} IS NULL")


def as_double(value: RowValue) -> str:
    """A decimal as a double; all other values unchanged. Spark does so beside a double, others do
    not."""
    if not value.type.startswith("decimal"):
        return value.sql
    if value.is_literal:
        return f"{float(value.sql.removesuffix('BD'))!r}D"
    return f"CAST({value.sql} AS DOUBLE)"
