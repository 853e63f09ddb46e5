"""Source text to syntax tree. Every syntax error of a file is reported, and the rest is parsed.

After an error the parser skips to the next statement, drops the broken one from its stack and
goes on, so that one typo gives one diagnostic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import LineCounter
from lark.parsers.lalr_interactive_parser import InteractiveParser

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.build import build_suite, span_of
from dqx_airflow.dql.nodes import Suite
from dqx_airflow.values import SourceFile, Span

DEEPEST_NESTING = 100
"""Brackets may be nested this deeply: more is a mistake, or an attack on the stack."""
MOST_OPERATORS = 200
"""So many operators may stand in one statement, since each of them deepens the tree."""

_OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "AND", "OR", "NOT"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_STATEMENT = re.compile(
    r"""
      "(?:\\.|[^"\\\n])*"?                         # skipped whole: a brace in a string is no brace
    | \#[^\n]*
    | (?:(?<=\n)|(?<=\{)|(?<=\}))[ \t]*(?P<word>   # a statement begins a line or follows a brace
        (?:assert|check|profile|const|availability_threshold
          |type|from|to|disable|scale|downgrade)\b | @ )
    | (?P<brace>[{}])
    """,
    re.VERBOSE,
)
_RESERVED = frozenset({"assert", "check", "profile", "const"})
_PLAIN_NAMES = {
    "IDENT": "a name",
    "BACKTICKED": "a name in backticks",
    "TAG": "a tag",
    "STRING": "a text in quotes",
    "NUMBER": "a number",
    "PERCENT": "a percentage",
    "UNIT": "a unit of time",
    "DATE": "a date",
    "FACTOR": "a factor such as 2.0x",
    "COMPARATOR": "a comparison",
    "PLUS": "an operator",
    "MINUS": "an operator",
    "STAR": "an operator",
    "SLASH": "an operator",
    "$END": "the end of the file",
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The tree of a file as far as it could be read; None where there is no suite in it.

    With `diagnostics`, statements are missing from the tree.
    """

    suite: Suite | None
    diagnostics: tuple[Diagnostic, ...]


def parse(source: SourceFile) -> Parsed:
    """The syntax tree of a suite file, and all its syntax errors in source order."""
    unreadable = _unreadable(source)
    if unreadable:
        return Parsed(None, (unreadable,))
    diagnostics: list[Diagnostic] = []
    tree = _parse_with_recovery(source, diagnostics)
    suite = build_suite(tree, source.name) if tree is not None else None
    return Parsed(suite, tuple(diagnostics))


@cache
def _grammar() -> Lark:
    text = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True)


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


def _parse_with_recovery(source: SourceFile, diagnostics: list[Diagnostic]) -> Tree[Token] | None:
    # A byte order mark is no part of the text; a blank keeps the columns right.
    text = source.text.replace("\ufeff", " ", 1) if source.text[:1] == "\ufeff" else source.text
    parser = _grammar().parse_interactive(text)
    depth = operators = 0
    while True:
        try:
            for token in parser.lexer_thread.lex(parser.parser_state):
                if token.type == "IDENT" and token in _RESERVED and _begins_line(token, text):
                    # The lexer took a keyword for a name: the statement before is not finished.
                    raise UnexpectedToken(token, parser.accepts())
                parser.feed_token(token)
                depth += (token in _OPENING) - (token in _CLOSING)
                operators = 0 if token in _RESERVED else operators + (token.type in _OPERATORS)
                if depth > DEEPEST_NESTING or operators > MOST_OPERATORS:
                    diagnostics.append(_too_deep(token, source.name))
                    return None
            result: Tree[Token] = parser.feed_eof()
            return result
        except UnexpectedInput as error:
            diagnostics.append(_syntax_error(error, parser.accepts(), source))
            if not _skip_to_next_statement(parser, text, error):
                return None
            depth = operators = 0


def _skip_to_next_statement(parser: InteractiveParser, text: str, error: UnexpectedInput) -> bool:
    """Go on behind the broken statement; False where no statement follows that could be parsed."""
    state = parser.lexer_thread.state
    if state is None:
        return False
    state.last_token = None
    position = error.pos_in_stream
    if position is None:  # the end of the file: nothing follows
        return False
    if not text[text.rfind("\n", 0, position) + 1 : position].strip():
        # The guilty token begins its line, so a statement may begin with it.
        position = text.rfind("\n", 0, position) + 1
    opened = 0
    for found in _STATEMENT.finditer(text, position):
        word, brace = found["word"], found["brace"]
        if brace == "{":
            opened += 1
        elif brace == "}" and opened:
            opened -= 1
        elif (
            not opened and (word or brace) and found.start("word" if word else "brace") >= position
        ):
            start = found.start("word" if word else "brace")
            terminal = _terminal_of(word or brace)
            if _unwind(parser, terminal):
                _move_lexer(state.line_ctr, text, start)
                return True
    return False


def _move_lexer(counter: LineCounter, text: str, position: int) -> None:
    """Go on reading at `position`, which may lie before what the lexer has already read."""
    counter.char_pos = position
    counter.line = text.count("\n", 0, position) + 1
    counter.line_start_pos = text.rfind("\n", 0, position) + 1
    counter.column = position - counter.line_start_pos + 1


def _unwind(parser: InteractiveParser, terminal: str) -> bool:
    """Drop what is half parsed, back to the innermost place where `terminal` may stand."""
    states, values = parser.parser_state.state_stack, parser.parser_state.value_stack
    table = parser.parser_state.parse_conf.parse_table.states
    while states:
        # The table alone is not enough: its lookaheads are those of several contexts merged.
        if terminal in table[states[-1]] and terminal in parser.accepts():
            return True
        states.pop()
        if values:
            values.pop()
    return False


@cache
def _terminal_of(text: str) -> str:
    for terminal in _grammar().terminals:
        if terminal.pattern.type == "str" and terminal.pattern.value == text:
            return terminal.name
    raise KeyError(text)


@cache
def _spelling(terminal: str) -> str:
    """How a terminal is shown to people: a keyword as it is typed, others in words."""
    if terminal in _PLAIN_NAMES:
        return _PLAIN_NAMES[terminal]
    for known in _grammar().terminals:
        if known.name == terminal:
            return f"`{known.pattern.value}`"
    return terminal


def _begins_line(token: Token, text: str) -> bool:
    start = token.start_pos or 0
    return not text[text.rfind("\n", 0, start) + 1 : start].strip()


def _syntax_error(error: UnexpectedInput, expected: set[str], source: SourceFile) -> Diagnostic:
    if isinstance(error, UnexpectedToken):
        token = error.token
        if token.type == "$END":
            return _unfinished(source, expected)
        span = span_of(token, source.name)
        return Diagnostic(
            f"unexpected `{token}`", span, code="E007", help=_expectation(str(token), expected)
        )
    assert isinstance(error, UnexpectedCharacters)
    position = error.pos_in_stream or 0
    rest = source.text[position:].split("\n", 1)[0]
    word = (re.match(r"[\w.]+|.", rest) or [" "])[0]
    span = Span(source.name, error.line, error.column, error.line, error.column + len(word))
    if word == '"':
        closed = Span(source.name, error.line, error.column, error.line, error.column + len(rest))
        return Diagnostic("this text is not closed", closed, code="E007", help='add a `"`')
    return Diagnostic(f"unexpected `{word}`", span, code="E007", help=_expectation(word, expected))


def _unfinished(source: SourceFile, expected: set[str]) -> Diagnostic:
    lines = source.text.rstrip().split("\n")
    last = Span(source.name, len(lines), max(len(lines[-1]), 1), len(lines), len(lines[-1]) + 1)
    return Diagnostic("the file ends too early", last, code="E007", help=_expectation("", expected))


def _too_deep(token: Token, file: str) -> Diagnostic:
    return Diagnostic(
        f"more than {DEEPEST_NESTING} nested brackets or {MOST_OPERATORS} operators in a statement",
        span_of(token, file),
        code="E014",
        help="split the expression",
    )


def _expectation(word: str, expected: set[str]) -> str:
    """What may stand there; the nearest keyword alone where `word` looks like a typo of it."""
    spellings = sorted({_spelling(terminal) for terminal in expected})
    keywords = [spelling.strip("`") for spelling in spellings if spelling.startswith("`")]
    near = get_close_matches(word, keywords, n=1, cutoff=0.7)
    if near:
        return f"did you mean `{near[0]}`?"
    if len(spellings) == 1:
        return f"expected {spellings[0]}"
    return f"expected one of {', '.join(spellings)}" if spellings else "remove it"
