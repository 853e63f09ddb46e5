"""Source text to syntax tree. Every syntax error of a file is reported, and the rest is parsed.

After an error the parser skips to the next statement, drops the broken one from its stack and
continues, so that one typo gives one diagnostic.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import LineCounter
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_interactive_parser import InteractiveParser

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.dql.annotations import MODIFIERS, modifier_hint
from dqx_airflow.dql.moments import check_day
from dqx_airflow.dql.nodes import File, Suite
from dqx_airflow.dql.syntax.grammar import (
    LINE_KEYWORDS,
    begins_line,
    gc_paused,
    grammar,
    is_line_start,
)
from dqx_airflow.dql.syntax.source_file import LARGEST_FILE, MOST_WORDS, no_text, too_large_file
from dqx_airflow.dql.syntax.tree_builder import build_file, span_of
from dqx_airflow.values import SourceFile, Span

DEEPEST_NESTING = 100
"""The maximum nesting of brackets: more is a mistake, or an attack on the stack."""
MOST_OPERATORS = 200
"""The maximum number of operators in one statement; each of them deepens the tree."""
DEEPEST_STACK = 700
"""The maximum depth of the parser's stack, which grows with every form of nesting."""

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
    if isinstance(error, UnexpectedToken):
        token = error.token
        if token.type == "$END":
            return _unfinished(source, expected)
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
                help_line, related = "add a `)`", (Related(opened, "this `(` is not closed"),)
        span = span_of(token, source.name)
        message = f"unexpected `{token}`"
        return Diagnostic(message, span, code="E007", related=related, help=help_line)
    assert isinstance(error, UnexpectedCharacters)
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


_STATEMENT = re.compile(
    r"""
      "[^"\\\n]*(?:\\.[^"\\\n]*)*"?                # skipped whole: a brace in a text is no brace
    | `[^`\n]*`? | \#[^\n]*
    | (?:(?<=\n)|(?<=\{)|(?<=\}))[ \t]*(?P<word>   # a statement begins a line or follows a brace
        (?:suite|assert|check|profile|const|macro|use|import|export|availability_threshold
          |type|from|to|disable|scale|downgrade
          |for(?!\s+(?:each\b(?!\s+in\b)|[0-9])))\b | @ )  # a loop, not the groups of an assertion
    | (?P<brace>[{}])
    """,
    re.VERBOSE,
)
OUTERMOST = frozenset({"suite", "import", "export"})

_FOLLOWERS = {
    **dict.fromkeys(("suite", "check", "profile", "import"), re.compile(r'\s*"')),
    "export": re.compile(r"\s+(const|macro)\b"),
}
"""Patterns of the text after a keyword that opens a block, to recognise a misspelled one."""


def skip_to_next_statement(
    parser: InteractiveParser, text: str, position: int, words: frozenset[str] | None = None
) -> bool:
    """Continues after the statement that is broken at `position`.

    False if no statement follows that could be parsed, or none that begins with `words`.
    """
    state = parser.lexer_thread.state
    if state is None:
        return False
    state.last_token = None
    if is_line_start(position, text):
        # The failing token begins its line, so a statement may begin with it.
        position = text.rfind("\n", 0, position) + 1
    opened = 0
    for match in _STATEMENT.finditer(text, position):
        word, brace = match["word"], match["brace"]
        if words is not None and word not in words:
            continue
        if brace == "{":
            opened += 1
        elif brace == "}" and opened:
            opened -= 1
        elif word == "suite" and len(parser.parser_state.state_stack) > 1:
            continue  # it would drop the suite that has been parsed
        elif not opened and (word or brace) and unwind(parser, _terminal_of(word or brace)):
            move_lexer(state.line_ctr, text, match.start("word" if word else "brace"))
            return True
    return False


def mend_keyword(
    parser: InteractiveParser, text: str, token: Token, expected: set[str]
) -> Token | None:
    """Replaces a misspelled `suite` or `check`, so that its contents are still parsed.

    Returns the token that the parser was given; None without such a typo.
    """
    words = [word for word in _FOLLOWERS if _terminal_of(word) in expected]
    near = get_close_matches(token[:LONGEST_KEYWORD].lower(), words, n=1, cutoff=NEAR)
    end = (token.start_pos or 0) + len(token)
    state = parser.lexer_thread.state
    if not near or state is None or not _FOLLOWERS[near[0]].match(text, end):
        return None
    meant = Token.new_borrow_pos(_terminal_of(near[0]), near[0], token)
    parser.feed_token(meant)
    move_lexer(state.line_ctr, text, end)
    return meant


def close_file(parser: InteractiveParser, end: Token) -> Tree[Token] | None:
    """The tree of a file that ends too early, as if its braces were closed."""
    states, values = parser.parser_state.state_stack, parser.parser_state.value_stack
    shortest = len(states) + 1
    while unwind(parser, "RBRACE"):
        if len(states) >= shortest:
            # This brace was closed, and more is missing after it: it is dropped with its parent.
            states.pop()
            if values:
                values.pop()
            continue
        shortest = len(states)
        parser.feed_token(Token.new_borrow_pos("RBRACE", "}", end))
        if "$END" in expected_terminals(parser):
            result: Tree[Token] = parser.feed_eof(end)
            return result
    return None


def is_outside_suite(parser: InteractiveParser) -> bool:
    """True if no statement of the file has begun, at most annotations for one."""
    unfinished = parser.parser_state.value_stack
    return not any(isinstance(item, Token) and item in OUTERMOST for item in unfinished)


def end_outside(parser: InteractiveParser) -> Tree[Token]:
    """The tree of what was parsed, without annotations that nothing follows."""
    unwind(parser, "$END")
    result: Tree[Token] = parser.feed_eof()
    return result


def move_lexer(counter: LineCounter, text: str, position: int) -> None:
    """Continues lexing at `position`, which may be before what the lexer has already read."""
    if position < counter.char_pos:
        counter.line -= text.count("\n", position, counter.char_pos)
    else:
        counter.line += text.count("\n", counter.char_pos, position)
    counter.char_pos = position
    counter.line_start_pos = text.rfind("\n", 0, position) + 1
    counter.column = position - counter.line_start_pos + 1


def unwind(parser: InteractiveParser, terminal: str, unless: str | None = None) -> bool:
    """Drops what is partially parsed, back to the innermost state that accepts `terminal`; nothing
    if no state does.

    :param unless: a terminal that this state does not accept.
    """
    states, values = parser.parser_state.state_stack, parser.parser_state.value_stack
    before = [*states], [*values]
    while states:
        is_excluded = unless is not None and _may_follow(parser, unless)
        if _may_follow(parser, terminal) and not is_excluded:
            return True
        states.pop()
        if values:
            values.pop()
    states[:], values[:] = before
    return False


def expected_terminals(parser: InteractiveParser) -> set[str]:
    """The terminals that may come next."""
    state = parser.parser_state
    row = state.parse_conf.parse_table.states[state.state_stack[-1]]
    return {name for name in row if name.isupper() and _may_follow(parser, name)}


def _may_follow(parser: InteractiveParser, terminal: str) -> bool:
    """True if the parser would accept the terminal next, after the reductions that it triggers.

    A row of the table is not enough: its lookaheads belong to several merged contexts. Lark's
    own `accepts` copies the whole parser for every terminal.
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
    for terminal in grammar().terminals:
        if terminal.pattern.type == "str" and terminal.pattern.value == text:
            return terminal.name
    raise KeyError(text)


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
        while True:
            try:
                for token in self._parser.lexer_thread.lex(self._parser.parser_state):
                    self._feed(token)
                    self._words += 1
                    if self._words > MOST_WORDS:
                        too_long = too_large_file(self.source.name, f"{MOST_WORDS:,} words")
                        self.diagnostics.append(too_long)
                        return None
                # Without a position, whatever the end of the file closes would have no end.
                whole: Tree[Token] = self._parser.feed_eof(self._end())
                return whole
            except UnexpectedInput as error:
                expected = expected_terminals(self._parser)
                position = error.pos_in_stream or 0
                is_outside = "$END" in expected or is_outside_suite(self._parser)
                # If an earlier error has spoiled the count of braces, that one is enough.
                if not (is_outside and self.diagnostics and self._text.startswith("}", position)):
                    self.diagnostics.append(syntax_error(error, expected, self.source))
                if isinstance(error, UnexpectedToken):
                    mended = mend_keyword(self._parser, self._text, error.token, expected)
                    if mended is not None:
                        self._begin_statement(mended)
                        continue
                self.is_whole = False
                if is_outside:
                    if self._skip(position, OUTERMOST):
                        continue
                    return end_outside(self._parser)
                is_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
                if "RBRACE" in expected and (is_end or is_line_start(position, self._text)):
                    self._started = None  # the previous statement is complete
                if isinstance(error, UnexpectedToken) and is_end:
                    self._mark_broken()
                    return close_file(self._parser, error.token)
            except _TooDeepError as error:
                self.is_whole = False
                position = error.token.start_pos or 0
                self.diagnostics.append(too_deep(error.token, self.source.name))
            self._mark_broken()
            if not self._skip(position):
                return None

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
            self._started, self._operators = token, 0
        elif token.type == "RBRACE":
            self._started = None
        self._depth += (token in _OPENING) - (token in _CLOSING)
        self._operators += token.type in _OPERATORS
        is_deep = self._depth > DEEPEST_NESTING or self._operators > MOST_OPERATORS
        if is_deep or len(self._parser.parser_state.state_stack) > DEEPEST_STACK:
            raise _TooDeepError(token)
        if token.type in _NUMBERS and math.isinf(float(token.rstrip("%x").replace("_", ""))):
            self.diagnostics.append(too_large(token, self.source.name))
        if token.type == "DATE":
            no_day = check_day(token, span_of(token, self.source.name))
            self.diagnostics += [] if no_day is None else [no_day]

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


class _TooDeepError(Exception):
    """An expression that would overflow the stack."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.token = token


def _broken_span(started: Token, error: Span) -> Span:
    """The range from the beginning of a statement to the error in it."""
    start = span_of(started, error.file)
    return Span(error.file, start.line, start.column, error.line, error.column)
