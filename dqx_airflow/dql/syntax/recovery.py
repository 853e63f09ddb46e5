"""Continues to parse after a syntax error: at the next statement, after a misspelled keyword, or by
closing what is open."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache

from lark import Token, Tree
from lark.lexer import LineCounter
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_interactive_parser import InteractiveParser

from dqx_airflow.dql.syntax.grammar import grammar, is_line_start
from dqx_airflow.dql.syntax.syntax_errors import LONGEST_KEYWORD, NEAR

_STATEMENT = re.compile(
    r"""
      "[^"\\\n]*(?:\\.[^"\\\n]*)*"?                # skipped whole, with the braces in it
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
        word = match["word"]
        brace = match["brace"]
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
    states = parser.parser_state.state_stack
    values = parser.parser_state.value_stack
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
    states = parser.parser_state.state_stack
    values = parser.parser_state.value_stack
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
    table = configuration.parse_table.states
    stack = list(parser.parser_state.state_stack)
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
