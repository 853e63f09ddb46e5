"""The diagnostics of syntax errors: the unexpected part, and what to write instead."""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.dql.annotations import MODIFIERS, modifier_hint
from dqx_airflow.dql.syntax.grammar import LINE_KEYWORDS, begins_line, grammar
from dqx_airflow.dql.syntax.tree_builder import span_of
from dqx_airflow.values import SourceFile, Span

DEEPEST_NESTING = 100
"""The maximum nesting of brackets: more is a mistake, or an attack on the stack."""

MOST_OPERATORS = 200
"""The maximum number of operators in one statement; each of them deepens the tree."""

MOST_SYNTAX_ERRORS = 10_000
"""After this many errors the parser gives up: the file is no suite."""

NEAR = 0.7
"""The minimum similarity between a word and a keyword to take it for a typo, from 0 to 1."""

LONGEST_KEYWORD = 40
"""No keyword is longer, so this much of a word is enough to compare."""

_LOOKED_BACK = 80
"""The number of characters before an error that are searched for what was meant."""

_BRACKET = re.compile(r"[{}()]|#[^\n]*|`[^`\n]*`|" + r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
"""A bracket, or what may contain one that does not count: a comment, a name, a string."""

_MODIFIER = re.compile(r"\b(name|severity|tags)\s*\Z")
"""A modifier before an error: it was read as a name, since something is missing before it."""

_AFTER_CLAIMS = frozenset({"assert", "name", "severity", "tags", "}"})
"""The tokens that may follow a claim and, like a comparison, are never inside its parentheses."""

_SELDOM = frozenset({"LBRACE", "DOT"})

_OTHER_SPELLINGS = {"+/-": "tolerance", "±": "tolerance"}


@cache
def _table(columns: int) -> list[list[str]]:
    """The rows of `unexpected.txt` with this number of columns."""
    lines = files(__package__).joinpath("unexpected.txt").read_text("utf-8").splitlines()
    rows = (line.split(" | ") for line in lines)
    return [row for row in rows if len(row) == columns]


def syntax_error(error: UnexpectedInput, expected: set[str], source: SourceFile) -> Diagnostic:
    """The diagnostic of an error of the parser.

    :param expected: the terminals that may come there.
    """
    if isinstance(error, UnexpectedToken):
        if error.token.type == "$END":
            return _unfinished(source, expected)
        return _unexpected_token(error.token, expected, source)
    assert isinstance(error, UnexpectedCharacters)
    return _unexpected_characters(error, expected, source)


def _unexpected_token(token: Token, expected: set[str], source: SourceFile) -> Diagnostic:
    before, rest = _line_around(source.text, token.start_pos or 0)
    help_line = _sign_elsewhere(before, rest, expected) or _expectation(str(token), expected)
    if token in LINE_KEYWORDS and "RBRACE" in expected and begins_line(token, source.text):
        help_line = "add a `}` before it"
    elif not token.isascii() and "BACKTICKED" in expected:
        help_line = f"write `{token}`, in backticks"
    related: tuple[Related, ...] = ()
    follows = token in _AFTER_CLAIMS or token.type == "COMPARATOR"
    if (follows and "RPAR" in expected) or _MODIFIER.search(before):
        opened = _unclosed("(", ")", source, token.start_pos)
        if opened is not None:
            help_line = "add a `)`"
            related = (Related(opened, "this `(` is not closed"),)
    span = span_of(token, source.name)
    message = f"unexpected `{token}`"
    return Diagnostic(message, span, code="E007", related=related, help=help_line)


def _unexpected_characters(
    error: UnexpectedCharacters, expected: set[str], source: SourceFile
) -> Diagnostic:
    """The diagnostic of characters that begin no token."""
    position = error.pos_in_stream or 0
    before, rest = _line_around(source.text, position)
    word = (re.match(r"[\w.]+|.", rest) or [" "])[0]
    span = Span(source.name, error.line, error.column, error.line, error.column + len(word))
    whole = Span(source.name, error.line, error.column, error.line, error.column + len(rest))
    if word == '"':
        return Diagnostic("unclosed string", whole, code="E007", help='add a `"`')
    if rest.startswith("``"):
        return Diagnostic("empty name", span, code="E007", help="write it, or remove it")
    if word == "`":
        help_line = "close it with a backtick"
        return Diagnostic("unclosed name", whole, code="E007", help=help_line)
    help_line = _sign_elsewhere(before, rest, expected) or _expectation(word, expected)
    if not word.isascii():
        help_line = _foreign(word[0]) or help_line
    return Diagnostic(f"unexpected `{word}`", span, code="E007", help=help_line)


def _sign_elsewhere(before: str, rest: str, expected: set[str]) -> str | None:
    """The message about a position where the parser cannot continue.

    :param before: the text of the line up to there.
    :param rest: the text of the line from there.
    :param expected: the terminals that may come there.
    """
    modifiers = (["any", rf"@{word}\b[^)]*", "", modifier_hint(word)] for word in MODIFIERS)
    for terminal, earlier, following, hint in (*modifiers, *_table(4)):
        is_possible = terminal in ("any", *expected)
        if is_possible and re.match(following, rest) and re.search(rf"(?:{earlier})\Z", before):
            return hint
    return None


def _line_around(text: str, position: int) -> tuple[str, str]:
    """The line of a position: the text directly before it, and the rest."""
    start, end = text.rfind("\n", 0, position) + 1, text.find("\n", position)
    return text[max(start, position - _LOOKED_BACK) : position], text[
        position : None if end < 0 else end
    ].rstrip("\r")


def _foreign(character: str) -> str | None:
    """The hint for a character that only looks like one of the language."""
    name = unicodedata.name(character, "")
    plain = {"Zs": "a space", "Cf": "nothing", "Pi": '`"`', "Pf": '`"`', "Pd": "`-`"}
    instead = plain.get(unicodedata.category(character))
    return f"this character is {name}: write {instead} instead" if instead and name else None


def _unfinished(source: SourceFile, expected: set[str]) -> Diagnostic:
    lines = source.text.rstrip().split("\n")
    last = Span(source.name, len(lines), max(len(lines[-1]), 1), len(lines), len(lines[-1]) + 1)
    brace = _unclosed("{", "}", source) if "RBRACE" in expected else None
    related = (Related(brace, "this `{` is not closed"),) if brace else ()
    help_line = "add a `}`" if brace else _expectation("", expected)
    return Diagnostic("unexpected end of file", last, code="E007", related=related, help=help_line)


def _unclosed(
    opening: str, closing: str, source: SourceFile, end: int | None = None
) -> Span | None:
    """The last opening bracket without a closing one.

    :param end: searches only the assertion that contains this position, up to there.
    """
    opened: list[int] = []
    start = 0 if end is None else source.text.rfind("assert", 0, end) + 1
    for match in _BRACKET.finditer(source.text, start, len(source.text) if end is None else end):
        if match[0] == opening:
            opened.append(match.start())
        elif match[0] == closing and opened:
            opened.pop()
    if not opened:
        return None
    before = source.text[: opened[-1]]
    line, column = before.count("\n") + 1, opened[-1] - (before.rfind("\n") + 1) + 1
    return Span(source.name, line, column, line, column + 1)


def too_deep(token: Token, file: str) -> Diagnostic:
    message = (
        f"more than {DEEPEST_NESTING} nested brackets or {MOST_OPERATORS} operators in a statement"
    )
    return Diagnostic(message, span_of(token, file), code="E014", help="split the expression")


def too_large(token: Token, file: str) -> Diagnostic:
    message = "number too large"
    return Diagnostic(
        message, span_of(token, file), code="E107", help="the largest number is 1.8e308"
    )


def too_many(last: Span) -> Diagnostic:
    message = f"more than {MOST_SYNTAX_ERRORS:,} syntax errors: the rest of the file was not read"
    return Diagnostic(message, last, code="E007", help="is this a suite?")


def _expectation(word: str, expected: set[str]) -> str:
    """The expected tokens in words; only the nearest keyword if `word` looks like a typo of it."""
    if "MINUS" in expected and "PLUS" not in expected:
        expected = expected - {"MINUS"}  # a sign, not an operator
    if len(expected) > 1:
        expected = expected - _SELDOM - {"AT"}
    spellings = sorted({_spelling(terminal) for terminal in expected})
    keywords = [spelling.strip("`") for spelling in spellings if spelling.startswith("`")]
    near = get_close_matches(word[:LONGEST_KEYWORD].lower(), keywords, n=1, cutoff=NEAR)
    if word == "=" and "COMPARATOR" in expected:
        near = ["=="]
    if word == "%" and "STAR" in expected:
        return "write `5%`, without a space"
    if near:
        return f"did you mean `{near[0]}`?"
    if len(spellings) == 1:
        return f"expected {spellings[0]}"
    return f"expected one of {', '.join(spellings)}" if spellings else "remove it"


@cache
def _spelling(terminal: str) -> str:
    """A terminal as displayed: a keyword as it is typed, others in words."""
    for terminals, words in _table(2):
        if terminal in terminals.split():
            return words
    for definition in grammar().terminals:
        if definition.name == terminal:
            return f"`{_OTHER_SPELLINGS.get(definition.pattern.value, definition.pattern.value)}`"
    return terminal
