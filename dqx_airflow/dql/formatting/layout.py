"""Words into lines: what does not fit on one line is broken, the outermost group first.

Nothing here knows the language: `format` makes the groups, and says where they may be broken. A
group is laid out as in Wadler's "A prettier printer" (2003): flat where it fits, else broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

WIDTH = 100
INDENT = 4


class Break(Enum):
    """Where a new line may begin: `FITTING` breaks if its group does not fit on one line."""

    NEVER = "never"
    FITTING = "fitting"
    ALWAYS = "always"


class Blank(Enum):
    """What becomes of the blank lines that stood before what begins a line: one is left of many."""

    DROPPED = "dropped"
    KEPT = "kept"
    FORCED = "forced"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment before a word. A trailing one shares its line with what stands before it."""

    text: str
    is_trailing: bool
    after_blank: bool


@dataclass(frozen=True, slots=True)
class Word:
    """What is never broken, with the comments that stand before it."""

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
    """A part of a group, and how it follows the one before: behind blanks, or on a new line.

    Its lines stand `depth` levels deeper than those of its group. The comments before a part that
    `closes` belong to what it closes, and stand a level deeper than it.
    """

    content: Content
    blanks: int = 1
    breaks: Break = Break.NEVER
    depth: int = 0
    closes: bool = False
    blank: Blank = Blank.DROPPED


@dataclass(frozen=True, slots=True)
class Group:
    """Parts that stand on one line where they fit; otherwise all break that may break.

    `width` is None where a forced break or a comment lies between its parts. `head` is the width
    of what stands before the first place that may be broken.
    """

    parts: tuple[Part, ...]
    first: Word
    width: int | None
    head: int
    is_breakable: bool


Content: TypeAlias = Word | Group


def group(parts: Sequence[Part]) -> Group:
    """The parts as a group; at least one is needed."""
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
    return Group(tuple(parts), parts[0].content.first, width, head, is_breakable)


def lay_out(content: Content) -> str:
    """The text of a whole file. Each line ends with `\\n`, and none with a blank."""
    writer = _LayoutWriter()
    writer.break_line(content.first, 0, 0, Blank.KEPT)
    writer.write(content, indent=0, tail=0)
    return writer.end()


class _LayoutWriter:
    """Holds the lines that are done, and the pieces of the current one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.column = 0

    def write(self, content: Content, indent: int, tail: int) -> None:
        """Write on the current line; `tail` is the width of what has to follow on the last one."""
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
        """Put between a part and the one before it what belongs there: blanks or a line end."""
        word = part.content.first
        if is_broken:
            indent += INDENT * part.depth
            self.break_line(word, indent, indent + INDENT * part.closes, part.blank)
        elif word.comments:
            self.break_line(word, indent + INDENT, indent + INDENT, Blank.DROPPED)
        else:
            self._put(" " * part.blanks)

    def break_line(self, word: Word, indent: int, comment_indent: int, blank: Blank) -> None:
        """Begin a line for a word, its comments before it: a trailing one ends the line before."""
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
        if line.strip():  # nothing is written before the first word, and the last may be empty
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
