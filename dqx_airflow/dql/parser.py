"""Source text to syntax tree. Every syntax error of a file is reported, and the rest is parsed.

After an error the parser skips to the next statement, drops the broken one from its stack and
goes on, so that one typo gives one diagnostic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.build import build_file, span_of
from dqx_airflow.dql.language import RESERVED, begins_line, grammar, is_line_start
from dqx_airflow.dql.nodes import File, Suite
from dqx_airflow.dql.recovery import (
    OUTERMOST,
    close_file,
    expected_terminals,
    skip_to_next_statement,
)
from dqx_airflow.dql.syntax_errors import (
    DEEPEST_NESTING,
    MOST_OPERATORS,
    syntax_error,
    too_deep,
    too_large,
)
from dqx_airflow.values import SourceFile, Span

_OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "AND", "OR", "NOT"})
_NUMBERS = frozenset({"NUMBER", "PERCENT", "FACTOR"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_STARTERS = frozenset(
    {"AT", "ASSERT", "CHECK", "PROFILE", "CONST", "AVAILABILITY_THRESHOLD"}
    | {"MACRO", "USE", "FOR", "IMPORT", "EXPORT"}
    | {"TYPE", "FROM", "TO", "DISABLE", "SCALE", "DOWNGRADE"}
)
_REST_OF_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The tree of a file as far as it could be read; None where nothing of it could.

    With `diagnostics`, statements are missing from the tree. `broken` are the stretches that were
    read of statements with a syntax error: half a statement may be in the tree.
    """

    file: File | None
    diagnostics: tuple[Diagnostic, ...]
    broken: tuple[Span, ...] = ()

    @property
    def suite(self) -> Suite | None:
        return self.file.suite if self.file else None


def parse(source: SourceFile) -> Parsed:
    """The syntax tree of a suite file, and all its syntax errors in source order."""
    unreadable = _unreadable(source)
    if unreadable:
        return Parsed(None, (unreadable,))
    diagnostics: list[Diagnostic] = []
    broken: list[Span] = []
    tree = _parse_with_recovery(source, diagnostics, broken)
    file = build_file(tree, source.name) if tree is not None else None
    return Parsed(file, tuple(diagnostics), tuple(broken))


def _unreadable(source: SourceFile) -> Diagnostic | None:
    first = Span(source.name, 1, 1, 1, 2)
    if "\0" in source.text:
        return Diagnostic(
            "this is not a text file", first, code="E010", help="a suite is a UTF-8 text file"
        )
    if not re.sub(r"#[^\n]*", "", source.text).strip("\ufeff \t\r\n"):
        return Diagnostic(
            "the file holds no suite",
            first,
            code="E008",
            help='write suite "Name" { check "Name" on dataset { assert num_rows() > 0 } }',
        )
    return None


def _parse_with_recovery(
    source: SourceFile, diagnostics: list[Diagnostic], broken: list[Span]
) -> Tree[Token] | None:
    # A byte order mark is no part of the text; a blank keeps the columns right.
    text = source.text.replace("\ufeff", " ", 1) if source.text[:1] == "\ufeff" else source.text
    parser = grammar().parse_interactive(text)
    depth = operators = 0
    started: Token | None = None
    while True:
        try:
            for token in parser.lexer_thread.lex(parser.parser_state):
                rest = _REST_OF_WORD.match(text, token.end_pos or 0)
                if rest and _REST_OF_WORD.match(token[-1]):
                    # Half a word: the lexer takes `too` for `to` and `größe` for `gr`.
                    raise UnexpectedToken(_longer(token, rest[0]), set())
                if token.type == "IDENT" and token in RESERVED and begins_line(token, text):
                    # The lexer took a keyword for a name: the statement before is not finished.
                    raise UnexpectedToken(token, set())
                parser.feed_token(token)
                if token.type in _STARTERS:
                    started, operators = token, 0
                elif token.type == "RBRACE":
                    started = None
                depth += (token in _OPENING) - (token in _CLOSING)
                operators += token.type in _OPERATORS
                if depth > DEEPEST_NESTING or operators > MOST_OPERATORS:
                    raise _TooDeepError(token)
                if _is_too_large(token):
                    diagnostics.append(too_large(token, source.name))
            result: Tree[Token] = parser.feed_eof()
            return result
        except UnexpectedInput as error:
            expected = expected_terminals(parser)
            position = error.pos_in_stream
            if "$END" in expected:
                # With the braces miscounted after an earlier error, that one is enough.
                if not diagnostics or text[position or 0 :][:1] != "}":
                    diagnostics.append(syntax_error(error, expected, source))
                if skip_to_next_statement(parser, text, position or 0, OUTERMOST):
                    depth = operators = 0
                    started = None
                    continue
                last: Tree[Token] = parser.feed_eof()
                return last
            diagnostics.append(syntax_error(error, expected, source))
            if "RBRACE" in expected and is_line_start(position or 0, text):
                started = None  # the statement before is complete
            if isinstance(error, UnexpectedToken) and error.token.type == "$END":
                if started is not None:
                    broken.append(_stretch(started, diagnostics[-1].span))
                return close_file(parser, error.token)
        except _TooDeepError as error:
            position = error.token.start_pos
            diagnostics.append(too_deep(error.token, source.name))
        if started is not None:
            broken.append(_stretch(started, diagnostics[-1].span))
        if position is None or not skip_to_next_statement(parser, text, position):
            return None
        depth = operators = 0
        started = None


def _longer(token: Token, rest: str) -> Token:
    """The token together with the rest of its word."""
    longer = Token.new_borrow_pos("IDENT", f"{token}{rest}", token)
    longer.end_column = (token.end_column or 1) + len(rest)
    return longer


class _TooDeepError(Exception):
    """An expression that the stack would not hold."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.token = token


def _stretch(started: Token, error: Span) -> Span:
    """What lies between the beginning of a statement and the error in it."""
    start = span_of(started, error.file)
    return Span(error.file, start.line, start.column, error.line, error.column)


def _is_too_large(token: Token) -> bool:
    return token.type in _NUMBERS and math.isinf(float(token.rstrip("%x").replace("_", "")))


def tokens(source: SourceFile) -> Iterator[Token]:
    """The tokens of a file as far as it is sound, keywords told from names by their place."""
    parser = grammar().parse_interactive(source.text)
    try:
        for token in parser.lexer_thread.lex(parser.parser_state):
            yield token
            parser.feed_token(token)
    except UnexpectedInput:
        return
