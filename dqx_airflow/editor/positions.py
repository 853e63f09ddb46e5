"""Positions in a text: offsets, the spans of the parser, and the positions of an editor.

An offset counts characters. A span counts lines and columns from 1, and only a line feed ends a
line. A position counts from 0, a carriage return ends lines too, and characters are UTF-16 code
units, unless the editor has agreed on something else: an emoji counts as two.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from dqx_airflow.values import Span

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
