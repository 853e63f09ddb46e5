"""Finds assertions whose outcome is certain before any data is read.

Everything that is reported here is proved. An assertion that can never fail checks nothing (W008),
one that can never pass blocks every run (E104), and one without a metric or a column is not about
data (W009).

For metrics, the ranges of both sides decide, or the range of their difference; sympy decides if a
count occurs more than once. A row predicate is tried with the literals that a column is compared
with, their neighbors and NULL, one column at a time, for any values of the other columns. Every
other value gives the same result as one of these. A comparison with NULL is neither true nor false.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import islice, pairwise, product
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.satisfiability.metric_ranges import (
    Range,
    RequestedValue,
    Surroundings,
    known_difference,
    range_of,
    requests_in,
)
from dqx_airflow.dql.walk import expressions_in
from dqx_airflow.metrics.derived import ARITY, apply
from dqx_airflow.metrics.spark_values import COMPARATORS, MIRRORED
from dqx_airflow.values import MetricValue, Span
from dqx_airflow.values.exact import NUMBERS, Number, magnitude, nearest_float


@dataclass(frozen=True, slots=True)
class Question:
    """Can an expression fail its condition, and can it pass?"""

    expression: nodes.Expression
    condition: nodes.Comparison | nodes.Between | nodes.Is
    tolerance: Number
    surroundings: Surroundings

    @property
    def bounds(self) -> tuple[nodes.Expression, ...]:
        return nodes.bounds_of(self.condition)

    def requests(self) -> list[RequestedValue]:
        """The metric requests of all sides, each as often as it occurs."""
        sides = (self.expression, *self.bounds)
        return [request for side in sides for request in requests_in(side, self.surroundings)]

    def repeats_a_count(self) -> bool:
        """True if a request with an integer value occurs more than once."""
        counts = [
            request
            for request in self.requests()
            if range_of(request.call, self.surroundings).is_whole
        ]
        return len(set(counts)) < len(counts)

    def is_open(self) -> bool:
        """True if counts of no and of all rows give differences of both signs, so that nothing is
        certain, and sympy need not be asked."""
        span = self.condition.span
        bounds = self.bounds or (nodes.Number(0, nodes.Unit.PLAIN, span),)
        differences = [nodes.Arithmetic("-", self.expression, bound, span) for bound in bounds]
        return all(
            {-1, 1} <= {_sign(_counted(difference, share)) for share in (0, 1)}
            for difference in differences
        )


_ROWS = 60


def _counted(node: nodes.Expression, share: int) -> MetricValue:
    """The value for 60 rows, of which each metric counts none or all; None if that is unknown."""
    match node:
        case nodes.Number(value=value):
            return value
        case nodes.Negative(operand=operand):
            return apply("negative", (_counted(operand, share),))
        case nodes.Arithmetic(op=op, left=left, right=right):
            return apply(op, (_counted(left, share), _counted(right, share)))
        case nodes.Call(name=name) if name.text not in ARITY:
            return _ROWS if name.text == "num_rows" else _ROWS * share
        case _:
            return None


def _sign(value: MetricValue) -> int:
    return (value > 0) - (value < 0) if isinstance(value, NUMBERS) else 0


_MARGIN = 1 + 1e-8
"""Tolerances are inclusive even if rounding exceeds them slightly."""

_NEAR = 1e-8
"""Floats that differ by at most this, relative to the larger one, may compare as equal."""

_EXACT = 2**52
"""Below this, fractions are distinct from integers in floating point."""

MOST_SYMBOLIC_QUESTIONS = 50
"""The maximum number of assertions of a suite for sympy, which takes 20 ms each."""

_MOST_REQUESTS = 12
"""Sympy would take too long to expand products of more."""


@dataclass(slots=True)
class CertaintyChecker:
    """Checks the assertions over metrics of one suite, given the ranges of its constants."""

    constants: Mapping[str, Range]
    symbolic_questions_left: int = MOST_SYMBOLIC_QUESTIONS

    def check(
        self, claim: nodes.Claim, tolerance: nodes.Number | None, dataset: str
    ) -> Iterator[Diagnostic]:
        """What is certain about a valid assertion; nothing about other kinds of claims.

        :param dataset: the default dataset of calls.
        """
        if not isinstance(claim, nodes.Measure):
            return
        condition = claim.condition
        if not isinstance(condition, nodes.Comparison | nodes.Between | nodes.Is):
            return
        margin = 0 if tolerance is None else tolerance.value
        surroundings = Surroundings(self.constants, dataset)
        question = Question(claim.expression, condition, margin, surroundings)
        requests = question.requests()
        if not requests:
            help_line = "compare a metric, such as num_rows(), or remove the assertion"
            message = "this does not depend on the data"
            yield Diagnostic(message, claim.span, code="W009", help=help_line)
        else:
            finding = _Answer(question).find()
            is_small = len(requests) <= _MOST_REQUESTS
            if (
                finding is None
                and is_small
                and question.repeats_a_count()
                and not question.is_open()
            ):
                finding = self._answer_of_symbols(question)
            if finding is not None:
                yield finding

    def _answer_of_symbols(self, question: Question) -> Diagnostic | None:
        """The answer if all occurrences of a metric are the same number."""
        if self.symbolic_questions_left == 0 or question.is_open():
            return None
        self.symbolic_questions_left -= 1
        return _Answer(question, asks_sympy=True).find()


_LOOSEN = "loosen the condition, or remove the assertion"
_TIGHTEN = "tighten the condition, or remove the assertion"


@dataclass(frozen=True, slots=True)
class _Certain:
    """Whether something always or never holds if there are values, and why."""

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

    @property
    def is_literal(self) -> bool:
        return isinstance(self.node, nodes.Number | nodes.Text | nodes.Day)

    def lies(self, where: str, end: Number) -> str | None:
        """The bounds of the range, in words; None for a literal."""
        if self.is_literal:
            return None
        number = format_value(end)
        return f"{self.text} is {number if self.range.is_point else f'{where} {number}'}"


@dataclass(frozen=True, slots=True)
class _Answer:
    """Finds the answer to one question."""

    question: Question
    asks_sympy: bool = False

    def find(self) -> Diagnostic | None:
        """The finding; None if it depends on the data, or cannot be proved."""
        subject, condition = self._side(self.question.expression), self.question.condition
        if isinstance(condition, nodes.Is) and condition.keyword in _ABOUT_NONE:
            return self._about_none(subject, condition.keyword)
        sides = [subject, *(self._side(bound) for bound in self.question.bounds)]
        for side in sides:
            if side.range.is_empty:
                return self._without_value(side)
        certain = self._compared(sides)
        if certain is None:
            return None
        if not certain.holds:
            return self._never(certain.why, condition.span)
        return self._always(certain.why, sides)

    def _side(self, node: nodes.Expression) -> _Side:
        return _Side(node, range_of(node, self.question.surroundings))

    # Findings

    def _never(self, reason: str, span: Span, help_line: str = _LOOSEN) -> Diagnostic:
        return Diagnostic(f"this can never pass: {reason}", span, code="E104", help=help_line)

    def _always(self, reason: str, sides: list[_Side]) -> Diagnostic:
        lacking = list(dict.fromkeys(side.text for side in sides if not side.range.is_certain))
        span = self.question.condition.span
        if not lacking:
            message = f"this can never fail: {reason}"
            return Diagnostic(message, span, code="W008", help=_TIGHTEN)
        help_line = f"write `{lacking[0]} is not None`" if len(lacking) == 1 else _TIGHTEN
        message = f"this only fails without a value: {reason}"
        return Diagnostic(message, span, code="W008", help=help_line)

    def _without_value(self, side: _Side) -> Diagnostic:
        if not isinstance(side.node, nodes.Null):
            return self._never(f"{side.text} never has a value", side.node.span)
        condition = self.question.condition
        is_unequal = isinstance(condition, nodes.Comparison) and condition.op == "!="
        help_line = f"write `is {'not ' if is_unequal else ''}None`"
        return self._never("None cannot be compared", side.node.span, help_line)

    def _about_none(self, subject: _Side, keyword: nodes.Keyword) -> Diagnostic | None:
        wants_none = keyword is nodes.Keyword.NONE
        if subject.range.is_empty:
            reason, holds = f"{subject.text} never has a value", wants_none
        elif subject.range.is_certain:
            reason, holds = f"{subject.text} always has a value", not wants_none
        else:
            return None
        return (
            self._always(reason, []) if holds else self._never(reason, self.question.condition.span)
        )

    # Comparisons

    def _compared(self, sides: list[_Side]) -> _Certain | None:
        subject = sides[0]
        zero = self._side(nodes.Number(0, nodes.Unit.PLAIN, self.question.condition.span))
        match self.question.condition:
            case nodes.Between():
                return self._between(subject, sides[1], sides[2])
            case nodes.Comparison(op="=="):
                return self._equal(subject, sides[1])
            case nodes.Comparison(op="!="):
                equal = self._equal(subject, sides[1])
                return equal and _Certain(not equal.holds, equal.why)
            case nodes.Comparison(op="<" | "<=" as op):
                return self._below(subject, sides[1], is_strict=op == "<")
            case nodes.Comparison(op=op):
                return self._below(sides[1], subject, is_strict=op == ">")
            case nodes.Is(keyword=nodes.Keyword.POSITIVE):
                return self._below(zero, subject, is_strict=True)
            case nodes.Is():
                return self._below(subject, zero, is_strict=True)

    def _below(self, left: _Side, right: _Side, *, is_strict: bool) -> _Certain | None:
        """Whether `left < right`, or `left <= right`."""
        low, high = self._difference(left, right)
        if high < 0 or (high == 0 and not is_strict):
            return _Certain(True, self._relation(left, right))
        if low > 0 or (low == 0 and is_strict):
            return _Certain(False, self._relation(right, left))
        return None

    def _equal(self, left: _Side, right: _Side) -> _Certain | None:
        tolerance = self.question.tolerance
        a, b = left.range, right.range
        low, high = self._difference(left, right)
        if -high > max(tolerance * _MARGIN, _slack(a.high, b.low)):
            return _Certain(False, self._relation(left, right))
        if low > max(tolerance * _MARGIN, _slack(a.low, b.high)):
            return _Certain(False, self._relation(right, left))
        if max(-low, high) * _MARGIN <= tolerance:
            return _Certain(True, self._relation(left, right))
        for whole, other in ((left, right), (right, left)):
            if whole.range.is_whole and _is_fraction(other.range, tolerance):
                return _Certain(False, f"{whole.text} is a whole number")
        return None

    def _between(self, subject: _Side, low: _Side, high: _Side) -> _Certain | None:
        above = self._below(low, subject, is_strict=False)
        below = self._below(subject, high, is_strict=False)
        for part in (above, below, self._below(low, high, is_strict=False)):
            if part is not None and not part.holds:
                return part
        if above and below:
            ends = format_value(subject.range.low), format_value(subject.range.high)
            return _Certain(True, f"{subject.text} is between {ends[0]} and {ends[1]}")
        if subject.range.is_whole and low.range.is_point and high.range.is_point:
            bottom, top = low.range.low, high.range.high
            is_exact = magnitude(bottom) < _EXACT and magnitude(top) < _EXACT
            if is_exact and math.ceil(bottom) > math.floor(top):
                return _Certain(False, f"{subject.text} is a whole number")
        return None

    def _difference(self, left: _Side, right: _Side) -> tuple[Number, Number]:
        """The exact range of `left - right`, from what is known about each and about both
        together."""
        a, b = left.range, right.range
        span = Range(_minus(a.low, b.high), _minus(a.high, b.low))
        known = known_difference(left.node, right.node, self.question.surroundings)
        if known is not None:
            span = span.within(*known)
        if self.asks_sympy:
            from dqx_airflow.dql.satisfiability.symbolic import difference

            solved = difference(left.node, right.node, self.question.surroundings)
            span = span.within(solved.low, solved.high)
        return span.low, span.high

    def _relation(self, smaller: _Side, larger: _Side) -> str:
        """Why one is at most the other, or both are the same."""
        if smaller.node == larger.node:
            return "both sides are the same"
        if smaller.range.high <= larger.range.low:
            reasons = (
                smaller.lies("at most", smaller.range.high),
                larger.lies("at least", larger.range.low),
            )
            return " and ".join(dict.fromkeys(reason for reason in reasons if reason))
        low, high = self._difference(larger, smaller)
        if low != high:
            if smaller.range.is_point:
                return f"{larger.text} is at least {smaller.text}"
            return f"{smaller.text} is at most {larger.text}"
        if larger.range.is_point:
            return f"{smaller.text} is {format_value(larger.range.low - low)}"
        if smaller.range.is_point:
            return f"{larger.text} is {format_value(smaller.range.low + low)}"
        return f"{larger.text} is {smaller.text}" + (f" + {format_value(low)}" if low else "")


_ABOUT_NONE = (nodes.Keyword.NONE, nodes.Keyword.NOT_NONE)


def _minus(left: Number, right: Number) -> Number:
    """The exact difference of two bounds: the sign of a difference of floats would be rounded."""
    if math.isinf(left) or math.isinf(right):
        return float(left) - float(right)
    return Fraction(left) - Fraction(right)


def _slack(left: Number, right: Number) -> Number:
    """How near two bounds may be to compare as equal."""
    if math.inf in (magnitude(left), magnitude(right)):
        return 0
    return max(nearest_float(magnitude(left)), nearest_float(magnitude(right))) * _NEAR


def _is_fraction(span: Range, tolerance: Number) -> bool:
    """True for a single number that differs from every integer by more than the tolerance."""
    if not span.is_point or magnitude(span.low) >= _EXACT:
        return False
    return magnitude(span.low - round(span.low)) > tolerance * _MARGIN


Literal: TypeAlias = Number | date

_CLOSEST = 1e-6
"""Numbers that are closer, relative to their size, may be equal as a column stores them."""


def check_predicate(claim: nodes.Rows, constants: Mapping[str, Range]) -> Iterator[Diagnostic]:
    """What is certain about a valid row predicate."""
    reader = _PredicateReader(constants)
    tests = list(reader.tests_in(claim.predicate))
    if not _names_columns(claim.predicate, constants):
        help_line = "compare a column, or remove the assertion"
        yield Diagnostic(
            "this does not depend on the data", claim.span, code="W009", help=help_line
        )
    elif swapped := list(_swapped(tests, reader)):
        yield from swapped
    else:
        findings = (_finding(claim.predicate, trials) for trials in reader.operands(tests))
        yield from islice(filter(None, findings), 1)


def check_filter(where: nodes.Expression, constants: Mapping[str, Range]) -> Iterator[Diagnostic]:
    """What is certain about a valid filter: an assertion about no row is never false."""
    reader = _PredicateReader(constants)
    tests = list(reader.tests_in(where))
    if not _names_columns(where, constants):
        message, help_line = "this filter does not depend on the data", "compare a column"
        yield Diagnostic(message, where.span, code="W009", help=help_line)
    elif swapped := list(_swapped(tests, reader)):
        yield from swapped
    else:
        empty = (trials for trials in reader.operands(tests) if True not in trials.truths(where))
        for trials in islice(empty, 1):
            guilty = _smallest(where, trials, lacking=True)
            message, help_line = "no row can match this filter", _advice(guilty, trials)
            if isinstance(guilty, nodes.Junction) and guilty.span == guilty.right.span:
                help_line = "it contradicts the filter around it: correct one of them"
            yield Diagnostic(message, guilty.span, code="E104", help=help_line)


def _names_columns(predicate: nodes.Expression, constants: Collection[str]) -> bool:
    names = (part for part in expressions_in(predicate) if isinstance(part, nodes.Name))
    return any(name.text not in constants for name in names)


def _swapped(tests: Iterable[nodes.Expression], reader: _PredicateReader) -> Iterator[Diagnostic]:
    """The ranges whose bounds are in the wrong order."""
    for test in tests:
        if isinstance(test, nodes.Within) and reader.is_empty(test):
            low, high = show(test.low), show(test.high)
            message = f"no value is between {low} and {high}"
            help_line = f"write between {high} and {low}"
            yield Diagnostic(message, test.span, code="E104", help=help_line)


def _finding(predicate: nodes.Expression, trials: _Trials) -> Diagnostic | None:
    truths = trials.truths(predicate)
    if truths >= {True, False}:
        return None
    is_impossible = True not in truths
    guilty = _smallest(predicate, trials, is_impossible)
    help_line = _advice(guilty, trials)
    if is_impossible:
        return Diagnostic("no row can satisfy this", guilty.span, code="E104", help=help_line)
    return Diagnostic("no row can violate this", guilty.span, code="W008", help=help_line)


def _smallest(node: nodes.Expression, trials: _Trials, lacking: bool) -> nodes.Expression:
    """The smallest part that makes a predicate never true, or never false."""
    if isinstance(node, nodes.Junction):
        for part in (node.left, node.right):
            if lacking not in trials.truths(part):
                return _smallest(part, trials, lacking)
    return node


def _advice(guilty: nodes.Expression, trials: _Trials) -> str:
    """The other conjunction, if the predicate would depend on the row with it."""
    if isinstance(guilty, nodes.Junction):
        meant = "or" if guilty.op == "and" else "and"
        if trials.truths(replace(guilty, op=meant)) >= {True, False}:
            return f"did you mean `{meant}`?"
    return "correct it, or remove the assertion"


@dataclass(frozen=True, slots=True)
class _PredicateReader:
    """Collects the tests of a predicate, with the values of constants."""

    constants: Mapping[str, Range]

    def literal(self, node: nodes.Expression) -> Literal | None:
        match node:
            case nodes.Number(value=value) | nodes.Day(value=value):
                return value
            case nodes.Name(text=name) if name in self.constants:
                span = self.constants[name]
                return span.low if span.is_point else None
            case _:
                return None

    def is_empty(self, node: nodes.Within) -> bool:
        low, high = self.literal(node.low), self.literal(node.high)
        if low is None or high is None or _kind(low) is not _kind(high):
            return False
        return _place(low) > _place(high)

    def tests_in(self, node: nodes.Expression) -> Iterator[nodes.Expression]:
        match node:
            case nodes.Junction(left=left, right=right):
                yield from self.tests_in(left)
                yield from self.tests_in(right)
            case nodes.Not(operand=operand):
                yield from self.tests_in(operand)
            case _:
                yield node

    def operands(self, tests: list[nodes.Expression]) -> Iterator[_Trials]:
        """Each operand that is tested more than once, with values to try."""
        literals: dict[tuple[nodes.Expression, type | None], list[Literal]] = {}
        number_of_tests: dict[nodes.Expression, int] = {}
        for test in tests:
            read = self.read(test)
            if read is None:
                continue
            operand, _, values = read
            number_of_tests[operand] = number_of_tests.get(operand, 0) + 1
            kinds: set[type | None] = {_kind(value) for value in values} or {None}
            if len(kinds) == 1:
                literals.setdefault((operand, kinds.pop()), []).extend(values)
        for (operand, kind), compared in literals.items():
            cuts = sorted(map(_place, set(compared)))
            if number_of_tests[operand] > 1 and (kind is date or _are_apart(cuts)):
                yield _Trials(self, operand, kind, (*_among(cuts), None))

    def read(self, test: nodes.Expression) -> tuple[nodes.Expression, str, list[Literal]] | None:
        """The operand of a test, the operator, and the literals that it is compared with."""
        match test:
            case nodes.Compare(op=op, left=left, right=right):
                if (value := self.literal(right)) is not None:
                    return left, op, [value]
                value = self.literal(left)
                return None if value is None else (right, MIRRORED[op], [value])
            case nodes.Within(operand=operand, low=low, high=high):
                op, parts = "between", (low, high)
            case nodes.Member(operand=operand, choices=nodes.Listing(items=parts)):
                op = "in"
            case nodes.IsNull(operand=operand):
                return operand, "is null", []
            case _:
                return None
        values = [self.literal(part) for part in parts]
        return None if None in values else (operand, op, values)  # type: ignore[return-value]


_Truths: TypeAlias = frozenset[bool | None]
_ANY: _Truths = frozenset({True, False, None})


@dataclass(frozen=True, slots=True)
class _Trials:
    """Values to try for an operand: the literals of one kind that it is compared with, one value
    between each two of them and beyond either end, and NULL. All other values are equivalent to one
    of these."""

    reader: _PredicateReader
    operand: nodes.Expression
    kind: type | None
    values: tuple[Number | None, ...]

    def truths(self, node: nodes.Expression) -> _Truths:
        """The possible results of a predicate, for any values of the other operands."""
        return frozenset[bool | None]().union(*(self._truths(node, value) for value in self.values))

    def _truths(self, node: nodes.Expression, value: Number | None) -> _Truths:
        match node:
            case nodes.Junction(op=op, left=left, right=right):
                sides = product(self._truths(left, value), self._truths(right, value))
                return frozenset(_joined(op, *truths) for truths in sides)
            case nodes.Not(operand=operand):
                truths = self._truths(operand, value)
                return frozenset(None if truth is None else not truth for truth in truths)
        read = self.reader.read(node)
        if read is None or read[0] != self.operand:
            return _ANY
        _, op, literals = read
        if op == "is null":
            return frozenset({value is None})
        if any(_kind(literal) is not self.kind for literal in literals):
            return _ANY
        if value is None:
            return frozenset({None})
        places = [_place(literal) for literal in literals]
        if op == "in":
            # Spark compares strings with a list as strings: "01" is not in [1], yet equals 1.
            return frozenset({value in places, False})
        if op == "between":
            return frozenset({places[0] <= value <= places[1]})
        return frozenset({COMPARATORS[op](value, places[0])})


def _joined(op: str, left: bool | None, right: bool | None) -> bool | None:
    """Both, joined like `and` and `or` in SQL."""
    decisive = op == "or"
    if decisive in (left, right):
        return decisive
    return None if None in (left, right) else not decisive


def _kind(literal: Literal) -> type:
    return date if isinstance(literal, date) else Fraction


def _place(literal: Literal) -> Number:
    """The position of a literal among the others of its kind; timestamps are between dates."""
    return literal.toordinal() if isinstance(literal, date) else literal


def _among(cuts: list[Number]) -> Iterator[Number]:
    """The cuts, and one number of each interval between them, in order."""
    if not cuts:
        yield 0
        return
    yield cuts[0] - 1
    for low, high in pairwise(cuts):
        yield low
        yield (Fraction(low) + Fraction(high)) / 2
    yield cuts[-1]
    yield cuts[-1] + 1


def _are_apart(cuts: list[Number]) -> bool:
    """False for numbers so close to each other that a column may store them as equal."""
    return all(
        high - low > _CLOSEST * max(float(magnitude(low)), float(magnitude(high)))
        for low, high in pairwise(cuts)
    )
