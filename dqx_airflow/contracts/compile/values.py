"""Demands on single values, as predicates over a name: one function for each demand.

The name is a column, or the items of an array. If it is NULL, so is the predicate.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.ecma_regex import java_pattern
from dqx_airflow.contracts.compile.terms import ValueKind, kind_of
from dqx_airflow.contracts.model import Field
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.patterns.bounds import bounded
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.text_formats import TEXT_FORMATS

_NEARLY = 0.000001
"""The tolerance for multiples, as a share of the divisor, for floating-point numbers."""


def matches(
    operand: nodes.Expression, demand: demands.Pattern, item: Field | None
) -> nodes.Expression:
    try:
        pattern = java_pattern(demand.expression)
    except NoCounterpartError as error:
        raise NoCounterpartError(f"the pattern cannot be translated to Java: {error}") from error
    try:
        bounded(pattern)
    except PatternError as error:
        raise NoCounterpartError(f"the pattern is refused: {error}") from error
    return nodes.Matches(operand, terms.text(pattern), terms.NOWHERE)


def has_format(
    operand: nodes.Expression, demand: demands.OfFormat, item: Field | None
) -> nodes.Expression:
    if demand.name not in TEXT_FORMATS:
        hint = did_you_mean(demand.name, TEXT_FORMATS)
        raise NoCounterpartError(f"unknown format '{demand.name}': {hint}")
    return nodes.HasFormat(operand, terms.name(demand.name), terms.NOWHERE)


def one_of(
    operand: nodes.Expression, demand: demands.OneOf, item: Field | None
) -> nodes.Expression:
    return among(operand, demand.values, item)


def among(
    operand: nodes.Expression, values: tuple[demands.Literal, ...], item: Field | None
) -> nodes.Expression:
    """A value is one of these. NULL and values that the type cannot have are dropped."""
    kind = kind_of(item)
    if kind in (ValueKind.NESTED, ValueKind.BINARY):
        raise NoCounterpartError(f"a list cannot contain values of type {kind.value}")
    present = [value for value in values if value is not None]
    if kind is ValueKind.UNKNOWN and len({_sort_of(value) for value in present}) > 1:
        kind = ValueKind.TEXT
    choices: dict[nodes.Expression, None] = {}
    for value in present:
        try:
            choices[terms.literal(value, kind)] = None
        except NoCounterpartError:
            continue
    if not choices and present:
        raise NoCounterpartError(f"none of the values is of type {kind.value}")
    return terms.member(operand, *choices) if choices else terms.is_null(operand)


def bound(operand: nodes.Expression, demand: demands.Bound, item: Field | None) -> nodes.Expression:
    kind = kind_of(item)
    if kind in (ValueKind.NESTED, ValueKind.BINARY, ValueKind.BOOLEAN):
        raise NoCounterpartError(f"values of type {kind.value} have no order")
    if kind is ValueKind.TEXT and not isinstance(demand.value, str):
        raise NoCounterpartError("a string cannot be compared with a number")
    return terms.compare(operand, demand.op, terms.literal(demand.value, kind))


def length(
    operand: nodes.Expression, demand: demands.Length, item: Field | None
) -> nodes.Expression:
    kind = kind_of(item)
    if kind not in (ValueKind.TEXT, ValueKind.NESTED, ValueKind.UNKNOWN) or (
        item and item.type == "struct"
    ):
        raise NoCounterpartError(
            f"values of type {kind.value} have no length: only strings and arrays do"
        )
    measured = terms.call("size" if kind is ValueKind.NESTED else "length", operand)
    return terms.compare(measured, demand.op, terms.number(demand.count))


def multiple_of(
    operand: nodes.Expression, demand: demands.MultipleOf, item: Field | None
) -> nodes.Expression:
    _demand_number(item, "a multiple")
    if demand.divisor <= 0:
        raise NoCounterpartError(f"{demand.divisor} is not a valid divisor: write a number above 0")
    terms.number(demand.divisor)
    divisor = Fraction(str(demand.divisor))
    if divisor.denominator == 1:
        times = terms.call("round", _over(operand, divisor.numerator))
        return terms.compare(_times(times, divisor.numerator), "==", operand)
    quotient = _over(_times(operand, divisor.denominator), divisor.numerator)
    rest = terms.arithmetic(quotient, "-", terms.call("round", quotient))
    return terms.compare(terms.call("abs", rest), "<=", terms.number(_NEARLY))


def digits(
    operand: nodes.Expression, demand: demands.Digits, item: Field | None
) -> nodes.Expression:
    _demand_number(item, "digits")
    rounded = terms.call("round", operand, terms.number(demand.scale))
    has_scale = terms.compare(rounded, "==", operand)
    limit = terms.number(10 ** max(0, demand.precision - demand.scale))
    has_room = terms.compare(terms.call("abs", operand), "<", limit)
    return has_room if terms.is_whole(item) else terms.both(has_scale, has_room)


PREDICATES: dict[type, Callable[[nodes.Expression, Any, Field | None], nodes.Expression]] = {
    demands.Pattern: matches,
    demands.OfFormat: has_format,
    demands.OneOf: one_of,
    demands.Bound: bound,
    demands.Length: length,
    demands.MultipleOf: multiple_of,
    demands.Digits: digits,
}
"""The predicate of each demand over one value."""


def _sort_of(value: demands.Literal) -> type:
    if isinstance(value, bool | str):
        return type(value)
    return float


def _demand_number(item: Field | None, limit: str) -> None:
    kind = kind_of(item)
    if kind not in (ValueKind.NUMBER, ValueKind.UNKNOWN):
        raise NoCounterpartError(f"only a number has {limit}, and this is a {kind.value}")


def _over(operand: nodes.Expression, divisor: int) -> nodes.Expression:
    return operand if divisor == 1 else terms.arithmetic(operand, "/", terms.number(divisor))


def _times(operand: nodes.Expression, factor: int) -> nodes.Expression:
    return operand if factor == 1 else terms.arithmetic(operand, "*", terms.number(factor))
