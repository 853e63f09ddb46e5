"""The location of a call in the user's Python, as spans that diagnostics can underline."""

from __future__ import annotations

import linecache
import re
import sys
from dataclasses import dataclass
from itertools import islice
from types import FrameType

from dqx_airflow.values import Span

_OURS = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call: its span, and the text there; empty if it is unknown, as at a prompt."""

    span: Span
    text: str

    def of(self, part: str) -> Span:
        """The span of a word or literal within the call; the whole call if that is ambiguous."""
        starts = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", self.text)]
        return self._stretch(starts[0], part) if part and len(starts) == 1 else self.span

    def start_of(self, text: str) -> tuple[int, int] | None:
        """Line and column of a string literal within the call; None if that is ambiguous."""
        if not text or self.text.count(text) != 1:
            return None
        span = self._stretch(self.text.index(text), text)
        return span.line, span.column

    def _stretch(self, start: int, text: str) -> Span:
        line, column = self._position(start)
        end_line, end_column = self._position(start + len(text))
        return Span(self.span.file, line, column, end_line, end_column)

    def _position(self, index: int) -> tuple[int, int]:
        before = self.text[:index]
        breaks = before.count("\n")
        column = len(before) - (before.rfind("\n") + 1) + 1
        return self.span.line + breaks, column if breaks else self.span.column + index


def caller_site() -> CallSite:
    """The location of the user's call into this package.

    From Python 3.11 on it is the exact call, before that the line on which it begins.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is None:
        return CallSite(Span("<python>", 1, 1, 1, 2), "")
    file = frame.f_code.co_filename
    lines = linecache.getlines(file, frame.f_globals)
    span = _call_span(frame, file, lines) or _line_span(frame.f_lineno, file, lines)
    return CallSite(span, _text_at(span, lines))


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(_OURS)


def source_of(file: str) -> str:
    """The text of a Python file; empty if it is unknown."""
    return "".join(linecache.getlines(file))


def _call_span(frame: FrameType, file: str, lines: list[str]) -> Span | None:
    """The span of the current instruction of a frame; None if Python does not keep it."""
    if sys.version_info < (3, 11):
        return None
    at = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, start, end = at
    if line is None or end_line is None or start is None or end is None or end_line > len(lines):
        return None
    return Span(
        file, line, _column(lines[line - 1], start), end_line, _column(lines[end_line - 1], end)
    )


def _column(line: str, offset: int) -> int:
    """Python counts in bytes of UTF-8 from 0, spans in characters from 1."""
    return len(line.encode()[:offset].decode(errors="replace")) + 1


def _line_span(line: int, file: str, lines: list[str]) -> Span:
    text = lines[line - 1].rstrip() if 0 < line <= len(lines) else ""
    start = len(text) - len(text.lstrip()) + 1
    return Span(file, line, start, line, max(len(text) + 1, start + 1))


def _text_at(span: Span, lines: list[str]) -> str:
    """The text of a span."""
    if span.end_line > len(lines):
        return ""
    spanned = lines[span.line - 1 : span.end_line]
    spanned[-1] = spanned[-1][: span.end_column - 1]
    spanned[0] = spanned[0][span.column - 1 :]
    return "".join(spanned)
