"""Checks the types in row predicates, and translates row values to Spark SQL that never raises and
that detects every operation without a result.

Spark would detect most errors of types too, but late and only in ANSI mode: there the scan ends at
the first string that is not a number, and elsewhere the string silently becomes NULL.

If the exact result of a sum, a difference or a product may have more than 38 digits, Spark
silently rounds off the last ones. So the operands get narrower types for which the result has
room: a value that does not fit its narrower type has no result, which is detected.

Integers are widened so that they do not overflow. If an operation may still have no result
although its operands have values, a cause is recorded next to the SQL. Spark compares a bigint or
a decimal with a double as two doubles, and casts two decimals to a common size before comparing
them, which may be too small: comparisons are exact here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import ITEM
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.spark_values import (
    FLOATING,
    MIRRORED,
    has_nanoseconds,
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
    has_variant,
    parts_of,
    roomless_decimal,
    spelled_like,
    widest,
)

_Size: TypeAlias = tuple[int, int]

_LEAST_WHOLE = 12
"""The number of integer digits that an operand keeps, if its type has them."""
_LEAST_SCALE = 6


def exact_operands(
    op: str, left: str, right: str, are_literals: tuple[bool, bool] = (False, False)
) -> tuple[str, str]:
    """The types of two operands, one of which is a decimal, for an exact result.

    Quotients stay as Spark rounds them, and so do products of two columns that would have less than
    12 integer digits left.

    :param are_literals: whether an operand is a literal, whose type has exactly its digits.
    """
    sizes = decimal_size(left), decimal_size(right)
    whole, scale = exact_size(op, *sizes)
    if op == "/" or rounded_size(whole, scale)[1] == scale:
        return _spelled(*sizes)
    match op, are_literals:
        case ("*", (False, True)):
            return _spelled(_beside_literal(sizes[0], sizes[1][0]), sizes[1])
        case ("*", (True, False)):
            return _spelled(sizes[0], _beside_literal(sizes[1], sizes[0][0]))
        case ("*", _):
            return _spelled(*_factors(*sizes))
    literals = [size for size, is_literal in zip(sizes, are_literals, strict=True) if is_literal]
    return _spelled(*_terms(*sizes, max((size[0] - size[1] for size in literals), default=0)))


def exact_size(op: str, left: _Size, right: _Size) -> _Size:
    """The integer and fractional digits that a result may need; for a quotient, those that Spark
    gives it."""
    (precision, scale), (other_precision, other_scale) = left, right
    match op:
        case "*":
            digits = scale + other_scale
            return precision + other_precision + 1 - digits, digits
        case "/":
            digits = max(_LEAST_SCALE, scale + other_precision + 1)
            return precision - scale + other_scale, digits
        case _:
            whole = max(precision - scale, other_precision - other_scale)
            return whole + 1, max(scale, other_scale)


def rounded_size(whole: int, scale: int) -> _Size:
    """The size that Spark gives to a result; if there is no room, fractional digits are dropped."""
    if whole + scale <= LONGEST_DECIMAL:
        return whole + scale, scale
    return LONGEST_DECIMAL, max(LONGEST_DECIMAL - whole, min(scale, _LEAST_SCALE))


def _terms(left: _Size, right: _Size, whole_of_literal: int) -> tuple[_Size, _Size]:
    whole, scale = exact_size("+", left, right)
    room = LONGEST_DECIMAL - 1
    whole = min(whole - 1, room, max(room - scale, _LEAST_WHOLE, whole_of_literal))
    scale = min(scale, room - whole)
    return _within(left, whole, scale), _within(right, whole, scale)


def _beside_literal(size: _Size, digits_of_literal: int) -> _Size:
    room = LONGEST_DECIMAL - 1 - digits_of_literal
    if room < 1:
        return size
    whole = min(size[0] - size[1], max(room - size[1], min(_LEAST_WHOLE, room)))
    return _within(size, whole, room - whole)


def _factors(left: _Size, right: _Size) -> tuple[_Size, _Size]:
    wholes = left[0] - left[1], right[0] - right[1]
    room = LONGEST_DECIMAL - 1 - left[1] - right[1]
    for whole in range(max(wholes), _LEAST_WHOLE - 1, -1):
        if sum(min(digits, whole) for digits in wholes) <= room:
            return _within(left, whole, left[1]), _within(right, whole, right[1])
    return left, right


def _within(size: _Size, whole: int, scale: int) -> _Size:
    digits = min(size[1], scale)
    return max(min(size[0] - size[1], whole) + digits, 1), digits


def _spelled(*sizes: _Size) -> tuple[str, str]:
    first, second = (f"decimal({precision},{scale})" for precision, scale in sizes)
    return first, second


ColumnTypes: TypeAlias = Callable[[str], str]
"""Returns the type of a column by its name; raises an Objection if there is none."""

DURATION = "interval day to second"

_TEXT = frozenset({Family.TEXT})
_NUMBER = frozenset({Family.NUMBER})
_ARRAY = frozenset({Family.ARRAY})

_DAY_COUNTS = ("tinyint", "smallint", "int", "bigint")


class TypeObjection(Exception):  # noqa: N818 - it carries a message, nothing went wrong
    """The types of operands rule out a computation; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class RowTypes:
    """The types in the scope of a predicate: of the columns, and of the enclosing item."""

    of_column: ColumnTypes
    of_item: str = "void"

    def check(self, node: nodes.Expression) -> None:
        """Checks every part of a predicate.

        :raises Objection: a column is missing, or a type is not suitable.
        """
        match node:
            case nodes.Junction(left=left, right=right):
                self.check(left)
                self.check(right)
            case nodes.Not(operand=operand):
                self.check(operand)
            case nodes.Compare() | nodes.Within() | nodes.Member(choices=nodes.Listing()):
                first, *others = nodes.operands_of(node)
                for other in others:
                    self._compare(first, other)
            case nodes.Matches(operand=operand) | nodes.Like(operand=operand):
                word = "matches" if isinstance(node, nodes.Matches) else "like"
                self._demand(operand, _TEXT, word)
            case nodes.HasFormat(operand=operand, format=name):
                self._demand(operand, _TEXT, f"is {name.text}")
            case nodes.IsNull(operand=operand):
                self.type_of(operand)
            case nodes.IsNan(operand=operand):
                self._demand(operand, _NUMBER, "is nan")
            case nodes.Quantified(predicate=predicate):
                self.among_items(node).check(predicate)

    def among_items(self, node: nodes.Quantified) -> RowTypes:
        """The types in the scope of a predicate over the items of an array.

        :raises Objection: it is not an array.
        """
        array, name = node.array, node.name.text
        array_type = self.type_of(array)
        if family_of(array_type) is Family.MAP:
            hint = f"write {name}(entries({show(array)}), ...)"
            message = f"`{name}` needs an array, and {_described(array, array_type)}: {hint}"
            raise TypeObjection(message)
        self._demand(array, _ARRAY, name)
        return replace(self, of_item=next(iter(parts_of(array_type)), "void"))

    def type_of(self, node: nodes.Expression) -> str:
        """The type of a row value, as Spark infers it.

        :raises Objection: a column is missing, or a type is not suitable.
        """
        match node:
            case nodes.Name(text=name):
                return self.of_column(name)
            case nodes.Item(path=path):
                return self._field_of_item(path)
            case nodes.Number(unit=nodes.Unit.DURATION):
                return DURATION
            case nodes.Number(value=value) | nodes.Text(value=value) | nodes.Truth(value=value):
                return literal_type(value)
            case nodes.Day(value=day):
                return literal_type(day)
            case nodes.Negative(operand=operand):
                operand_type = self._demand(operand, _NUMBER, "-")
                return "bigint" if operand_type in WHOLE_SIZES else operand_type
            case nodes.Arithmetic(op=op, left=left, right=right):
                types = self.type_of(left), self.type_of(right)
                result = arithmetic_type(op, *types)
                if result is None:
                    sides = f"{_described(left, types[0])} and {_described(right, types[1])}"
                    raise TypeObjection(f"{sides}: `{op}` is not defined for them")
                return arithmetic_type(op, *operand_types(node, *types)) or result
            case nodes.Call():
                return self._call(node)
            case _:
                return "void"

    def _field_of_item(self, path: tuple[str, ...]) -> str:
        item_type = self.of_item
        for position, name in enumerate(path):
            if item_type == "void":
                break
            fields = fields_of(item_type)
            field = spelled_like(name, fields)
            if field is None:
                outer = ".".join((ITEM, *path[:position]))
                if not fields:
                    message = f"`{outer}` is of type {item_type}: it has no field '{name}'"
                    raise TypeObjection(message)
                message = f"`{outer}` has no field '{name}': {did_you_mean(name, fields)}"
                raise TypeObjection(message)
            item_type = fields[field]
        return item_type

    def _compare(self, left: nodes.Expression, right: nodes.Expression) -> None:
        types = self.type_of(left), self.type_of(right)
        texts = [part.value for part in (left, right) if isinstance(part, nodes.Text)]
        reason = objection_to_comparison(*types, text=texts[0] if len(texts) == 1 else None)
        if reason is None:
            return
        hints = [
            f"; write date({show(part)})"
            for part, type_, other_type in ((left, types[0], types[1]), (right, types[1], types[0]))
            if family_of(type_) is Family.TEXT
            and family_of(other_type) is Family.TIME
            and not texts
        ]
        sides = f"{_described(left, types[0])} and {_described(right, types[1])}"
        raise TypeObjection(f"{sides}: {reason}{''.join(hints)}")

    def _call(self, call: nodes.Call) -> str:
        function = ROW_FUNCTIONS[call.name.text]
        types = [self.type_of(argument) for argument in call.arguments]
        first = call.arguments[0]
        if function.accepts:
            self._demand(first, function.accepts, function.name)
        for position, (argument, type_) in enumerate(zip(call.arguments, types, strict=True)):
            if position and objection_to_comparison(types[0], type_):
                sides = f"{_described(first, types[0])} and {_described(argument, type_)}"
                raise TypeObjection(f"{sides}: `{function.name}` takes values of one type")
            is_free = function.literals is None or position < function.literals
            is_whole = isinstance(argument, nodes.Number) and isinstance(argument.value, int)
            if not is_free and not is_whole:
                needed = f"`{function.name}` needs a whole number"
                raise TypeObjection(f"{needed} instead of {show(argument)}")
        written = map(show, call.arguments[function.literals or len(types) :])
        return function.type_of(*types[: function.literals], *written)

    def _demand(self, node: nodes.Expression, families: frozenset[Family], user: str) -> str:
        operand_type = self.type_of(node)
        if operand_type != "void" and family_of(operand_type) not in families:
            wanted = " or ".join(sorted(family.value for family in families))
            message = f"`{user}` needs {_a(wanted)}, and {_described(node, operand_type)}"
            raise TypeObjection(message)
        return operand_type


def arithmetic_type(op: str, left: str, right: str) -> str | None:
    """The type of `left op right`; None if it is not defined."""
    if _is_number(left) and _is_number(right):
        return _number_type(op, left, right)
    if op in ("+", "-") and _is_timestamp(left) and is_duration(right):
        return widest(left, "timestamp") if left == "date" else left
    if op == "+" and is_duration(left) and _is_timestamp(right):
        return arithmetic_type(op, right, left)
    if op == "-" and _is_timestamp(left) and _is_timestamp(right):
        return DURATION
    if op in ("+", "-") and left == "date" and right in _DAY_COUNTS:
        return "date"
    if op == "+" and left in _DAY_COUNTS and right == "date":
        return "date"
    if op in ("+", "-") and is_duration(left) and is_duration(right):
        return DURATION
    if op in ("*", "/") and is_duration(left) and _is_number(right):
        return DURATION
    if op == "*" and _is_number(left) and is_duration(right):
        return DURATION
    return None


def operand_types(node: nodes.Arithmetic, left: str, right: str) -> tuple[str, str]:
    """The types to which an operation casts operands of the types `left` and `right`: decimals for
    an exact result if possible, all others unchanged."""
    kinds = {kind.partition("(")[0] for kind in (left, right)}
    if "decimal" not in kinds or not kinds <= {"decimal", *WHOLE_SIZES}:
        return left, right
    left, right = _type_of_digits(node.left, left), _type_of_digits(node.right, right)
    are_literals = isinstance(node.left, nodes.Number), isinstance(node.right, nodes.Number)
    return exact_operands(node.op, left, right, are_literals)


def _type_of_digits(node: nodes.Expression, node_type: str) -> str:
    """The type of an operand next to a decimal, where Spark gives an integer literal its exact
    number of digits."""
    match node:
        case nodes.Number(value=int() as value):
            return f"decimal({len(str(abs(value)))},0)"
        case _:
            return node_type


def is_duration(spark_type: str) -> bool:
    return spark_type.startswith("interval")


def objection_to_comparison(left: str, right: str, text: str | None = None) -> str | None:
    """The reason why values of two types cannot be compared; None if they can.

    :param text: the string, if one of them is a literal.
    """
    if "void" in (left, right):
        return None
    families = {family_of(left), family_of(right)}
    if families <= {Family.OTHER, Family.ARRAY, Family.MAP}:
        both_durations = is_duration(left) and is_duration(right)
        if has_variant(left) or has_variant(right):
            return "a variant cannot be compared"
        if both_durations or (left == right and "map<" not in left):
            return None
    elif len(families) == 1:
        return None
    elif families == {Family.TIME, Family.TEXT} and text is not None:
        if timestamp_in(text) is None:
            return f'"{text}" is not a date'
        return (
            "a timestamp has at most six digits after the decimal point"
            if has_nanoseconds(text)
            else None
        )
    if left.startswith("string") and right.startswith("string"):
        return "their collations differ; write `COLLATE UTF8_BINARY` after the column in a query"
    return "they cannot be compared"


def _described(node: nodes.Expression, type_name: str) -> str:
    """`'price' is of type double`, `5 is a number`"""
    match node:
        case nodes.Name(text=name):
            return f"'{name}' is of type {type_name}"
        case nodes.Item():
            return f"`{show(node)}` is of type {type_name}"
        case _ if is_duration(type_name):
            return f"{show(node)} is a duration"
        case _:
            return f"{show(node)} is {_a(family_of(type_name).value)}"


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _is_number(spark_type: str) -> bool:
    return family_of(spark_type) is Family.NUMBER


def _is_timestamp(spark_type: str) -> bool:
    return family_of(spark_type) is Family.TIME


def _number_type(op: str, left: str, right: str) -> str:
    if "double" in (left, right) or "float" in (left, right):
        return left if left == right and op != "/" else "double"
    if left in WHOLE_SIZES and right in WHOLE_SIZES:
        if op == "/":
            return "double"
        # The product of smaller ones fits into 64 bits.
        if op != "*" or "bigint" not in (left, right):
            return "bigint"
    size = rounded_size(*exact_size(op, decimal_size(left), decimal_size(right)))
    return f"decimal({size[0]},{size[1]})"


UNKNOWN = "void"
"""The type of NULL, and of unknown values."""

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide"}
_CAST_EXPLICITLY = ("decimal", "interval", "timestamp")
_INFINITY = "double('infinity')"
_FIRST_DAY, _LAST_DAY = -719162, 2932896
"""0001-01-01 and 9999-12-31, in days since 1970-01-01."""
_AFTER_LAST = {
    "timestamp": "TIMESTAMP_LTZ'+10000-01-01 00:00:00'",
    "timestamp_ntz": "TIMESTAMP_NTZ'+10000-01-01 00:00:00'",
}


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
        first, second = f"CAST({first} AS {wide})", f"CAST({second} AS {wide})"
    has_room = _has_room(op, replace(left, type=types[0]), replace(right, type=types[1]), result)
    # What cannot fail is written in the way that every engine reads.
    if result in FLOATING:
        first, second = _as_double(left), _as_double(right)
        sql = f"({first} {op} {second})" if op != "/" else f"({first} / nullif({second}, 0))"
    else:
        sql = f"({first} {op} {second})" if has_room else _tried(op, first, second, types)
    if result in _AFTER_LAST:
        sql = f"CASE WHEN {sql} < {_AFTER_LAST[result]} THEN {sql} END"
    if is_narrowed or not has_room:
        causes = (*causes, *_losses(op, left, right, RowValue(sql, result), words))
    return RowValue(sql, result, causes)


def _tried(op: str, first: str, second: str, types: tuple[str, str]) -> str:
    """The SQL of an operation that is NULL where it has no result. Decimals, dates, timestamps and
    intervals are cast explicitly: Spark leaves that out, other engines need it."""
    left, right = types
    if _is_timestamp(left) and _is_timestamp(right):
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
    first = arguments[0]
    if first.is_whole and function.of_bigint is not None:
        wide = (
            first if first.type == "bigint" else replace(first, sql=f"CAST({first.sql} AS BIGINT)")
        )
        sql = function.of_bigint(wide.sql, *(argument.sql for argument in arguments[1:]))
    elif function.of_floats is not None and first.type in ("array<float>", "array<double>"):
        sql = function.of_floats(first.sql)
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
    """The causes in the arguments of `coalesce`, up to the first one that is not NULL."""
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
        return _as_double(value)
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


def _as_double(value: RowValue) -> str:
    """A decimal as a double; all other values unchanged. Spark does so beside a double, others do
    not."""
    if not value.type.startswith("decimal"):
        return value.sql
    if value.is_literal:
        return f"{float(value.sql.removesuffix('BD'))!r}D"
    return f"CAST({value.sql} AS DOUBLE)"


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
