"""The text about the word under the mouse."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from dqx_airflow.dql.callables import IN_ROWS, MEASURES, Called
from dqx_airflow.dql.printer import show_assertion, show_constant, show_macro_head
from dqx_airflow.editor import vocabulary
from dqx_airflow.editor.catalog import Catalog
from dqx_airflow.editor.occurrences import Occurrence, SymbolKind, occurrence_at
from dqx_airflow.editor.parsed_file import ParsedFile
from dqx_airflow.values import Span

_WORD = re.compile(r"[a-zA-Z_]\w*")

_MOST_SHOWN = 10
"""The maximum number of assertions of a macro, or of columns of a dataset, in one hover."""


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown for a range of the text."""

    start: int
    end: int
    markdown: str


def hover(reading: ParsedFile, offset: int, catalog: Catalog) -> Hover | None:
    """The hover for the word at an offset; None if there is none."""
    occurrence = occurrence_at(reading, offset)
    if occurrence is not None:
        markdown = _about(occurrence, reading, catalog)
        start, end = reading.lines.stretch(occurrence.span)
        return Hover(start, end, markdown) if markdown else None
    return _word(reading, offset)


def _word(reading: ParsedFile, offset: int) -> Hover | None:
    """A keyword, or a call in an invalid statement."""
    text = reading.source.text
    near = reading.nearby(offset)
    line = text.rfind("\n", 0, offset) + 1
    for match in _WORD.finditer(text, line):
        if match.start() > offset:
            break
        if offset <= match.end() and vocabulary.quoted_around(text, match.start() + 1) is None:
            word = match[0]
            start, end = match.span()
            if word in vocabulary.place_at(near.text, start - near.shift).words:
                return Hover(start, end, f"`{word}`\n\n{vocabulary.KEYWORDS[word]}")
            if word in MEASURES and text[end : end + 1] == "(":
                return Hover(start, end, _called(MEASURES[word]))
    return None


def _about(occurrence: Occurrence, reading: ParsedFile, catalog: Catalog) -> str:
    """The text about an occurrence of a name."""
    match occurrence.kind:
        case SymbolKind.CALL:
            return _called(MEASURES[occurrence.text])
        case SymbolKind.ROW_CALL:
            return _called(IN_ROWS[occurrence.text])
        case SymbolKind.ANNOTATION:
            meaning = vocabulary.ANNOTATIONS.get(occurrence.text)
            return f"`@{occurrence.text}`\n\n{meaning}" if meaning else ""
        case SymbolKind.CONSTANT:
            return _constant(occurrence, reading)
        case SymbolKind.MACRO:
            return _macro(occurrence, reading)
        case SymbolKind.PARAMETER:
            return f"```dql\n{{{occurrence.text}}}\n```\n\nparameter of the macro"
        case SymbolKind.DATASET:
            return _dataset(occurrence.text, catalog)
        case SymbolKind.COLUMN:
            return _column(occurrence, catalog)
        case SymbolKind.ITEM:
            return f"`{occurrence.text}` of `{occurrence.array}`"
        case SymbolKind.PATH:
            return "".join(f"the file `{_path(span, reading)}`" for span in occurrence.definitions)
        case SymbolKind.ALIAS:
            return "".join(_place(span, reading) for span in occurrence.definitions)
    return ""


def _called(called: Called) -> str:
    parts = [f"```dql\n{called.signature}\n```", called.doc]
    if called.parameters:
        named = ", ".join(f"`{name}`" for name in called.parameters)
        parts.append(f"Parameters: {named}.")
    if called.example:
        parts.append(f"```dql\n{called.example}\n```")
    return "\n\n".join(parts)


def _constant(occurrence: Occurrence, reading: ParsedFile) -> str:
    constants = (*reading.file.all_constants, *reading.scope.constants.values())
    constant = next(
        (constant for constant in constants if constant.name.span in occurrence.definitions), None
    )
    if constant is None:
        return ""
    text = f"```dql\nconst {occurrence.text} = {show_constant(constant)}\n```"
    return f"{text}\n\n{_place(constant.name.span, reading)}"


def _macro(occurrence: Occurrence, reading: ParsedFile) -> str:
    macros = (defined.macro for defined in reading.scope.macros.values())
    macro = next((macro for macro in macros if macro.name.span in occurrence.definitions), None)
    if macro is None:
        return ""
    parts = [f"```dql\nmacro {show_macro_head(macro)}\n```", _place(macro.name.span, reading)]
    assertions = reading.expand(occurrence.use) if occurrence.use else ()
    if assertions:
        lines = [
            line for assertion in assertions[:_MOST_SHOWN] for line in show_assertion(assertion)
        ]
        parts += ["Here it creates:", "```dql\n" + "\n".join(lines) + "\n```"]
    if len(assertions) > _MOST_SHOWN:
        parts.append(f"and {len(assertions) - _MOST_SHOWN} more")
    return "\n\n".join(parts)


def _dataset(name: str, catalog: Catalog) -> str:
    columns = catalog.columns(name)
    parts = [f"dataset `{name}`" + (f" at `{path}`" if (path := catalog.path(name)) else "")]
    listed = [f"- `{column.name}` {column.type}".rstrip() for column in columns[:_MOST_SHOWN]]
    if len(columns) > _MOST_SHOWN:
        listed.append(f"- and {len(columns) - _MOST_SHOWN} more")
    return "\n\n".join([*parts, "\n".join(listed)]) if listed else parts[0]


def _column(occurrence: Occurrence, catalog: Catalog) -> str:
    for dataset in occurrence.datasets:
        for column in catalog.columns(dataset):
            if column.name == occurrence.text:
                return f"column `{column.name}` of `{dataset}` {column.type}".rstrip()
    return ""


def _place(span: Span, reading: ParsedFile) -> str:
    """The location of a definition, relative to the file."""
    if span.file == reading.name:
        return f"defined in line {span.line}"
    return f"defined in `{_path(span, reading)}`, line {span.line}"


def _path(span: Span, reading: ParsedFile) -> str:
    return os.path.relpath(span.file, os.path.dirname(reading.name))
