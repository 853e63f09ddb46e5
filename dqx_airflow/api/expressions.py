"""Expressions of suites written in Python: fragments of DQL, each with the call that made it; the
calls are methods, generated from the tables of metrics and functions.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from inspect import Parameter, Signature
from itertools import islice
from numbers import Integral, Real
from types import FrameType
from typing import Any, TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.callables import MEASURES, CallableKind, Called
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.dql.walk import parts_of
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics import calls
from dqx_airflow.metrics.drift import EARLIER_DAYS
from dqx_airflow.metrics.metric import ArgumentKind
from dqx_airflow.tuning.tunables import Tunable
from dqx_airflow.values import SourceFile, Span
from dqx_airflow.values.blank import is_blank
from dqx_airflow.values.exact import exact, exact_as_written, magnitude

_OURS = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call: its span, and the text there; empty if it is unknown, as at a prompt."""

    span: Span
    text: str

    def of(self, part: str) -> Span:
        """The span of a word or literal within the call; the whole call if that is ambiguous."""
        starts = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", self.text)]
        return self._stretch(starts[0], part) if part and len(starts) == 1 else self.span

    def start_of(self, text: str) -> tuple[int, int] | None:
        """Line and column of a string literal within the call; None if that is ambiguous."""
        if not text or self.text.count(text) != 1:
            return None
        span = self._stretch(self.text.index(text), text)
        return span.line, span.column

    def _stretch(self, start: int, text: str) -> Span:
        line, column = self._position(start)
        end_line, end_column = self._position(start + len(text))
        return Span(self.span.file, line, column, end_line, end_column)

    def _position(self, index: int) -> tuple[int, int]:
        before = self.text[:index]
        breaks = before.count("\n")
        column = len(before) - (before.rfind("\n") + 1) + 1
        return self.span.line + breaks, column if breaks else self.span.column + index


def caller_site() -> CallSite:
    """The location of the user's call into this package.

    From Python 3.11 on it is the exact call, before that the line on which it begins.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return CallSite(Span("<python>", 1, 1, 1, 2), "")
    file = frame.f_code.co_filename
    lines = linecache.getlines(file, frame.f_globals)
    span = _call_span(frame, file, lines) or _line_span(frame.f_lineno, file, lines)
    return CallSite(span, _text_at(span, lines))


def source_of(file: str) -> str:
    """The text of a Python file; empty if it is unknown."""
    return "".join(linecache.getlines(file))


def _call_span(frame: FrameType, file: str, lines: list[str]) -> Span | None:
    """The span of the current instruction of a frame; None if Python does not record it."""
    if sys.version_info < (3, 11):
        return None
    at = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, start, end = at
    if line is None or end_line is None or start is None or end is None or end_line > len(lines):
        return None
    return Span(
        file, line, _column(lines[line - 1], start), end_line, _column(lines[end_line - 1], end)
    )


def _column(line: str, offset: int) -> int:
    """The column of a span, in characters from 1, for an offset in bytes of UTF-8 from 0."""
    return len(line.encode()[:offset].decode(errors="replace")) + 1


def _line_span(line: int, file: str, lines: list[str]) -> Span:
    text = lines[line - 1].rstrip() if 0 < line <= len(lines) else ""
    start = len(text) - len(text.lstrip()) + 1
    return Span(file, line, start, line, max(len(text) + 1, start + 1))


def _text_at(span: Span, lines: list[str]) -> str:
    """The text of a span."""
    if span.end_line > len(lines):
        return ""
    spanned = lines[span.line - 1 : span.end_line]
    spanned[-1] = spanned[-1][: span.end_column - 1]
    spanned[0] = spanned[0][span.column - 1 :]
    return "".join(spanned)


Report = Callable[[Diagnostic], None]


def parse_predicate(text: str, site: CallSite, report: Report) -> nodes.Expression | None:
    """The row predicate in a text, with its position in the user's code."""
    file = _file_around('check "c" on d { assert each row:', text, "}", site, report)
    if file is None:
        return None
    claim = next((part for part in parts_of(file) if isinstance(part, nodes.Rows)), None)
    if claim is None or file != _file_of_rows(claim):
        report(Diagnostic("expected a single predicate", site.span, code="E106"))
        return None
    return claim.predicate


def filter_of(text: str, site: CallSite) -> nodes.Expression:
    """The predicate of a filter.

    :raises RequestError: it is invalid.
    """
    wrong: list[Diagnostic] = []
    predicate = parse_predicate(text, site, wrong.append)
    if predicate is None:
        hint = wrong[0].help or 'write a predicate over rows, such as status == "paid"'
        raise RequestError(f"{text!r} is not a filter: {wrong[0].message}", hint)
    return predicate


def parse_profiles(text: str, site: CallSite, report: Report) -> tuple[nodes.Profile, ...]:
    """The profiles in a text, with their positions in the user's code."""
    file = _file_around("", text, "", site, report)
    if file is None or file.suite is None:
        return ()
    profiles = file.suite.profiles
    if file != _file_of(replace(_EMPTY, profiles=profiles)):
        report(Diagnostic("expected profiles only", site.span, code="E007"))
    return profiles


_EMPTY = nodes.Suite(nodes.Text("s"), span=nodes.NOWHERE)


def _file_of(suite: nodes.Suite) -> nodes.File:
    return nodes.File((), (), (), (suite,))


def _file_of_rows(claim: nodes.Rows) -> nodes.File:
    assertion = nodes.Assertion(claim, span=nodes.NOWHERE)
    datasets = (nodes.Name("d"),)
    check = nodes.Check(nodes.Text("c"), datasets, (assertion,), span=nodes.NOWHERE)
    return _file_of(replace(_EMPTY, checks=(check,)))


def _file_around(
    before: str, text: str, after: str, site: CallSite, report: Report
) -> nodes.File | None:
    """The file around a fragment; None if that has errors, which are reported."""
    parsed = parse(SourceFile(site.span.file, f'suite "s" {{ {before}\n{text}\n{after} }}'))
    move = _mover(text, site)
    last = 2 + text.count("\n")
    for item in parsed.diagnostics:
        moved: Diagnostic = _moved(item, move)
        if item.span.line > last:
            moved = replace(moved, message="unexpected end")
        report(moved)
    if parsed.diagnostics or parsed.file is None:
        return None
    file: nodes.File = _moved(parsed.file, move)
    return file


def _mover(text: str, site: CallSite) -> Callable[[Span], Span]:
    """Maps spans of the text, which begins in line 2, to spans of the user's code.

    A text that is not a plain literal there, such as one with escapes, is located at the whole
    call.
    """
    start = site.start_of(text)
    if start is None:
        return lambda _: site.span
    lines = text.split("\n")

    def position(line: int, column: int) -> tuple[int, int]:
        # An expected token may be missing after the end.
        line, column = min((line - 2, column), (len(lines) - 1, len(lines[-1]) + 1))
        line, column = max((line, column), (0, 1))
        return start[0] + line, column + (start[1] - 1 if line == 0 else 0)

    def move(span: Span) -> Span:
        first, last = position(span.line, span.column), position(span.end_line, span.end_column)
        return Span(site.span.file, *first, *last)

    return move


def _moved(value: Any, move: Callable[[Span], Span]) -> Any:
    """The value with all its spans mapped."""
    if isinstance(value, Span):
        return move(value)
    if isinstance(value, tuple):
        return tuple(_moved(item, move) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        moved = {item.name: _moved(getattr(value, item.name), move) for item in fields(value)}
        return replace(value, **moved)
    return value


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
        return MetricExpression(nodes.Negative(self.node, span=caller_site().span))

    def __abs__(self) -> MetricExpression:
        span = caller_site().span
        return MetricExpression(nodes.Call(nodes.Name("abs", span=span), (self.node,), span=span))

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
            return nodes.Name(value.name, span=site.of(value.name))
        case str():
            return nodes.Text(value, span=site.of(value))
        case bool():
            return nodes.Truth(value, span=site.of(str(value)))
        case datetime():
            return nodes.Text(value.isoformat(sep=" "), span=site.span)
        case date():
            return nodes.Day(value, span=site.span)
        case timedelta():
            seconds = exact(Fraction(value // timedelta(microseconds=1), 1_000_000))
            return nodes.Number(seconds, nodes.Unit.DURATION, span=site.span)
        case Decimal() | Real():
            return number_node(value, nodes.Unit.PLAIN, site.of(str(value)))
        case None:
            return nodes.Null(span=site.span)
        case _:
            raise RequestError(
                f"{value!r} is not a valid operand",
                "give a number, a string, a date, a timedelta, None or an expression over metrics",
            )


def name_of(text: str, site: CallSite) -> nodes.Name:
    """The name of a column or dataset.

    :raises RequestError: the name is impossible, even in backticks.
    """
    if is_blank(text) or not _NAME.match(text):
        raise RequestError(
            f"{text!r} is not a valid name of a column or a dataset",
            "a name cannot be empty, or contain a backtick or a line break",
        )
    return nodes.Name(text, span=site.of(text))


def number_node(value: Real | Decimal | float, unit: nodes.Unit, span: Span) -> nodes.Number:
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
    return nodes.Number(exact, unit, span=span)


_OPERANDS = (MetricExpression, Tunable, Real, Decimal)


def _arithmetic(op: str, left: object, right: object) -> MetricExpression:
    other = right if isinstance(left, MetricExpression) else left
    if isinstance(other, bool) or not isinstance(other, _OPERANDS):
        return NotImplemented  # type: ignore[no-any-return]
    site = caller_site()
    sides = expression_of(left, site), expression_of(right, site)
    return MetricExpression(nodes.Arithmetic(op, *sides, span=site.span))


class MetricProvider:
    """The metrics and functions of the language: `mp.average("price", lag=1)`.

    Columns and datasets are strings, as are those in `count_values` and `in_set`; several columns
    are a list. A filter is a predicate of DQL: `mp.average("price", where="paid == true")`. Unknown
    names are reported when the suite is checked.
    """

    def __getattr__(self, name: str) -> Callable[..., MetricExpression]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(_called, name)


_CONDITIONS = {
    "values": "is_in_values",
    calls.TIMELINESS: "is_by",
    calls.DISTRIBUTION: "matches_shares",
    calls.MOST_COMMON: "is_in",
}
"""The methods that complete an assertion about these calls."""

_UNKNOWN = Called("", CallableKind.METRIC, "", "", (("column", ArgumentKind.COLUMN),))


def _doc(called: Called) -> str:
    doc = called.doc
    if called.name in calls.AGES:
        doc = f"{doc} In seconds: compare it with a `timedelta`."
    if called.name in _CONDITIONS:
        doc = f"Complete it with the condition `{_CONDITIONS[called.name]}`."
    return f"{doc} In DQL: `{called.example}`" if called.example else doc


def _signature(called: Called) -> Signature:
    names = [name for name, _ in called.arguments]
    shown = [Parameter("self", Parameter.POSITIONAL_ONLY)]
    for number, name in enumerate(names):
        last = called.repeats and number == len(names) - 1
        kind = Parameter.VAR_POSITIONAL if last else Parameter.POSITIONAL_ONLY
        distinct = name if names.count(name) == 1 else f"{name}_{number + 1}"
        shown.append(Parameter(distinct, kind))
    for name in called.parameters:
        default = Parameter.empty if name == "n" else None
        word = name.replace(" ", "_")
        shown.append(Parameter(word, Parameter.KEYWORD_ONLY, default=default))
    return Signature(shown, return_annotation=MetricExpression)


def _called(name: str, *arguments: object, **parameters: object) -> MetricExpression:
    """The DQL expression for a call in Python."""
    site = caller_site()
    called = MEASURES.get(name, _UNKNOWN)
    return MetricExpression(
        nodes.Call(
            nodes.Name(name, span=site.of(name)),
            tuple(_argument(given, called.kind(i), site) for i, given in enumerate(arguments)),
            tuple(
                _parameter(key, given, site)
                for key, given in parameters.items()
                if given is not None
            ),
            span=site.span,
        )
    )


def _argument(given: object, kind: ArgumentKind | None, site: CallSite) -> nodes.Expression:
    if isinstance(given, Sequence) and not isinstance(given, str):
        items = tuple(_argument(item, kind, site) for item in given)
        return nodes.Listing(items, span=site.span)
    if isinstance(given, str) and kind not in (ArgumentKind.LITERALS, ArgumentKind.SQL):
        return name_of(given, site)
    return expression_of(given, site)


def _parameter(name: str, given: object, site: CallSite) -> nodes.Parameter:
    if name == "where" and isinstance(given, str):
        value = filter_of(given, site)
    else:
        value = _argument(given, ArgumentKind.COLUMN, site)
    word = EARLIER_DAYS if name == EARLIER_DAYS.replace(" ", "_") else name
    return nodes.Parameter(nodes.Name(word, span=site.of(name)), value, span=site.span)


def _method(called: Called) -> Callable[..., MetricExpression]:
    def call(_: MetricProvider, *arguments: object, **parameters: object) -> MetricExpression:
        return _called(called.name, *arguments, **parameters)

    call.__name__ = called.name
    call.__qualname__ = f"{MetricProvider.__name__}.{called.name}"
    call.__doc__ = _doc(called)
    described: Any = call
    described.__signature__ = _signature(called)
    return call


for _measure in MEASURES.values():
    setattr(MetricProvider, _measure.name, _method(_measure))
