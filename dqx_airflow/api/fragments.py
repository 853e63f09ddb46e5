"""Fragments of DQL in Python: row predicates, profiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dqx_airflow.api.call_site import CallSite
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.dql.walk import parts_of
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile, Span

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


_NOWHERE = Span("", 1, 1, 1, 1)
_EMPTY = nodes.Suite(nodes.Text("s", _NOWHERE), None, (), (), (), (), (), (), _NOWHERE)


def _file_of(suite: nodes.Suite) -> nodes.File:
    return nodes.File((), (), (), (suite,))


def _file_of_rows(claim: nodes.Rows) -> nodes.File:
    assertion = nodes.Assertion(claim, None, None, None, (), (), (), _NOWHERE)
    datasets = (nodes.Name("d", _NOWHERE),)
    check = nodes.Check(nodes.Text("c", _NOWHERE), datasets, (assertion,), _NOWHERE)
    return _file_of(replace(_EMPTY, checks=(check,)))


def _file_around(
    before: str, text: str, after: str, site: CallSite, report: Report
) -> nodes.File | None:
    """The file around a fragment; None if that has errors, which are reported."""
    parsed = parse(SourceFile(site.span.file, f'suite "s" {{ {before}\n{text}\n{after} }}'))
    move, last = _mover(text, site), 2 + text.count("\n")
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
    """Maps spans of the text, which begins in line 2, to those of the user's code.

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
