"""Diagnostics as text for a terminal, in the form of seed 001."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from unicodedata import combining, east_asian_width

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level
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
    hidden = []
    for level in Level:
        count = left_out.count(level)
        if count:
            hidden.append(f"{count:,} more {level.value}{'s' if count > 1 else ''}")
    return [listed[index] for index in kept], f"... and {' and '.join(hidden)}"


def _draw_one(diagnostic: Diagnostic, sources: Mapping[str, Sequence[str]], colour: bool) -> str:
    """A diagnostic with the lines of its spans, its notes and its help."""

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
    file = span.file
    excerpt_above = ""
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
