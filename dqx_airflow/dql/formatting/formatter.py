"""The canonical text of a file: one layout for each program, with every comment in its place.

The formatter rewrites the tokens of a file and changes only the space between them. So it keeps the
order of statements, the spelling of numbers, and what the tree does not contain, such as a repeated
modifier. There are two exceptions: redundant parentheses are removed, and `+/-` and `±` become
`tolerance`. A new rule of the grammar needs no code here, unless its tokens are separated by more
than single spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import TypeAlias

from lark import Token, Tree

from dqx_airflow.diagnostics.text import draw
from dqx_airflow.dql.formatting.layout import (
    Blank,
    Break,
    Comment,
    Content,
    LineGroup,
    Part,
    Word,
    group,
    lay_out,
)
from dqx_airflow.dql.precedence import Rung
from dqx_airflow.dql.syntax.datalex_blocks import is_block_file
from dqx_airflow.dql.syntax.gc_pause import gc_paused
from dqx_airflow.dql.syntax.grammar import LINE_KEYWORDS, grammar, is_line_start
from dqx_airflow.dql.syntax.parser import concrete_tree
from dqx_airflow.errors import SourceError
from dqx_airflow.values import SourceFile

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
        raise SourceError(draw(diagnostics, {source.name: source.text}), diagnostics=diagnostics)
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
        return group([*items, Part(end, breaks=Break.ALWAYS, blank=Blank.KEPT)])

    def _content(self, written: Written) -> Content:
        if isinstance(written, Token):
            return self._word(written)
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
            return group([*parts, Part(closing, blanks=0)])
        return group([*parts, Part(closing, breaks=Break.ALWAYS, closes=True, blank=Blank.KEPT)])

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
            breaks, depth, closes = Break.NEVER, 0, False
            if rule not in _PLACEHOLDERS and not _must_follow(_first(child)):
                if child in _CLOSING and before not in _OPENING:
                    breaks, closes = Break.FITTING, True
                elif before == "," or (before in _OPENING and child not in _CLOSING):
                    breaks, depth = Break.FITTING, 1
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
        self.position, self.is_glued = token.end_pos or 0, False
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


def _first(written: Written) -> Token:
    while isinstance(written, Tree):
        written = written.children[0]
    return written


def _last(written: Written) -> Token:
    while isinstance(written, Tree):
        written = written.children[-1]
    return written


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
