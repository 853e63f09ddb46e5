"""Predicates over rows as Spark SQL text: quoted names, quoted literals, nothing that raises."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.model import Lookup

_COMPARATORS = {"==": "=", "!=": "<>"}
_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide"}


class PredicateWriter:
    """Writes the predicates of one dataset and gathers the lookups that they need.

    The constants are settled ones: their values are literals.
    """

    def __init__(self, dataset: str, constants: Mapping[str, nodes.Constant]) -> None:
        self.dataset = dataset
        self.constants = constants
        self.lookups: dict[Lookup, None] = {}

    def write(self, node: nodes.Expression) -> str:
        match node:
            case nodes.Junction(op=op, left=left, right=right):
                return f"({self.write(left)} {op.upper()} {self.write(right)})"
            case nodes.Not(operand=operand):
                return f"(NOT {self.write(operand)})"
            case nodes.Compare(op=op, left=left, right=right):
                comparator = _COMPARATORS.get(op, op)
                return f"({self._value(left)} {comparator} {self._value(right)})"
            case nodes.Within(operand=operand, low=low, high=high):
                value = self._value(operand)
                return f"({value} BETWEEN {self._value(low)} AND {self._value(high)})"
            case nodes.Member(operand=operand, choices=nodes.Listing(items=items)):
                choices = ", ".join(self._value(item) for item in items)
                return f"({self._value(operand)} IN ({choices}))"
            case nodes.Member(operand=nodes.Name(text=column), choices=nodes.Call() as choices):
                return self.is_among(column, choices)
            case nodes.Matches(operand=operand, pattern=pattern):
                return f"({self._value(operand)} RLIKE {quote_literal(pattern.value)})"
            case nodes.IsNull(operand=operand):
                return f"({self._value(operand)} IS NULL)"
            case _:
                raise AssertionError(f"not a predicate: {node}")

    def is_among(self, column: str, choices: nodes.Call) -> str:
        """`column in values(other_column, dataset other)`; NULL where the column is NULL."""
        reference_column, reference = choices.arguments[0], choices.parameters[0].value
        assert isinstance(reference_column, nodes.Name)
        assert isinstance(reference, nodes.Name)
        lookup = Lookup(self.dataset, column, reference.text, reference_column.text)
        self.lookups[lookup] = None
        name = quote_name(column)
        return f"(CASE WHEN {name} IS NOT NULL THEN {quote_name(lookup.alias)} IS NOT NULL END)"

    def _value(self, node: nodes.Expression) -> str:
        match node:
            case nodes.Name(text=name) if name in self.constants:
                return self._value(self.constants[name].value)
            case nodes.Name(text=name):
                return quote_name(name)
            case nodes.Number(value=value) | nodes.Text(value=value):
                return quote_literal(value)
            case nodes.Day(value=day):
                assert isinstance(day, date)
                return quote_literal(day)
            case nodes.Negative(operand=operand):
                return f"try_subtract(0, {self._value(operand)})"
            case nodes.Arithmetic(op=op, left=left, right=right):
                return f"{_TRY[op]}({self._value(left)}, {self._value(right)})"
            case nodes.Call(name=name, arguments=arguments):
                function = "char_length" if name.text == "length" else name.text
                return f"{function}({', '.join(self._value(argument) for argument in arguments)})"
            case _:
                return "NULL"
