"""A file in an editor: parsed as far as it is valid, linked with its imports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dqx_airflow.dql import nodes
from dqx_airflow.dql.expand import Expander
from dqx_airflow.dql.imports import Linker, Reader, Scope
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.editor.positions import Lines
from dqx_airflow.values import SourceFile


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
    def imports(self) -> tuple[nodes.Import, ...]:
        """The imports before the suite and in it."""
        return (*self.file.imports, *(self.file.suite.imports if self.file.suite else ()))

    @property
    def macros(self) -> tuple[nodes.Macro, ...]:
        """The macros of the file itself."""
        return (*self.file.macros, *(self.file.suite.macros if self.file.suite else ()))

    @property
    def constants(self) -> tuple[nodes.Constant, ...]:
        """The constants of the file itself, as written."""
        return (*self.file.constants, *(self.file.suite.constants if self.file.suite else ()))

    @property
    def aliases(self) -> dict[str, nodes.Name]:
        """The aliases of imports."""
        return {
            statement.alias.text: statement.alias
            for statement in self.imports
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
        name = nodes.Text("", use.span)
        check = nodes.Check(name, (), (use,), use.span)
        suite = nodes.Suite(name, None, (), (check,), (), (), (), (), use.span)
        checks = Expander(self.scope, _ignore).expand(suite).checks
        return checks[0].assertions if checks else ()


def read(source: SourceFile, reader: Reader, encoding: str = "utf-16") -> ParsedFile:
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
    """Diagnostics are left to `diagnosis`, which checks the file as a whole."""
