"""Checks the types in row predicates.

Spark would detect most errors of types too, but late and only in ANSI mode: there the scan ends at
the first string that is not a number, and elsewhere the string silently becomes NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import ITEM
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.spark_values import (
    MICROSECONDS,
    MOST_MICROSECONDS,
    has_nanoseconds,
    literal_type,
    timestamp_in,
)
from dqx_airflow.metrics.types import (
    WHOLE_SIZES,
    Family,
    decimal_size,
    family_of,
    fields_of,
    has_variant,
    parts_of,
    spelled_like,
    widest,
)
from dqx_airflow.plan.decimal_sizes import exact_operands, exact_size, rounded_size

ColumnTypes: TypeAlias = Callable[[str], str]
"""Returns the type of a column by its name; raises a TypeObjection if there is none."""

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

        :raises TypeObjection: a column is missing, or a type is not suitable.
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

        :raises TypeObjection: it is not an array.
        """
        array = node.array
        name = node.name.text
        array_type = self.type_of(array)
        if family_of(array_type) is Family.MAP:
            hint = f"write {name}(entries({show(array)}), ...)"
            message = f"`{name}` needs an array, and {_described(array, array_type)}: {hint}"
            raise TypeObjection(message)
        self._demand(array, _ARRAY, name)
        return replace(self, of_item=next(iter(parts_of(array_type)), "void"))

    def type_of(self, node: nodes.Expression) -> str:
        """The type of a row value, as Spark infers it.

        :raises TypeObjection: a column is missing, or a type is not suitable.
        """
        match node:
            case nodes.Name(text=name):
                return self.of_column(name)
            case nodes.Item(path=path):
                return self._field_of_item(path)
            case nodes.Number(unit=nodes.Unit.DURATION):
                _check_duration(node)
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
    match op:
        case "+":
            return _moved_type(left, right) or _moved_type(right, left)
        case "-" if is_timestamp(left) and is_timestamp(right):
            return DURATION
        case "-":
            return _moved_type(left, right)
        case "*":
            return _scaled_type(left, right) or _scaled_type(right, left)
        case "/":
            return _scaled_type(left, right)
    return None


def _moved_type(start: str, step: str) -> str | None:
    """The type of a date, a timestamp or a duration, moved by a duration or a number of days."""
    if is_duration(step) and is_timestamp(start):
        return widest(start, "timestamp") if start == "date" else start
    if is_duration(step) and is_duration(start):
        return DURATION
    if start == "date" and step in _DAY_COUNTS:
        return "date"
    return None


def _scaled_type(duration: str, factor: str) -> str | None:
    return DURATION if is_duration(duration) and _is_number(factor) else None


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


def _check_duration(duration: nodes.Number) -> None:
    """:raises TypeObjection: Spark does not hold the duration."""
    microseconds = Fraction(duration.value) * MICROSECONDS
    if microseconds > MOST_MICROSECONDS:
        days = MOST_MICROSECONDS // (MICROSECONDS * 86_400)
        raise TypeObjection(f"{show(duration)} is too long: a duration has at most {days:,} days")
    if microseconds.denominator > 1:
        raise TypeObjection(f"{show(duration)} is not a whole number of microseconds")


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
        if has_nanoseconds(text):
            return "a timestamp has at most six digits after the decimal point"
        return None
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


def is_timestamp(spark_type: str) -> bool:
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
