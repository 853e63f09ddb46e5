"""Renames a definition of a suite, and all references to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.editor.occurrences import Occurrence, SymbolKind, occurrence_at, occurrences
from dqx_airflow.editor.parsed_file import ParsedFile, read
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile, Span

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
    same = [
        item
        for item in occurrences(reading)
        if item.kind is occurrence.kind and set(item.definitions) & set(occurrence.definitions)
    ]
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
    """Raises if a file would have another meaning after the edits."""

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
    if _meaning(reading, renamed, name) != _meaning(read(after, reader), frozenset(), name):
        where = Path(reading.name).name
        raise RequestError(f"'{name}' already has another meaning in {where}")


def _meaning(
    reading: ParsedFile, renamed: Collection[Span], name: str
) -> list[tuple[SymbolKind, str, tuple[int | str, ...]]]:
    """What each name of a file refers to, regardless of positions."""
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
