"""Finds assertions whose outcome is certain before any data is read.

Everything that is reported here is proved. An assertion that can never fail checks nothing (W008),
one that can never pass blocks every run (E104), and one without a metric or a column is not about
data (W009).

For metrics, the ranges of both sides decide, or that one counts some of the other's rows, or, if a
count occurs more than once, the sign of their difference (`equations`). A row predicate is judged
for the literals that a column is compared with, for a number of each interval between them and for
NULL, one column at a time, for any values of the other columns: every other value gives the same
result as one of these. A comparison with NULL is neither true nor false.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import partial
from itertools import pairwise, product

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold, settle
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import expressions_in, rewritten
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.calls import ARITY, CHANGES
from dqx_airflow.metrics.derived import FUNCTIONS
from dqx_airflow.metrics.drift import LARGEST_DRIFT
from dqx_airflow.metrics.spark_values import COMPARATORS, MIRRORED
from dqx_airflow.values import MetricValue, Span
from dqx_airflow.values.exact import NUMBERS, Number, bounded, magnitude, nearest_float

# Ranges of metric expressions: an operation has its extremes at the extremes of its operands.

_INFINITY = math.inf

_SLACK = 1e-12
"""A bound on relative rounding errors, including `log`, `exp` and means of many days."""

_EXACT = 2**40
"""Sums of integers up to this size over a window of days are exact in floating point."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values of an expression are between `low` and `high`, inclusive.

    `is_certain` is set if there always is a value. If there never is one, `low` is greater than
    `high`.
    """

    low: Number
    high: Number
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

_METRIC_RANGES = {
    name: Range(*metric.range, metric.empty is not None) for name, metric in METRICS.items()
} | {name: Range(0, most) for name, most in LARGEST_DRIFT.items()}


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
class Surroundings:
    """The context of an expression: the ranges of constants, and the default dataset of calls.

    `is_lagged` is set for dates other than the target date: on a date without data nothing has a
    value.
    """

    constants: Mapping[str, Range]
    dataset: str
    is_lagged: bool = False

    def rows_of(self, call: nodes.Call) -> RowsOfDay:
        """The rows of a call."""
        named = call.parameter("dataset")
        lag = call.parameter("lag")
        dataset = named.text if isinstance(named, nodes.Name) else self.dataset
        if lag is None:
            return RowsOfDay(dataset, 0, call.where)
        days = range_of(lag, self)
        return RowsOfDay(dataset, days.low if days.is_point else lag, call.where)


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
    constant: nodes.Constant, earlier: Surroundings, settled: nodes.Constants
) -> Range:
    if constant.bounds is None:
        return range_of(constant.value, earlier)
    low, high = (fold(bound, settled) for bound in constant.bounds)
    if isinstance(low, NUMBERS) and isinstance(high, NUMBERS):
        return Range(low, high, is_certain=True)
    return ANYTHING


def range_of(node: nodes.Expression, surroundings: Surroundings) -> Range:
    """The range of a valid metric expression, for any data."""
    match node:
        case nodes.Call():
            return _range_of_call(node, surroundings)
        case nodes.Number(value=value):
            # The largest float replaces a number that was too large, which was reported.
            is_known = abs(value) != sys.float_info.max
            return Range(value, value, is_certain=True) if is_known else ANYTHING
        case nodes.Arithmetic(op=op, left=left, right=right):
            span = _applied(op, [range_of(left, surroundings), range_of(right, surroundings)])
            known = _known(op, left, right, surroundings)
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
    return Range(0, _INFINITY) if name in CHANGES else ANYTHING


def _applied(function: str, parts: list[Range]) -> Range:
    """The range of a function over values in the ranges."""
    if function == "coalesce":
        low, high = min(part.low for part in parts), max(part.high for part in parts)
        return Range(low, high, any(part.is_certain for part in parts))
    if function == "abs":
        return _applied("max", [parts[0], _applied("negative", parts)]).within(0, _INFINITY)
    last = parts[-1]
    if any(part.is_empty for part in parts) or (function == "/" and last.low == last.high == 0):
        return NOTHING
    if function == "/" and last.low <= 0 <= last.high:
        return ANYTHING
    if (function == "log" and last.low <= 0) or (function == "sqrt" and last.low < 0):
        return ANYTHING
    corners = product(*((part.low, part.high) for part in parts))
    ends = [end for corner in corners if not math.isnan(end := _end(function, corner))]
    low, high = min(ends, default=-_INFINITY), max(ends, default=_INFINITY)
    # An infinite result is no value.
    is_certain = -_INFINITY < low <= high < _INFINITY and all(part.is_certain for part in parts)
    # The results may have been rounded. Floating-point rounding is monotonic, so a bound that is an
    # integer is valid for the rounded value, too; any other is widened by more than the rounding.
    return Range(_outward(low, -1), _outward(high, 1), is_certain)


def _end(function: str, corner: tuple[Number, ...]) -> Number:
    """The result for one corner, or its limit there; NaN if other corners give the bounds."""
    if function == "*" and 0 in corner:
        return 0  # for every finite factor
    try:
        result: Number = FUNCTIONS[function](*corner)  # type: ignore[assignment]
    except OverflowError:
        return _INFINITY  # of exp
    try:
        return bounded(result)
    except OverflowError:
        return nearest_float(result)


def _outward(end: Number, direction: int) -> Number:
    if math.isinf(end) or (end == math.floor(end) and magnitude(end) <= _EXACT):
        return end
    return nearest_float(end) + direction * nearest_float(magnitude(end)) * _SLACK


_KNOWN = {"-": ((0, 0), (-_INFINITY, 0), (0, _INFINITY)), "/": ((1, 1), (0, 1), (1, _INFINITY))}
"""The ranges of results if both sides are the same, if the left one counts some of the right one's
rows, and the other way round."""


def _known(
    op: str, left: nodes.Expression, right: nodes.Expression, surroundings: Surroundings
) -> tuple[Number, Number] | None:
    if op not in _KNOWN:
        return None
    same, part, whole = _KNOWN[op]
    if left == right:
        return same
    if _is_part(left, right, surroundings):
        return part
    return whole if _is_part(right, left, surroundings) else None


def _is_part(part: nodes.Expression, whole: nodes.Expression, surroundings: Surroundings) -> bool:
    """True if `whole` is the number of rows, and `part` the number of some of them."""
    if not isinstance(whole, nodes.Call) or whole.name.text != "num_rows":
        return False
    match part:
        case nodes.Call(name=name) if name.text in METRICS:
            is_counted = METRICS[name.text].unit.is_part_of_rows
            rows = surroundings.rows_of(part)
            return is_counted and rows.are_among(surroundings.rows_of(whole))
        case nodes.Arithmetic(op="-", left=left, right=right):
            return left == whole and _is_part(right, whole, surroundings)
        case _:
            return False


# Assertions over metrics

_MARGIN = 1 + 1e-8
"""Tolerances are inclusive even if rounding exceeds them slightly."""

_NEAR = 1e-8
"""Floats that differ by at most this, relative to the larger one, may compare as equal."""

_MOST = 12
"""Sympy would take too long to expand products of more counts."""

MOST_SYMBOLIC_QUESTIONS = 50

_LOOSEN = "loosen the condition, or remove the assertion"
_TIGHTEN = "tighten the condition, or remove the assertion"
_SIGNS = {nodes.Keyword.POSITIVE: ">", nodes.Keyword.NEGATIVE: "<"}


def check_measure(
    claim: nodes.Claim,
    tolerance: nodes.Number | None,
    surroundings: Surroundings,
    questions_left: Iterator[int],
) -> Iterator[Diagnostic]:
    """Reports a valid assertion over metrics whose outcome is certain; no other kinds of claims.

    :param questions_left: as many numbers as assertions that may still be given to sympy, which
        takes 20 ms for each.
    """
    condition = claim.condition if isinstance(claim, nodes.Measure) else None
    if not isinstance(condition, nodes.Comparison | nodes.Between | nodes.NotBetween | nodes.Is):
        return
    assert isinstance(claim, nodes.Measure)
    parts = expressions_in((claim.expression, *nodes.bounds_of(condition)))
    if not any(isinstance(part, nodes.Call) and part.name.text not in ARITY for part in parts):
        help_line = "compare a metric, such as num_rows(), or remove the assertion"
        message = "this does not depend on the data"
        yield Diagnostic(message, claim.span, code="W009", help=help_line)
        return
    if isinstance(condition, nodes.Is) and condition.keyword in _SIGNS:
        zero = nodes.Number(0, nodes.Unit.PLAIN, span=condition.span)
        condition = nodes.Comparison(_SIGNS[condition.keyword], zero, span=condition.span)
    margin = 0 if tolerance is None else tolerance.value
    finding = _Question(claim.expression, condition, margin, surroundings, questions_left).answer()
    if finding is not None:
        yield finding


@dataclass(frozen=True, slots=True)
class _Certain:
    """The certain result of a condition if there are values, always or never, with the reason."""

    holds: bool
    why: str


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the compared values of a condition."""

    node: nodes.Expression
    range: Range

    @property
    def text(self) -> str:
        return show(self.node)

    def lies(self, where: str, end: Number) -> str | None:
        """The bounds of the range, in words; None for a literal."""
        if isinstance(self.node, nodes.Number | nodes.Text | nodes.Day):
            return None
        number = format_value(end)
        return f"{self.text} is {number if self.range.is_point else f'{where} {number}'}"


@dataclass(frozen=True, slots=True)
class _Question:
    """A valid condition, for which `answer` tries to prove that it always or never holds."""

    expression: nodes.Expression
    condition: nodes.Comparison | nodes.Between | nodes.NotBetween | nodes.Is
    tolerance: Number
    surroundings: Surroundings
    questions_left: Iterator[int]

    def answer(self) -> Diagnostic | None:
        """The finding; None if it depends on the data, or cannot be proved."""
        subject = self._side(self.expression)
        condition = self.condition
        if isinstance(condition, nodes.Is):
            return self._about_none(subject, condition.keyword)
        sides = [subject, *map(self._side, nodes.bounds_of(condition))]
        for side in sides:
            if side.range.is_empty:
                return self._without_value(side)
        certain = self._compared(sides) or self._solved(sides)
        if certain is None:
            return None
        if not certain.holds:
            return _never(certain.why, condition.span)
        return self._always(certain.why, sides)

    def _side(self, node: nodes.Expression) -> _Side:
        return _Side(node, range_of(node, self.surroundings))

    def _always(self, reason: str, sides: list[_Side]) -> Diagnostic:
        lacking = list(dict.fromkeys(side.text for side in sides if not side.range.is_certain))
        outcome = "only fails without a value" if lacking else "can never fail"
        help_line = f"write `{lacking[0]} is not None`" if len(lacking) == 1 else _TIGHTEN
        message = f"this {outcome}: {reason}"
        return Diagnostic(message, self.condition.span, code="W008", help=help_line)

    def _without_value(self, side: _Side) -> Diagnostic:
        if not isinstance(side.node, nodes.Null):
            return _never(f"{side.text} never has a value", side.node.span)
        is_unequal = isinstance(self.condition, nodes.Comparison) and self.condition.op == "!="
        help_line = f"write `is {'not ' if is_unequal else ''}None`"
        return _never("None cannot be compared", side.node.span, help_line)

    def _about_none(self, subject: _Side, keyword: nodes.Keyword) -> Diagnostic | None:
        wants_none = keyword is nodes.Keyword.NONE
        if subject.range.is_empty:
            reason = f"{subject.text} never has a value"
            holds = wants_none
        elif subject.range.is_certain:
            reason = f"{subject.text} always has a value"
            holds = not wants_none
        else:
            return None
        return self._always(reason, []) if holds else _never(reason, self.condition.span)

    def _compared(self, sides: list[_Side]) -> _Certain | None:
        subject = sides[0]
        match self.condition:
            case nodes.Between():
                return self._between(subject, sides[1], sides[2])
            case nodes.NotBetween():
                return self._not_between(subject, sides[1], sides[2])
            case nodes.Comparison(op="=="):
                return self._equal(subject, sides[1])
            case nodes.Comparison(op="!="):
                equal = self._equal(subject, sides[1])
                return equal and _Certain(not equal.holds, equal.why)
            case nodes.Comparison(op="<" | "<=" as op):
                return self._below(subject, sides[1], is_strict=op == "<")
            case nodes.Comparison(op=op):
                return self._below(sides[1], subject, is_strict=op == ">")
        return None

    def _solved(self, sides: list[_Side]) -> _Certain | None:
        """The answer if all occurrences of a count are the same number."""
        condition = self.condition
        if not isinstance(condition, nodes.Comparison):
            return None
        subject, other = sides
        calls = _counts_in((subject.node, other.node))
        if not len({*calls}) < len(calls) <= _MOST:
            return None
        if _is_open(subject.node, other.node) or next(self.questions_left, None) is None:
            return None
        from dqx_airflow.dql.equations import difference

        low, high = difference(
            subject.node, other.node, partial(_is_part, surroundings=self.surroundings)
        )
        holds = self._holds(condition.op, low, high)
        return None if holds is None else _Certain(holds, _distance(subject, other, low, high))

    def _holds(self, op: str, low: Number, high: Number) -> bool | None:
        """Whether the condition holds, by the range of the difference of its sides."""
        if op in ("==", "!="):
            near = self.tolerance * _MARGIN
            is_equal = -near <= low and high <= near
            is_known = is_equal or low > near or high < -near
            return is_equal == (op == "==") if is_known else None
        if op in (">", ">="):
            low, high = -high, -low
        is_strict = op in ("<", ">")
        if high < 0 or (high == 0 and not is_strict):
            return True
        return False if low > 0 or (low == 0 and is_strict) else None

    def _below(self, left: _Side, right: _Side, *, is_strict: bool) -> _Certain | None:
        """Whether `left < right`, or `left <= right`."""
        a = left.range
        b = right.range
        known = _known("-", left.node, right.node, self.surroundings)
        low, high = known or (-_INFINITY, _INFINITY)
        if a.high < b.low or (not is_strict and (a.high <= b.low or high <= 0)):
            return _Certain(True, _relation(left, right))
        if a.low > b.high or (is_strict and (a.low >= b.high or low >= 0)):
            return _Certain(False, _relation(right, left))
        return None

    def _equal(self, left: _Side, right: _Side) -> _Certain | None:
        for smaller, larger in ((left, right), (right, left)):
            end, start = smaller.range.high, larger.range.low
            sizes = nearest_float(magnitude(end)), nearest_float(magnitude(start))
            if end < start and _INFINITY not in sizes:
                gap = Fraction(start) - Fraction(end)
                if gap > max(self.tolerance * _MARGIN, max(sizes) * _NEAR):
                    return _Certain(False, _relation(smaller, larger))
        is_same = left.range.is_point and left.range.low == right.range.low == right.range.high
        if is_same or left.node == right.node:
            return _Certain(True, _relation(left, right))
        return None

    def _between(self, subject: _Side, low: _Side, high: _Side) -> _Certain | None:
        above = self._below(low, subject, is_strict=False)
        below = self._below(subject, high, is_strict=False)
        for part in (above, below, self._below(low, high, is_strict=False)):
            if part is not None and not part.holds:
                return part
        if not (above and below):
            return None
        ends = format_value(subject.range.low), format_value(subject.range.high)
        return _Certain(True, f"{subject.text} is between {ends[0]} and {ends[1]}")

    def _not_between(self, subject: _Side, low: _Side, high: _Side) -> _Certain | None:
        is_below = self._below(subject, low, is_strict=True)
        is_above = self._below(high, subject, is_strict=True)
        for part in (is_below, is_above):
            if part is not None and part.holds:
                return part
        if is_below is None or is_above is None:
            return None
        inside = self._between(subject, low, high)
        return None if inside is None else _Certain(not inside.holds, inside.why)


def _never(reason: str, span: Span, help_line: str = _LOOSEN) -> Diagnostic:
    return Diagnostic(f"this assertion can never pass: {reason}", span, code="E104", help=help_line)


def _counts_in(sides: tuple[nodes.Expression, ...]) -> list[nodes.Call]:
    """The calls of metrics that count something."""
    return [
        part
        for part in expressions_in(sides)
        if isinstance(part, nodes.Call)
        and part.name.text in METRICS
        and METRICS[part.name.text].unit.is_whole
    ]


def _is_open(left: nodes.Expression, right: nodes.Expression) -> bool:
    """True if counts of no and of all rows give differences of both signs, so that nothing is
    certain, and sympy need not be called."""
    difference = nodes.Arithmetic("-", left, right, span=left.span)
    return {-1, 1} <= {_sign(_counted(difference, share)) for share in (0, 1)}


def _counted(node: nodes.Expression, share: int) -> MetricValue:
    """The value for 60 rows, of which each metric counts none or all; None if that is unknown."""

    def count(part: nodes.Expression) -> nodes.Expression | None:
        if not isinstance(part, nodes.Call) or part.name.text in ARITY:
            return None
        return nodes.Number(60 if part.name.text == "num_rows" else 60 * share, nodes.Unit.PLAIN)

    return fold(rewritten(node, count), {})


def _sign(value: MetricValue) -> int:
    return (value > 0) - (value < 0) if isinstance(value, NUMBERS) else 0


def _distance(subject: _Side, other: _Side, low: Number, high: Number) -> str:
    """How far the subject is from the other side, in words."""
    if low != high:
        return f"{subject.text} is at {'least' if low == 0 else 'most'} {other.text}"
    if other.range.is_point:
        return f"{subject.text} is {format_value(other.range.low + low)}"
    return f"{subject.text} is {other.text}" + (f" + {format_value(low)}" if low else "")


def _relation(smaller: _Side, larger: _Side) -> str:
    """The reason in words why one side is at most the other, or both are the same."""
    if smaller.node == larger.node:
        return "both sides are the same"
    if smaller.range.high > larger.range.low:
        return f"{smaller.text} is at most {larger.text}"
    reasons = (
        smaller.lies("at most", smaller.range.high),
        larger.lies("at least", larger.range.low),
    )
    return " and ".join(dict.fromkeys(reason for reason in reasons if reason))


# Predicates over rows

_CLOSEST = 1e-6
"""Numbers that are closer, relative to their size, may be equal as a column stores them."""


def check_rows(
    predicate: nodes.Expression,
    span: Span,
    constants: Mapping[str, Range],
    *,
    is_filter: bool = False,
) -> Iterator[Diagnostic]:
    """Reports a valid predicate, of an assertion or of a filter, whose result is certain: a filter
    that matches no row leaves an assertion about nothing."""
    what, otherwise = ("this filter", "") if is_filter else ("this", ", or remove the assertion")
    reader = _TestReader(constants)
    parts = list(expressions_in(predicate))
    if not any(isinstance(part, nodes.Name) and part.text not in constants for part in parts):
        message = f"{what} does not depend on the data"
        yield Diagnostic(message, span, code="W009", help=f"compare a column{otherwise}")
        return
    is_swapped = False
    for part in parts:
        test = reader.read(part) if isinstance(part, nodes.Within) else None
        if test is not None and test.cuts[0] > test.cuts[1]:
            is_swapped = True
            low, high = show(part.low), show(part.high)
            message = f"no value is between {low} and {high}"
            help_line = f"write between {high} and {low}"
            yield Diagnostic(message, part.span, code="E104", help=help_line)
    for trials in () if is_swapped else reader.trials(parts):
        truths = trials.truths(predicate)
        if _TRUE in truths and (is_filter or _FALSE in truths):
            continue
        guilty = trials.smallest(predicate, _FALSE if _TRUE in truths else _TRUE)
        help_line = trials.advice(guilty)
        if is_filter:
            if isinstance(guilty, nodes.Junction) and guilty.span == guilty.right.span:
                help_line = "it contradicts the filter around it: correct one of them"
            message = "no row can match this filter"
            code = "E104"
        elif _TRUE in truths:
            message = "no row can violate this"
            code = "W008"
        else:
            message = "no row can satisfy this"
            code = "E104"
        yield Diagnostic(message, guilty.span, code=code, help=help_line)
        return


_TRUE, _UNKNOWN, _FALSE = 1.0, 0.5, 0.0
"""The results of a predicate, so that `and` is the least and `or` the greatest of them."""

_ANY = frozenset({_TRUE, _UNKNOWN, _FALSE})


@dataclass(frozen=True, slots=True)
class _Test:
    """A test of an operand against literals of one kind; `is null` has none.

    `cuts` are the literals as numbers: dates by their ordinals, with timestamps between them.
    """

    operand: nodes.Expression
    op: str
    cuts: tuple[Number, ...] = ()
    kind: type | None = None

    def results(self, value: Number | None) -> frozenset[float]:
        """The possible results for a value of the operand; None is NULL."""
        if self.op == "is null":
            return frozenset({float(value is None)})
        if value is None:
            return frozenset({_UNKNOWN})
        if self.op == "in":
            # Spark compares strings with a list as strings: "01" is not in [1], yet equals 1.
            return frozenset({float(value in self.cuts), _FALSE})
        if self.op == "between":
            return frozenset({float(self.cuts[0] <= value <= self.cuts[1])})
        return frozenset({float(COMPARATORS[self.op](value, self.cuts[0]))})


@dataclass(frozen=True, slots=True)
class _TestReader:
    """Reads the tests of a predicate, with the values of constants."""

    constants: Mapping[str, Range]

    def read(self, node: nodes.Expression) -> _Test | None:
        """The test; None if it has no operand whose values decide it."""
        parts: tuple[nodes.Expression, ...]
        match node:
            case nodes.Compare(op=op, left=operand, right=right):
                parts = (right,)
                if self._literal(right) is None:
                    operand, op, parts = right, MIRRORED[op], (operand,)
            case nodes.Within(operand=operand, low=low, high=high):
                op = "between"
                parts = (low, high)
            case nodes.Member(operand=operand, choices=nodes.Listing(items=parts)):
                op = "in"
            case nodes.IsNull(operand=operand):
                return _Test(operand, "is null")
            case _:
                return None
        literals = [literal for part in parts if (literal := self._literal(part))]
        kinds = {kind for kind, _ in literals}
        if len(kinds) != 1 or len(literals) < len(parts):
            return None
        return _Test(operand, op, tuple(number for _, number in literals), kinds.pop())

    def _literal(self, node: nodes.Expression) -> tuple[type, Number] | None:
        match node:
            case nodes.Number(value=value):
                return Fraction, value
            case nodes.Day(value=day):
                return date, day.toordinal()
            case nodes.Name(text=name) if name in self.constants:
                span = self.constants[name]
                return (Fraction, span.low) if span.is_point else None
            case _:
                return None

    def trials(self, parts: Iterable[nodes.Expression]) -> Iterator[_Trials]:
        """Each operand that is tested more than once, with values to try."""
        tests: dict[nodes.Expression, list[_Test]] = {}
        for test in filter(None, map(self.read, parts)):
            tests.setdefault(test.operand, []).append(test)
        for operand, own in tests.items():
            kinds = {test.kind for test in own if test.cuts}
            cuts = sorted({cut for test in own for cut in test.cuts})
            are_apart = all(
                high - low > _CLOSEST * max(float(magnitude(low)), float(magnitude(high)))
                for low, high in pairwise(cuts)
            )
            if len(own) > 1 and len(kinds) < 2 and (date in kinds or are_apart):
                ends = (cuts[0] - 1, cuts[-1] + 1) if cuts else (0,)
                between = [(Fraction(low) + Fraction(high)) / 2 for low, high in pairwise(cuts)]
                yield _Trials(self, operand, (*cuts, *ends, *between, None))


@dataclass(frozen=True, slots=True)
class _Trials:
    """Values of an operand that stand for all others."""

    reader: _TestReader
    operand: nodes.Expression
    values: tuple[Number | None, ...]

    def truths(self, node: nodes.Expression) -> frozenset[float]:
        """The possible results of a predicate, for any values of the other operands."""
        return frozenset[float]().union(*(self._results(node, value) for value in self.values))

    def _results(self, node: nodes.Expression, value: Number | None) -> frozenset[float]:
        match node:
            case nodes.Junction(op=op, left=left, right=right):
                sides = product(self._results(left, value), self._results(right, value))
                return frozenset(map(min if op == "and" else max, sides))
            case nodes.Not(operand=operand):
                return frozenset(1 - result for result in self._results(operand, value))
        test = self.reader.read(node)
        return test.results(value) if test and test.operand == self.operand else _ANY

    def smallest(self, node: nodes.Expression, lacking: float) -> nodes.Expression:
        """The smallest part that makes a predicate never true, or never false."""
        if isinstance(node, nodes.Junction):
            for part in (node.left, node.right):
                if lacking not in self.truths(part):
                    return self.smallest(part, lacking)
        return node

    def advice(self, guilty: nodes.Expression) -> str:
        """The other conjunction, if the predicate would depend on the row with it."""
        if isinstance(guilty, nodes.Junction):
            meant = "or" if guilty.op == "and" else "and"
            if self.truths(replace(guilty, op=meant)) >= {_TRUE, _FALSE}:
                return f"did you mean `{meant}`?"
        return "correct it, or remove the assertion"
