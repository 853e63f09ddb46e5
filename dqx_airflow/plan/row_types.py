"""The types of what stands in a predicate over rows, and what no engine could make of it.

Spark would find most of it too, but late and only in ANSI mode: there a text that is compared with
a number ends the scan at the first text that is none, and elsewhere it silently becomes NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.metrics.comparison import literal_type
from dqx_airflow.metrics.moments import moment_in
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    WHOLE_SIZES,
    Family,
    decimal_size,
    family_of,
    widest,
)

ColumnTypes: TypeAlias = Callable[[str], str]
"""The type of a column by its name; raises an Objection where there is none."""

DURATION = "interval day to second"

_LEAST_SCALE = 6
_DAY_COUNTS = ("tinyint", "smallint", "int")


class Objection(Exception):  # noqa: N818 - it is raised to be told, nothing went wrong
    """Why something cannot be computed, as far as types tell."""


def check_predicate(node: nodes.Expression, column_type: ColumnTypes) -> None:
    """Looks at every part of a predicate.

    :raises Objection: a column is missing, or a type does not suit.
    """
    match node:
        case nodes.Junction(left=left, right=right):
            check_predicate(left, column_type)
            check_predicate(right, column_type)
        case nodes.Not(operand=operand):
            check_predicate(operand, column_type)
        case nodes.Compare(left=left, right=right):
            _compare(left, right, column_type)
        case nodes.Within(operand=operand, low=low, high=high):
            _compare(operand, low, column_type)
            _compare(operand, high, column_type)
        case nodes.Member(operand=operand, choices=nodes.Listing(items=items)):
            for item in items:
                _compare(operand, item, column_type)
        case nodes.Matches(operand=operand) | nodes.Like(operand=operand):
            word = "matches" if isinstance(node, nodes.Matches) else "like"
            _demand(operand, frozenset({Family.TEXT}), word, column_type)
        case nodes.HasFormat(operand=operand, format=name):
            _demand(operand, frozenset({Family.TEXT}), f"is {name.text}", column_type)
        case nodes.IsNull(operand=operand):
            type_of(operand, column_type)


def type_of(node: nodes.Expression, column_type: ColumnTypes) -> str:
    """The type of a value of a row, as Spark finds it.

    :raises Objection: a column is missing, or a type does not suit.
    """
    match node:
        case nodes.Name(text=name):
            return column_type(name)
        case nodes.Number(unit=nodes.Unit.DURATION):
            return DURATION
        case nodes.Number(value=value) | nodes.Text(value=value) | nodes.Truth(value=value):
            return literal_type(value)
        case nodes.Day(value=day):
            return literal_type(day)
        case nodes.Negative(operand=operand):
            found = _demand(operand, frozenset({Family.NUMBER}), "-", column_type)
            return arithmetic_type("-", literal_type(0), found) or found
        case nodes.Arithmetic(op=op, left=left, right=right):
            types = type_of(left, column_type), type_of(right, column_type)
            result = arithmetic_type(op, *types)
            if result is None:
                sides = f"{_said(left, types[0])} and {_said(right, types[1])}"
                raise Objection(f"{sides}: there is no `{op}` for them")
            return result
        case nodes.Call():
            return _call(node, column_type)
        case _:
            return "void"


def arithmetic_type(op: str, left: str, right: str) -> str | None:
    """The type of `left op right`; None where there is no such thing."""
    if _is_number(left) and _is_number(right):
        return _number_type(op, left, right)
    if op in ("+", "-") and _is_moment(left) and is_duration(right):
        return widest(left, "timestamp") if left == "date" else left
    if op == "+" and is_duration(left) and _is_moment(right):
        return arithmetic_type(op, right, left)
    if op == "-" and _is_moment(left) and _is_moment(right):
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


def is_duration(spark_type: str) -> bool:
    return spark_type.startswith("interval")


def objection_to_comparison(left: str, right: str, text: str | None = None) -> str | None:
    """Why values of two types cannot be compared, in a few words; None where they can.

    :param text: the text that one of them is, where it is written out.
    """
    if "void" in (left, right):
        return None
    families = {family_of(left), family_of(right)}
    if families <= {Family.OTHER, Family.COLLECTION}:
        both_durations = is_duration(left) and is_duration(right)
        if both_durations or (left == right and "map<" not in left):
            return None
    elif len(families) == 1:
        return None
    elif families == {Family.TIME, Family.TEXT} and text is not None:
        return None if moment_in(text) else f'"{text}" is no date'
    return "they cannot be compared"


def _compare(left: nodes.Expression, right: nodes.Expression, column_type: ColumnTypes) -> None:
    types = type_of(left, column_type), type_of(right, column_type)
    texts = [part.value for part in (left, right) if isinstance(part, nodes.Text)]
    reason = objection_to_comparison(*types, text=texts[0] if len(texts) == 1 else None)
    if reason is None:
        return
    hints = [
        f"; write date({show(part)})"
        for part, own, other in ((left, types[0], types[1]), (right, types[1], types[0]))
        if family_of(own) is Family.TEXT and family_of(other) is Family.TIME and not texts
    ]
    sides = f"{_said(left, types[0])} and {_said(right, types[1])}"
    raise Objection(f"{sides}: {reason}{''.join(hints)}")


def _call(call: nodes.Call, column_type: ColumnTypes) -> str:
    function = ROW_FUNCTIONS[call.name.text]
    types = [type_of(argument, column_type) for argument in call.arguments]
    first = call.arguments[0]
    if function.accepts:
        _demand(first, function.accepts, function.name, column_type)
    for position, (argument, own) in enumerate(zip(call.arguments, types, strict=True)):
        if position and objection_to_comparison(types[0], own):
            sides = f"{_said(first, types[0])} and {_said(argument, own)}"
            raise Objection(f"{sides}: `{function.name}` takes values of one kind")
        is_free = function.literals is None or position < function.literals
        if not is_free and not _is_whole_literal(argument):
            raise Objection(f"`{function.name}` needs a whole number instead of {show(argument)}")
    return function.type_of(*types)


def _demand(
    node: nodes.Expression, families: frozenset[Family], user: str, column_type: ColumnTypes
) -> str:
    found = type_of(node, column_type)
    if found != "void" and family_of(found) not in families:
        wanted = " or ".join(sorted(family.value for family in families))
        article = "an" if wanted[0] in "aeiou" else "a"
        raise Objection(f"`{user}` needs {article} {wanted}, and {_said(node, found)}")
    return found


def _said(node: nodes.Expression, found: str) -> str:
    """`'price' is of type double`, `5 is a number`"""
    match node:
        case nodes.Name(text=name):
            return f"'{name}' is of type {found}"
        case _ if is_duration(found):
            return f"{show(node)} is a duration"
        case _:
            return f"{show(node)} is a {family_of(found).value}"


def _is_number(spark_type: str) -> bool:
    return family_of(spark_type) is Family.NUMBER


def _is_whole_literal(node: nodes.Expression) -> bool:
    return isinstance(node, nodes.Number) and isinstance(node.value, int)


def _is_moment(spark_type: str) -> bool:
    return family_of(spark_type) is Family.TIME


def _number_type(op: str, left: str, right: str) -> str:
    if "double" in (left, right) or "float" in (left, right):
        return left if left == right and op != "/" else "double"
    if left in WHOLE_SIZES and right in WHOLE_SIZES:
        return "double" if op == "/" else widest(left, right)
    (precision, scale), (other_precision, other_scale) = decimal_size(left), decimal_size(right)
    match op:
        case "*":
            return _decimal(precision + other_precision + 1, scale + other_scale)
        case "/":
            digits = max(_LEAST_SCALE, scale + other_precision + 1)
            return _decimal(precision - scale + other_scale + digits, digits)
        case _:
            digits = max(scale, other_scale)
            whole = max(precision - scale, other_precision - other_scale)
            return _decimal(whole + digits + 1, digits)


def _decimal(precision: int, scale: int) -> str:
    """The decimal type of that size; where there is no room, digits behind the point give way."""
    if precision > LONGEST_DECIMAL:
        least = min(scale, _LEAST_SCALE)
        scale = max(LONGEST_DECIMAL - (precision - scale), least)
        precision = LONGEST_DECIMAL
    return f"decimal({precision},{scale})"
