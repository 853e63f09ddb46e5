"""The range of a metric expression, for any data.

An operation has its extremes at the extremes of its operands, so the bounds of a result are
computed from those of the operands, by the functions that compute values
(`metrics.derived.FUNCTIONS`). Exact numbers stay exact. Floating-point rounding is monotonic, so a
bound that is an integer is also valid for the rounded value; any other bound is widened by more
than the possible rounding.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from dqx_airflow.dql import nodes
from dqx_airflow.dql.walk import fold, settle
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import ARITY, CHANGES, FUNCTIONS, USUAL, USUAL_LIMITS, WINDOWS
from dqx_airflow.values.exact import NUMBERS, Number, bounded, magnitude, nearest_float

_INFINITY = math.inf

_SLACK = 1e-12
"""More than rounding, `log`, `exp` and means of many days change a value, relative to its size."""

_EXACT = 2**40
"""Sums of integers up to this size over a window of days are exact in floating point."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values of an expression are between `low` and `high`, inclusive.

    `is_whole` is set if they are integers; `is_certain` if there always is a value. If there never
    is one, `low` is greater than `high`.
    """

    low: Number
    high: Number
    is_whole: bool = False
    is_certain: bool = False

    @property
    def is_empty(self) -> bool:
        return self.low > self.high

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    def within(self, low: Number, high: Number) -> Range:
        """The part of the range between two numbers."""
        return replace(self, low=max(self.low, low), high=min(self.high, high))


ANYTHING = Range(-_INFINITY, _INFINITY)
"""A number, a string, a date or no value."""

NOTHING = Range(_INFINITY, -_INFINITY)
"""Never a value."""


def _point(number: Number) -> Range:
    is_whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    return Range(number, number, is_whole, is_certain=True)


_METRIC_RANGES = {
    name: Range(*metric.range, metric.unit.is_whole, metric.empty is not None)
    for name, metric in METRICS.items()
}


@dataclass(frozen=True, slots=True)
class RowsOfDay:
    """The rows of a dataset, n days before the target date; a lag may be tunable.

    With `where` those that satisfy a filter: for two filters it is unknown how many rows satisfy
    both.
    """

    dataset: str
    lag: Number | nodes.Expression
    where: nodes.Expression | None = None

    def are_among(self, others: RowsOfDay) -> bool:
        """True if all of these rows are certainly among the others."""
        return self == others or replace(self, where=None) == others


@dataclass(frozen=True, slots=True)
class RequestedValue:
    """The request of a call: equal requests have equal values."""

    call: nodes.Call
    rows: RowsOfDay


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of an expression: the constants, and the default dataset of calls.

    `is_lagged` is set for dates other than the target date: on a date without data nothing has a
    value.
    """

    constants: Mapping[str, Range]
    dataset: str
    is_lagged: bool = False

    def rows_of(self, call: nodes.Call) -> RowsOfDay:
        """The rows of a call."""
        named, lag = call.parameter("dataset"), call.parameter("lag")
        dataset = named.text if isinstance(named, nodes.Name) else self.dataset
        if lag is None:
            return RowsOfDay(dataset, 0, call.where)
        days = range_of(lag, self)
        return RowsOfDay(dataset, days.low if days.is_point else lag, call.where)

    def request_of(self, call: nodes.Call) -> RequestedValue:
        """The request of a call of a metric or of an extended metric."""
        if not call.parameters:
            return RequestedValue(call, RowsOfDay(self.dataset, 0))
        parameters = tuple(
            parameter
            for parameter in call.parameters
            if parameter.name.text not in ("dataset", "lag")
        )
        return RequestedValue(replace(call, parameters=parameters), self.rows_of(call))


def constant_ranges(constants: Iterable[nodes.Constant]) -> dict[str, Range]:
    """The ranges of the constants: a single number, or the bounds of a tunable one.

    A constant computed from a tunable one has the range of all resulting values.
    """
    ranges: dict[str, Range] = {}
    constants = tuple(constants)
    settled = settle(constants)
    for constant in constants:
        name = constant.name.text
        if name not in ranges:
            span = _constant_range(constant, Surroundings(ranges, ""), settled)
            # A constant without a value is reported at its definition.
            ranges[name] = ANYTHING if span.is_empty else span
    return ranges


def _constant_range(
    constant: nodes.Constant, earlier: Surroundings, settled: Mapping[str, nodes.Constant]
) -> Range:
    if constant.bounds is None:
        return range_of(constant.value, earlier)
    low, high = (fold(bound, settled) for bound in constant.bounds)
    if isinstance(low, NUMBERS) and isinstance(high, NUMBERS):
        return Range(low, high, is_certain=True)
    return ANYTHING


def requests_in(node: nodes.Expression, surroundings: Surroundings) -> Iterator[RequestedValue]:
    """The requests of an expression, each as often as it occurs."""
    match node:
        case nodes.Call(name=name, arguments=arguments):
            if name.text in ARITY:
                for argument in arguments:
                    yield from requests_in(argument, surroundings)
            else:
                yield surroundings.request_of(node)
        case nodes.Arithmetic(left=left, right=right):
            yield from requests_in(left, surroundings)
            yield from requests_in(right, surroundings)
        case nodes.Negative(operand=operand):
            yield from requests_in(operand, surroundings)


# The ranges of expressions


def range_of(node: nodes.Expression, surroundings: Surroundings) -> Range:
    """The range of a valid metric expression."""
    match node:
        case nodes.Call():
            return _range_of_call(node, surroundings)
        case nodes.Number(value=value):
            # The largest float replaces a number that was too large, which was reported.
            return ANYTHING if abs(value) == sys.float_info.max else _point(value)
        case nodes.Arithmetic(op=op, left=left, right=right):
            span = _applied(op, [range_of(left, surroundings), range_of(right, surroundings)])
            known = _KNOWN[op](left, right, surroundings) if op in _KNOWN else None
            return span if known is None or span.is_empty else span.within(*known)
        case nodes.Name(text=name):
            return surroundings.constants.get(name, ANYTHING)
        case nodes.Negative(operand=operand):
            return _applied("negative", [range_of(operand, surroundings)])
        case nodes.Null():
            return NOTHING
        case _:
            return ANYTHING


def _range_of_call(call: nodes.Call, surroundings: Surroundings) -> Range:
    name = call.name.text
    if call.parameter("lag") is not None:
        surroundings = replace(surroundings, is_lagged=True)
    if name in _METRIC_RANGES:
        span = _METRIC_RANGES[name]
        return replace(span, is_certain=False) if surroundings.is_lagged else span
    if name in ARITY:
        return _applied(name, [range_of(argument, surroundings) for argument in call.arguments])
    if name in WINDOWS:
        # The value of its last day is enough for a window; `usual` consists of other days only.
        if name in USUAL_LIMITS:
            return ANYTHING
        is_certain = name != USUAL and range_of(call.arguments[0], surroundings).is_certain
        lagged = range_of(call.arguments[0], replace(surroundings, is_lagged=True))
        return _over_days(name, replace(lagged, is_certain=is_certain))
    if name in CHANGES:
        # Today's value and the base are from different days, so they are two numbers.
        value = range_of(call.arguments[0], replace(surroundings, is_lagged=True))
        return _applied("abs", [_applied("/", [_applied("-", [value, value]), value])])
    return ANYTHING


def _over_days(window: str, inner: Range) -> Range:
    """The mean and median of values are between them; their deviation is less than their
    distance."""
    if inner.is_empty:
        return NOTHING
    if window in ("mean", USUAL):
        return _loosened(inner.low, inner.high, inner.is_certain)
    return _loosened(0, _end("-", (inner.high, inner.low)), inner.is_certain)


def _applied(function: str, parts: list[Range]) -> Range:
    """The range of a function over values in the ranges."""
    if function == "coalesce":
        return _first_with_a_value(parts)
    if function == "abs":
        return _applied("max", [parts[0], _applied("negative", parts)]).within(0, _INFINITY)
    if any(part.is_empty for part in parts):
        return NOTHING
    pieces = _in_domain(function, parts)
    corners = [
        corner for piece in pieces for corner in product(*((part.low, part.high) for part in piece))
    ]
    ends = [end for corner in corners if not math.isnan(end := _end(function, corner))]
    low, high = min(ends, default=_INFINITY), max(ends, default=-_INFINITY)
    if low == _INFINITY or high == -_INFINITY:
        return NOTHING
    # An infinite result is no value, nor is a result outside of the domain.
    is_inside = pieces == [parts] and low > -_INFINITY and high < _INFINITY
    is_certain = is_inside and all(part.is_certain for part in parts)
    if function in _WHOLE_OF_WHOLE and all(part.is_whole for part in parts):
        return Range(low, high, is_whole=True, is_certain=is_certain)
    return _loosened(low, high, is_certain)


def _in_domain(function: str, parts: list[Range]) -> list[list[Range]]:
    """The operands, cut where the function has no value: it is monotonic in each of the pieces."""
    inner = parts[-1]
    if function == "/" and inner.low <= 0 <= inner.high:
        least = 1.0 if inner.is_whole else 0.0
        sides = []
        if inner.high > 0:
            sides.append(replace(inner, low=least))
        if inner.low < 0:
            sides.append(replace(inner, high=-least))
        return [[parts[0], side] for side in sides]
    if (function == "log" and inner.low <= 0) or (function == "sqrt" and inner.low < 0):
        least = 1.0 if inner.is_whole and function == "log" else 0.0
        return [[inner.within(least, _INFINITY)]] if inner.high >= least else []
    return [parts]


def _end(function: str, corner: tuple[Number, ...]) -> Number:
    """The result for one corner, or its limit there; NaN if other corners give the bounds."""
    if function == "*" and 0 in corner:
        return 0  # for every finite factor
    if function == "/" and corner[1] == 0:
        return math.copysign(_INFINITY, corner[1]) * corner[0] if corner[0] else 0
    if function == "log" and corner[0] == 0:
        return -_INFINITY
    try:
        result: Number = FUNCTIONS[function](*corner)  # type: ignore[assignment]
    except OverflowError:
        return _INFINITY  # of exp
    try:
        return bounded(result)
    except OverflowError:
        return nearest_float(result)


def _loosened(low: Number, high: Number, is_certain: bool) -> Range:
    """The range of results that may have been rounded."""
    ends = (_outward(low, -1), _outward(high, 1))
    return Range(*ends, is_whole=low == high and float(low).is_integer(), is_certain=is_certain)


def _outward(end: Number, direction: int) -> Number:
    if math.isinf(end) or (end == math.floor(end) and magnitude(end) <= _EXACT):
        return end
    return nearest_float(end) + direction * nearest_float(magnitude(end)) * _SLACK


def _first_with_a_value(parts: list[Range]) -> Range:
    reached: list[Range] = []
    for part in parts:
        if not part.is_empty:
            reached.append(part)
        if part.is_certain:
            break
    if not reached:
        return NOTHING
    return Range(
        min(part.low for part in reached),
        max(part.high for part in reached),
        all(part.is_whole for part in reached),
        reached[-1].is_certain,
    )


_WHOLE_OF_WHOLE = frozenset({"+", "-", "*", "negative", "min", "max"})


# Relations between two expressions


Ends = tuple[Number, Number]


def known_difference(
    left: nodes.Expression, right: nodes.Expression, surroundings: Surroundings
) -> Ends | None:
    """The range of `left - right` if both are the same, or one counts some of the other's rows."""
    if left == right:
        return 0, 0
    if is_part(right, left, surroundings):
        return 0, _INFINITY
    if is_part(left, right, surroundings):
        return -_INFINITY, 0
    return None


def _known_quotient(
    left: nodes.Expression, right: nodes.Expression, surroundings: Surroundings
) -> Ends | None:
    if left == right:
        return 1, 1
    if is_part(left, right, surroundings):
        return 0, 1
    if is_part(right, left, surroundings):
        return 1, _INFINITY
    return None


_KNOWN = {"-": known_difference, "/": _known_quotient}


def is_part(part: nodes.Expression, whole: nodes.Expression, surroundings: Surroundings) -> bool:
    """True if `whole` is the number of rows, and `part` the number of some of them."""
    if not isinstance(whole, nodes.Call) or whole.name.text != "num_rows":
        return False
    match part:
        case nodes.Call(name=name) if name.text in METRICS:
            is_counted = METRICS[name.text].unit.is_part_of_rows
            rows = surroundings.rows_of(part)
            return is_counted and rows.are_among(surroundings.rows_of(whole))
        case nodes.Arithmetic(op="-", left=left, right=right):
            return left == whole and is_part(right, whole, surroundings)
        case _:
            return False
