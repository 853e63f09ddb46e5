"""Narrows ranges where one metric occurs more than once: `num_rows() - num_rows()` is 0.

Interval arithmetic takes every occurrence for a number of its own. Here equal requests are equal
symbols of sympy, which rearranges what is built of them. Only whole numbers are asked about, for
which a computed value is what algebra says it is.
Sympy takes a second to import: import this module where it is needed only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sympy

from dqx_airflow.dql import nodes
from dqx_airflow.dql.enclosures import Request, Surroundings, is_part, range_of, requests_in
from dqx_airflow.dql.ranges import INFINITY, Range, narrowed

_MOST_REQUESTS = 12
"""Expanding products of more would take too long."""

_Ends = tuple[Any, Any]  # fractions, whole numbers or infinite
_ANYWHERE: _Ends = (-INFINITY, INFINITY)


@dataclass(slots=True)
class Tightener:
    """Narrows the ranges of operations on whole numbers within one assertion."""

    surroundings: Surroundings
    _symbols: dict[Request, Any] = field(default_factory=dict)
    _ends: dict[Any, _Ends] = field(default_factory=dict)
    _calls: dict[Any, nodes.Call] = field(default_factory=dict)

    def tighten(self, node: nodes.Arithmetic, plain: Range) -> Range:
        """The range of `node`, which `plain` is the range of as far as intervals tell."""
        requests = list(requests_in(node, self.surroundings))
        if plain.is_empty or not len(set(requests)) < len(requests) <= _MOST_REQUESTS:
            return plain
        left, right = self._expression(node.left), self._expression(node.right)
        if left is None or right is None:
            return plain
        low, high = self._ends_of(_applied(node.op, left, right))
        return narrowed(plain, (low, high))

    def _expression(self, node: nodes.Expression) -> Any:
        """The node in symbols, unevaluated; None where its value may not be exact."""
        match node:
            case nodes.Number(value=int() as value):
                return sympy.Integer(value)
            case nodes.Negative(operand=operand):
                inner = self._expression(operand)
                return None if inner is None else sympy.Mul(-1, inner, evaluate=False)
            case nodes.Arithmetic(op="+" | "-" | "*" as op, left=left, right=right):
                plain = range_of(node, self.surroundings)
                parts = self._expression(left), self._expression(right)
                # Whole numbers that grow too large become floating point.
                if None in parts or not (
                    isinstance(plain.low, int) and isinstance(plain.high, int)
                ):
                    return None
                return _applied(op, *parts)
            case nodes.Call():
                return self._symbol(node)
            case _:
                return None

    def _symbol(self, call: nodes.Call) -> Any:
        plain = range_of(call, self.surroundings)
        is_exact = plain.is_whole and isinstance(plain.low, int) and isinstance(plain.high, int)
        if not is_exact:
            return None
        request = self.surroundings.request_of(call)
        if request not in self._symbols:
            symbol = sympy.Dummy(call.name.text, integer=True, nonnegative=plain.low >= 0)
            self._symbols[request] = symbol
            self._ends[symbol] = (plain.low, plain.high)
            self._calls[symbol] = call
        return self._symbols[request]

    def _ends_of(self, expression: Any) -> _Ends:
        """The narrowest ends that the forms of the expression have."""
        low, high = _ANYWHERE
        for form in self._forms(expression):
            bottom, top = self._ends_of_form(form)
            low, high = max(low, bottom), min(high, top)
        return low, high

    def _forms(self, expression: Any) -> Iterator[Any]:
        yield sympy.expand(expression)
        yield sympy.factor(expression)
        for part, rows in self._parts(expression):
            # With the rows as this part and the rest, differences of the two lose their sign.
            rest = sympy.Dummy("rest", integer=True, nonnegative=True)
            self._ends[rest] = self._ends[rows]
            yield sympy.factor(expression.subs(rows, part + rest))

    def _parts(self, expression: Any) -> Iterator[tuple[Any, Any]]:
        """Pairs of symbols, the second the number of rows and the first that of some of them."""
        symbols = [symbol for symbol in self._calls if symbol in expression.free_symbols]
        for part in symbols:
            for rows in symbols:
                if part is not rows and is_part(
                    self._calls[part], self._calls[rows], self.surroundings
                ):
                    yield part, rows

    def _ends_of_form(self, form: Any) -> _Ends:
        if form.is_Rational:
            return (Fraction(int(form.p), int(form.q)),) * 2
        if form.is_Symbol:
            return self._ends[form]
        if form.is_Add:
            ends = [self._ends_of_form(term) for term in form.args]
            found = sum(low for low, _ in ends), sum(high for _, high in ends)
        elif form.is_Mul:
            found = self._ends_of_product(form)
        elif form.is_Pow and form.exp.is_Integer:
            found = self._ends_of_power(form.base, int(form.exp))
        else:
            return _ANYWHERE
        low, high = found
        return (max(low, 0) if form.is_nonnegative else low), high

    def _ends_of_product(self, product: Any) -> _Ends:
        powers = dict(product.as_powers_dict())
        ends: _Ends = (1, 1)
        for part, rows in self._parts(product):
            # A part of the rows divided by the rows.
            if powers.get(part, 0) >= 1 and powers.get(rows, 0) <= -1:
                powers[part] -= 1
                powers[rows] += 1
                ends = _times(ends, (0, 1))
        for base, power in powers.items():
            if not power.is_Integer:
                return _ANYWHERE
            ends = _times(ends, self._ends_of_power(base, int(power)))
        return ends

    def _ends_of_power(self, base: Any, power: int) -> _Ends:
        ends = self._ends_of_form(base)
        if power < 0:
            # There is no value where the base is zero.
            if ends[0] < 0 or not (base.is_integer or ends[0] > 0):
                return _ANYWHERE
            ends = (_inverse(ends[1]), _inverse(max(ends[0], 1 if base.is_integer else ends[0])))
        found: _Ends = (1, 1)
        for _ in range(abs(power)):
            found = _times(found, ends)
        return found


def _applied(op: str, left: Any, right: Any) -> Any:
    match op:
        case "+":
            return sympy.Add(left, right, evaluate=False)
        case "-":
            return sympy.Add(left, sympy.Mul(-1, right, evaluate=False), evaluate=False)
        case "*":
            return sympy.Mul(left, right, evaluate=False)
        case _:
            return sympy.Mul(left, sympy.Pow(right, -1, evaluate=False), evaluate=False)


def _times(left: _Ends, right: _Ends) -> _Ends:
    corners = [a * b if a and b else 0 for a in left for b in right]
    return min(corners), max(corners)


def _inverse(end: Any) -> Any:
    return 0 if math.isinf(end) else 1 / Fraction(end)
