"""Breaks tokens into lines: what does not fit is broken, the outermost group first.

This module is independent of the language: `format` creates the groups, and defines where they may
be broken. A group is laid out as in Wadler's "A prettier printer" (2003): flat if it fits,
otherwise broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

WIDTH = 100
INDENT = 4


class Break(Enum):
    """Where a line break is possible: `FITTING` breaks if its group does not fit on one line."""

    NEVER = "never"
    FITTING = "fitting"
    ALWAYS = "always"


class Blank(Enum):
    """The treatment of blank lines before the beginning of a line: several become one."""

    DROPPED = "dropped"
    KEPT = "kept"
    FORCED = "forced"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment before a token. A trailing one is on the same line as the preceding token."""

    text: str
    is_trailing: bool
    after_blank: bool


@dataclass(frozen=True, slots=True)
class Word:
    """A token, which is never broken, with the comments before it."""

    text: str
    comments: tuple[Comment, ...] = ()
    after_blank: bool = False

    @property
    def first(self) -> Word:
        return self

    @property
    def width(self) -> int:
        return len(self.text)

    @property
    def head(self) -> int:
        return len(self.text)

    @property
    def is_breakable(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a group, and how it follows the previous one: after spaces, or on a new line.

    Its lines are indented `depth` levels deeper than those of its group. The comments before a part
    that `closes` belong to the closed block, and are indented one level deeper.
    """

    content: Content
    blanks: int = 1
    breaks: Break = Break.NEVER
    depth: int = 0
    closes: bool = False
    blank: Blank = Blank.DROPPED


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Parts on one line if they fit; otherwise all optional breaks are taken.

    `width` is None if a forced break or a comment is between its parts. `head` is the width before
    the first possible break.
    """

    parts: tuple[Part, ...]
    first: Word
    width: int | None
    head: int
    is_breakable: bool


Content: TypeAlias = Word | LineGroup


def group(parts: Sequence[Part]) -> LineGroup:
    """The parts as a group; at least one is required."""
    content = parts[0].content
    width, head, is_breakable = content.width, content.head, content.is_breakable
    for part in parts[1:]:
        content = part.content
        if part.breaks is Break.ALWAYS or content.first.comments or content.width is None:
            width = None
        elif width is not None:
            width += part.blanks + content.width
        if not is_breakable and part.breaks is Break.NEVER:
            head += part.blanks + content.head
        is_breakable = is_breakable or part.breaks is not Break.NEVER or content.is_breakable
    return LineGroup(tuple(parts), parts[0].content.first, width, head, is_breakable)


def lay_out(content: Content) -> str:
    r"""The text of a whole file. Each line ends with `\n`, and none with a space."""
    writer = _LayoutWriter()
    writer.break_line(content.first, 0, 0, Blank.KEPT)
    writer.write(content, indent=0, tail=0)
    return writer.end()


class _LayoutWriter:
    """Holds the finished lines, and the pieces of the current one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.column = 0

    def write(self, content: Content, indent: int, tail: int) -> None:
        """Writes on the current line; `tail` is the width of what has to follow on the last one."""
        if isinstance(content, Word):
            self._put(content.text)
            return
        fits = content.width is not None and self.column + content.width + tail <= WIDTH
        tails = [tail] * len(content.parts) if fits else _tails(content.parts, tail)
        for number, part in enumerate(content.parts):
            if number:
                self._join(part, indent, is_broken=not fits and part.breaks is not Break.NEVER)
            self.write(part.content, indent + INDENT * part.depth, tails[number])

    def _join(self, part: Part, indent: int, *, is_broken: bool) -> None:
        """Writes the separator between a part and the previous one: spaces or a line break."""
        word = part.content.first
        if is_broken:
            indent += INDENT * part.depth
            self.break_line(word, indent, indent + INDENT * part.closes, part.blank)
        elif word.comments:
            self.break_line(word, indent + INDENT, indent + INDENT, Blank.DROPPED)
        else:
            self._put(" " * part.blanks)

    def break_line(self, word: Word, indent: int, comment_indent: int, blank: Blank) -> None:
        """Begins a line for a token, with its comments before it; a trailing one ends the previous
        line."""
        comments = list(word.comments)
        if comments and comments[0].is_trailing:
            self._put(f"  {comments.pop(0).text}")
        blanks = [comment.after_blank for comment in comments] + [word.after_blank]
        if blank is Blank.FORCED and not any(blanks):
            blanks[0] = True
        for comment, has_blank in zip(comments, blanks, strict=False):
            self._start_line(comment_indent, has_blank and blank is not Blank.DROPPED)
            self._put(comment.text)
        self._start_line(indent, blanks[-1] and blank is not Blank.DROPPED)

    def end(self) -> str:
        self._start_line(0, has_blank=False)
        return "".join(f"{line}\n" for line in self.lines)

    def _start_line(self, indent: int, has_blank: bool) -> None:
        line = "".join(self.line)
        if line.strip():  # nothing is written before the first token, and the last may be empty
            self.lines.append(line)
        if has_blank:
            self.lines.append("")
        self.line, self.column = [" " * indent], indent

    def _put(self, text: str) -> None:
        self.line.append(text)
        self.column += len(text)


def _tails(parts: Sequence[Part], tail: int) -> list[int]:
    """For each part of a broken group, the width of what follows it up to the next break."""
    tails = []
    for part in reversed(parts):
        tails.append(tail)
        content = part.content
        if part.breaks is not Break.NEVER:
            tail = 0
        else:
            tail = part.blanks + content.head + (0 if content.is_breakable else tail)
    return tails[::-1]
