"""Draws diagnostics for a terminal, the way seed 001 shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level
from dqx_airflow.values import Span

_RESET, _BOLD, _RED, _YELLOW, _BLUE = "\033[0m", "\033[1m", "\033[31m", "\033[33m", "\033[34m"
_COLOUR = {Level.ERROR: _RED, Level.WARNING: _YELLOW}
_WIDEST_EXCERPT = 160


def draw(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], *, colour: bool = False
) -> str:
    """The diagnostics as text, a blank line between two of them.

    :param sources: the text of each file, by the name that the spans use. A file that is not
        there is shown without an excerpt.
    """
    return "\n\n".join(_draw_one(diagnostic, sources, colour) for diagnostic in diagnostics)


def _draw_one(diagnostic: Diagnostic, sources: Mapping[str, str], colour: bool) -> str:
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
        + paint(f": {diagnostic.message}", _BOLD),
        paint(" " * gutter + "-->", _BLUE) + f" {printable(span.file)}:{span.line}:{span.column}",
        bar,
    ]
    file = span.file
    for place, label, caret, shade in marks:
        if place.file != file:
            file = place.file
            lines.append(paint(" " * gutter + "::>", _BLUE) + f" {printable(file)}:{place.line}")
        excerpt = _line(sources.get(place.file), place.line)
        if excerpt is None:
            if label:
                lines.append(
                    f"{bar} {printable(label)} ({printable(place.file)}:{place.line}:{place.column})"
                )
            continue
        shown, underline = _underline(excerpt, place, caret)
        lines.append(paint(f"{place.line:>{gutter}} |", _BLUE) + f" {shown}")
        lines.append(f"{bar} {underline[0]}" + paint(f"{underline[1]} {label}".rstrip(), shade))
    if diagnostic.notes or diagnostic.help:
        lines.append(bar)
    equals = " " * gutter + " ="
    lines += [
        f"{paint(equals, _BLUE)} {name}: {printable(text)}" for name, text in diagnostic.notes
    ]
    if diagnostic.help:
        lines.append(f"{paint(equals, _BLUE)} {paint('help', _BOLD)}: {printable(diagnostic.help)}")
    return "\n".join(lines)


def _line(text: str | None, number: int) -> str | None:
    """Line `number` of `text` (from 1), the empty line at its end included."""
    if text is None:
        return None
    lines = text.split("\n")
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else None


def _underline(excerpt: str, place: Span, caret: str) -> tuple[str, tuple[str, str]]:
    """The line as shown, and below it the blanks and the carets. Long lines are cut around it."""
    start = min(place.column - 1, len(excerpt))
    end = place.end_column - 1 if place.end_line == place.line else len(excerpt.rstrip())
    end = max(end, start + 1)
    first = 0
    if len(excerpt) > _WIDEST_EXCERPT and start > _WIDEST_EXCERPT // 2:
        first = start - _WIDEST_EXCERPT // 2
    shown = printable(excerpt[first : first + _WIDEST_EXCERPT])
    width = min(end, first + _WIDEST_EXCERPT) - start
    return shown.rstrip(), (" " * (start - first), caret * max(width, 1))


def printable(text: str) -> str:
    """The text, one character for each: none of them moves the carets or steers a terminal."""
    return "".join(
        character
        if character.isprintable()
        else " "
        if character == "\t"
        else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )
