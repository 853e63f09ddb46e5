"""The outline of a file: its definitions, nested."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show_claim
from dqx_airflow.editor.parsed_file import ParsedFile
from dqx_airflow.editor.showing import show_constant, show_macro_head
from dqx_airflow.values import Span


class OutlineKind(str, Enum):
    """The kind of an entry in an outline."""

    SUITE = "suite"
    CONSTANT = "constant"
    MACRO = "macro"
    CHECK = "check"
    ASSERTION = "assertion"
    USE = "use"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Symbol:
    """An entry: `span` is all of it, `name_span` is selected, `detail` a few words."""

    entry: OutlineKind
    name: str
    detail: str
    span: Span
    name_span: Span
    children: tuple[Symbol, ...] = ()


def outline(reading: ParsedFile) -> tuple[Symbol, ...]:
    """The symbols of a file in source order, with those of a suite nested in it."""
    file = reading.file
    symbols = [*_definitions(file.constants, file.macros)]
    for suite in file.suites:
        inner = [*_definitions(suite.constants, suite.macros)]
        inner += [_check(check) for check in suite.checks]
        inner += [
            _named(OutlineKind.PROFILE, profile.name, "", profile.span)
            for profile in suite.profiles
        ]
        symbols.append(_named(OutlineKind.SUITE, suite.name, "", suite.span, _in_order(inner)))
    return _in_order(symbols)


def _in_order(symbols: list[Symbol]) -> tuple[Symbol, ...]:
    return tuple(sorted(symbols, key=lambda symbol: (symbol.span.line, symbol.span.column)))


def _definitions(
    constants: tuple[nodes.Constant, ...], macros: tuple[nodes.Macro, ...]
) -> Iterator[Symbol]:
    for constant in constants:
        name = constant.name
        detail = show_constant(constant)
        yield Symbol(OutlineKind.CONSTANT, name.text, detail, constant.span, name.span)
    for macro in macros:
        detail = show_macro_head(macro)
        yield Symbol(OutlineKind.MACRO, macro.name.text, detail, macro.span, macro.name.span)


def _check(check: nodes.Check) -> Symbol:
    inner = []
    for item in check.body:
        if isinstance(item, nodes.Use):
            inner.append(Symbol(OutlineKind.USE, item.name.text, "", item.span, item.name.span))
        else:
            claim = show_claim(item.claim)
            name = item.name.value if item.name else claim
            inner.append(Symbol(OutlineKind.ASSERTION, name, claim, item.span, item.claim.span))
    detail = f"on {', '.join(dataset.text for dataset in check.datasets)}"
    return _named(OutlineKind.CHECK, check.name, detail, check.span, tuple(inner))


def _named(
    entry: OutlineKind, name: nodes.Text, detail: str, span: Span, children: tuple[Symbol, ...] = ()
) -> Symbol:
    return Symbol(entry, name.value, detail, span, name.span, children)
