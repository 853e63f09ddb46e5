"""The types in a row predicate, and what no engine can compute with them.

Spark would detect most of these errors too, but late and only in ANSI mode: there the scan ends at
the first string that is not a number, and elsewhere the string silently becomes NULL.

If the exact result of a sum, a difference or a product may have more than 38 digits, Spark silently
rounds off the last ones. So the operands get narrower types for which the result has room: a value
that does not fit its narrower type has no result, which is detected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import ITEM
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.spark_values import has_nanoseconds, literal_type, timestamp_in
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    WHOLE_SIZES,
    Family,
    decimal_size,
    family_of,
    fields_of,
    parts_of,
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

_VARIANT = re.compile(r"(?:^|[<:,])variant(?![^,>])")
_DAY_COUNTS = ("tinyint", "smallint", "int", "bigint")


class TypeObjection(Exception):  # noqa: N818 - it carries a message, nothing went wrong
    """Why something cannot be computed, according to the types."""


@dataclass(frozen=True, slots=True)
class RowTypes:
    """The types in the scope of a predicate: those of columns, and that of an enclosing item."""

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
            case nodes.Compare(left=left, right=right):
                self._compare(left, right)
            case nodes.Within(operand=operand, low=low, high=high):
                self._compare(operand, low)
                self._compare(operand, high)
            case nodes.Member(operand=operand, choices=nodes.Listing(items=items)):
                for item in items:
                    self._compare(operand, item)
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
            raise TypeObjection(
                f"`{name}` needs an array, and {_described(array, array_type)}: {hint}"
            )
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
                    raise TypeObjection(
                        f"`{outer}` is of type {item_type}: it has no field '{name}'"
                    )
                raise TypeObjection(
                    f"`{outer}` has no field '{name}': {did_you_mean(name, fields)}"
                )
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
            if not is_free and not _is_whole_literal(argument):
                needed = f"`{function.name}` needs a whole number"
                raise TypeObjection(f"{needed} instead of {show(argument)}")
        written = map(show, call.arguments[function.literals or len(types) :])
        return function.type_of(*types[: function.literals], *written)

    def _demand(self, node: nodes.Expression, families: frozenset[Family], user: str) -> str:
        operand_type = self.type_of(node)
        if operand_type != "void" and family_of(operand_type) not in families:
            wanted = " or ".join(sorted(family.value for family in families))
            raise TypeObjection(
                f"`{user}` needs {_a(wanted)}, and {_described(node, operand_type)}"
            )
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
    """Next to a decimal, Spark gives an integer literal exactly its digits."""
    match node:
        case nodes.Number(value=int() as value):
            return f"decimal({len(str(abs(value)))},0)"
        case _:
            return node_type


def is_duration(spark_type: str) -> bool:
    return spark_type.startswith("interval")


def has_variant(spark_type: str) -> bool:
    """True if values of the type are variants, or hold some: Spark cannot compare them."""
    return _VARIANT.search(spark_type) is not None


def objection_to_comparison(left: str, right: str, text: str | None = None) -> str | None:
    """Why values of two types cannot be compared, in a few words; None if they can.

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


def _is_whole_literal(node: nodes.Expression) -> bool:
    return isinstance(node, nodes.Number) and isinstance(node.value, int)


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
