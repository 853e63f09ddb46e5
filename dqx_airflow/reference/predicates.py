"""Predicates over one row: true, false, or None where SQL has NULL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.comparison import comparable
from dqx_airflow.metrics.in_python import Column
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.plan.model import Lookup
from dqx_airflow.plan.predicates import lookup_of
from dqx_airflow.plan.row_types import RowTypes
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
    """One row: the values of its columns, the types, and the values that a lookup finds.

    `item` is the item of an array that a part of a predicate is about.
    """

    value_of: Callable[[str], Any]
    types: RowTypes
    dataset: str
    known: Mapping[Lookup, Known]
    item: Any = None

    def holds(self, node: nodes.Expression) -> bool | None:
        """Whether a predicate that `RowTypes.check` found sound is true of the row."""
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
                return _not(_all(self._compare("!=", operand, item) for item in items))
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
            case nodes.Quantified(array=array):
                items = self.value(array)
                return None if items is None else self._holds_of(items, node)
            case _:
                raise AssertionError(f"not a predicate: {node}")

    def _holds_of(self, items: Sequence[Any], node: nodes.Quantified) -> bool | None:
        types = self.types.among_items(node)
        truths = [replace(self, types=types, item=item).holds(node.predicate) for item in items]
        if node.name.text == "every":
            return _all(truths)
        return _not(_all(map(_not, truths)))

    def value(self, node: nodes.Expression) -> Any:
        """The value of a part of a predicate."""
        match node:
            case nodes.Name(text=name):
                return self.value_of(name)
            case nodes.Item(path=path):
                return self._field_of_item(path)
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

    def _field_of_item(self, path: tuple[str, ...]) -> Any:
        found = self.item
        for name in path:
            if found is None:
                break
            found = found[spelled_like(name, found)]
        return found

    def _type(self, node: nodes.Expression) -> str:
        return self.types.type_of(node)

    def _compare(self, op: str, left: nodes.Expression, right: nodes.Expression) -> bool | None:
        sides = comparable(self.value(left), self._type(left), self.value(right), self._type(right))
        return None if None in sides else _COMPARE[op](*sides)

    def _find(self, search: Callable[[str], object], operand: nodes.Expression) -> bool | None:
        text = self.value(operand)
        return None if text is None else search(text) is not None

    def _is_known(self, lookup: Lookup) -> bool | None:
        value = self.value_of(lookup.column)
        return None if value is None else value in self.known[lookup]


def _all(truths: Iterable[bool | None]) -> bool | None:
    found: bool | None = True
    for truth in truths:
        found = _and(found, truth)
    return found


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth
