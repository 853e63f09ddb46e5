"""Between which numbers a metric expression lies, whatever the data is like."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold, settle
from dqx_airflow.dql.ranges import (
    ANYTHING,
    FUNCTION_RANGES,
    INFINITY,
    NOTHING,
    WINDOW_RANGES,
    Range,
    absolute,
    added,
    divided,
    multiplied,
    narrowed,
    negative,
    spanned,
)
from dqx_airflow.exact import NUMBERS, Number
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import CHANGES

METRIC_RANGES = {
    name: spanned(*metric.range, metric.empty is not None, metric.unit.is_whole)
    for name, metric in METRICS.items()
}

Ends = tuple[Number, Number]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a dataset, so many days before the target date; a lag may be tunable."""

    dataset: str
    lag: Number | nodes.Expression


@dataclass(frozen=True, slots=True)
class Request:
    """What a call asks for: equal requests have equal values."""

    call: nodes.Call
    rows: Rows


def _as_it_is(_: nodes.Arithmetic, plain: Range) -> Range:
    return plain


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an expression refers to: the constants, and the dataset of a call that names none.

    `tighten` may narrow the range of an operation. `is_lagged` where it is about other dates than
    the target date: on a date without data nothing has a value.
    """

    constants: Mapping[str, Range]
    dataset: str
    tighten: Callable[[nodes.Arithmetic, Range], Range] = _as_it_is
    is_lagged: bool = False

    def rows_of(self, call: nodes.Call) -> Rows:
        """The rows that a call is about."""
        dataset = self.dataset
        lag: Number | nodes.Expression = 0
        for parameter in call.parameters:
            value = parameter.value
            if parameter.name.text == "dataset" and isinstance(value, nodes.Name):
                dataset = value.text
            elif parameter.name.text == "lag":
                days = range_of(value, self)
                lag = days.low if days.is_point else value
        return Rows(dataset, lag)

    def request_of(self, call: nodes.Call) -> Request:
        """What a call of a metric or of an extended metric asks for."""
        if not call.parameters:
            return Request(call, Rows(self.dataset, 0))
        others = tuple(item for item in call.parameters if item.name.text not in ("dataset", "lag"))
        return Request(replace(call, parameters=others), self.rows_of(call))


def constant_ranges(constants: Iterable[nodes.Constant]) -> dict[str, Range]:
    """The ranges of the constants: one number each, or all within the bounds of a tunable one.

    A constant that is computed of a tunable one can take all values that this leads to.
    """
    found: dict[str, Range] = {}
    constants = tuple(constants)
    settled = settle(constants)
    for constant in constants:
        name = constant.name.text
        if name not in found:
            span = _constant_range(constant, Surroundings(found, ""), settled)
            # That a constant has no value is said where it is defined.
            found[name] = ANYTHING if span.is_empty else span
    return found


def _constant_range(
    constant: nodes.Constant, earlier: Surroundings, settled: Mapping[str, nodes.Constant]
) -> Range:
    if constant.bounds is None:
        return range_of(constant.value, earlier)
    low, high = (fold(bound, settled) for bound in constant.bounds)
    if isinstance(low, NUMBERS) and isinstance(high, NUMBERS):
        return spanned(low, high, True)
    return ANYTHING


def range_of(node: nodes.Expression, surroundings: Surroundings) -> Range:
    """The range of a sound metric expression."""
    match node:
        case nodes.Call():
            return _range_of_call(node, surroundings)
        case nodes.Number(value=value):
            # The largest float stands for a number that was too large, which is said already.
            return ANYTHING if abs(value) == sys.float_info.max else spanned(value, value, True)
        case nodes.Arithmetic():
            return surroundings.tighten(node, _range_of_arithmetic(node, surroundings))
        case nodes.Name(text=name):
            return surroundings.constants.get(name, ANYTHING)
        case nodes.Negative(operand=operand):
            return negative(range_of(operand, surroundings))
        case nodes.Null():
            return NOTHING
        case _:
            return ANYTHING


def requests_in(node: nodes.Expression, surroundings: Surroundings) -> Iterator[Request]:
    """The requests of an expression, each as often as it occurs."""
    match node:
        case nodes.Call(name=name, arguments=arguments):
            if name.text in FUNCTION_RANGES:
                for argument in arguments:
                    yield from requests_in(argument, surroundings)
            else:
                yield surroundings.request_of(node)
        case nodes.Arithmetic(left=left, right=right):
            yield from requests_in(left, surroundings)
            yield from requests_in(right, surroundings)
        case nodes.Negative(operand=operand):
            yield from requests_in(operand, surroundings)


def _range_of_call(call: nodes.Call, surroundings: Surroundings) -> Range:
    name = call.name.text
    if any(parameter.name.text == "lag" for parameter in call.parameters):
        surroundings = replace(surroundings, is_lagged=True)
    if name in METRIC_RANGES:
        found = METRIC_RANGES[name]
        return replace(found, is_certain=False) if surroundings.is_lagged else found
    on_date = surroundings
    if name in WINDOW_RANGES or name in CHANGES:
        surroundings = replace(surroundings, is_lagged=True)
    parts = [range_of(argument, surroundings) for argument in call.arguments]
    if name in FUNCTION_RANGES:
        return FUNCTION_RANGES[name](parts)
    if name in WINDOW_RANGES:
        inner = parts[0]
        if not on_date.is_lagged:  # the value of its last day is enough for one of the window
            is_certain = range_of(call.arguments[0], on_date).is_certain
            inner = replace(inner, is_certain=is_certain)
        return WINDOW_RANGES[name](inner)
    if name in CHANGES:
        # Today's value and the base are of different days, hence two numbers.
        return absolute(divided(added(parts[0], negative(parts[0])), parts[0]))
    return ANYTHING


def _range_of_arithmetic(node: nodes.Arithmetic, surroundings: Surroundings) -> Range:
    left = range_of(node.left, surroundings)
    right = range_of(node.right, surroundings)
    match node.op:
        case "+":
            return added(left, right)
        case "*":
            return multiplied(left, right)
        case "-":
            known = known_difference(node.left, node.right, surroundings)
            return narrowed(added(left, negative(right)), known)
        case _:
            known = _known_quotient(node.left, node.right, surroundings)
            return narrowed(divided(left, right), known)


# Relations between two expressions


def known_difference(
    left: nodes.Expression, right: nodes.Expression, surroundings: Surroundings
) -> Ends | None:
    """Where `left - right` lies if both are the same, or one counts some of the other's rows."""
    if left == right:
        return 0, 0
    if is_part(right, left, surroundings):
        return 0, INFINITY
    if is_part(left, right, surroundings):
        return -INFINITY, 0
    return None


def _known_quotient(
    left: nodes.Expression, right: nodes.Expression, surroundings: Surroundings
) -> Ends | None:
    if left == right:
        return 1, 1
    if is_part(left, right, surroundings):
        return 0, 1
    if is_part(right, left, surroundings):
        return 1, INFINITY
    return None


def is_part(part: nodes.Expression, whole: nodes.Expression, surroundings: Surroundings) -> bool:
    """True where `whole` is the number of rows, and `part` the number of some of them."""
    if not isinstance(whole, nodes.Call) or whole.name.text != "num_rows":
        return False
    match part:
        case nodes.Call(name=name) if name.text in METRICS:
            is_counted = METRICS[name.text].unit.is_part_of_rows
            return is_counted and surroundings.rows_of(part) == surroundings.rows_of(whole)
        case nodes.Arithmetic(op="-", left=left, right=right):
            return left == whole and is_part(right, whole, surroundings)
        case _:
            return False
