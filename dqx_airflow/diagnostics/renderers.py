"""Diagnostics as text for a terminal, in the form of seed 001, and for programs.

Programs get JSON, GitHub workflow commands (annotations next to the lines of a pull request), or
SARIF 2.1.0 (for code hosts and editors).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from unicodedata import combining, east_asian_width

from dqx_airflow import __version__
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level, page, reason, title
from dqx_airflow.errors import SourceError
from dqx_airflow.values import Span

_RESET, _BOLD, _RED, _YELLOW, _BLUE = "\033[0m", "\033[1m", "\033[31m", "\033[33m", "\033[34m"
_COLOUR = {Level.ERROR: _RED, Level.WARNING: _YELLOW}
_WIDEST_EXCERPT = 160
_LONGEST_MESSAGE = 400

MOST_SHOWN = 100
"""The maximum number of findings in text output, which counts the others; JSON has all."""


def draw(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], *, colour: bool = False
) -> str:
    """The diagnostics as text, separated by blank lines; of many the first, see `first_findings`.

    :param sources: the text of each file, by the name in the spans. A missing or empty file is
        displayed without an excerpt.
    """
    lines = {
        # A space for a byte order mark keeps the columns aligned.
        name: (f" {text[1:]}" if text.startswith("\ufeff") else text).split("\n")
        for name, text in sources.items()
        if text
    }
    kept, rest = first_findings(diagnostics)
    drawn = [_draw_one(diagnostic, lines, colour) for diagnostic in kept]
    return "\n\n".join([*drawn, rest] if rest else drawn)


def drawn_error(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> SourceError:
    """The error of sources with these diagnostics, drawn."""
    found = tuple(diagnostics)
    return SourceError(draw(found, sources), diagnostics=found)


def first_findings(diagnostics: Iterable[Diagnostic]) -> tuple[list[Diagnostic], str]:
    """The first findings, errors before warnings, in their order; and the number of the others."""
    listed = list(diagnostics)
    if len(listed) <= MOST_SHOWN:
        return listed, ""
    ranked = sorted(range(len(listed)), key=lambda index: listed[index].level is Level.WARNING)
    kept = sorted(ranked[:MOST_SHOWN])
    left_out = [listed[index].level for index in ranked[MOST_SHOWN:]]
    counts = [(left_out.count(level), level.value) for level in Level]
    hidden = [f"{count:,} more {name}{'s' * (count > 1)}" for count, name in counts if count]
    return [listed[index] for index in kept], f"... and {' and '.join(hidden)}"


def _draw_one(diagnostic: Diagnostic, sources: Mapping[str, Sequence[str]], colour: bool) -> str:
    def paint(text: str, *codes: str) -> str:
        text = printable(text)
        return f"{''.join(codes)}{text}{_RESET}" if colour and text else text

    level = diagnostic.level
    code = f"[{diagnostic.code}]" if diagnostic.code else ""
    span = diagnostic.span
    marks = [(related.span, related.label, "-", _BLUE) for related in diagnostic.related]
    marks.append((span, diagnostic.label, "^", _COLOUR[level]))
    marks.sort(key=lambda mark: (mark[0].file != span.file, mark[0].file, mark[0].line))
    gutter = len(str(max(mark[0].line for mark in marks)))
    bar = paint(" " * gutter + " |", _BLUE)
    lines = [
        paint(f"{level.value}{code}", _BOLD, _COLOUR[level])
        + paint(f": {_short(diagnostic.message)}", _BOLD),
        paint(" " * gutter + "-->", _BLUE) + f" {printable(span.file)}:{span.line}:{span.column}",
        bar,
    ]
    file, excerpt_above = span.file, ""
    for place, label, caret, shade in marks:
        if place.file != file:
            file = place.file
            lines.append(paint(" " * gutter + "::>", _BLUE) + f" {printable(file)}:{place.line}")
        excerpt = _line(sources.get(place.file), place.line)
        if excerpt is None:
            if label:
                where = f"{place.file}:{place.line}:{place.column}"
                lines.append(f"{bar} {printable(f'{label} ({where})')}")
            continue
        shown, underline = _underline(excerpt, place, caret)
        numbered = paint(f"{place.line:>{gutter}} |", _BLUE) + f" {shown}"
        if numbered != excerpt_above:
            lines.append(numbered)
        excerpt_above = numbered
        lines.append(f"{bar} {underline[0]}" + paint(f"{underline[1]} {label}".rstrip(), shade))
    if (diagnostic.notes or diagnostic.help) and lines[-1] != bar:
        lines.append(bar)
    equals = " " * gutter + " ="
    lines += [
        f"{paint(equals, _BLUE)} {name}: {printable(text)}" for name, text in diagnostic.notes
    ]
    if diagnostic.help:
        lines.append(
            f"{paint(equals, _BLUE)} {paint('help', _BOLD)}: {printable(_short(diagnostic.help))}"
        )
    return "\n".join(lines)


def _line(lines: Sequence[str] | None, number: int) -> str | None:
    """Line `number` (from 1), including the empty line at the end of a text."""
    if lines is None or not 0 < number <= len(lines):
        return None
    return lines[number - 1].rstrip("\r")


def _underline(excerpt: str, place: Span, caret: str) -> tuple[str, tuple[str, str]]:
    """The line as displayed, and below it the spaces and the carets. A long line is truncated
    around it."""
    start = min(place.column - 1, len(excerpt))
    end = place.end_column - 1 if place.end_line == place.line else len(excerpt.rstrip())
    end = max(end, start + 1)
    first = 0
    if len(excerpt) > _WIDEST_EXCERPT and start > _WIDEST_EXCERPT // 2:
        first = start - _WIDEST_EXCERPT // 2
    shown = printable(excerpt[first : first + _WIDEST_EXCERPT])
    blanks = _cells(shown[: start - first])
    width = _cells(shown[start - first : end - first]) or 1
    return shown.rstrip(), (" " * blanks, caret * width)


def _cells(text: str) -> int:
    """The number of terminal columns of a text: two for an emoji, none for an accent."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."


def printable(text: str) -> str:
    """The text with characters that would move carets or control a terminal replaced one by one."""
    return without_controls(text.replace("\t", " "))


def without_controls(text: str, keep: str = "", instead: str = "\N{REPLACEMENT CHARACTER}") -> str:
    """Replaces each invisible character by `instead`, except for the characters in `keep`."""
    return "".join(sign if sign.isprintable() or sign in keep else instead for sign in text)


_STEERING = re.compile(
    r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def json_text(value: Any, *, default: Callable[[Any], Any] | None = None) -> str:
    """The value as JSON: letters unchanged, control and bidirectional characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=default)
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_list(diagnostics: Iterable[Diagnostic]) -> str:
    """An array of objects with `level`, `code`, `message`, `span`, `label`, `related`, `help`."""
    return json_text(
        [{"level": diagnostic.level.value, **asdict(diagnostic)} for diagnostic in diagnostics]
    )


def github_annotations(diagnostics: Iterable[Diagnostic]) -> str:
    """One workflow command on each line."""
    return "\n".join(_annotation(diagnostic) for diagnostic in diagnostics)


def _annotation(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    properties = {
        "file": span.file,
        "line": span.line,
        "endLine": span.end_line,
        "col": span.column,
        "endColumn": span.end_column,
        "title": diagnostic.code or diagnostic.level.value,
    }
    fields = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    parts = [diagnostic.message, diagnostic.label, diagnostic.help and f"help: {diagnostic.help}"]
    message = _data("\n".join(part for part in parts if part))
    return f"::{diagnostic.level.value} {fields}::{message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(diagnostics: Iterable[Diagnostic]) -> str:
    """A SARIF log with one run; its rules are the codes that occur."""
    listed = list(diagnostics)
    codes = sorted({diagnostic.code for diagnostic in listed if diagnostic.code})
    driver = {"name": "dql", "version": __version__, "rules": [_rule(code) for code in codes]}
    results = [_result(diagnostic) for diagnostic in listed]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str) -> dict[str, Any]:
    return {
        "id": code,
        "shortDescription": {"text": title(code)},
        "fullDescription": {"text": reason(code)},
        "help": {"text": page(code), "markdown": page(code)},
    }


def _result(diagnostic: Diagnostic) -> dict[str, Any]:
    text = diagnostic.message + (f"\nhelp: {diagnostic.help}" if diagnostic.help else "")
    result: dict[str, Any] = {
        "ruleId": diagnostic.code or diagnostic.level.value,
        "level": diagnostic.level.value,
        "message": {"text": text},
        "locations": [_location(diagnostic.span)],
    }
    if diagnostic.related:
        result["relatedLocations"] = [
            {**_location(related.span), "message": {"text": related.label}}
            for related in diagnostic.related
        ]
    return result


def _location(span: Span) -> dict[str, Any]:
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
    uri = span.file.replace("\\", "/")
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


FOR_MACHINES = {"json": json_list, "github": github_annotations, "sarif": sarif_log}
"""The formats of diagnostics that programs read."""
