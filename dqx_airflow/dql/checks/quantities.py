"""Infers the units of both sides of a comparison, and checks that they match.

A percentage is not a number of rows, and hours are not a number without a unit. An unknown unit,
such as the unit of a column, matches every other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_claim
from dqx_airflow.dql.walk import rewritten
from dqx_airflow.metrics import calls
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.drift import DRIFT
from dqx_airflow.metrics.metric import Metric, MetricUnit, Scan
from dqx_airflow.metrics.types import Family


class Quantity(str, Enum):
    """The properties of an expression that matter in comparisons."""

    ROWS = "a number of rows"
    VALUES = "a number of values"
    CHARACTERS = "a number of characters"
    COLUMNS = "a number of columns"
    NUMBER = "a plain number"
    PERCENTAGE = "a percentage"
    DURATION = "a duration"
    MEASURE = "a number in the unit of its column"
    TEXT = "a string"
    DATE = "a date"
    TRUTH = "true or false"
    UNKNOWN = "a value of unknown unit"


_COUNTS = frozenset({Quantity.ROWS, Quantity.VALUES, Quantity.CHARACTERS, Quantity.COLUMNS})

_NOT_OF_ROWS = frozenset({Quantity.CHARACTERS, Quantity.COLUMNS})

_VAGUE = frozenset({Quantity.UNKNOWN, Quantity.MEASURE})

_PLAIN = frozenset({Quantity.MEASURE, Quantity.NUMBER, Quantity.PERCENTAGE})

_NO_NUMBERS = frozenset({Quantity.TEXT, Quantity.DATE, Quantity.TRUTH})

_OF_UNITS = {
    MetricUnit.ROWS: Quantity.ROWS,
    MetricUnit.DIFFERENCES: Quantity.ROWS,
    MetricUnit.VALUES: Quantity.VALUES,
    MetricUnit.MISSING: Quantity.VALUES,
    MetricUnit.CHARACTERS: Quantity.CHARACTERS,
    MetricUnit.COLUMNS: Quantity.COLUMNS,
    MetricUnit.SHARE: Quantity.NUMBER,
    MetricUnit.NUMBER: Quantity.NUMBER,
    MetricUnit.SECONDS: Quantity.DURATION,
}

_NUMBERS = frozenset({Family.NUMBER})

_COUNTED = _NUMBERS | {Family.BOOLEAN}

_OF_LITERALS = {
    nodes.Unit.PLAIN: Quantity.NUMBER,
    nodes.Unit.PERCENT: Quantity.PERCENTAGE,
    nodes.Unit.DURATION: Quantity.DURATION,
}


def constant_quantities(constants: Iterable[nodes.Constant]) -> dict[str, Quantity]:
    """The units of the constants of a suite, by name; of two with the same name the first
    counts."""
    quantities: dict[str, Quantity] = {}
    for constant in constants:
        quantity = _Checker(quantities).quantity_of(constant.value)
        quantities.setdefault(constant.name.text, quantity)
    return quantities


def check_units(
    claim: nodes.Claim, tolerance: nodes.Number | None, constants: Mapping[str, Quantity]
) -> Iterator[Diagnostic]:
    """The mismatches in a valid assertion over metrics; none for other claims."""
    if not isinstance(claim, nodes.Measure):
        return
    checker = _Checker(constants)
    subject = checker.quantity_of(claim.expression)
    for bound in nodes.bounds_of(claim.condition):
        quantity = checker.quantity_of(bound)
        if not _fit(subject, quantity):
            checker.misfit(claim.expression, subject, bound, quantity, claim)
            break
    yield from checker.found
    if tolerance is not None and not checker.found:
        yield from _check_tolerance(claim, subject, tolerance)


def _check_tolerance(
    claim: nodes.Measure, subject: Quantity, tolerance: nodes.Number
) -> Iterator[Diagnostic]:
    """The mismatch of a percentage as a tolerance of what is no share: it would be a hundredth of a
    row, not a share of the rows."""
    if tolerance.unit is not nodes.Unit.PERCENT or _fit(subject, Quantity.PERCENTAGE):
        return
    what = show(claim.expression)
    message = f"{what} is {subject.value}, its tolerance of {show(tolerance)} is a percentage"
    help_line = "a tolerance is a difference, not a share of the value: write `tolerance 10`"
    yield Diagnostic(message, tolerance.span, code="E112", help=help_line)


@dataclass(slots=True)
class _Checker:
    """Infers units, and collects mismatches on the way."""

    constants: Mapping[str, Quantity]
    found: list[Diagnostic] = field(default_factory=list)

    def quantity_of(self, node: nodes.Expression) -> Quantity:
        match node:
            case nodes.Call():
                return self._of_call(node)
            case nodes.Number(value=0, unit=nodes.Unit.PLAIN):
                return Quantity.UNKNOWN  # zero fits every unit
            case nodes.Number(unit=unit):
                return _OF_LITERALS[unit]
            case nodes.Arithmetic(op=op, left=left, right=right):
                first, second = self.quantity_of(left), self.quantity_of(right)
                if op in "+-":
                    return self._together(left, first, right, second)
                return _product(first, second) if op == "*" else _quotient(first, second)
            case nodes.Name(text=name):
                return self.constants.get(name, Quantity.UNKNOWN)
            case nodes.Negative(operand=operand):
                return self.quantity_of(operand)
            case nodes.Text():
                return Quantity.TEXT
            case nodes.Day():
                return Quantity.DATE
            case nodes.Truth():
                return Quantity.TRUTH
            case _:
                return Quantity.UNKNOWN

    def _of_call(self, call: nodes.Call) -> Quantity:
        name = call.name.text
        if name in METRICS:
            return _of_metric(METRICS[name])
        if name in calls.AGES:
            return Quantity.DURATION
        quantities = [self.quantity_of(argument) for argument in call.arguments]
        if name in calls.CHANGES or name in DRIFT:
            return Quantity.NUMBER
        if name in calls.WINDOWS or name == "abs":
            return quantities[0]
        if name not in ("min", "max", "coalesce"):
            return Quantity.UNKNOWN
        common = quantities[0]
        for argument, quantity in zip(call.arguments[1:], quantities[1:], strict=True):
            common = self._together(call.arguments[0], common, argument, quantity)
        return common

    def _together(
        self, left: nodes.Expression, first: Quantity, right: nodes.Expression, second: Quantity
    ) -> Quantity:
        """The unit of a sum, or of one of two values."""
        if not _fit(first, second):
            self.misfit(left, first, right, second)
            return Quantity.UNKNOWN
        pair = {first, second}
        if pair <= _COUNTS:
            return first if first is second else Quantity.ROWS
        if Quantity.NUMBER in pair and pair & _COUNTS:
            return second if first is Quantity.NUMBER else first
        return first if first is second else Quantity.UNKNOWN

    def misfit(
        self,
        left: nodes.Expression,
        first: Quantity,
        right: nodes.Expression,
        second: Quantity,
        claim: nodes.Measure | None = None,
    ) -> None:
        """Reports that two parts do not fit, at the one that is more likely to be wrong: a literal,
        or else the right part."""
        if isinstance(left, nodes.Number | nodes.Name):
            left, first, right, second = right, second, left, first
        message = f"{show(left)} is {first.value}, {show(right)} is {second.value}"
        help_line = _advice(left, first, right, second, claim)
        self.found.append(Diagnostic(message, right.span, code="E112", help=help_line))


def _of_metric(metric: Metric) -> Quantity:
    if metric.unit.is_of_column and not metric.is_picked:
        is_number = all(_NUMBERS <= argument.accepts <= _COUNTED for argument in metric.arguments)
        return Quantity.MEASURE if is_number else Quantity.UNKNOWN
    return _OF_UNITS.get(metric.unit, Quantity.UNKNOWN)


def _fit(first: Quantity, second: Quantity) -> bool:
    """False if two quantities cannot be compared or added."""
    pair = {first, second}
    if first is second or Quantity.UNKNOWN in pair:
        return True
    if Quantity.MEASURE in pair:
        return not pair & _NO_NUMBERS
    if Quantity.DURATION in pair or pair & _NO_NUMBERS:
        return pair <= _NO_NUMBERS
    return not (Quantity.PERCENTAGE in pair and pair & _COUNTS)


def _product(first: Quantity, second: Quantity) -> Quantity:
    pair = {first, second}
    if pair in ({Quantity.NUMBER}, {Quantity.PERCENTAGE}):
        return first
    if Quantity.PERCENTAGE in pair and pair & _COUNTS:
        return second if first is Quantity.PERCENTAGE else first
    if Quantity.MEASURE in pair and pair <= _PLAIN:
        return Quantity.MEASURE
    # 5% of 1000 has the unit of the 1000.
    return Quantity.UNKNOWN


def _quotient(first: Quantity, second: Quantity) -> Quantity:
    if first is second and first not in _VAGUE:
        return Quantity.NUMBER
    if first in _COUNTS and second in _COUNTS:
        return Quantity.NUMBER
    if Quantity.MEASURE in (first, second) and {first, second} <= _PLAIN:
        return Quantity.MEASURE
    # Division by a plain number may convert the unit.
    return Quantity.UNKNOWN


def _advice(
    left: nodes.Expression,
    first: Quantity,
    right: nodes.Expression,
    second: Quantity,
    claim: nodes.Measure | None,
) -> str:
    """The help for a comparison of two quantities that do not fit."""
    pair = {first, second}
    if pair & _NO_NUMBERS:
        meant = "a duration, such as 2 hours" if Quantity.DURATION in pair else "a number"
        return f"compare it with {meant}"
    if Quantity.DURATION not in pair:
        count, quantity = (left, first) if first in _COUNTS else (right, second)
        share = _share(count)
        if quantity in _NOT_OF_ROWS or share is None:
            return f"write {quantity.value}, such as 100"
        whole = (
            show(share)
            if claim is None
            else show_claim(rewritten(claim, lambda part: share if part is count else None))
        )
        return f"divide it by num_rows(): {whole}"
    if isinstance(right, nodes.Number) and second is Quantity.NUMBER:
        number = show(right)
        return f"write the unit: {number} minutes, {number} hours or {number} days"
    if first is Quantity.DURATION:
        return "compare it with a duration, such as 2 hours"
    return "freshness(column) and data_lag(column) return durations"


def _share(count: nodes.Expression) -> nodes.Expression | None:
    """The count divided by the rows of the same dataset and day; None for the rows themselves."""
    parameters: tuple[nodes.Parameter, ...] = ()
    if isinstance(count, nodes.Call):
        if count.name.text in calls.WINDOWS:
            share = _share(count.arguments[0])
            return share and replace(count, arguments=(share,))
        if count.name.text == "num_rows":
            return None
        metric = METRICS.get(count.name.text)
        is_of_two = metric is not None and metric.scan is Scan.MATCH
        kept = () if is_of_two else ("dataset", "lag", "where")
        parameters = tuple(p for p in count.parameters if p.name.text in kept)
    rows = nodes.Call(nodes.Name("num_rows", span=count.span), (), parameters, span=count.span)
    return nodes.Arithmetic("/", count, rows, span=count.span)
