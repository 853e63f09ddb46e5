"""Predicates over one row: true, false, or None for NULL in SQL; Java's regular expressions for
Python's `re`.

The tree of a regular expression is rewritten: every character as a set of characters, so that line
ends, flags and classes mean the same as in Java; `$` is the end of the string. An expression that
Python does not support is rejected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from functools import cache
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.patterns import syntax
from dqx_airflow.metrics.patterns.bounds import bounded_like, longest_in_python, regular_expression
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.spark_values import (
    COMPARATORS,
    MICROSECONDS,
    ColumnValues,
    comparable,
    literal_value,
)
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.metrics.types import WHOLE_SIZES, spelled_like
from dqx_airflow.plan.in_memory.table import calculate, fitted, has_bits_for, narrowed, negated
from dqx_airflow.plan.model import Lookup
from dqx_airflow.plan.predicates import lookup_of
from dqx_airflow.plan.row_types import RowTypes, operand_types

_CONDITIONS = {
    "^": r"(?!\Z)(?:\A|(?<=[\n\u0085\u2028\u2029])|(?<=\r)(?!\n))",
    "$": r"(?:(?=\r\n)|(?<!\r)(?=\n)|(?=[\r\u0085\u2028\u2029])|\Z)",
    r"\b": r"\b",
    r"\B": r"\B",
}
_MODES = {"greedy": "", "lazy": "?", "possessive": "+"}


class UntranslatablePatternError(ValueError):
    """Python does not support a part of the expression; the message names it."""


@cache
def compile_java(pattern: str) -> re.Pattern[str]:
    """The expression for `search` with the matches of Java's `find`.

    :raises UntranslatablePatternError: Python does not support a part of it.
    """
    try:
        return re.compile(_written(syntax.pattern_tree(pattern, has_exact_classes=True)), re.ASCII)
    except (syntax.PatternError, re.error, OverflowError, RecursionError) as error:
        raise UntranslatablePatternError(f'"{pattern}": {error}') from error


@cache
def compile_like(pattern: str) -> re.Pattern[str]:
    """A `like` pattern for `fullmatch`."""
    return compile_java(regular_expression(pattern))


def _written(node: syntax.Node) -> str:
    """The node in Python's syntax; in a group if it would otherwise be split."""
    match node:
        case syntax.One(characters=characters):
            return _set(characters)
        case syntax.Concatenation(items=items):
            return "".join(map(_written, items))
        case syntax.Choice(branches=branches):
            return f"(?:{'|'.join(map(_written, branches))})"
        case syntax.Repeat(body=body, low=low, high=high, mode=mode):
            most = "" if high is None else high
            return f"(?:{_written(body)}){{{low},{most}}}{_MODES[mode]}"
        case syntax.Group(body=body, opening=opening):
            return f"({opening}{_written(body)})"
        case syntax.Start():
            return r"\A"
        case syntax.End():
            return r"\Z"
        case syntax.ZeroWidth(written=written) if written in _CONDITIONS:
            return _CONDITIONS[written]
        case syntax.Anything(group=int(number)):
            return rf"(?:\{number})"
        case _:
            raise syntax.PatternError(r"Python does not support \G and \X")


def _set(characters: syntax.Characters) -> str:
    if characters.is_vague:
        raise syntax.PatternError("Python does not support this character class or flag")
    if not characters:
        return "(?!)"
    ranges = (f"\\U{low:08x}-\\U{high:08x}" for low, high in characters.ranges)
    return f"[{''.join(ranges)}]"


@dataclass(frozen=True, slots=True)
class Known:
    """The values of a reference column, among which a lookup searches values of another column."""

    own: str
    other: str
    keys: frozenset[Any]

    @classmethod
    def of(cls, column: ColumnValues, other: str) -> Known:
        """:param other: the type of the column that is looked up."""
        keys = (comparable(value, column.type, value, other)[0] for value in column.present)
        return cls(column.type, other, frozenset(keys))

    def __contains__(self, value: Any) -> bool:
        return comparable(value, self.other, value, self.own)[0] in self.keys


@dataclass(frozen=True, slots=True)
class EvaluatedRow:
    """One row: the values of its columns, the types, and the values for lookups.

    `item` is the item of an array that a part of a predicate is about.
    """

    value_of: Callable[[str], Any]
    types: RowTypes
    dataset: str
    known: Mapping[Lookup, Known]
    item: Any = None

    def holds(self, node: nodes.Expression, *, is_opposite: bool = False) -> bool | None:
        """Whether a predicate that `RowTypes.check` accepted is true for the row.

        Neither it nor its negation is true if a tested value is NaN, or has no result although its
        operands have values.
        """
        match node:
            case nodes.Junction(op=op, left=left, right=right):
                sides = [self.holds(side, is_opposite=is_opposite) for side in (left, right)]
                if (op == "and") is not is_opposite:
                    return _all(sides)
                return _not(_all(map(_not, sides)))
            case nodes.Not(operand=operand):
                return self.holds(operand, is_opposite=not is_opposite)
            case nodes.Quantified(array=array):
                items = self.value(array)
                if self.is_lost(array):
                    return False
                return None if items is None else self._holds_of(items, node, is_opposite)
            case _ if not self._is_sound(node):
                return False
            case _:
                truth = self._test(node)
                return _not(truth) if is_opposite else truth

    def _test(self, node: nodes.Expression) -> bool | None:
        match node:
            case nodes.Compare(op=op, left=left, right=right):
                return self._compare(op, left, right)
            case nodes.Within(operand=operand, low=low, high=high):
                ends = (">=", low), ("<=", high)
                return _all(self._compare(op, operand, end) for op, end in ends)
            case nodes.Member(operand=operand, choices=nodes.Listing(items=items)):
                return _not(_all(self._compare("!=", operand, item) for item in items))
            case nodes.Member():
                return self._is_known(lookup_of(self.dataset, node))
            case nodes.Matches(operand=operand, pattern=pattern):
                search = compile_java(pattern.value).search
                return self._find(search, operand, _longest(pattern.value))
            case nodes.Like(operand=operand, pattern=pattern):
                search = compile_like(pattern.value).fullmatch
                return self._find(search, operand, bounded_like(pattern.value))
            case nodes.HasFormat(operand=operand, format=name):
                form = TEXT_FORMATS[name.text]
                matched = self._find(compile_java(whole(form.pattern)).search, operand)
                digits = form.check_digits
                return digits.holds(self.value(operand)) if matched and digits else matched
            case nodes.IsNull(operand=operand):
                return self.value(operand) is None
            case nodes.IsNan(operand=operand):
                value = self.value(operand)
                return None if value is None else _has_nan(value)
            case _:
                raise AssertionError(f"not a predicate: {node}")

    def _holds_of(
        self, items: Sequence[Any], node: nodes.Quantified, is_opposite: bool
    ) -> bool | None:
        types = self.types.among_items(node)
        rows = [replace(self, types=types, item=item) for item in items]
        truths = [row.holds(node.predicate, is_opposite=is_opposite) for row in rows]
        if (node.name.text == "every") is not is_opposite:
            return _all(truths)
        return _not(_all(map(_not, truths)))

    def _is_sound(self, test: nodes.Expression) -> bool:
        """False if the result of a test is unknown: a value is NaN, or `is_lost`."""
        parts = nodes.operands_of(test)
        may_be_nan = isinstance(test, nodes.IsNull | nodes.IsNan)
        return not any(
            self.is_lost(part) or (not may_be_nan and _has_nan(self.value(part))) for part in parts
        )

    def is_lost(self, node: nodes.Expression) -> bool:
        """True if an operation in a part of a predicate has no result although its operands have
        values."""
        match node:
            case nodes.Negative(operand=operand):
                return self.is_lost(operand) or self._loses(node, operand)
            case nodes.Arithmetic(left=left, right=right):
                is_lost = self.is_lost(left) or self.is_lost(right)
                return is_lost or self._loses(node, left, right)
            case nodes.Call(name=name, arguments=arguments):
                function = ROW_FUNCTIONS[name.text]
                if function.takes_null:
                    return self._is_any_lost(node)
                if any(map(self.is_lost, arguments)):
                    return True
                return function.lost is not None and self._loses(node, *arguments)
            case _:
                return False

    def _is_any_lost(self, call: nodes.Call) -> bool:
        """True if an argument of `coalesce` is lost before one that is not NULL."""
        for argument in call.arguments:
            if self.is_lost(argument):
                return True
            if self.value(argument) is not None:
                return self.value(call) is None
        return False

    def _loses(self, node: nodes.Expression, *operands: nodes.Expression) -> bool:
        values = [self.value(operand) for operand in operands]
        if None in values:
            return False
        result = self.value(node)
        return result is None or (_is_infinite(result) and not any(map(_is_infinite, values)))

    def value(self, node: nodes.Expression) -> Any:
        """The value of a part of a predicate."""
        match node:
            case nodes.Name(text=name):
                return self.value_of(name)
            case nodes.Item(path=path):
                return self._field_of_item(path)
            case nodes.Number(value=seconds, unit=nodes.Unit.DURATION):
                return timedelta(microseconds=int(Fraction(seconds) * MICROSECONDS))
            case nodes.Number(value=value) | nodes.Text(value=value) | nodes.Truth(value=value):
                return literal_value(value)
            case nodes.Day(value=day):
                return day
            case nodes.Negative(operand=operand):
                value = self.value(operand)
                return None if value is None else negated(value, self._type(node))
            case nodes.Arithmetic(op=op, left=left, right=right):
                types = operand_types(node, self._type(left), self._type(right))
                sides = fitted(self.value(left), types[0]), fitted(self.value(right), types[1])
                return None if None in sides else calculate(op, *sides, self._type(node))
            case nodes.Call(name=name, arguments=arguments):
                function = ROW_FUNCTIONS[name.text]
                values = [self.value(argument) for argument in arguments]
                if None in values and not function.takes_null:
                    return None
                result = function.in_python(*values)
                result_type = self._type(node)
                if result is None:
                    return None
                if result_type in WHOLE_SIZES:
                    return result if has_bits_for(result, result_type) else None
                return narrowed(result) if result_type == "float" else fitted(result, result_type)
            case _:
                return None

    def _field_of_item(self, path: tuple[str, ...]) -> Any:
        value = self.item
        for name in path:
            if value is None:
                break
            value = value[spelled_like(name, value)]
        return value

    def _type(self, node: nodes.Expression) -> str:
        return self.types.type_of(node)

    def _compare(self, op: str, left: nodes.Expression, right: nodes.Expression) -> bool | None:
        sides = comparable(self.value(left), self._type(left), self.value(right), self._type(right))
        return None if None in sides else COMPARATORS[op](*sides)

    def _find(
        self, search: Callable[[str], object], operand: nodes.Expression, longest: int | None = None
    ) -> bool | None:
        text = self.value(operand)
        if text is not None and longest is not None and len(text) > longest:
            raise UntranslatablePatternError(f"a string of {len(text)} characters is too long")
        return None if text is None else search(text) is not None

    def _is_known(self, lookup: Lookup) -> bool | None:
        value = self.value_of(lookup.column)
        return None if value is None else value in self.known[lookup]


def _has_nan(value: Any) -> bool:
    """True for NaN, and for arrays and structs that contain it."""
    match value:
        case float():
            return math.isnan(value)
        case tuple():
            return any(map(_has_nan, value))
        case dict():
            return any(map(_has_nan, value.values()))
        case _:
            return False


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _longest(pattern: str) -> int | None:
    try:
        return longest_in_python(pattern)
    except syntax.PatternError as error:  # rewritten for Java
        raise UntranslatablePatternError(f'"{pattern}": {error}') from error


def _all(truths: Iterable[bool | None]) -> bool | None:
    found = set(truths)
    return next((truth for truth in (False, None) if truth in found), True)


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth
