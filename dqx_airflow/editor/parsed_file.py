"""A file in an editor: positions in its text, its tree as far as it is valid, and its outline.

An offset counts characters. A span counts lines and columns from 1, and only a line feed ends a
line. A position counts from 0, a carriage return ends lines too, and characters are UTF-16 code
units, unless the editor has agreed on something else: an emoji counts as two.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache, partial
from typing import TypeAlias

from dqx_airflow.dql import nodes
from dqx_airflow.dql.expansion import Expander
from dqx_airflow.dql.import_readers import Reader
from dqx_airflow.dql.linking import Linker, Scope
from dqx_airflow.dql.printer import show_claim, show_constant, show_macro_head
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.values import SourceFile, Span

Position: TypeAlias = tuple[int, int]
"""Line and character of an editor, from 0."""

_LINE_END = re.compile(r"\r\n|\n|\r")

_UNITS: dict[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text) + sum(character > "\uffff" for character in text),
    "utf-32": len,
}


@dataclass(slots=True)
class Lines:
    """A text with its lines. Positions outside of it are moved to its bounds."""

    text: str
    encoding: str = "utf-16"
    _shown: list[int] = field(init=False)
    _parsed: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._shown = [0, *(match.end() for match in _LINE_END.finditer(self.text))]
        self._parsed = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def offset(self, position: Position) -> int:
        """The offset of a position of the editor."""
        line, units = position
        if line < 0 or line >= len(self._shown):
            return 0 if line < 0 else len(self.text)
        start = self._shown[line]
        end = _LINE_END.search(self.text, start)
        content = self.text[start : end.start() if end else len(self.text)]
        count = _UNITS[self.encoding]
        if len(content) == count(content):
            return start + min(max(units, 0), len(content))
        for number, character in enumerate(content):
            if units <= 0:
                return start + number
            units -= count(character)
        return start + len(content)

    def position(self, offset: int) -> Position:
        """The editor's position of an offset."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._shown, offset) - 1
        return line, _UNITS[self.encoding](self.text[self._shown[line] : offset])

    def offset_of(self, line: int, column: int) -> int:
        """The offset of a line and column of a span."""
        if line > len(self._parsed):
            return len(self.text)
        return min(self._parsed[line - 1] + column - 1, len(self.text))

    def stretch(self, span: Span) -> tuple[int, int]:
        """The offsets of the beginning and end of a span."""
        start = self.offset_of(span.line, span.column)
        return start, max(start, self.offset_of(span.end_line, span.end_column))

    def range(self, span: Span) -> tuple[Position, Position]:
        """The positions of the beginning and end of a span."""
        start, end = self.stretch(span)
        return self.position(start), self.position(end)

    def span(self, start: int, end: int, file: str) -> Span:
        """The span between two offsets."""
        line = bisect_right(self._parsed, start)
        end_line = bisect_right(self._parsed, end)
        column = start - self._parsed[line - 1] + 1
        return Span(file, line, column, end_line, end - self._parsed[end_line - 1] + 1)


parsed_once = lru_cache(maxsize=16)(parse)
"""Parses a file, or returns the tree of the same text: a check and each answer share it."""


@dataclass(frozen=True, slots=True)
class NearbyText:
    """A text without most of the finished statements before an offset, which do not decide what
    may follow there; all after it has moved to the left by `shift` characters."""

    text: str
    shift: int


@dataclass(frozen=True, eq=False)
class ParsedFile:
    """The contents of a file. Statements with a syntax error are missing from `file`.

    `links` are the files behind the paths of its imports, `sources` the contents of all files.
    `parsed` is the file whose tree this is, if this text is newer: it is the same up to
    `unchanged`.
    """

    source: SourceFile
    lines: Lines
    file: nodes.File
    scope: Scope
    links: Mapping[str, str]
    sources: Mapping[str, str]
    reader: Reader
    parsed: ParsedFile | None = None
    unchanged: int | None = None

    def with_text(self, text: str) -> ParsedFile:
        """The file with the text that is being typed, and the names of its last parsed state: at
        each key, only the statement around the cursor is read."""
        parsed = self.parsed or self
        unchanged = _common_length(parsed.source.text, text)
        source = SourceFile(self.name, text)
        lines = Lines(text, self.lines.encoding)
        return replace(parsed, source=source, lines=lines, parsed=parsed, unchanged=unchanged)

    def offset_before(self, text: str, offset: int) -> int | None:
        """The offset in this text of a place in a newer one; None if it is in what has changed."""
        before = self.source.text
        start = _common_length(before, text)
        if offset < start or before == text:
            return offset
        end = _common_length(before[start:][::-1], text[start:][::-1])
        return offset + len(before) - len(text) if offset > len(text) - end else None

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def aliases(self) -> dict[str, nodes.Name]:
        """The aliases of imports."""
        return {
            statement.alias.text: statement.alias
            for statement in self.file.all_imports
            if statement.alias is not None
        }

    def nearby(self, offset: int) -> NearbyText:
        """The text around an offset that decides what may follow there. The last statement before
        it is kept, since the next word may belong to it."""
        text = self.source.text
        known = offset if self.unchanged is None else min(offset, self.unchanged)
        finished = self._finished_before(text.rfind("\n", 0, known) + 1)
        parts = []
        at = 0
        for start, end in finished[:-1]:
            if start >= at:
                parts.append(text[at:start])
                at = end
        parts.append(text[at:])
        near = "".join(parts)
        return NearbyText(near, len(text) - len(near))

    def _finished_before(self, offset: int) -> list[tuple[int, int]]:
        """The offsets of the statements that end before an offset, in the order of the text: of a
        check around it, and of the last one before it, those in its body."""
        found = []
        statements: list[nodes.Node] = [*self.file.imports, *self.file.constants]
        statements += self.file.macros
        for suite in self.file.suites:
            statements += [*suite.imports, *suite.constants, *suite.macros, *suite.checks]
            statements += suite.profiles
        places = sorted((*self._place_of(one), number) for number, one in enumerate(statements))
        before = [place for place in places if place[0] < offset]
        for start, end, number in before:
            statement = statements[number]
            is_last = number == before[-1][2]
            if isinstance(statement, nodes.Check) and (is_last or end >= offset):
                found += [self._place_of(item) for item in statement.body]
            elif end < offset:
                found.append((start, end))
        return sorted(place for place in found if place[1] < offset)

    def _place_of(self, statement: nodes.Node) -> tuple[int, int]:
        """The offsets of a statement with its annotations."""
        start, end = self.lines.stretch(statement.span)
        for annotation in getattr(statement, "annotations", ()):
            start = min(start, self.lines.stretch(annotation.span)[0])
        return start, end

    def library(self, path: str) -> nodes.File | None:
        """The contents of a file imported by this path; None if there is none."""
        source = self.reader(self.name, path)
        return None if isinstance(source, str) else parsed_once(source).file

    def expanded(self) -> tuple[nodes.Check, ...]:
        """The checks of the suite with only assertions: macros are expanded."""
        suite = self.file.suite
        return Expander(self.scope, _ignore).expand(suite).checks if suite else ()

    def expand(self, use: nodes.Use) -> tuple[nodes.Assertion, ...]:
        """The assertions that a use generates; none if it has a mistake."""
        name = nodes.Text("", span=use.span)
        check = nodes.Check(name, (), (use,), span=use.span)
        suite = nodes.Suite(name, checks=(check,), span=use.span)
        checks = Expander(self.scope, _ignore).expand(suite).checks
        return checks[0].assertions if checks else ()


def parsed_file(source: SourceFile, reader: Reader, encoding: str = "utf-16") -> ParsedFile:
    """Reads a file, however broken, and its imports."""
    parsed = parsed_once(source)
    file = parsed.file or nodes.File((), (), (), ())
    linker = Linker(reader, _ignore, {source.name: source.text})
    scope = linker.link(file, source.name)
    links = {
        imported.path: imported.file.name
        for imported in linker.imported
        if imported.importer == source.name
    }
    return ParsedFile(
        source, Lines(source.text, encoding), file, scope, links, linker.sources, reader
    )


def _common_length(text: str, other: str) -> int:
    """The number of characters with which both texts begin."""
    most = min(len(text), len(other))
    differs = partial(_differ_within, text, other)
    return bisect_left(range(1, most + 1), True, key=differs)


def _differ_within(text: str, other: str, size: int) -> bool:
    return text[:size] != other[:size]


def _ignore(_: object) -> None:
    """Drops a diagnostic: `diagnosis` checks the whole file."""


class OutlineKind(Enum):
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
    """An entry of an outline: `span` covers all of it, an editor selects `name_span`, and `detail`
    is a few words."""

    entry: OutlineKind
    name: str
    detail: str
    span: Span
    name_span: Span
    children: tuple[Symbol, ...] = ()


def outline(reading: ParsedFile) -> tuple[Symbol, ...]:
    """The symbols of a file in source order, the contents of a suite nested in it."""
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
        elif isinstance(item, nodes.Watch):
            dataset = item.dataset
            inner.append(Symbol(OutlineKind.USE, dataset.text, "watch", item.span, dataset.span))
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
