"""Source text to syntax tree. Every syntax error of a file is reported, and the rest is parsed.

After an error the parser skips to the next statement, drops the broken one from its stack and
goes on, so that one typo gives one diagnostic.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import LineCounter
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_interactive_parser import InteractiveParser

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.build import build_file, span_of
from dqx_airflow.dql.nodes import File, Suite
from dqx_airflow.values import SourceFile, Span

DEEPEST_NESTING = 100
"""Brackets may be nested this deeply: more is a mistake, or an attack on the stack."""
MOST_OPERATORS = 200
"""So many operators may stand in one statement, since each of them deepens the tree."""

_OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "AND", "OR", "NOT"})
_NUMBERS = frozenset({"NUMBER", "PERCENT", "FACTOR"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_STATEMENT = re.compile(
    r"""
      "(?:\\.|[^"\\\n])*"?                         # skipped whole: a brace in a string is no brace
    | `[^`\n]*`? | \#[^\n]*
    | (?:(?<=\n)|(?<=\{)|(?<=\}))[ \t]*(?P<word>   # a statement begins a line or follows a brace
        (?:suite|assert|check|profile|const|macro|use|for|import|export|availability_threshold
          |type|from|to|disable|scale|downgrade)\b | @ )
    | (?P<brace>[{}])
    """,
    re.VERBOSE,
)
_STARTERS = frozenset(
    {"AT", "ASSERT", "CHECK", "PROFILE", "CONST", "AVAILABILITY_THRESHOLD"}
    | {"MACRO", "USE", "FOR", "IMPORT", "EXPORT"}
    | {"TYPE", "FROM", "TO", "DISABLE", "SCALE", "DOWNGRADE"}
)
_RESERVED = frozenset({"assert", "check", "profile", "const", "macro", "use"})
_OUTERMOST = frozenset({"suite", "import", "export"})
_REST_OF_WORD = re.compile(r"\w+")
_PLAIN_NAMES = {
    "IDENT": "a name",
    "BACKTICKED": "a name",
    "TAG": "a tag",
    "STRING": "a text in quotes",
    "NUMBER": "a number",
    "PERCENT": "a number",
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
_SELDOM = frozenset({"LBRACE", "DOT"})
_OTHER_SPELLINGS = {"@": "assert", "+/-": "tolerance", "±": "tolerance"}


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


def _parse_with_recovery(
    source: SourceFile, diagnostics: list[Diagnostic], broken: list[Span]
) -> Tree[Token] | None:
    # A byte order mark is no part of the text; a blank keeps the columns right.
    text = source.text.replace("\ufeff", " ", 1) if source.text[:1] == "\ufeff" else source.text
    parser = _grammar().parse_interactive(text)
    depth = operators = 0
    started: Token | None = None
    while True:
        try:
            for token in parser.lexer_thread.lex(parser.parser_state):
                rest = _REST_OF_WORD.match(text, token.end_pos or 0)
                if rest and _REST_OF_WORD.match(token[-1]):
                    # Half a word: the lexer takes `too` for `to` and `größe` for `gr`.
                    raise UnexpectedToken(_longer(token, rest[0]), set())
                if token.type == "IDENT" and token in _RESERVED and _begins_line(token, text):
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
                    diagnostics.append(_too_large(token, source.name))
            result: Tree[Token] = parser.feed_eof()
            return result
        except UnexpectedInput as error:
            expected = _expected(parser)
            position = error.pos_in_stream
            if "$END" in expected:
                # With the braces miscounted after an earlier error, that one is enough.
                if not diagnostics or text[position or 0 :][:1] != "}":
                    diagnostics.append(_syntax_error(error, expected, source))
                if _skip_to_next_statement(parser, text, position or 0, _OUTERMOST):
                    depth = operators = 0
                    started = None
                    continue
                last: Tree[Token] = parser.feed_eof()
                return last
            diagnostics.append(_syntax_error(error, expected, source))
            if "RBRACE" in expected and _is_line_start(position or 0, text):
                started = None  # the statement before is complete
            if isinstance(error, UnexpectedToken) and error.token.type == "$END":
                if started is not None:
                    broken.append(_stretch(started, diagnostics[-1].span))
                return _close(parser, error.token)
        except _TooDeepError as error:
            position = error.token.start_pos
            diagnostics.append(_too_deep(error.token, source.name))
        if started is not None:
            broken.append(_stretch(started, diagnostics[-1].span))
        if position is None or not _skip_to_next_statement(parser, text, position):
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


def _skip_to_next_statement(
    parser: InteractiveParser, text: str, position: int, words: frozenset[str] | None = None
) -> bool:
    """Go on behind the statement that is broken at `position`.

    False where no statement follows that could be parsed, or none that begins with `words`.
    """
    state = parser.lexer_thread.state
    if state is None:
        return False
    state.last_token = None
    if _is_line_start(position, text):
        # The guilty token begins its line, so a statement may begin with it.
        position = text.rfind("\n", 0, position) + 1
    opened = 0
    for found in _STATEMENT.finditer(text, position):
        word, brace = found["word"], found["brace"]
        if words is not None and word not in words:
            continue
        if brace == "{":
            opened += 1
        elif brace == "}" and opened:
            opened -= 1
        elif word == "suite" and len(parser.parser_state.state_stack) > 1:
            continue  # it would drop the suite that has been read
        elif not opened and (word or brace) and _unwind(parser, _terminal_of(word or brace)):
            _move_lexer(state.line_ctr, text, found.start("word" if word else "brace"))
            return True
    return False


def _close(parser: InteractiveParser, end: Token) -> Tree[Token] | None:
    """The tree of a file that ends too early, as if its braces were closed."""
    states, values = parser.parser_state.state_stack, parser.parser_state.value_stack
    shortest = len(states) + 1
    while _unwind(parser, "RBRACE"):
        if len(states) >= shortest:
            # This brace was closed, and more is missing behind it: it goes with what it is in.
            states.pop()
            if values:
                values.pop()
            continue
        shortest = len(states)
        parser.feed_token(Token.new_borrow_pos("RBRACE", "}", end))
        if "$END" in _expected(parser):
            result: Tree[Token] = parser.feed_eof(end)
            return result
    return None


def _move_lexer(counter: LineCounter, text: str, position: int) -> None:
    """Go on reading at `position`, which may lie before what the lexer has already read."""
    counter.char_pos = position
    counter.line = text.count("\n", 0, position) + 1
    counter.line_start_pos = text.rfind("\n", 0, position) + 1
    counter.column = position - counter.line_start_pos + 1


def _unwind(parser: InteractiveParser, terminal: str) -> bool:
    """Drop what is half parsed, back to the innermost place where `terminal` may stand."""
    states, values = parser.parser_state.state_stack, parser.parser_state.value_stack
    while states:
        if _may_follow(parser, terminal):
            return True
        states.pop()
        if values:
            values.pop()
    return False


def _expected(parser: InteractiveParser) -> set[str]:
    """The terminals that may stand next."""
    state = parser.parser_state
    row = state.parse_conf.parse_table.states[state.state_stack[-1]]
    return {name for name in row if name.isupper() and _may_follow(parser, name)}


def _may_follow(parser: InteractiveParser, terminal: str) -> bool:
    """True where the parser would take the terminal next, after the reductions that it brings.

    A row of the table alone does not tell: its lookaheads are those of several contexts merged.
    Lark's own `accepts` copies the whole parser for every terminal.
    """
    configuration = parser.parser_state.parse_conf
    table, stack = configuration.parse_table.states, list(parser.parser_state.state_stack)
    while terminal in table[stack[-1]]:
        action, target = table[stack[-1]][terminal]
        if action is Shift:
            return True
        if target.expansion:
            del stack[-len(target.expansion) :]
        stack.append(table[stack[-1]][target.origin.name][1])
        if terminal == "$END" and stack[-1] == configuration.end_state:
            return True
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
            return f"`{_OTHER_SPELLINGS.get(known.pattern.value, known.pattern.value)}`"
    return terminal


def _begins_line(token: Token, text: str) -> bool:
    return _is_line_start(token.start_pos or 0, text)


def _is_line_start(position: int, text: str) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


def _syntax_error(error: UnexpectedInput, expected: set[str], source: SourceFile) -> Diagnostic:
    if isinstance(error, UnexpectedToken):
        token = error.token
        if token.type == "$END":
            return _unfinished(source, expected)
        help_line = _expectation(str(token), expected)
        if token in _RESERVED and "RBRACE" in expected and _begins_line(token, source.text):
            help_line = "add a `}` before it"
        elif not token.isascii() and "BACKTICKED" in expected:
            help_line = f"write `{token}`, in backticks"
        return Diagnostic(
            f"unexpected `{token}`", span_of(token, source.name), code="E007", help=help_line
        )
    assert isinstance(error, UnexpectedCharacters)
    position = error.pos_in_stream or 0
    rest = source.text[position:].split("\n", 1)[0].rstrip("\r")
    word = (re.match(r"[\w.]+|.", rest) or [" "])[0]
    span = Span(source.name, error.line, error.column, error.line, error.column + len(word))
    whole = Span(source.name, error.line, error.column, error.line, error.column + len(rest))
    if word == '"':
        return Diagnostic("this text is not closed", whole, code="E007", help='add a `"`')
    if rest.startswith("``"):
        return Diagnostic("this name is empty", span, code="E007", help="write it, or remove it")
    if word == "`":
        help_line = "close it with a backtick"
        return Diagnostic("this name is not closed", whole, code="E007", help=help_line)
    help_line = _expectation(word, expected)
    if not word.isascii():
        help_line = _foreign(word[0]) or help_line
    return Diagnostic(f"unexpected `{word}`", span, code="E007", help=help_line)


def _foreign(character: str) -> str | None:
    """What to type for a character that only looks like one of ours."""
    name = unicodedata.name(character, "")
    plain = {"Zs": "a blank", "Cf": "nothing", "Pi": '`"`', "Pf": '`"`', "Pd": "`-`"}
    instead = plain.get(unicodedata.category(character))
    return f"this sign is called {name}: type {instead} in its place" if instead and name else None


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


def _is_too_large(token: Token) -> bool:
    return token.type in _NUMBERS and math.isinf(float(token.rstrip("%x").replace("_", "")))


def _too_large(token: Token, file: str) -> Diagnostic:
    message = "this number is too large"
    return Diagnostic(message, span_of(token, file), code="E107", help="numbers end at 1.8e308")


def _expectation(word: str, expected: set[str]) -> str:
    """What may stand there; the nearest keyword alone where `word` looks like a typo of it."""
    if "MINUS" in expected and "PLUS" not in expected:
        expected = expected - {"MINUS"}  # a sign, not an operator
    if len(expected) > 1:
        expected = expected - _SELDOM
    spellings = sorted({_spelling(terminal) for terminal in expected})
    keywords = [spelling.strip("`") for spelling in spellings if spelling.startswith("`")]
    near = get_close_matches(word, keywords, n=1, cutoff=0.7)
    if word == "=" and "COMPARATOR" in expected:
        near = ["=="]
    if near:
        return f"did you mean `{near[0]}`?"
    if len(spellings) == 1:
        return f"expected {spellings[0]}"
    return f"expected one of {', '.join(spellings)}" if spellings else "remove it"
