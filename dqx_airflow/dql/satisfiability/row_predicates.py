"""Finds row predicates that no row can satisfy, and those that no row can violate.

A predicate is tried with the literals that a column is compared with, their neighbors and NULL, one
column at a time, for any values of the other columns. Every other value gives the same result as
one of these. A comparison with NULL is neither true nor false.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import islice, pairwise, product
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.satisfiability.metric_ranges import Range
from dqx_airflow.dql.walk import expressions_in
from dqx_airflow.metrics.comparison import COMPARATORS, MIRRORED
from dqx_airflow.values.exact import Number, magnitude

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
