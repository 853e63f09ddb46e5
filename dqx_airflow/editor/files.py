"""The files in an editor: parsed as far as they are valid, linked with their imports; positions in
their texts, outlines and diagnostics; and the datasets in a `dqx.toml`, with their columns.

Unsaved text takes precedence over the file on disk. An offset counts characters. A span counts
lines and columns from 1, and only a line feed ends a line. A position counts from 0, a carriage
return ends lines too, and characters are UTF-16 code units, unless the editor has agreed on
something else: an emoji counts as two.

Of tables, only local metadata is read, no data, and nothing before the columns of a dataset are
requested. The setting `columns` names them instead of reading them.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from dqx_airflow.contracts.datalex_binding import check_blocks, find_manifest
from dqx_airflow.contracts.dialects.datalex import read_manifest
from dqx_airflow.datasets.dqx_toml import FILE_NAME, find_settings, read_settings
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.linking import Expander, FileReader, Linker, Reader, Scope, no_imports
from dqx_airflow.dql.printer import show_claim, show_constant, show_macro_head
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.dql.syntax.source_file import is_block_file
from dqx_airflow.errors import first_line
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


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The contents of a file. Statements with a syntax error are missing from `file`.

    `links` are the files behind the paths of its imports, `sources` the contents of all files.
    """

    source: SourceFile
    lines: Lines
    file: nodes.File
    scope: Scope
    links: Mapping[str, str]
    sources: Mapping[str, str]
    reader: Reader

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

    def library(self, path: str) -> nodes.File | None:
        """The contents of a file imported by this path; None if there is none."""
        source = self.reader(self.name, path)
        return None if isinstance(source, str) else parse(source).file

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
    parsed = parse(source)
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


MOST_FILES = 2000
"""The maximum number of files searched for references to a name."""


@dataclass(slots=True)
class Files:
    """The folders that are open in the editor, and the texts."""

    folders: tuple[Path, ...] = ()
    search_path: tuple[Path, ...] = ()
    opened: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """The text of a file; None if it cannot be read."""
        if name in self.opened:
            return self.opened[name]
        try:
            return Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError):
            return None

    def root(self, name: str) -> Path:
        """The folder of the editor that contains the file, or else the parent folder of the
        file."""
        holding = [folder for folder in self.folders if Path(name).is_relative_to(folder)]
        return max(holding, key=lambda folder: len(folder.parts), default=Path(name).parent)

    def reader(self, name: str) -> Reader:
        """Reads the imports of the file, direct and indirect."""
        if not Path(name).is_absolute():
            return no_imports
        root = self.root(name)
        disk = FileReader(name, Path(name), root, self.search_path)
        names_on_disk = {name: name}

        def read(importer: str, path: str) -> SourceFile | str:
            source = disk(names_on_disk[importer], path)
            if isinstance(source, str):
                return source
            whole = os.path.normpath(root / source.name)
            names_on_disk[whole] = source.name
            return SourceFile(whole, self.opened.get(whole, source.text))

        return read

    def suites(self) -> Iterator[str]:
        """The names of all DQL files that are open or in the folders."""
        yield from self.opened
        on_disk = (name for folder in self.folders for name in _suites_below(folder))
        yield from islice((name for name in on_disk if name not in self.opened), MOST_FILES)


def _suites_below(folder: Path) -> Iterator[str]:
    for home, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (os.path.join(home, name) for name in sorted(names) if name.endswith(".dql"))


@dataclass(slots=True)
class OpenFiles:
    """The open files in their last checked state. A check may find mistakes in imported files."""

    checked: dict[str, Checked] = field(default_factory=dict)

    def check(self, name: str, files: Files) -> set[str]:
        """Checks an open file, and returns the files whose findings may have changed."""
        text = files.opened[name]
        touched = self.forget(name)
        self.checked[name] = _checked(SourceFile(name, text), files)
        return touched | self.checked[name].sources.keys()

    def forget(self, name: str) -> set[str]:
        """Forgets a closed file, and returns the files whose findings may have changed."""
        before = self.checked.pop(name, None)
        return set(before.sources) if before else set()

    def importers(self, name: str) -> list[str]:
        """The open files that import a file, directly or indirectly."""
        return [
            other
            for other, checked in self.checked.items()
            if other != name and name in checked.sources
        ]

    def findings(self, file: str) -> list[Diagnostic]:
        """The findings in a file: each once, however many files import it."""
        found = chain.from_iterable(checked.diagnostics for checked in self._seeing(file))
        diagnostics: dict[object, Diagnostic] = {}
        for one in found:
            if one.span.file == file:
                diagnostics.setdefault((one.code, one.span, one.message), one)
        return list(diagnostics.values())

    def text(self, file: str) -> str | None:
        """The text of a file when it was checked."""
        texts = (checked.sources[file] for checked in self._seeing(file))
        return next(texts, None)

    def _seeing(self, file: str) -> Iterator[Checked]:
        """The checks that involved a file, its own first."""
        if file in self.checked:
            yield self.checked[file]
        for name, checked in self.checked.items():
            if name != file and file in checked.sources:
                yield checked


def _checked(source: SourceFile, files: Files) -> Checked:
    checked = check_source(source, files.reader(source.name))
    if not is_block_file(source.text):
        return checked
    place = find_manifest(Path(source.name).parent) if Path(source.name).is_absolute() else None
    text = files.text(str(place)) if place is not None else None
    manifest = read_manifest(SourceFile(str(place), text)) if text is not None else None
    return replace(checked, diagnostics=check_blocks(source, manifest).diagnostics)


_READ = ("delta", "parquet")


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column of a dataset; the type is empty if it is unknown."""

    name: str
    type: str = ""


@dataclass(slots=True)
class Catalog:
    """The datasets of one `dqx.toml`. `problems` describe what could not be read."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: Path = Path()
    problems: list[str] = field(default_factory=list)
    _known: dict[str, tuple[KnownColumn, ...]] = field(default_factory=dict)

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(self.tables)

    def path(self, dataset: str) -> str | None:
        """The path of a dataset, as written."""
        path = self.tables.get(dataset, {}).get("path")
        return path if isinstance(path, str) else None

    def columns(self, dataset: str) -> tuple[KnownColumn, ...]:
        """The columns of a dataset; empty if unknown."""
        if dataset not in self.tables:
            return ()
        if dataset not in self._known:
            try:
                self._known[dataset] = self._read(dataset)
            except Exception as error:  # whatever the libraries raise
                self._known[dataset] = ()
                message = f"the columns of dataset '{dataset}' cannot be read: {first_line(error)}"
                self.problems.append(f"{self.folder / FILE_NAME}: {message}")
        return self._known[dataset]

    def _read(self, dataset: str) -> tuple[KnownColumn, ...]:
        table = self.tables[dataset]
        columns = table.get("columns")
        if isinstance(columns, list):
            return tuple(KnownColumn(str(column)) for column in columns)
        path, format = self.path(dataset), table.get("format", "delta")
        if path is None or format not in _READ or "://" in path:
            return ()
        place = self.folder / path
        return _delta_columns(place) if format == "delta" else _parquet_columns(place)


def find_catalog(file: str) -> Catalog:
    """The catalog for a file: of the nearest `dqx.toml`, or else an empty one."""
    place = find_settings(Path(file).parent) if Path(file).is_absolute() else None
    if place is None:
        return Catalog()
    settings = read_settings(place)
    problems = [
        f"{problem.span.file}:{problem.span.line}: {problem.message}"
        for problem in settings.problems
    ]
    return Catalog(settings.datasets, place.parent, problems)


def _delta_columns(place: Path) -> tuple[KnownColumn, ...]:
    from deltalake import DeltaTable

    fields = DeltaTable(str(place)).schema().fields
    # `long` for a primitive type; `struct`, `array` or `map` for a nested one.
    return tuple(KnownColumn(item.name, str(item.type.type)) for item in fields)


def _parquet_columns(place: Path) -> tuple[KnownColumn, ...]:
    """The columns of the first file, and the partition columns in its path."""
    from pyarrow import parquet

    first = place if place.is_file() else next(iter(place.rglob("*.parquet")), None)
    if first is None:
        raise FileNotFoundError(f"there is no .parquet file below {place}")
    columns = [KnownColumn(item.name, str(item.type)) for item in parquet.read_schema(first)]
    folders = first.relative_to(place).parts[:-1] if place.is_dir() else ()
    partitions = [KnownColumn(part.split("=", 1)[0]) for part in folders if "=" in part]
    return (*columns, *partitions)
