"""The canonical text of a file: one layout for each program, with every comment in its place.

The formatter rewrites the tokens of a file and changes only the space between them. So it keeps the
order of statements, the spelling of numbers, and what the tree does not contain, such as a repeated
modifier. There are two exceptions: redundant parentheses are removed, and `+/-` and `±` become
`tolerance`. A new rule of the grammar needs no code here, unless its tokens are separated by more
than single spaces.

Tokens are laid out as in Wadler's "A prettier printer" (2003): a group is flat if it fits,
otherwise it is broken, the outermost group first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import takewhile
from typing import TypeAlias

from lark import Token, Tree

from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.dql.printer import Rung
from dqx_airflow.dql.syntax.grammar import LINE_KEYWORDS, gc_paused, grammar, is_line_start
from dqx_airflow.dql.syntax.parser import concrete_tree
from dqx_airflow.dql.syntax.source_file import is_block_file
from dqx_airflow.values import SourceFile

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


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a group, and how it follows the previous one: after spaces, or on a new line.

    Its lines are indented `depth` levels deeper than the lines of its group. The comments before a
    part that `closes` belong to the closed block, and are indented one level deeper.
    """

    content: LineGroup
    blanks: int = 1
    breaks: Break = Break.NEVER
    depth: int = 0
    closes: bool = False
    blank: Blank = Blank.DROPPED


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Parts on one line if they fit; otherwise all optional breaks are taken. A word has no parts.

    `width` is None if a forced break or a comment is between its parts. `head` is the width before
    the first possible break.
    """

    parts: tuple[Part, ...]
    first: Word
    width: int | None
    head: int
    is_breakable: bool


def alone(word: Word) -> LineGroup:
    """A word as a group."""
    return LineGroup((), word, len(word.text), len(word.text), False)


def group(parts: Sequence[Part]) -> LineGroup:
    """The parts as a group; at least one is required."""
    content = parts[0].content
    width = content.width
    head = content.head
    is_breakable = content.is_breakable
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


def lay_out(content: LineGroup) -> str:
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

    def write(self, content: LineGroup, indent: int, tail: int) -> None:
        """Writes on the current line; `tail` is the width of what has to follow on the last one."""
        if not content.parts:
            self._put(content.first.text)
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
        self.line = [" " * indent]
        self.column = indent

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


Written: TypeAlias = Tree[Token] | Token

_BLOCKS = frozenset({"suite", "check", "macro", "loop", "profile", "any_of", "all_of"})
_WITH_BLOCKS = frozenset({"any_of", "all_of", "if_then"})
_OF_CLAIM = frozenset({"tolerance_modifier", "where", "for_each", "for_share"})
_PLACEHOLDERS = frozenset({"placeholder", "parameter_placeholder"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_GLUES_BEHIND, _GLUES_BEFORE = frozenset({".", "@"}), frozenset({",", ".", ":", "..."})
_OTHER_SPELLINGS = {"+/-": "tolerance", "±": "tolerance"}
_COMMENT = re.compile(r"#[^\n]*")

_CHAINS = {"disjunction": Rung.OR, "conjunction": Rung.AND, "arithmetic": Rung.SUM}
_RUNGS = {**_CHAINS, "negation": Rung.NOT, "negative": Rung.SIGN}
_RUNGS |= dict.fromkeys(("number", "percent", "duration", "day", "text"), Rung.ATOM)
_RUNGS |= dict.fromkeys(("true", "false", "null"), Rung.ATOM)
_RUNGS |= dict.fromkeys(("name", "call", "placeholder", "parenthesis"), Rung.ATOM)
_ASKED_FOR = {"negation": Rung.NOT, "negative": Rung.SIGN}
_ASKED_FOR |= dict.fromkeys(("each_row", "share_of_rows", "where", "parenthesis"), Rung.OR)
_ASKED_FOR |= dict.fromkeys(("call", "use", "listing"), Rung.OR)


@gc_paused()
def format_source(source: SourceFile) -> str:
    """The canonical text of a suite file or a library file.

    It has the same tree as the source, and formatting it again changes nothing. Lines are broken at
    100 columns if possible. A block file, which contains SQL in the user's layout, stays as it is.

    :raises SourceError: the file has syntax errors; other errors do not matter here.
    """
    if is_block_file(source.text):
        return source.text
    tree, diagnostics = concrete_tree(source)
    if tree is None:
        raise drawn_error(diagnostics, {source.name: source.text})
    return lay_out(_Formatter(source.text).file(tree))


class _Formatter:
    """Turns the tree into groups. It takes the tokens in order, and so finds the comments between
    them."""

    def __init__(self, text: str) -> None:
        # A byte order mark is removed; a space in its place keeps positions correct.
        self.text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
        self.position = 0
        # Nothing may come between a glued token and the previous one: comments move behind it.
        self.is_glued = False
        self.carried: tuple[Comment, ...] = ()

    def file(self, tree: Tree[Token]) -> LineGroup:
        items = self._statements(tree.children, depth=0)
        end = Word("", self._gap(len(self.text))[0])
        return group([*items, Part(alone(end), breaks=Break.ALWAYS, blank=Blank.KEPT)])

    def _content(self, written: Written) -> LineGroup:
        if isinstance(written, Token):
            return alone(self._word(written))
        if written.data in _BLOCKS:
            return self._block(written)
        if written.data in ("assertion", "part"):
            return self._assertion(written)
        if written.data in _CHAINS:
            return self._chain(written)
        return self._line(written.data, written.children)

    def _statements(self, items: Sequence[Written], depth: int) -> list[Part]:
        """The items of a block. A blank line between two is kept; some items require one."""
        parts: list[Part] = []
        for number, item in enumerate(items):
            is_apart = number > 0 and any(map(_is_set_apart, (items[number - 1], item)))
            blank = Blank.FORCED if is_apart else Blank.KEPT
            parts.append(Part(self._content(item), breaks=Break.ALWAYS, depth=depth, blank=blank))
        return parts

    def _block(self, tree: Tree[Token]) -> LineGroup:
        """The head with its brace, each item on lines of its own, the closing brace."""
        brace = next(number for number, child in enumerate(tree.children) if child == "{")
        above = [child for child in tree.children[:brace] if _rule(child) == "annotation"]
        lines = [Part(self._content(item), breaks=Break.ALWAYS) for item in above]
        head = self._line(tree.data, tree.children[len(above) : brace])
        self.is_glued = True
        opening = self._content(tree.children[brace])
        items = self._statements(tree.children[brace + 1 : -1], depth=1)
        closing = replace(self._word(_last(tree)), after_blank=False)
        parts = [*lines, Part(head, breaks=Break.ALWAYS), Part(opening), *items]
        if not items and not closing.comments:
            return group([*parts, Part(alone(closing), blanks=0)])
        end = Part(alone(closing), breaks=Break.ALWAYS, closes=True, blank=Blank.KEPT)
        return group([*parts, end])

    def _assertion(self, tree: Tree[Token]) -> LineGroup:
        """Annotations above the claim, modifiers below it; a part of the claim follows it, a filter
        on a separate line if necessary."""
        above, claim, below = _lines_of(tree)
        parts = [Part(self._content(item), breaks=Break.ALWAYS) for item in above]
        # A broken part of the claim is indented deeper than the modifiers.
        line = [
            Part(
                self._content(item),
                depth=int(_rule(item) not in _WITH_BLOCKS),
                breaks=Break.FITTING if _rule(item) == "where" else Break.NEVER,
            )
            for item in claim
        ]
        parts.append(Part(group(line), breaks=Break.ALWAYS))
        parts += [Part(self._content(item), breaks=Break.ALWAYS, depth=1) for item in below]
        return group(parts)

    def _chain(self, tree: Tree[Token]) -> LineGroup:
        """`a and b and c`, or a sum, or a product; if broken, each operator begins a line."""
        rung = _rung(tree)
        operands: list[tuple[Written, Written]] = []
        left: Written = tree
        while isinstance(left, Tree) and left.data in _CHAINS and _rung(left) == rung:
            left, operator, right = left.children
            operands.append((operator, _bare(right, rung + 1)))
            left = _bare(left, rung)
        parts = [Part(self._content(left), depth=1)]
        for operator, right in reversed(operands):
            step = group([Part(self._content(operator)), Part(self._content(right))])
            parts.append(Part(step, breaks=Break.FITTING, depth=1))
        return group(parts)

    def _line(self, rule: str, children: Sequence[Written]) -> LineGroup:
        """Tokens separated by spaces; if broken, each item of a list begins a line."""
        precedence = _ASKED_FOR.get(rule, Rung.SUM)
        parts: list[Part] = []
        before: Token | None = None
        for written in _spread(children):
            child = _bare(written, precedence)
            blanks = 0 if before is None else _blanks_between(before, _first(child), rule)
            breaks = Break.NEVER
            depth = 0
            closes = False
            if rule not in _PLACEHOLDERS and not _must_follow(_first(child)):
                if child in _CLOSING and before not in _OPENING:
                    breaks = Break.FITTING
                    closes = True
                elif before == "," or (before in _OPENING and child not in _CLOSING):
                    breaks = Break.FITTING
                    depth = 1
            self.is_glued = before is not None and not blanks and breaks is Break.NEVER
            parts.append(Part(self._content(child), blanks, breaks, depth, closes))
            before = _last(child)
        return group(parts)

    def _word(self, token: Token) -> Word:
        # `for each` is one token, including the space between the two words.
        text = _OTHER_SPELLINGS.get(
            token, " ".join(token.split()) if token.type == "FOR_EACH" else str(token)
        )
        is_glued = self.is_glued or _must_follow(token)
        comments, after_blank = self._gap(token.start_pos or 0)
        self.position = token.end_pos or 0
        self.is_glued = False
        if is_glued:
            self.carried = tuple(replace(comment, after_blank=False) for comment in comments)
            return Word(text)
        self.carried = ()
        return Word(text, comments, after_blank)

    def _gap(self, end: int) -> tuple[tuple[Comment, ...], bool]:
        """The comments before a token, and whether a blank line precedes it directly.

        A blank line after an opening brace does not count.
        """
        comments = list(self.carried)
        is_opened = self.position == 0 or self.text[self.position - 1] == "{"
        for match in _COMMENT.finditer(self.text, self.position, end):
            is_trailing = not is_line_start(match.start(), self.text)
            after_blank = self._has_blank_line(match.start()) and not is_opened
            comments.append(Comment(match[0].rstrip(), is_trailing, after_blank))
            is_opened = is_opened and is_trailing
            self.position = match.end()
        return tuple(comments), self._has_blank_line(end) and not is_opened

    def _has_blank_line(self, end: int) -> bool:
        return self.text.count("\n", self.position, end) > 1


def _rule(written: Written) -> str:
    return "" if isinstance(written, Token) else str(written.data)


def _must_follow(token: Token) -> bool:
    """True for a name that would be a keyword at the beginning of a line."""
    return token.type == "IDENT" and token in LINE_KEYWORDS


def _is_set_apart(written: Written) -> bool:
    """True for an item that always takes several lines, and is separated by blank lines."""
    if isinstance(written, Token):
        return False
    if written.data == "exported":
        return _is_set_apart(written.children[1])
    if written.data == "assertion":
        above, _, below = _lines_of(written)
        return bool(above or below)
    return written.data in _BLOCKS


def _lines_of(assertion: Tree[Token]) -> tuple[list[Written], list[Written], list[Written]]:
    """The annotations, then `assert` with its complete claim, then the modifiers."""
    above = [child for child in assertion.children if _rule(child) == "annotation"]
    rest = assertion.children[len(above) :]
    behind = takewhile(lambda item: _rule(item) in _OF_CLAIM, rest[2:])
    claim = 2 + len(list(behind))
    return above, rest[:claim], rest[claim:]


def _first(written: Written, at: int = 0) -> Token:
    while isinstance(written, Tree):
        written = written.children[at]
    return written


def _last(written: Written) -> Token:
    return _first(written, -1)


def _spread(children: Sequence[Written]) -> Iterator[Written]:
    """The children, with the parameters of a macro one by one."""
    for child in children:
        if isinstance(child, Tree) and child.data == "parameters":
            yield from child.children
        else:
            yield child


def _rung(written: Written) -> int:
    if isinstance(written, Token):
        return Rung.ATOM
    if written.data == "arithmetic" and written.children[1] in ("*", "/"):
        return Rung.PRODUCT
    return _RUNGS.get(written.data, Rung.TEST)


def _bare(written: Written, precedence: int) -> Written:
    """The content of redundant parentheses, if its precedence allows removing them.

    A name that is also a keyword keeps its parentheses: without them it could be read as the
    keyword.
    """
    while isinstance(written, Tree) and written.data == "parenthesis":
        inner = written.children[1]
        first = _first(inner)
        if _rung(inner) < precedence or (first.type == "IDENT" and first in _keywords()):
            break
        written = inner
    return written


@cache
def _keywords() -> frozenset[str]:
    patterns = [terminal.pattern for terminal in grammar().terminals]
    return frozenset(pattern.value for pattern in patterns if pattern.type == "str")


def _blanks_between(before: Token, after: Token, rule: str) -> int:
    """The number of spaces between two tokens of a rule on the same line."""
    if before in _GLUES_BEHIND or after in _GLUES_BEFORE:
        return 0
    if before in _OPENING or after in _CLOSING:
        return int(rule == "import_names")
    if after == "(" and before.type == "IDENT":
        return 0
    if (rule == "annotation" and "=" in (before, after)) or rule == "negative":
        return 0
    if rule == "profile_end":
        return 3  # as wide as `from` in the line above
    return 1
