"""Source text to syntax tree. Every syntax error of a file is reported, and the rest is parsed.

After an error the parser skips to the next statement, drops the broken one from its stack and
continues, so that one typo gives one diagnostic.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.moments import check_day
from dqx_airflow.dql.nodes import File, Suite
from dqx_airflow.dql.syntax.grammar import (
    LINE_KEYWORDS,
    begins_line,
    gc_paused,
    grammar,
    is_line_start,
)
from dqx_airflow.dql.syntax.recovery import (
    OUTERMOST,
    close_file,
    end_outside,
    expected_terminals,
    is_outside_suite,
    mend_keyword,
    skip_to_next_statement,
)
from dqx_airflow.dql.syntax.source_file import LARGEST_FILE, MOST_WORDS, no_text, too_large_file
from dqx_airflow.dql.syntax.syntax_errors import (
    DEEPEST_NESTING,
    MOST_OPERATORS,
    MOST_SYNTAX_ERRORS,
    syntax_error,
    too_deep,
    too_large,
    too_many,
)
from dqx_airflow.dql.syntax.tree_builder import build_file, span_of
from dqx_airflow.values import SourceFile, Span

DEEPEST_STACK = 700
"""The maximum depth of the parser's stack, which grows with every form of nesting."""

_OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "AND", "OR", "NOT", "IF", "THEN"})
_NUMBERS = frozenset({"NUMBER", "PERCENT", "FACTOR"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_STARTERS = frozenset(
    {"AT", "ASSERT", "CHECK", "PROFILE", "CONST", "AVAILABILITY_THRESHOLD"}
    | {"MACRO", "USE", "WATCH", "FOR", "IMPORT", "EXPORT"}
    | {"TYPE", "FROM", "TO", "DISABLE", "SCALE", "DOWNGRADE"}
)
_REST_OF_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The tree of a file as far as it could be parsed; None if nothing could.

    `is_whole` is set if no statement is missing from the tree. `broken` are the parsed ranges of
    statements with a syntax error: half a statement may be in the tree.
    """

    file: File | None
    diagnostics: tuple[Diagnostic, ...]
    broken: tuple[Span, ...] = ()
    is_whole: bool = True

    @property
    def suite(self) -> Suite | None:
        return self.file.suite if self.file else None


@gc_paused()
def parse(source: SourceFile) -> Parsed:
    """The syntax tree of a suite file, and all its syntax errors in source order."""
    unreadable = _unreadable(source)
    if unreadable:
        return Parsed(None, (unreadable,))
    run = _FileParser(source)
    tree = run.tree()
    file = build_file(tree, source.name) if tree is not None else None
    return Parsed(file, tuple(run.diagnostics), tuple(run.broken), run.is_whole)


def tokens(source: SourceFile) -> Iterator[Token]:
    """The tokens of a file as far as it is valid, with keywords and names distinguished by
    position."""
    parser = grammar().parse_interactive(source.text)
    try:
        for token in parser.lexer_thread.lex(parser.parser_state):
            yield token
            parser.feed_token(token)
    except UnexpectedInput:
        return


def concrete_tree(source: SourceFile) -> tuple[Tree[Token] | None, tuple[Diagnostic, ...]]:
    """Lark's tree of a file with every token in it, or all the syntax errors of the file."""
    unreadable = _unreadable(source)
    if unreadable:
        return None, (unreadable,)
    run = _FileParser(source, seen=deque())
    tree = run.tree()
    if run.diagnostics or tree is None or run.seen is None:
        return None, tuple(run.diagnostics)
    return _with_tokens(tree, run.seen), ()


def _with_tokens(tree: Tree[Token], seen: deque[Token]) -> Tree[Token]:
    """The tree with the keywords and punctuation that lark drops, taken from the front of
    `seen`."""
    children: list[Tree[Token] | Token] = []
    for child in tree.children:
        if isinstance(child, Tree):
            while (seen[0].start_pos or 0) < child.meta.start_pos:
                children.append(seen.popleft())
            children.append(_with_tokens(child, seen))
    while seen and (seen[0].start_pos or 0) < tree.meta.end_pos:
        children.append(seen.popleft())
    return Tree(tree.data, children)


def _unreadable(source: SourceFile) -> Diagnostic | None:
    if len(source.text) > LARGEST_FILE:
        return too_large_file(source.name)
    if "\0" in source.text:
        return no_text(source.name)
    if not re.sub(r"#[^\n]*", "", source.text).strip("\ufeff \t\r\n"):
        return Diagnostic(
            "the file has no suite",
            Span(source.name, 1, 1, 1, 2),
            code="E008",
            help='write suite "Name" { check "Name" on dataset { assert num_rows() > 0 } }',
        )
    return None


class _FileParser:
    """Feeds the tokens of a file to lark's parser, and collects the mistakes on the way.

    `seen` collects all tokens, if requested.
    """

    def __init__(self, source: SourceFile, seen: deque[Token] | None = None) -> None:
        self.source = source
        self.seen = seen
        self.diagnostics: list[Diagnostic] = []
        self.broken: list[Span] = []
        self.is_whole = True
        # A byte order mark is not part of the text; a space instead keeps columns correct.
        marked = source.text.startswith("\ufeff")
        self._text = source.text.replace("\ufeff", " ", 1) if marked else source.text
        self._parser = grammar().parse_interactive(self._text)
        self._started: Token | None = None
        self._depth = self._operators = self._words = 0

    def tree(self) -> Tree[Token] | None:
        """The tree of what could be parsed; None if nothing could."""
        ended: _Ended | None = None
        while ended is None:
            try:
                if not self._feed_all():
                    return None
                # Without a position, whatever the end of the file closes would have no end.
                whole: Tree[Token] = self._parser.feed_eof(self._end())
                return whole
            except UnexpectedInput as error:
                ended = self._recover(error)
            except _TooDeepError as error:
                self.is_whole = False
                self.diagnostics.append(too_deep(error.token, self.source.name))
                ended = self._leave_statement(error.token.start_pos or 0)
        return ended.tree

    def _recover(self, error: UnexpectedInput) -> _Ended | None:
        """Reports an error, and continues after it; returns how parsing ended if it cannot."""
        expected = expected_terminals(self._parser)
        position = error.pos_in_stream or 0
        is_outside = "$END" in expected or is_outside_suite(self._parser)
        # If an earlier error has spoiled the count of braces, that one is enough.
        if not (is_outside and self.diagnostics and self._text.startswith("}", position)):
            self.diagnostics.append(syntax_error(error, expected, self.source))
        token = error.token if isinstance(error, UnexpectedToken) else None
        if token is not None and self._mends_keyword(token, expected):
            return None
        self.is_whole = False
        if is_outside:
            if self._skip(position, OUTERMOST):
                return None
            return _Ended(end_outside(self._parser))
        is_end = token is not None and token.type == "$END"
        if "RBRACE" in expected and (is_end or is_line_start(position, self._text)):
            self._started = None  # the previous statement is complete
        if token is not None and is_end:
            self._mark_broken()
            return _Ended(close_file(self._parser, token))
        return self._leave_statement(position)

    def _leave_statement(self, position: int) -> _Ended | None:
        """Continues at the statement after a broken one; parsing ends if there is none."""
        self._mark_broken()
        return None if self._skip(position) else _Ended(None)

    def _feed_all(self) -> bool:
        """Passes the rest of the tokens to the parser; False if there are too many."""
        for token in self._parser.lexer_thread.lex(self._parser.parser_state):
            self._feed(token)
            self._words += 1
            if self._words > MOST_WORDS:
                self.diagnostics.append(too_large_file(self.source.name, f"{MOST_WORDS:,} words"))
                return False
        return True

    def _mends_keyword(self, token: Token, expected: set[str]) -> bool:
        """Continues with the keyword that a misspelled token stands for; False if there is none."""
        mended = mend_keyword(self._parser, self._text, token, expected)
        if mended is None:
            return False
        self._begin_statement(mended)
        return True

    def _end(self) -> Token:
        """The end of the text, as an empty token."""
        read = self._text.rstrip()
        line, column = read.count("\n") + 1, len(read) - read.rfind("\n")
        return Token("$END", "", len(read), line, column, line, column, len(read))

    def _feed(self, token: Token) -> None:
        """Passes a token to the parser.

        :raises UnexpectedInput: it cannot follow.
        :raises _TooDeepError: the statement is nested too deeply.
        """
        rest = _REST_OF_WORD.match(self._text, token.end_pos or 0)
        if rest and _REST_OF_WORD.match(token[-1]):
            # A part of a word: the lexer takes `too` for `to` and `größe` for `gr`.
            raise UnexpectedToken(_whole_word(token, rest[0]), set())
        if token.type == "IDENT" and token in LINE_KEYWORDS and begins_line(token, self._text):
            # The lexer took a keyword for a name: the previous statement is incomplete.
            raise UnexpectedToken(token, set())
        self._parser.feed_token(token)
        if self.seen is not None:
            self.seen.append(token)
        if token.type in _STARTERS:
            self._started = token
            self._operators = 0
        elif token.type == "RBRACE":
            self._started = None
        if token in _OPENING:
            self._depth += 1
        elif token in _CLOSING:
            self._depth -= 1
        if token.type in _OPERATORS:
            self._operators += 1
        is_deep = self._depth > DEEPEST_NESTING or self._operators > MOST_OPERATORS
        if is_deep or len(self._parser.parser_state.state_stack) > DEEPEST_STACK:
            raise _TooDeepError(token)
        if token.type in _NUMBERS and math.isinf(float(token.rstrip("%x").replace("_", ""))):
            self.diagnostics.append(too_large(token, self.source.name))
        if token.type == "DATE":
            no_day = check_day(token, span_of(token, self.source.name))
            if no_day is not None:
                self.diagnostics.append(no_day)

    def _begin_statement(self, started: Token | None) -> None:
        """Begins a statement: its first token, None if that is still to come."""
        self._started = started
        self._depth = self._operators = 0

    def _mark_broken(self) -> None:
        """Marks the current statement as broken up to the last error."""
        if self._started is not None:
            self.broken.append(_broken_span(self._started, self.diagnostics[-1].span))

    def _skip(self, position: int, words: frozenset[str] | None = None) -> bool:
        """Continues at the next statement; False if there is none, or there are too many errors."""
        self._begin_statement(None)
        if len(self.diagnostics) >= MOST_SYNTAX_ERRORS:
            self.diagnostics.append(too_many(self.diagnostics[-1].span))
            return False
        return skip_to_next_statement(self._parser, self._text, position, words)


def _whole_word(token: Token, rest: str) -> Token:
    """The token together with the rest of its word."""
    longer = Token.new_borrow_pos("IDENT", f"{token}{rest}", token)
    longer.end_column = (token.end_column or 1) + len(rest)
    return longer


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of parsing before the end of the text, with the tree up to there."""

    tree: Tree[Token] | None


class _TooDeepError(Exception):
    """An expression that would overflow the stack."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.token = token


def _broken_span(started: Token, error: Span) -> Span:
    """The range from the beginning of a statement to the error in it."""
    start = span_of(started, error.file)
    return Span(error.file, start.line, start.column, error.line, error.column)
