"""Checks a suite before anything runs: reports every mistake of the file at once, in source
order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, errors_of
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.suite import check_constant, check_suite
from dqx_airflow.dql.constants import settle_one
from dqx_airflow.dql.expansion import Expander
from dqx_airflow.dql.import_readers import Reader, no_imports
from dqx_airflow.dql.linking import Linker, Scope
from dqx_airflow.dql.syntax.datalex_blocks import read_blocks
from dqx_airflow.dql.syntax.grammar import gc_paused
from dqx_airflow.dql.syntax.parser import Parsed, parse
from dqx_airflow.dql.syntax.source_file import is_block_file
from dqx_airflow.values import ImportedFile, SourceFile, Span

# An unused name may be the target of a typo, and an unknown one may come from a file that could not
# be imported.
_CASCADES = (
    (frozenset({"E005", "E006", "E207", "E208"}), frozenset({"E003", "E201"})),
    (frozenset({"E206"}), frozenset({"W002", "W004", "W005", "W007"})),
    (frozenset({"E003", "E201", "E208"}), frozenset({"W004", "W005", "W007"})),
)

_OF_SOUND_SUITES = frozenset({"W012", "W014"})
"""Codes that are reported only for suites without errors: an error may be the reason for them."""

# If statements of these kinds are missing after a syntax error, a finding would be a consequence of
# that; any statement may use what seems unused.
_IN_CHECKS = frozenset({"check", "assert", "@", "use", "watch", "macro", "for"})
_NEED = {
    "E003": frozenset({"const", "import", "export"}),
    "E102": frozenset({"const", "import", "export"}),
    "E201": frozenset({"macro", "import", "export"}),
    "E302": frozenset({"type", "from", "to"}),
    "W002": _IN_CHECKS,
    "W004": None,
    "W005": None,
    "W007": None,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """A suite with its macros expanded, and the diagnostics about it.

    `suite` is valid if there is no error, and None for a library file. `sources` are the contents
    of all files that diagnostics refer to; `imports` are the files that were read.
    """

    suite: nodes.Suite | None
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str]
    imports: tuple[ImportedFile, ...] = ()

    @property
    def valid_suite(self) -> nodes.Suite:
        """The suite of a source without errors that is not a library."""
        assert self.suite is not None
        return self.suite

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return errors_of(self.diagnostics)


@gc_paused()
def check_source(
    source: SourceFile,
    read: Reader = no_imports,
    *,
    needs_suite: bool = False,
    parse: Callable[[SourceFile], Parsed] = parse,
) -> Checked:
    """Parses a file, links its imports, expands its macros, and checks the result.

    For a block file, only its form is checked here, and its contracts elsewhere.

    :param read: reads imported files.
    :param needs_suite: a library file is an error, since it contains nothing to run.
    :param parse: parses the file itself; an editor caches what it returns.
    """
    if is_block_file(source.text):
        return _checked_blocks(source, needs_suite)
    parsed = parse(source)
    diagnostics = list(parsed.diagnostics)
    linker = Linker(read, diagnostics.append, {source.name: source.text})
    suite = None
    if parsed.file is not None:
        later: list[Diagnostic] = []
        linker.report = later.append
        suite = _check_file(parsed.file, source, linker, later)
        is_sound = parsed.is_whole and not parsed.broken
        diagnostics += later if is_sound else _without_consequences(later, parsed, source)
    if needs_suite and suite is None and not errors_of(diagnostics):
        first = Span(source.name, 1, 1, 1, 2)
        help_line = "this is a library file; a gate needs a suite that imports it"
        diagnostics.append(Diagnostic("the file has no suite", first, code="E008", help=help_line))
    reported = _reported(diagnostics, linker.sources) if diagnostics else ()
    return Checked(suite, reported, linker.sources, tuple(linker.imported))


def _reported(diagnostics: Sequence[Diagnostic], sources: Iterable[str]) -> tuple[Diagnostic, ...]:
    """Diagnostics without the consequences of others, in the order of their files, each once."""
    codes = {diagnostic.code for diagnostic in diagnostics}
    for causes, effects in _CASCADES:
        if causes & codes:
            codes -= effects
    if errors_of([diagnostic for diagnostic in diagnostics if diagnostic.code in codes]):
        codes -= _OF_SOUND_SUITES
    order = {name: number for number, name in enumerate(sources)}
    # A mistake in a macro occurs at every use: it is reported at the first one.
    once: dict[object, Diagnostic] = {}
    for diagnostic in sorted(
        diagnostics, key=lambda item: (order[item.span.file], item.span.line, item.span.column)
    ):
        if diagnostic.code in codes:
            once.setdefault((diagnostic.code, diagnostic.span, diagnostic.message), diagnostic)
    return tuple(once.values())


def _checked_blocks(source: SourceFile, needs_suite: bool) -> Checked:
    diagnostics = read_blocks(source).diagnostics
    if needs_suite:
        first = Span(source.name, 1, 1, 1, 2)
        help_line = "this is a block file; a gate needs a suite"
        diagnostics += (Diagnostic("the file has no suite", first, code="E008", help=help_line),)
    return Checked(None, diagnostics, {source.name: source.text})


def _without_consequences(
    found: list[Diagnostic], parsed: Parsed, source: SourceFile
) -> list[Diagnostic]:
    """The diagnostics of a file, without the consequences of its syntax errors."""
    hidden = _cascades_of(parsed, source)
    stretches = {(stretch.line, stretch.column): stretch for stretch in parsed.broken}
    starts = sorted(stretches)
    return [
        diagnostic
        for diagnostic in found
        if diagnostic.code not in hidden
        and not (
            diagnostic.span.file == source.name and _begins_in(diagnostic.span, starts, stretches)
        )
    ]


def _cascades_of(parsed: Parsed, source: SourceFile) -> frozenset[str]:
    """The codes that are meaningless if statements are missing after a syntax error."""
    if parsed.is_whole:
        return frozenset()
    if len(parsed.broken) < len(parsed.diagnostics):
        return frozenset(_NEED)  # the kind of some missing statements is unknown
    lines = source.text.split("\n")
    broken_lines = (lines[span.line - 1][span.column - 1 :] for span in parsed.broken)
    missing = {text[:1] if text[:1] == "@" else text.split()[0] for text in broken_lines}
    return frozenset(code for code, kinds in _NEED.items() if kinds is None or kinds & missing)


def _check_file(
    file: nodes.File, source: SourceFile, linker: Linker, diagnostics: list[Diagnostic]
) -> nodes.Suite | None:
    """Links, expands and checks a file. Returns the expanded suite; None for a library file."""
    scope = linker.link(file, source.name)
    expander = Expander(scope, diagnostics.append)
    expander.check_macros()
    for another in file.suites[1:]:
        related = (Related(file.suites[0].name.span, "the first suite"),)
        help_line = "a file has one suite: move this one to a separate file"
        message = "second suite in this file"
        diagnostics.append(
            Diagnostic(message, another.name.span, code="E015", related=related, help=help_line)
        )
    if file.suite is None:
        earlier: dict[str, nodes.Constant] = {}
        for constant in file.constants:
            diagnostics += check_constant(constant, earlier, set())
            earlier.setdefault(constant.name.text, settle_one(constant, earlier))
        return None
    suite = expander.expand(file.suite)
    used = expander.used
    diagnostics += check_suite(suite, used)
    diagnostics[:] = [_with_import(diagnostic, scope) for diagnostic in diagnostics]
    for macro in file.all_macros:
        if not macro.is_exported and macro.name.text not in used:
            message = f"macro '{macro.name.text}' is never used"
            diagnostics.append(Diagnostic(message, macro.name.span, code="W005", help="remove it"))
    for brought in scope.imports:
        if brought.names and not brought.names & used:
            statement = brought.statement
            message = f"nothing from '{statement.path.value}' is used"
            diagnostics.append(
                Diagnostic(message, statement.span, code="W007", help="remove the import")
            )
    return suite


def _with_import(diagnostic: Diagnostic, scope: Scope) -> Diagnostic:
    """The diagnostic of an unknown name, with the import that brings it, if there is one."""
    if diagnostic.code not in ("E003", "E201") or diagnostic.span.file != scope.file:
        return diagnostic
    name = diagnostic.message.rpartition(" '")[2].removesuffix("'")
    statement = scope.left_out.get(name)
    return replace(diagnostic, help=f"import it, too: {statement}") if statement else diagnostic


def _begins_in(
    span: Span, starts: list[tuple[int, int]], stretches: dict[tuple[int, int], Span]
) -> bool:
    """True if `span` begins in one of the ranges, given by their sorted starts."""
    start = (span.line, span.column)
    index = bisect_right(starts, start)
    if index == 0:
        return False
    stretch = stretches[starts[index - 1]]
    return start < (stretch.end_line, stretch.end_column)
