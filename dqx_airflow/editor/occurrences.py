"""The occurrences of names in a file: the kind and the definitions of each, the edits that rename
it, and the edit of a quick fix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.callables import IN_ROWS, MEASURES
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.syntax.grammar import unquoted
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.editor.parsed_file import Lines, ParsedFile, parsed_file
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile, Span

_WORD = re.compile(r"`[^`\n]*`|[a-zA-Z_][a-zA-Z0-9_]*")
_HOLE = re.compile(r"\{([a-zA-Z_][a-zA-Z0-9_]*)\}")


SymbolKind = Enum(
    "SymbolKind",
    "CONSTANT MACRO PARAMETER ALIAS PATH CHECK ASSERTION TAG DATASET COLUMN CALL ROW_CALL ITEM "
    "ANNOTATION",
)
"""The kind of a name: `ROW_CALL` is a call in a row predicate, `ITEM` an item of an array."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a position. `definitions` are where it is defined: none, one, or many for a tag.

    `datasets` are the datasets of the check around it, `use` the use of a macro that it names,
    `array` the array that it is an item of.
    """

    kind: SymbolKind
    text: str
    span: Span
    definitions: tuple[Span, ...] = ()
    datasets: tuple[str, ...] = ()
    use: nodes.Use | None = None
    array: str = ""


@dataclass(frozen=True, slots=True)
class _Around:
    """The context of a node in the tree: parameters of a macro, a check, a row, an array."""

    parameters: Mapping[str, Span]
    datasets: tuple[str, ...] = ()
    in_row: bool = False
    array: str = ""


@lru_cache(maxsize=8)
def occurrences(reading: ParsedFile) -> tuple[Occurrence, ...]:
    """All names of a file, in no particular order."""
    return tuple(_OccurrenceFinder(reading).file())


@lru_cache(maxsize=8)
def _by_line(reading: ParsedFile) -> Mapping[int, list[Occurrence]]:
    """The names of a file by their first line."""
    found: dict[int, list[Occurrence]] = {}
    for occurrence in occurrences(reading):
        found.setdefault(occurrence.span.line, []).append(occurrence)
    return found


def occurrence_at(reading: ParsedFile, offset: int) -> Occurrence | None:
    """The name at an offset, or the one that ends there."""
    nearest = None
    line = reading.lines.span(offset, offset, reading.name).line
    for occurrence in _by_line(reading).get(line, ()):
        start, end = reading.lines.stretch(occurrence.span)
        if start <= offset < end:
            return occurrence
        if offset == end:
            nearest = occurrence
    return nearest


def references(
    reading: ParsedFile, offset: int, others: Iterable[ParsedFile] = (), *, with_definitions: bool
) -> tuple[Span, ...]:
    """Where the name at an offset is used, in this file and in others: with the same definition;
    of a name that the data or the language defines, wherever it means the same.

    :param with_definitions: also where it is defined.
    """
    occurrence = occurrence_at(reading, offset)
    if occurrence is None:
        return ()
    spans = dict.fromkeys(
        item.span
        for file in (reading, *others)
        for item in occurrences(file)
        if _is_same(item, occurrence)
    )
    defined = () if with_definitions else occurrence.definitions
    return tuple(span for span in spans if span not in defined)


def _is_same(item: Occurrence, other: Occurrence) -> bool:
    """Whether two names mean the same."""
    if item.kind is not other.kind:
        return False
    if item.definitions and other.definitions:
        return bool(set(item.definitions) & set(other.definitions))
    if item.text != other.text or item.kind in _RENAMED:
        return False
    return item.kind is not SymbolKind.COLUMN or bool(set(item.datasets) & set(other.datasets))


class _OccurrenceFinder:
    """Walks the tree of one file."""

    def __init__(self, reading: ParsedFile) -> None:
        self.reading = reading
        self.scope = reading.scope
        self.aliases = {name: alias.span for name, alias in reading.aliases.items()}

    def file(self) -> Iterator[Occurrence]:
        around = _Around({})
        for statement in self.reading.file.all_imports:
            yield from self._import(statement)
        for constant in self.reading.file.all_constants:
            name = constant.name
            yield Occurrence(SymbolKind.CONSTANT, name.text, name.span, (name.span,))
            yield from self._parts((constant.value, constant.bounds), around)
        for macro in self.reading.file.all_macros:
            yield from self._macro(macro)
        if self.reading.file.suite is None:
            return
        for check in self.reading.file.suite.checks:
            yield Occurrence(
                SymbolKind.CHECK, check.name.value, check.name.span, (check.name.span,)
            )
            for dataset in check.datasets:
                yield Occurrence(SymbolKind.DATASET, dataset.text, dataset.span)
            datasets = tuple(dataset.text for dataset in check.datasets)
            yield from self._parts(check.where, _Around({}, datasets, in_row=True))
            yield from self._parts(check.body, _Around({}, datasets))
        yield from _annotated(self.reading.file.suite.annotations)
        if self.reading.file.suite.profiles:
            yield from self._profiles(self.reading.file.suite.profiles)

    # Statements

    def _import(self, statement: nodes.Import) -> Iterator[Occurrence]:
        path = statement.path
        linked = self.reading.links.get(path.value)
        places = (Span(linked, 1, 1, 1, 1),) if linked else ()
        yield Occurrence(SymbolKind.PATH, path.value, path.span, places)
        if statement.alias is not None:
            alias = statement.alias
            yield Occurrence(SymbolKind.ALIAS, alias.text, alias.span, (self.aliases[alias.text],))
        for name in statement.names:
            defined = self.scope.macros.get(name.text)
            constant = self.scope.constants.get(name.text)
            if defined is not None:
                places = (defined.macro.name.span,)
                yield Occurrence(SymbolKind.MACRO, name.text, name.span, places)
            elif constant is not None:
                yield Occurrence(SymbolKind.CONSTANT, name.text, name.span, (constant.name.span,))

    def _macro(self, macro: nodes.Macro) -> Iterator[Occurrence]:
        yield Occurrence(SymbolKind.MACRO, macro.name.text, macro.name.span, (macro.name.span,))
        parameters: dict[str, Span] = {}
        for parameter in macro.parameters:
            parameters.setdefault(parameter.text, parameter.span)
            places = (parameters[parameter.text],)
            yield Occurrence(SymbolKind.PARAMETER, parameter.text, parameter.span, places)
        yield from self._parts(macro.body, _Around(parameters))

    def _loop(self, loop: nodes.Loop, around: _Around) -> Iterator[Occurrence]:
        variable = loop.variable
        over = loop.over
        if over.text in around.parameters:
            places = (around.parameters[over.text],)
            yield Occurrence(SymbolKind.PARAMETER, over.text, over.span, places)
        yield Occurrence(SymbolKind.PARAMETER, variable.text, variable.span, (variable.span,))
        inner = {**around.parameters, variable.text: variable.span}
        yield from self._parts(loop.body, _Around(inner, around.datasets))

    def _assertion(self, assertion: nodes.Assertion, around: _Around) -> Iterator[Occurrence]:
        yield from _annotated(assertion.annotations)
        for annotation in assertion.annotations:
            yield from self._parts([value for _, value in annotation.arguments], around)
        name = assertion.name
        if name is not None and not around.parameters:
            yield Occurrence(SymbolKind.ASSERTION, name.value, name.span, (name.span,))
        for tag in assertion.tags:
            yield Occurrence(SymbolKind.TAG, tag.text, tag.span, (tag.span,))
        in_row = isinstance(assertion.claim, nodes.Rows)
        inner = _Around(around.parameters, around.datasets, in_row)
        yield from self._parts((assertion.claim, name), inner)
        yield from self._parts(assertion.where, replace(inner, in_row=True))

    def _use(self, use: nodes.Use, around: _Around) -> Iterator[Occurrence]:
        defined = self.scope.macros.get(use.name.text)
        places = (defined.macro.name.span,) if defined else ()
        yield from self._qualified(use.name, SymbolKind.MACRO, places, use)
        yield from self._parts(use.arguments, around)

    def _profiles(self, profiles: tuple[nodes.Profile, ...]) -> Iterator[Occurrence]:
        checks = self.reading.expanded()
        for profile in profiles:
            yield from _annotated(profile.annotations)
            for rule in profile.rules:
                yield from _selected(rule.selector, checks)

    # Expressions

    def _parts(self, node: Any, around: _Around) -> Iterator[Occurrence]:
        """The occurrences of names in a node and its parts."""
        match node:
            case tuple() | list():
                for item in node:
                    yield from self._parts(item, around)
            case nodes.Assertion():
                yield from self._assertion(node, around)
            case nodes.Use():
                yield from self._use(node, around)
            case nodes.Watch(dataset=dataset):
                yield Occurrence(SymbolKind.DATASET, dataset.text, dataset.span)
            case nodes.Loop():
                yield from self._loop(node, around)
            case nodes.Call():
                yield from self._call(node, around)
            case nodes.Quantified(name=name, array=array, predicate=predicate):
                yield Occurrence(SymbolKind.ROW_CALL, name.text, name.span)
                yield from self._parts(array, around)
                yield from self._parts(predicate, replace(around, array=show(array)))
            case nodes.Item(span=span):
                yield Occurrence(SymbolKind.ITEM, show(node), span, array=around.array)
            case nodes.Name(text=name) if name in self.scope.constants:
                places = (self.scope.constants[name].name.span,)
                yield from self._qualified(node, SymbolKind.CONSTANT, places)
            case nodes.Name() if around.in_row:
                yield self._column(node, around)
            case nodes.RowsMatch() | nodes.ColumnsMatch():
                yield from self._match(node, around)
            case nodes.HasColumn(column=column):
                yield from self._columns(column, around)
            case nodes.HasFormat(operand=operand):
                yield from self._parts(operand, around)
            case nodes.ByTime() | Span():
                return
            case nodes.Placeholder(name=name, span=span) if name in around.parameters:
                yield from self._holes(span, around)
            case nodes.Text(span=span):
                yield from self._holes(span, around)
            case _ if is_dataclass(node):
                for part in fields(node):
                    yield from self._parts(getattr(node, part.name), around)

    def _match(
        self, claim: nodes.RowsMatch | nodes.ColumnsMatch, around: _Around
    ) -> Iterator[Occurrence]:
        """The two datasets, and the columns, which both of them have."""
        for dataset in (claim.dataset, claim.reference):
            if isinstance(dataset, nodes.Name):
                yield Occurrence(SymbolKind.DATASET, dataset.text, dataset.span)
            else:
                yield from self._parts(dataset, around)
        if isinstance(claim, nodes.RowsMatch):
            yield from self._columns(claim.keys, around)
            if claim.compared is not None:
                yield from self._columns(claim.compared, around)

    def _call(self, call: nodes.Call, around: _Around) -> Iterator[Occurrence]:
        """The occurrences of names in a call, its arguments and its parameters."""
        name = call.name
        called = (IN_ROWS if around.in_row else MEASURES).get(name.text)
        if called is not None and not around.in_row:
            yield Occurrence(SymbolKind.CALL, name.text, name.span)
        elif called is not None:
            yield Occurrence(SymbolKind.ROW_CALL, name.text, name.span)
        elif name.text in MEASURES:  # `values` of another dataset, in a predicate
            called = MEASURES[name.text]
            yield Occurrence(SymbolKind.CALL, name.text, name.span)
        datasets = around.datasets
        for parameter in call.parameters:
            value = parameter.value
            if parameter.name.text == "dataset" and isinstance(value, nodes.Name):
                yield Occurrence(SymbolKind.DATASET, value.text, value.span)
                datasets = (value.text,)
        inner = replace(around, datasets=datasets)
        for position, argument in enumerate(call.arguments):
            if called is not None and called.is_column(position):
                yield from self._columns(argument, inner)
            else:
                yield from self._parts(argument, inner)
        for parameter in call.parameters:
            if parameter.name.text == "where":
                yield from self._parts(parameter.value, replace(inner, in_row=True))
            elif called is not None and parameter.name.text in called.column_parameters:
                yield from self._columns(parameter.value, inner)
            elif parameter.name.text != "dataset":
                yield from self._parts(parameter.value, inner)

    def _columns(self, node: nodes.Expression, around: _Around) -> Iterator[Occurrence]:
        match node:
            case nodes.Name():
                yield self._column(node, around)
            case nodes.Listing(items=items):
                for item in items:
                    yield from self._columns(item, around)
            case _:
                yield from self._parts(node, around)

    def _column(self, name: nodes.Name, around: _Around) -> Occurrence:
        return Occurrence(SymbolKind.COLUMN, name.text, name.span, datasets=around.datasets)

    def _qualified(
        self,
        name: nodes.Name,
        kind: SymbolKind,
        places: tuple[Span, ...],
        use: nodes.Use | None = None,
    ) -> Iterator[Occurrence]:
        """`name`, or `alias.name`, which are two names."""
        words = self._matches_in(_WORD, name.span)
        *before, (text, span) = words or [(name.text, name.span)]
        for alias, place in before:
            definitions = (self.aliases[alias],) if alias in self.aliases else ()
            yield Occurrence(SymbolKind.ALIAS, alias, place, definitions)
        yield Occurrence(kind, unquoted(text), span, places, use=use)

    def _holes(self, span: Span, around: _Around) -> Iterator[Occurrence]:
        """The parameters that a placeholder, or a string with placeholders, names."""
        for text, place in self._matches_in(_HOLE, span):
            if text in around.parameters:
                yield Occurrence(SymbolKind.PARAMETER, text, place, (around.parameters[text],))

    def _matches_in(self, pattern: re.Pattern[str], span: Span) -> list[tuple[str, Span]]:
        """The match of a pattern within a span: its group if it has one, and the position."""
        lines = self.reading.lines
        group = pattern.groups
        start, end = lines.stretch(span)
        return [
            (match[group], lines.span(match.start(group), match.end(group), span.file))
            for match in pattern.finditer(lines.text, start, end)
        ]


def _annotated(annotations: tuple[nodes.Annotation, ...]) -> Iterator[Occurrence]:
    for annotation in annotations:
        yield Occurrence(SymbolKind.ANNOTATION, annotation.name.text, annotation.name.span)


def _selected(selector: nodes.Selector, checks: tuple[nodes.Check, ...]) -> Iterator[Occurrence]:
    """The names in the strings of a selector."""
    name = selector.name
    check = selector.check
    named = [item for item in checks if check is None or item.name.value == check.value]
    assertions = [assertion for item in named for assertion in item.assertions]
    written = {
        "check": [(item.name.value, item.name.span) for item in named],
        "tag": [(tag.text, tag.span) for assertion in assertions for tag in assertion.tags],
        "assertion": [(item.name.value, item.name.span) for item in assertions if item.name],
    }[selector.kind]
    places = [span for text, span in written if text == name.value]
    kind = SymbolKind[selector.kind.upper()]
    yield Occurrence(kind, name.value, name.span, tuple(dict.fromkeys(places)))
    if check is not None:
        places = [profile.name.span for profile in named]
        yield Occurrence(SymbolKind.CHECK, check.value, check.span, tuple(places))


def definitions(reading: ParsedFile, offset: int) -> tuple[Span, ...]:
    """The definitions of the name at an offset: several for a tag, or a name made by a macro."""
    occurrence = occurrence_at(reading, offset)
    return occurrence.definitions if occurrence else ()


_NAME = re.compile(r"[a-zA-Z_]\w*\Z", re.ASCII)
_RENAMED = frozenset(
    {SymbolKind.CONSTANT, SymbolKind.MACRO, SymbolKind.PARAMETER, SymbolKind.ALIAS}
)
_FOREIGN = {
    SymbolKind.COLUMN: "columns are defined by the data",
    SymbolKind.DATASET: "dataset names are defined by the gate",
    SymbolKind.CALL: "it is part of the language",
    SymbolKind.ROW_CALL: "it is part of the language",
    SymbolKind.ITEM: "it is part of the language",
    SymbolKind.ANNOTATION: "it is part of the language",
    SymbolKind.PATH: "rename the file, then the path",
    SymbolKind.CHECK: "results are stored under the name of the check",
    SymbolKind.ASSERTION: "results are stored under the name of the assertion",
    SymbolKind.TAG: "profiles of other suites may select the tag",
}


@dataclass(frozen=True, slots=True)
class Edit:
    """A range of a file, and its replacement."""

    span: Span
    text: str


def renamable(reading: ParsedFile, offset: int) -> Occurrence:
    """The name at an offset.

    :raises RequestError: there is none that can be renamed.
    """
    occurrence = occurrence_at(reading, offset)
    if occurrence is None:
        raise RequestError("nothing to rename here")
    if occurrence.kind not in _RENAMED:
        raise RequestError(f"'{occurrence.text}' cannot be renamed: {_FOREIGN[occurrence.kind]}")
    if not occurrence.definitions:
        raise RequestError(f"'{occurrence.text}' is not defined, so nothing can be renamed")
    return occurrence


def rename(
    reading: ParsedFile, offset: int, name: str, others: Iterable[ParsedFile] = ()
) -> tuple[Edit, ...]:
    """The edits that rename the name at an offset, in this file and in others.

    :raises RequestError: the name cannot be renamed, or not to this one.
    """
    occurrence = renamable(reading, offset)
    if not _NAME.match(name):
        raise RequestError(f"'{name}' is not a name: use only letters, digits and _")
    files = {file.name: file for file in (reading, *others)}.values()
    edits = {file.name: _edits(file, occurrence, name) for file in files}
    changed = {file.name: _applied(file, edits[file.name]) for file in files if edits[file.name]}
    for file in files:
        if file.name in changed or changed.keys() & file.sources.keys():
            _check_meaning(file, edits[file.name], changed, name)
    return tuple(edit for of_file in edits.values() for edit in of_file)


def _edits(reading: ParsedFile, occurrence: Occurrence, name: str) -> list[Edit]:
    same = [item for item in occurrences(reading) if _is_same(item, occurrence)]
    return [Edit(span, name) for span in dict.fromkeys(item.span for item in same)]


def _applied(reading: ParsedFile, edits: list[Edit]) -> str:
    """The text of a file after some edits."""
    text = reading.source.text
    stretches = [(*reading.lines.stretch(edit.span), edit.text) for edit in edits]
    for start, end, instead in sorted(stretches, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def _check_meaning(
    reading: ParsedFile, edits: list[Edit], changed: Mapping[str, str], name: str
) -> None:
    """Raises RequestError if names would refer to something else after the edits."""

    def reader(importer: str, path: str) -> SourceFile | str:
        source = reading.reader(importer, path)
        if isinstance(source, str):
            return source
        return SourceFile(source.name, changed.get(source.name, source.text))

    before = reading.source
    after = SourceFile(before.name, changed.get(before.name, before.text))
    if len(parse(after).diagnostics) > len(parse(before).diagnostics):
        raise RequestError(f"'{name}' is a keyword")
    renamed = {edit.span for edit in edits}
    if _meaning(reading, renamed, name) != _meaning(parsed_file(after, reader), frozenset(), name):
        where = Path(reading.name).name
        raise RequestError(f"'{name}' already has another meaning in {where}")
    added = _added_mistake(check_source(before, reading.reader), check_source(after, reader))
    if added is not None:
        where = Path(added.span.file).name
        raise RequestError(f"'{name}' would be an error in {where}: {added.message}")


def _added_mistake(before: Checked, after: Checked) -> Diagnostic | None:
    """A finding of a kind that is more frequent after a change, such as one of two names that are
    the same now."""
    known = Counter(one.code for one in before.diagnostics)
    for found in after.diagnostics:
        known[found.code] -= 1
        if known[found.code] < 0:
            return found
    return None


def _meaning(
    reading: ParsedFile, renamed: Collection[Span], name: str
) -> list[tuple[SymbolKind, str, tuple[int | str, ...]]]:
    """The target of each name in a file, regardless of positions."""
    before = occurrences(reading)
    numbers = {item.span: number for number, item in enumerate(before)}
    return [
        (
            item.kind,
            name if item.span in renamed else item.text,
            tuple(numbers.get(span, span.file) for span in item.definitions),
        )
        for item in before
    ]


_PROPOSAL = re.compile(r"did you mean ['`](?P<word>[^'`]+)['`]\?")
_SUGGESTED = re.compile(r'[\w.]+\Z|"[^"]*"\Z')


def proposed(diagnostic: Diagnostic, lines: Lines) -> Edit | None:
    """The edit that a diagnostic suggests for its own position; None if there is none."""
    proposal = _PROPOSAL.search(f"{diagnostic.label}\n{diagnostic.help or ''}")
    start, end = lines.stretch(diagnostic.span)
    guilty = lines.text[start:end]
    if proposal is None or not _SUGGESTED.match(guilty):
        return None
    word = proposal["word"]
    return Edit(diagnostic.span, f'"{word}"' if guilty.startswith('"') else word)
