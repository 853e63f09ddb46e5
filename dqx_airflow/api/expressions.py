"""Expressions over metrics as Python values: arithmetic on them builds the tree of the language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, TypeAlias

from dqx_airflow.api.call_site import CallSite, caller_site
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.errors import RequestError
from dqx_airflow.exact import exact, exact_as_written, magnitude
from dqx_airflow.tuning.tunables import Tunable
from dqx_airflow.values import Span

Operand: TypeAlias = "MetricExpression | Tunable[Any] | float | Decimal"
"""The operands of arithmetic with a metric."""

Bound: TypeAlias = "Operand | str | bool | date | timedelta | None"
"""The values that a metric may be compared with."""


_NAME = re.compile(r"[^`\n]+\Z")
_TOO_LARGE = 10**300
_EXACT = (Decimal, Fraction)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MetricExpression:
    """A metric, or arithmetic over metrics. It has no value before the suite is run."""

    node: nodes.Expression

    def __add__(self, other: Operand) -> MetricExpression:
        return _arithmetic("+", self, other)

    def __radd__(self, other: Operand) -> MetricExpression:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Operand) -> MetricExpression:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: Operand) -> MetricExpression:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Operand) -> MetricExpression:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: Operand) -> MetricExpression:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: Operand) -> MetricExpression:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: Operand) -> MetricExpression:
        return _arithmetic("/", other, self)

    def __neg__(self) -> MetricExpression:
        return MetricExpression(nodes.Negative(self.node, caller_site().span))

    def __abs__(self) -> MetricExpression:
        span = caller_site().span
        return MetricExpression(nodes.Call(nodes.Name("abs", span), (self.node,), (), span))

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self}` has no value before the suite is run: "
            "compare it with ctx.assert_that(...).is_gt(...) and the like"
        )

    def __repr__(self) -> str:
        return show(self.node)


def expression_of(value: object, site: CallSite) -> nodes.Expression:
    """The node for a Python value: a literal, a tunable's name, an expression.

    :raises RequestError: the language has no equivalent.
    """
    match value:
        case MetricExpression(node=node):
            return node
        case Tunable():
            return nodes.Name(value.name, site.of(value.name))
        case str():
            return nodes.Text(value, site.of(value))
        case bool():
            return nodes.Truth(value, site.of(str(value)))
        case datetime():
            return nodes.Text(value.isoformat(sep=" "), site.span)
        case date():
            return nodes.Day(value, site.span)
        case timedelta():
            seconds = exact(Fraction(value // timedelta(microseconds=1), 1_000_000))
            return nodes.Number(seconds, nodes.Unit.DURATION, site.span)
        case Decimal() | Real():
            return number(value, nodes.Unit.PLAIN, site.of(str(value)))
        case None:
            return nodes.Null(site.span)
        case _:
            raise RequestError(
                f"{value!r} is not a valid operand",
                "give a number, a string, a date, a timedelta, None or an expression over metrics",
            )


def name_of(text: str, site: CallSite) -> nodes.Name:
    """The name of a column or dataset.

    :raises RequestError: the name is impossible, even in backticks.
    """
    if not _NAME.match(text):
        raise RequestError(
            f"{text!r} is not a valid name of a column or a dataset",
            "a name cannot contain a backtick or a line break",
        )
    return nodes.Name(text, site.of(text))


def number(value: Real | Decimal | float, unit: nodes.Unit, span: Span) -> nodes.Number:
    """A number as parsed from its digits; for a float, from those that Python prints.

    :raises RequestError: it is not a finite number.
    """
    exact: int | Fraction | None
    try:
        if isinstance(value, Integral):
            exact = int(value)
        else:
            exact = Fraction(exact_as_written(value if isinstance(value, _EXACT) else float(value)))
    except (OverflowError, ValueError):
        exact = None
    if exact is None or magnitude(exact) >= _TOO_LARGE:
        raise RequestError(f"{value!r} is not a finite number", "write None for a missing value")
    return nodes.Number(exact, unit, span)


_OPERANDS = (MetricExpression, Tunable, Real, Decimal)


def _arithmetic(op: str, left: object, right: object) -> MetricExpression:
    other = right if isinstance(left, MetricExpression) else left
    if isinstance(other, bool) or not isinstance(other, _OPERANDS):
        return NotImplemented  # type: ignore[no-any-return]
    site = caller_site()
    sides = expression_of(left, site), expression_of(right, site)
    return MetricExpression(nodes.Arithmetic(op, *sides, site.span))
