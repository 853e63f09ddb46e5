"""The files of a suite: finds and reads its imports, and the names that each file defines.

The reading function is an argument, so that linking is the same in the job, whose request contains
all sources, and on a worker, which reads them from disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import settle
from dqx_airflow.dql.import_readers import Reader
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.dql.walk import repetitions
from dqx_airflow.values import ImportedFile, SourceFile, Span

MOST_FILES = 200
"""The maximum number of imported files, direct and indirect."""


@dataclass(frozen=True, slots=True)
class Defined:
    """A macro with the scope of the file that defines it: macros are scoped lexically."""

    macro: nodes.Macro
    home: Scope


@dataclass(frozen=True, slots=True)
class Brought:
    """The names that one import makes visible, and the file that they come from."""

    statement: nodes.Import
    names: frozenset[str]
    file: str


@dataclass(slots=True)
class Scope:
    """The names visible in a file: its own, and the imported ones, with evaluated constants
    first."""

    file: str
    constants: dict[str, nodes.Constant] = field(default_factory=dict)
    macros: dict[str, Defined] = field(default_factory=dict)
    imports: list[Brought] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Names that an import could have brought, and the import that brings them, too."""


@dataclass(slots=True)
class Linker:
    """Links one main file. `sources` are the contents of all files, by name."""

    read: Reader
    report: Callable[[Diagnostic], None]
    sources: dict[str, str] = field(default_factory=dict)
    imported: list[ImportedFile] = field(default_factory=list)
    _scopes: dict[str, Scope] = field(default_factory=dict)

    def link(self, file: nodes.File, name: str, importers: tuple[str, ...] = ()) -> Scope:
        """The scope of the main file and, for its suite, of the suite.

        :param importers: of an imported file: the names of those that lead to it.
        """
        scope = Scope(name)
        chain = (*importers, name)
        for statement in file.all_imports:
            self._import(statement, scope, chain)
        constants = file.all_constants
        macros = file.all_macros
        self._report_duplicates("E011", "constant", constants)
        self._report_duplicates("E210", "macro", macros)
        definitions: tuple[nodes.Constant | nodes.Macro, ...] = (*constants, *macros)
        for defined in definitions:
            self._warn_of_hidden(defined.name, scope)
        for constant in constants:  # definitions of a file hide imported ones
            scope.constants.pop(constant.name.text, None)
        scope.constants = settle((*scope.constants.values(), *constants))
        for macro in reversed(macros):  # of two with the same name the first counts
            scope.macros[macro.name.text] = Defined(macro, scope)
        return scope

    def _report_duplicates(
        self, code: str, kind: str, definitions: Iterable[nodes.Constant | nodes.Macro]
    ) -> None:
        for name, first in repetitions(definition.name for definition in definitions):
            related = (Related(first, "first defined here"),)
            message = f"{kind} '{name.text}' is defined twice"
            self.report(Diagnostic(message, name.span, code=code, related=related))

    def _warn_of_hidden(self, name: nodes.Name, scope: Scope) -> None:
        """Warns about a definition that hides an imported name."""
        help_line = 'rename it, or give the import a name: import "..." as library'
        for brought in scope.imports:
            if name.text in brought.names:
                self._hides(name.text, name.span, brought, "imported here", help_line)

    def _hides(self, name: str, span: Span, hidden: Brought, label: str, help_line: str) -> None:
        message = f"'{name}' hides the definition from '{hidden.statement.path.value}'"
        related = (Related(hidden.statement.span, label),)
        self.report(Diagnostic(message, span, code="W015", related=related, help=help_line))

    def _import(self, statement: nodes.Import, scope: Scope, chain: tuple[str, ...]) -> None:
        path = statement.path
        source = self.read(scope.file, path.value)
        if isinstance(source, str):
            self._error("E006", f"cannot import '{path.value}'", path.span, source)
            return
        if source.name in chain:
            circle = " → ".join((*chain[chain.index(source.name) :], source.name))
            self._error("E005", f"circular import: {circle}", path.span, "remove one of them")
            return
        if len(self.sources) >= MOST_FILES:
            message = f"cannot import more than {MOST_FILES} files"
            self._error("E006", message, path.span, "import fewer files")
            return
        self.imported.append(ImportedFile(scope.file, path.value, source))
        exporter = self._scopes.get(source.name) or self._read_library(statement, source, chain)
        self._bring(statement, exporter, scope)

    def _read_library(
        self, statement: nodes.Import, source: SourceFile, chain: tuple[str, ...]
    ) -> Scope:
        self.sources[source.name] = source.text
        parsed = parse(source)
        for diagnostic in parsed.diagnostics:
            related = (*diagnostic.related, Related(statement.span, "imported here"))
            self.report(replace(diagnostic, related=related))
        file = parsed.file or nodes.File((), (), (), ())
        if file.suite is not None and not parsed.diagnostics and not _exports(file):
            message = f"'{statement.path.value}' is a suite and exports nothing"
            help_line = "put `export` before the definitions that others share"
            self._error("E207", message, statement.path.span, help_line)
            file = nodes.File((), (), (), ())
        scope = self._scopes[source.name] = self.link(file, source.name, chain)
        return scope

    def _bring(self, statement: nodes.Import, exporter: Scope, scope: Scope) -> None:
        """Makes exported names visible, under the alias if there is one."""
        exported = {
            *(
                name
                for name, macro in exporter.macros.items()
                if macro.home is exporter and macro.macro.is_exported
            ),
            *(
                name
                for name, constant in exporter.constants.items()
                if constant.span.file == exporter.file and constant.is_exported
            ),
        }
        wanted = {name.text: name for name in statement.names} or dict.fromkeys(exported)
        visible = set()
        for name, place in wanted.items():
            if name not in exported:
                assert place is not None
                message = f"'{statement.path.value}' does not export '{name}'"
                help_line = did_you_mean(name, sorted(exported)) or "the file exports nothing"
                self._error("E208", message, place.span, help_line)
                continue
            shown = f"{statement.alias.text}.{name}" if statement.alias else name
            visible.add(shown)
            self._warn_of_second_import(statement, shown, exporter, scope)
            if name in exporter.macros:
                scope.macros[shown] = exporter.macros[name]
            if name in exporter.constants:
                scope.constants[shown] = _renamed(exporter.constants[name], shown)
        scope.imports.append(Brought(statement, frozenset(visible), exporter.file))
        for name in exported - wanted.keys() if statement.names else ():
            names = ", ".join([*wanted, name])
            scope.left_out.setdefault(name, f'import {{ {names} }} from "{statement.path.value}"')

    def _warn_of_second_import(
        self, statement: nodes.Import, name: str, exporter: Scope, scope: Scope
    ) -> None:
        """Warns about a name that an earlier import has brought from another file."""
        help_line = 'give one of the imports a name: import "..." as library'
        for earlier in scope.imports:
            if name in earlier.names and earlier.file != exporter.file:
                self._hides(name, statement.span, earlier, "imported first here", help_line)

    def _error(self, code: str, message: str, span: Span, help_line: str) -> None:
        self.report(Diagnostic(message, span, code=code, help=help_line))


def _exports(file: nodes.File) -> bool:
    definitions: tuple[nodes.Constant | nodes.Macro, ...] = (*file.all_constants, *file.all_macros)
    return any(definition.is_exported for definition in definitions)


def _renamed(constant: nodes.Constant, name: str) -> nodes.Constant:
    """The constant under another name, at the position of its definition."""
    return replace(constant, name=nodes.Name(name, span=constant.name.span), is_exported=False)
