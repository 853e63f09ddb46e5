"""Finds predicates over rows that no row can satisfy, and those that no row can violate.

The literals that a column is compared with cut its values into stretches; within each of them
every comparison comes out the same. A predicate is followed through all stretches of one column at
a time, whatever the other columns hold. A comparison with NULL is neither true nor false.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.ranges import Range
from dqx_airflow.exact import NUMBERS, Number, magnitude

Literal: TypeAlias = Number | date

_CLOSEST = 1e-6
"""Numbers that are closer, relative to their size, may be one number as a column stores them."""


def check_predicate(claim: nodes.Rows, constants: Mapping[str, Range]) -> Iterator[Diagnostic]:
    """What is certain about a sound predicate over rows."""
    reader = _Reader(constants)
    tests = list(reader.tests_in(claim.predicate))
    if not any(reader.names_in(claim.predicate)):
        help_line = "compare a column, or remove the assertion"
        yield Diagnostic("this measures nothing", claim.span, code="W009", help=help_line)
        return
    swapped = [test for test in tests if isinstance(test, nodes.Within) and reader.is_empty(test)]
    if swapped:
        for test in swapped:
            low, high = show(test.low), show(test.high)
            message = f"nothing lies between {low} and {high}"
            help_line = f"write between {high} and {low}"
            yield Diagnostic(message, test.span, code="E104", help=help_line)
        return
    for stretches in reader.all_stretches(tests):
        found = _finding(claim.predicate, stretches)
        if found is not None:
            yield found
            return


def _finding(predicate: nodes.Expression, stretches: _Stretches) -> Diagnostic | None:
    satisfying, violating = stretches.of(predicate)
    if satisfying and violating:
        return None
    guilty = _smallest(predicate, stretches, is_true=not satisfying)
    help_line = _advice(guilty, stretches)
    if not satisfying:
        return Diagnostic("no row can satisfy this", guilty.span, code="E104", help=help_line)
    return Diagnostic("no row can violate this", guilty.span, code="W008", help=help_line)


def _smallest(node: nodes.Expression, stretches: _Stretches, *, is_true: bool) -> nodes.Expression:
    """The smallest part that makes a predicate never true, or never false."""
    if isinstance(node, nodes.Junction):
        for part in (node.left, node.right):
            satisfying, violating = stretches.of(part)
            if not (satisfying if is_true else violating):
                return _smallest(part, stretches, is_true=is_true)
    return node


def _advice(guilty: nodes.Expression, stretches: _Stretches) -> str:
    """The other junction where that one would depend on the row."""
    if isinstance(guilty, nodes.Junction):
        meant = "or" if guilty.op == "and" else "and"
        if all(stretches.of(replace(guilty, op=meant))):
            return f"did you mean `{meant}`?"
    return "correct it, or remove the assertion"


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the tests of a predicate, constants in their places."""

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

    def compared(self, node: nodes.Compare) -> tuple[nodes.Expression, str, Literal] | None:
        """The operand, the operator and the literal; None where it is no such comparison."""
        value = self.literal(node.right)
        if value is not None:
            return node.left, node.op, value
        value = self.literal(node.left)
        if value is not None:
            return node.right, _MIRRORED.get(node.op, node.op), value
        return None

    def listed(self, node: nodes.Member) -> tuple[Literal, ...] | None:
        if not isinstance(node.choices, nodes.Listing):
            return None
        values = tuple(self.literal(item) for item in node.choices.items)
        return None if None in values else values  # type: ignore[return-value]

    def is_empty(self, node: nodes.Within) -> bool:
        low, high = self.literal(node.low), self.literal(node.high)
        return _is_of_one_kind(low, high) and low > high  # type: ignore[operator]

    def tests_in(self, node: nodes.Expression) -> Iterator[nodes.Expression]:
        match node:
            case nodes.Junction(left=left, right=right):
                yield from self.tests_in(left)
                yield from self.tests_in(right)
            case nodes.Not(operand=operand):
                yield from self.tests_in(operand)
            case _:
                yield node

    def names_in(self, node: object) -> Iterator[str]:
        """The columns of a predicate."""
        match node:
            case nodes.Name(text=name):
                if name not in self.constants:
                    yield name
            case nodes.Call(arguments=arguments):
                for argument in arguments:
                    yield from self.names_in(argument)
            case nodes.Negative(operand=operand) | nodes.Not(operand=operand):
                yield from self.names_in(operand)
            case nodes.Arithmetic() | nodes.Junction() | nodes.Compare():
                yield from self.names_in(node.left)
                yield from self.names_in(node.right)
            case nodes.Within(operand=operand, low=low, high=high):
                for part in (operand, low, high):
                    yield from self.names_in(part)
            case nodes.Quantified(array=array, predicate=predicate):
                yield from self.names_in(array)
                yield from self.names_in(predicate)
            case (
                nodes.Member(operand=operand)
                | nodes.Matches(operand=operand)
                | nodes.Like(operand=operand)
                | nodes.HasFormat(operand=operand)
                | nodes.IsNull(operand=operand)
                | nodes.IsNan(operand=operand)
            ):
                yield from self.names_in(operand)

    def all_stretches(self, tests: list[nodes.Expression]) -> Iterator[_Stretches]:
        """The stretches of every operand that is tested more than once."""
        found: dict[tuple[nodes.Expression, type | None], list[Literal]] = {}
        number_of_tests: dict[nodes.Expression, int] = {}
        for test in tests:
            read = self._read(test)
            if read is None:
                continue
            operand, values = read
            number_of_tests[operand] = number_of_tests.get(operand, 0) + 1
            kinds: set[type | None] = {type(value) for value in values} or {None}
            if len(kinds) == 1:
                found.setdefault((operand, kinds.pop()), []).extend(values)
        for (operand, kind), literals in found.items():
            cuts = sorted(set(literals))
            if number_of_tests[operand] > 1 and _are_apart(cuts):
                yield _Stretches(self, operand, kind, tuple(cuts))

    def _read(self, test: nodes.Expression) -> tuple[nodes.Expression, list[Literal]] | None:
        """The operand of a test with the literals that it is compared with."""
        match test:
            case nodes.Compare():
                compared = self.compared(test)
                return compared and (compared[0], [compared[2]])
            case nodes.Within(operand=operand, low=low, high=high):
                ends = [self.literal(low), self.literal(high)]
                return None if None in ends else (operand, ends)  # type: ignore[return-value]
            case nodes.Member(operand=operand):
                values = self.listed(test)
                return None if values is None else (operand, list(values))
            case nodes.IsNull(operand=operand):
                return operand, []
            case _:
                return None


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class _Stretches:
    """The values of an operand, cut at literals of one kind, as the bits of a number.

    Bit 2i is the open stretch before cut i, bit 2i + 1 the cut itself; behind the last stretch
    comes NULL. A set of values is the number with their bits.
    """

    reader: _Reader
    operand: nodes.Expression
    kind: type | None
    cuts: tuple[Literal, ...]

    @property
    def null(self) -> int:
        return 1 << (2 * len(self.cuts) + 1)

    @property
    def values(self) -> int:
        return self.null - 1

    def of(self, node: nodes.Expression) -> tuple[int, int]:
        """For which values the predicate may be true, and for which it may be false."""
        match node:
            case nodes.Junction(op=op, left=left, right=right):
                (true, false), (other_true, other_false) = self.of(left), self.of(right)
                if op == "and":
                    return true & other_true, false | other_false
                return true | other_true, false & other_false
            case nodes.Not(operand=operand):
                true, false = self.of(operand)
                return false, true
            case nodes.IsNull(operand=operand) if operand == self.operand:
                return self.null, self.values
            case nodes.Compare():
                compared = self.reader.compared(node)
                if compared and compared[0] == self.operand and type(compared[2]) is self.kind:
                    true = self._compared(compared[1], compared[2])
                    return true, self.values & ~true
            case nodes.Within(operand=operand, low=low, high=high) if operand == self.operand:
                bottom, top = self.reader.literal(low), self.reader.literal(high)
                if (
                    bottom is not None
                    and top is not None
                    and type(bottom) is type(top) is self.kind
                ):
                    true = self._compared(">=", bottom) & self._compared("<=", top)
                    return true, self.values & ~true
            case nodes.Member(operand=operand) if operand == self.operand:
                listed = self.reader.listed(node)
                if listed is not None and all(type(value) is self.kind for value in listed):
                    true = sum(self._compared("==", value) for value in set(listed))
                    # Spark compares texts with a list as texts: "01" is not in [1], yet equals 1.
                    return true, self.values
        everything = self.values | self.null
        return everything, everything

    def _compared(self, op: str, literal: Literal) -> int:
        """The values for which `operand op literal` is true."""
        cut = 1 << (2 * self.cuts.index(literal) + 1)
        below = cut - 1
        return {
            "<": below,
            "<=": below | cut,
            "==": cut,
            "!=": self.values & ~cut,
            ">=": self.values & ~below,
            ">": self.values & ~below & ~cut,
        }[op]


def _is_of_one_kind(low: Literal | None, high: Literal | None) -> bool:
    are_numbers = isinstance(low, NUMBERS) and isinstance(high, NUMBERS)
    return are_numbers or (isinstance(low, date) and isinstance(high, date))


def _are_apart(cuts: list[Literal]) -> bool:
    """False for numbers so close to each other that a column may not tell them apart."""
    return all(
        isinstance(low, date)
        or isinstance(high, date)
        or high - low > _CLOSEST * max(float(magnitude(low)), float(magnitude(high)))
        for low, high in pairwise(cuts)
    )
