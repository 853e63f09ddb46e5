"""Predicates over one row: true, false, or None where SQL has NULL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.comparison import comparable
from dqx_airflow.metrics.in_python import Column
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.model import Lookup
from dqx_airflow.plan.predicates import lookup_of
from dqx_airflow.plan.row_types import ColumnTypes, type_of
from dqx_airflow.reference.arithmetic import calculate, narrowed
from dqx_airflow.reference.java_patterns import compile_java, compile_like

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Known:
    """The values of a column into which another column is looked up."""

    own: str
    other: str
    keys: frozenset[Any]

    @classmethod
    def of(cls, column: Column, other: str) -> Known:
        """:param other: the type of the column that is looked up."""
        keys = (comparable(value, column.type, value, other)[0] for value in column.present)
        return cls(column.type, other, frozenset(keys))

    def __contains__(self, value: Any) -> bool:
        return comparable(value, self.other, value, self.own)[0] in self.keys


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the value of a column, its type, and the values that a lookup finds."""

    value_of: Callable[[str], Any]
    type_of: ColumnTypes
    dataset: str
    known: Mapping[Lookup, Known]

    def holds(self, node: nodes.Expression) -> bool | None:
        """Whether a predicate that `check_predicate` found sound is true of the row."""
        match node:
            case nodes.Junction(op="and", left=left, right=right):
                return _and(self.holds(left), self.holds(right))
            case nodes.Junction(left=left, right=right):
                return _not(_and(_not(self.holds(left)), _not(self.holds(right))))
            case nodes.Not(operand=operand):
                return _not(self.holds(operand))
            case nodes.Compare(op=op, left=left, right=right):
                return self._compare(op, left, right)
            case nodes.Within(operand=operand, low=low, high=high):
                above = self._compare(">=", operand, low)
                return _and(above, self._compare("<=", operand, high))
            case nodes.Member(operand=operand, choices=nodes.Listing(items=items)):
                absent: bool | None = True
                for item in items:
                    absent = _and(absent, self._compare("!=", operand, item))
                return _not(absent)
            case nodes.Member():
                return self._is_known(lookup_of(self.dataset, node))
            case nodes.Matches(operand=operand, pattern=pattern):
                return self._find(compile_java(pattern.value).search, operand)
            case nodes.Like(operand=operand, pattern=pattern):
                return self._find(compile_like(pattern.value).fullmatch, operand)
            case nodes.HasFormat(operand=operand, format=name):
                expression = whole(TEXT_FORMATS[name.text].pattern)
                return self._find(compile_java(expression).search, operand)
            case nodes.IsNull(operand=operand):
                return self.value(operand) is None
            case _:
                raise AssertionError(f"not a predicate: {node}")

    def value(self, node: nodes.Expression) -> Any:
        """The value of a part of a predicate."""
        match node:
            case nodes.Name(text=name):
                return self.value_of(name)
            case nodes.Number(value=seconds, unit=nodes.Unit.DURATION):
                return timedelta(seconds=seconds)
            case nodes.Number(value=value) | nodes.Text(value=value) | nodes.Truth(value=value):
                return value
            case nodes.Day(value=day):
                return day
            case nodes.Negative(operand=operand):
                value = self.value(operand)
                return None if value is None else calculate("-", 0, value, self._type(node))
            case nodes.Arithmetic(op=op, left=left, right=right):
                sides = self.value(left), self.value(right)
                return None if None in sides else calculate(op, *sides, self._type(node))
            case nodes.Call(name=name, arguments=arguments):
                function = ROW_FUNCTIONS[name.text]
                values = [self.value(argument) for argument in arguments]
                if None in values and not function.takes_null:
                    return None
                result = function.in_python(*values)
                return narrowed(result) if self._type(node) == "float" else result
            case _:
                return None

    def _type(self, node: nodes.Expression) -> str:
        return type_of(node, self.type_of)

    def _compare(self, op: str, left: nodes.Expression, right: nodes.Expression) -> bool | None:
        sides = comparable(self.value(left), self._type(left), self.value(right), self._type(right))
        return None if None in sides else _COMPARE[op](*sides)

    def _find(self, search: Callable[[str], object], operand: nodes.Expression) -> bool | None:
        text = self.value(operand)
        return None if text is None else search(text) is not None

    def _is_known(self, lookup: Lookup) -> bool | None:
        value = self.value_of(lookup.column)
        return None if value is None else value in self.known[lookup]


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth
