"""Keywords, annotations and other words of the language, in a sentence each; and which words are
expected at a position of a text, however broken the text is.

The parser reads what is before the position. Its unfinished part determines the context, and the
parse table the possible next words: both come from the grammar itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from dqx_airflow.dql.callables import MEASURES, CallableKind
from dqx_airflow.dql.syntax.grammar import (
    LINE_KEYWORDS,
    begins_line,
    grammar,
    is_line_start,
    unquoted,
)
from dqx_airflow.dql.syntax.recovery import expected_terminals, skip_to_next_statement
from dqx_airflow.dql.syntax.source_file import LARGEST_FILE
from dqx_airflow.metrics.row_functions import QUANTIFIERS


def _described(heading: str) -> dict[str, str]:
    """The words below a heading of `words.md`, with their meaning.

    :raises ValueError: the page has no such heading.
    """
    page = files("dqx_airflow.editor").joinpath("words.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    words = sections[sections.index(heading) + 1]
    return dict(re.findall(r"^- `([\w ]+)`: (.+)$", words, re.MULTILINE))


KEYWORDS = _described("Keywords")
ANNOTATIONS = _described("Annotations")
PROFILE_TYPES = _described("Words after `type` in a profile")
"""The words that may follow `type` in a profile."""
PARAMETERS = _described("Named parameters of calls")
"""The named parameters of calls."""


class Slot(Enum):
    """The kind of name that belongs to a position."""

    NOTHING = "no name"
    MEASURE = "a metric or a function of metrics"
    ASSERTED = "the first word after `assert`: a measure or a shortcut"
    ROW = "a column or a function of a row"
    COLUMN = "a column"
    DATASET = "a dataset"
    CONSTANT = "a constant"
    MACRO = "a macro"
    MACRO_ARGUMENT = "an argument of a macro"
    PARAMETER = "a parameter of a macro"
    LIST_PARAMETER = "a parameter of a macro over which a loop iterates"
    OTHER_VALUES = "the values of another dataset, after `in`"
    ANNOTATION = "an annotation"
    ANNOTATION_ARGUMENT = "an argument of an annotation"
    SEVERITY = "a severity"
    TAG = "a tag"
    FORMAT = "a format of strings, after `is`"
    TYPE = "a type of columns"
    FITTING_TYPE = "a type, after `fits`"
    PROFILE_TYPE = "a type of profiles"
    DATE = "a date"
    DATE_ARGUMENT = "an argument of a function of dates"
    EXPORT = "an export of an imported file"
    PATH = "the path of a file, in quotes"
    CHECK_TEXT = "the name of a check, in quotes"
    TAG_TEXT = "a tag, in quotes"
    ASSERTION_TEXT = "the name of an assertion, in quotes"
    CHECK_OF_ASSERTION_TEXT = "the check of an assertion, in quotes"


@dataclass(frozen=True, slots=True)
class CompletionContext:
    """A position in a text, and its context.

    `words` are the possible keywords. `call` is the enclosing call, if a new argument may begin
    here. `datasets` belong to the check, `parameters` to the macro; a loop can iterate over the
    parameters in `lists`. `assertion` is the selected one. `has_item` is set if `item` is an
    item of an array. `annotated` is the statement below an annotation.
    """

    slot: Slot
    words: tuple[str, ...] = ()
    call: str = ""
    datasets: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    assertion: str = ""
    has_item: bool = False
    annotated: str = "assertion"


_OPERAND = frozenset({"NUMBER", "IDENT", "LPAR"})
_ENDS_OF_STATEMENTS = frozenset({"RBRACE", "$END"})
_STATEMENTS = frozenset(
    {"assert", "use", "watch", "const", "macro", "check", "profile", "import", "for", "@"}
    | {"from", "to", "type", "fits", "disable", "scale", "downgrade", "severity", "tags"}
)
_SLOTS_AFTER = {
    "dataset": Slot.DATASET,
    "order_by": Slot.COLUMN,
    **dict.fromkeys(("lag", "n", "step"), Slot.CONSTANT),
}
_TEXTS = {
    ("profile", "check"): Slot.CHECK_TEXT,
    ("profile", "tag"): Slot.TAG_TEXT,
    ("profile", "assertion"): Slot.ASSERTION_TEXT,
    ("profile", "in"): Slot.CHECK_OF_ASSERTION_TEXT,
    ("import", "import"): Slot.PATH,
    ("import", "from"): Slot.PATH,
}
_WORD = re.compile(r"[a-zA-Z_]+")
_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"?|`[^`\n]*`?|#[^\n]*')


def quoted_around(text: str, offset: int) -> tuple[int, int] | None:
    """The bounds of the string, the name in backticks or the comment around an offset."""
    line = text.rfind("\n", 0, offset) + 1
    for match in _QUOTED.finditer(text, line, _end_of_line(text, offset)):
        is_closed = len(match[0]) > 1 and match[0][0] == match[0][-1]
        if match.start() < offset < match.end() + (not is_closed):
            return match.span()
    return None


def place_at(text: str, offset: int) -> CompletionContext:
    """The context at an offset outside of strings, quoted names and comments."""
    parser, is_sound = _parse(text[:offset])
    read = _Read(parser)
    expected = expected_terminals(parser) if is_sound else set()
    words = _words(expected)
    if is_line_start(offset, text) and not expected & _ENDS_OF_STATEMENTS:
        # The previous statement is incomplete. At the beginning of a line, another one may begin.
        words |= _words(_expected_by_statement(parser))
    slot, call = read.slot(expected, text[:offset]) if is_sound else (Slot.NOTHING, "")
    parameters, lists = read.parameters()
    return CompletionContext(
        slot,
        tuple(sorted(words)),
        call,
        read.datasets(),
        parameters,
        lists,
        has_item=read.is_among_items(),
        annotated=read.annotated(),
    )


def place_in_text(text: str, offset: int) -> CompletionContext:
    """The context within the string that begins at an offset."""
    parser, is_sound = _parse(text[:offset])
    if not is_sound or "STRING" not in expected_terminals(parser):
        return CompletionContext(Slot.NOTHING)
    read = _Read(parser)
    slots = [slot for (home, last), slot in _TEXTS.items() if read.is_in(home) and read.ends(last)]
    parameters, lists = read.parameters()
    return CompletionContext(
        slots[0] if slots else Slot.NOTHING,
        parameters=parameters,
        lists=lists,
        assertion=read.last_text(),
    )


_CALLED = re.compile(r"(\buse\s+)?([\w.`]+)\s*\Z")


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without its closing bracket: the number of its current argument from 0, and whether a
    macro is used, or a function in a row predicate called."""

    name: str
    argument: int
    is_macro: bool
    in_row: bool


def call_at(text: str, offset: int) -> OpenCall | None:
    """The innermost call that is open at an offset; None if there is none."""
    parser, is_sound = _parse(text[:offset])
    read = _Read(parser)
    for bracket in reversed(read.open_brackets() if is_sound else []):
        opening = read.items[bracket]
        called = _CALLED.search(text[: opening.start_pos]) if read.words[bracket] == "(" else None
        if called is not None:
            argument = _commas(text[opening.end_pos : offset])
            return OpenCall(unquoted(called[2]), argument, bool(called[1]), read.is_about_rows())
    return None


class _Read:
    """The unfinished part of what a parser has read.

    `words` are its tokens as typed, with `IDENT` for a name, `STRING` for a string and so on, and
    nothing for what is finished: a statement, an argument.
    """

    def __init__(self, parser: InteractiveParser) -> None:
        self.items: list[Any] = list(parser.parser_state.value_stack)
        self.words = [_typed(item) for item in self.items]

    def ends(self, *words: str) -> bool:
        return tuple(self.words[-len(words) :]) == words

    def is_in(self, word: str) -> bool:
        return word in self.words

    def slot(self, expected: set[str], before: str) -> tuple[Slot, str]:
        """The kind of name that may follow, and the enclosing call."""
        if "IDENT" not in expected:
            return Slot.NOTHING, ""
        positions = [number for number, word in enumerate(self.words) if word in _STATEMENTS]
        start = positions[-1] if positions else 0
        statement = self.words[start] if positions else ""
        opened = [number for number in self.open_brackets() if number > start]
        if self.ends("{") and statement != "import":
            return Slot.PARAMETER, ""
        for bracket in reversed(opened):
            is_call = self.words[bracket - 1] == "IDENT" or statement == "use"
            if self.words[bracket] == "(" and is_call:
                is_new = self.words[-1] in ("(", ",") and bracket == opened[-1]
                return self._argument(statement, bracket, is_new, before)
        return self._in_statement(statement, expected >= _OPERAND), ""

    def open_brackets(self) -> list[int]:
        opened: list[int] = []
        for number, word in enumerate(self.words):
            if word in ("(", "[", "{"):
                opened.append(number)
            elif word in (")", "]", "}") and opened:
                opened.pop()
        return opened

    def is_among_items(self) -> bool:
        """True after the comma of `every` or `some`."""
        return any(
            self.items[bracket - 1] in QUANTIFIERS and "," in self.words[bracket:]
            for bracket in self.open_brackets()
            if self.words[bracket - 1] == "IDENT"
        )

    def _argument(
        self, statement: str, bracket: int, is_new: bool, before: str
    ) -> tuple[Slot, str]:
        """The kind of argument that may be at the position, and the enclosing call; `is_new` if an
        argument may begin there."""
        call = str(self.items[bracket - 1]) if self.words[bracket - 1] == "IDENT" else ""
        called = MEASURES.get(call)
        if statement == "macro":
            return Slot.NOTHING, ""
        if statement == "@":
            return (Slot.ANNOTATION_ARGUMENT if is_new else Slot.NOTHING), call
        if self.ends("IDENT"):
            return _SLOTS_AFTER.get(str(self.items[-1]), Slot.NOTHING), ""
        if statement in ("from", "to"):
            return Slot.DATE_ARGUMENT, call
        if statement == "use":
            return Slot.MACRO_ARGUMENT, ""
        if self.is_about_rows() and call != "values":
            return Slot.ROW, ""
        has_parameters = self.ends(",") or (called is not None and not called.has_arguments)
        slot = Slot.CONSTANT
        if called is None or called.is_column(_commas(before[self.items[bracket].end_pos :])):
            slot = Slot.COLUMN
        elif called.group in (CallableKind.EXTENDED, CallableKind.FUNCTION):
            slot = Slot.MEASURE
        return slot, call if is_new and has_parameters else ""

    def _in_statement(self, statement: str, is_operand: bool) -> Slot:
        match "where" if self.is_in("where") else statement:
            case "where":
                return self._in_claim(is_operand)
            case "type":
                return Slot.PROFILE_TYPE if self.is_in("profile") else Slot.TYPE
            case "fits":
                return Slot.FITTING_TYPE
            case "for":
                return Slot.LIST_PARAMETER if self.ends("in") else Slot.NOTHING
            case "import":
                return Slot.EXPORT if self.words[-1] in ("{", ",") else Slot.NOTHING
            case "const":
                return Slot.CONSTANT if is_operand else Slot.NOTHING
            case "from" | "to" if is_operand:
                return Slot.DATE
            case "to":
                return Slot.SEVERITY
            case "assert":
                return self._in_claim(is_operand)
        return _BEHIND.get(statement, Slot.NOTHING)

    def _in_claim(self, is_operand: bool) -> Slot:
        if self.ends("column"):
            return Slot.COLUMN
        if self.ends("is") or self.ends("is", "not"):
            return Slot.FORMAT
        if self.ends("in"):
            return Slot.OTHER_VALUES
        if not is_operand:
            return Slot.NOTHING
        if self.is_about_rows():
            return Slot.ROW
        return Slot.ASSERTED if self.ends("assert") else Slot.MEASURE

    def is_about_rows(self) -> bool:
        return any(map(self.is_in, ("row", "rows", "where")))

    # The context of the position

    def annotated(self) -> str:
        """The statement below an annotation at the position."""
        if self.is_in("check") or self.is_in("macro"):
            return "assertion"
        return "profile" if self.is_in("suite") else "suite"

    def datasets(self) -> tuple[str, ...]:
        """The datasets of the check."""
        behind = self.items[self.words.index("on") + 1 :] if self.is_in("on") else []
        names = [tree for tree in behind[:1] if isinstance(tree, Tree)]
        parts = [part for tree in names for part in tree.iter_subtrees_topdown()]
        return tuple(
            ".".join(unquoted(str(child)) for child in part.children)
            for part in parts
            if part.data == "name"
        )

    def parameters(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The parameters of the macro with the variables of its loops, and the variadic one."""
        parameters: list[str] = []
        lists: list[str] = []
        for number, item in enumerate(self.items):
            if isinstance(item, Tree) and item.data == "parameters":
                *names, dots = item.children
                parameters = [str(name) for name in names]
                lists = parameters[-1:] if dots is not None else []
            elif self.words[number - 1] == "for" and number:
                parameters = [*parameters, str(item)]
        return tuple(parameters), tuple(lists)

    def last_text(self) -> str:
        """The contents of the last string."""
        pairs = zip(self.items, self.words, strict=True)
        texts = [str(item)[1:-1] for item, word in pairs if word == "STRING"]
        return texts[-1] if texts else ""


_BEHIND = {
    "use": Slot.MACRO,
    "@": Slot.ANNOTATION,
    "severity": Slot.SEVERITY,
    "tags": Slot.TAG,
    "check": Slot.DATASET,
    "watch": Slot.DATASET,
}


def _parse(before: str) -> tuple[InteractiveParser, bool]:
    """The parser at the end of a text, and whether the statement so far is valid."""
    text = before.replace("\ufeff", " ") if len(before) <= LARGEST_FILE else ""
    parser = grammar().parse_interactive(text)
    while True:
        try:
            for token in parser.lexer_thread.lex(parser.parser_state):
                if token.type == "IDENT" and token in LINE_KEYWORDS and begins_line(token, text):
                    raise UnexpectedToken(token, set())
                parser.feed_token(token)
            return parser, True
        except UnexpectedInput as error:
            if not skip_to_next_statement(parser, text, error.pos_in_stream or 0):
                return parser, False


def _expected_by_statement(parser: InteractiveParser) -> set[str]:
    """The terminals that may follow when the current statement is finished, or abandoned."""
    states = parser.parser_state.state_stack
    values = parser.parser_state.value_stack
    while values:
        expected = expected_terminals(parser)
        if expected & _ENDS_OF_STATEMENTS:
            return expected
        states.pop()
        values.pop()
    return set()


@cache
def _spellings() -> dict[str, str]:
    """The keywords and punctuation of the grammar, by the names of their terminals."""
    terminals = grammar().terminals
    return {
        terminal.name: terminal.pattern.value
        for terminal in terminals
        if terminal.pattern.type == "str"
    }


def _typed(item: Any) -> str:
    return _spellings().get(item.type, item.type) if isinstance(item, Token) else ""


def _words(expected: set[str]) -> set[str]:
    """The keywords among some terminals."""
    spelled = {_spellings().get(terminal, "") for terminal in expected}
    groups = {"for each"} if "FOR_EACH" in expected else set()
    return {word for word in spelled if _WORD.fullmatch(word)} | groups


def keywords() -> frozenset[str]:
    """All keywords of the language."""
    return frozenset(_words(set(_spellings())))


def _commas(arguments: str) -> int:
    """The commas between arguments, outside of nested brackets and strings."""
    depth = commas = 0
    for character in _QUOTED.sub("", arguments):
        depth += (character in "([{") - (character in ")]}")
        commas += character == "," and not depth
    return commas


def _end_of_line(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end
