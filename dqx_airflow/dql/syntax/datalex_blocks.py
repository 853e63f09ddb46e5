"""Block files: `block "name" { key = value ... }`, with `//` comments (seed 000).

A block is a query with its description. Its settings are strings, numbers, booleans, and lists and
objects of them; sections such as `visualization { ... }` are excluded from the settings. A broken
statement is dropped, and all others are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from lark import Lark, Token, Tree, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, nearest
from dqx_airflow.dql.syntax.recovery import expected_terminals, move_lexer, unwind
from dqx_airflow.values import SourceFile, Span

Value: TypeAlias = "str | int | float | bool | tuple[Value, ...] | None"
"""An object is the tuple of its pairs."""
_Node: TypeAlias = "Token | Tree[Token]"

KNOWN_SETTINGS = (
    "domain",
    "type",
    "status",
    "description",
    "owner",
    "tags",
    "datalex_contract",
    "query",
)
"""The settings with a meaning here; a block may have others."""

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_SKIPPED = r"""
      \"{3}(?:.|\n)*?(?:\"{3}|\Z)
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'
    | ["'][^\n]* | //[^\n]* | \#[^\n]*
"""
_NEXT_STATEMENT = re.compile(rf"{_SKIPPED}|(?P<next>[\n}}])", re.VERBOSE)
_NEXT_BLOCK = re.compile(rf"{_SKIPPED}|(?P<next>\bblock\b)", re.VERBOSE)
_MOST_NESTED = 100
_LONGEST_INTEGER = 4_000
_KEYS = ("NAME", "BLOCK")
_TRUTH = {"true": True, "false": False, "null": None, "None": None}


@dataclass(frozen=True, slots=True)
class Setting:
    """`key = value`."""

    value: Value
    key_span: Span = field(compare=False)
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """A block with its settings, the first of each key."""

    name: str
    settings: dict[str, Setting]
    span: Span = field(compare=False)

    def text(self, key: str) -> str | None:
        """The string of a setting; None if it has none."""
        setting = self.settings.get(key)
        return setting.value if setting is not None and isinstance(setting.value, str) else None

    def span_of(self, key: str) -> Span:
        """The position of the value of a setting; of the block's name if there is none."""
        setting = self.settings.get(key)
        return setting.span if setting is not None else self.span


@dataclass(frozen=True, slots=True)
class BlockFile:
    """The blocks of a file, and the mistakes in it."""

    blocks: tuple[Block, ...]
    diagnostics: tuple[Diagnostic, ...]


def read_blocks(source: SourceFile) -> BlockFile:
    """The blocks of a file, with every mistake in it."""
    return _BlockReader(source).read()


class _BlockReader:
    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._found: list[Diagnostic] = []

    def read(self) -> BlockFile:
        blocks: dict[str, Block] = {}
        for tree in self._tree().children:
            assert isinstance(tree, Tree)
            block = self._block(tree)
            if block.name in blocks:
                first = blocks[block.name].span
                message = f"duplicate block '{block.name}'"
                self._twice(message, block.span, first, "rename it")
                continue
            blocks[block.name] = block
        self._found.sort(key=lambda diagnostic: (diagnostic.span.line, diagnostic.span.column))
        return BlockFile(tuple(blocks.values()), tuple(self._found))

    def _tree(self) -> Tree[Token]:
        """The blocks of the file without syntax errors, with their valid statements."""
        parser = _parser().parse_interactive(self._source.text)
        while True:
            try:
                parser.exhaust_lexer()
                result: Tree[Token] = parser.feed_eof(self._end())
            except UnexpectedToken as error:
                self._report(parser, error.token)
                if error.token.type == "$END":
                    return self._closed(parser)
                self._skip(parser, error.token.start_pos or 0)
            else:
                return result

    def _end(self) -> Token:
        lines = self._source.text.split("\n")
        return Token("", "", len(self._source.text), len(lines), len(lines[-1]) + 1)

    def _report(self, parser: InteractiveParser, token: Token) -> None:
        wanted, help_line = _wanted(parser, token)
        shown = f"`{token.splitlines()[0]}`" if token.type != "$END" else "the end of the file"
        message = f"expected {wanted}, found {shown}"
        self._found.append(Diagnostic(message, self._span(token), "E508", help=help_line))

    def _skip(self, parser: InteractiveParser, position: int) -> None:
        """Continues at the line after a broken statement, or at the next block."""
        text = self._source.text
        state = parser.lexer_thread.state
        assert state is not None
        is_outside = "$END" in expected_terminals(parser)
        # Keys of objects may be strings, keys of statements are not.
        is_statement = not is_outside and unwind(parser, "RBRACE", unless="TEXT")
        if not is_statement:
            unwind(parser, "$END")
            position += 1
        follows = _NEXT_STATEMENT if is_statement else _NEXT_BLOCK
        matches = (match for match in follows.finditer(text, position) if match.lastgroup == "next")
        match = next(matches, None)
        state.last_token = None
        move_lexer(state.line_ctr, text, match.start() if match else len(text))

    def _closed(self, parser: InteractiveParser) -> Tree[Token]:
        """The tree of the blocks before the end of a file that ends too early."""
        if unwind(parser, "RBRACE", unless="TEXT"):
            parser.feed_token(Token("RBRACE", "}"))
        unwind(parser, "$END")
        result: Tree[Token] = parser.feed_eof()
        return result

    def _block(self, tree: Tree[Token]) -> Block:
        name, *statements = tree.children
        assert isinstance(name, Token)
        settings: dict[str, Setting] = {}
        for statement in statements:
            assert isinstance(statement, Tree)
            if statement.data == "setting":
                self._add(settings, *statement.children)
        return Block(_unescaped(name), settings, self._span(name))

    def _add(self, settings: dict[str, Setting], key: _Node, value: _Node) -> None:
        name = str(key)
        span = self._span(key)
        if name in settings:
            first = settings[name].key_span
            message = f"'{name}' is set twice"
            self._twice(message, span, first, "remove one of them")
            return
        if _is_deep(value):
            message = "the value is nested too deeply"
            help_line = "write it in fewer levels"
            at = self._span(value)
            self._found.append(Diagnostic(message, at, "E508", help=help_line))
            return
        settings[name] = Setting(_value(value), span, self._span(value))
        near = nearest(name, KNOWN_SETTINGS)
        # An unknown setting is no mistake, but a misspelled one would go unnoticed.
        if name not in KNOWN_SETTINGS and near is not None and near not in settings:
            message = f"unknown key '{name}'"
            help_line = f"did you mean '{near}'?"
            self._found.append(Diagnostic(message, span, help=help_line, is_mild=True))

    def _twice(self, message: str, span: Span, first: Span, help_line: str) -> None:
        related = (Related(first, "first here"),)
        self._found.append(Diagnostic(message, span, "E508", related=related, help=help_line))

    def _span(self, node: _Node) -> Span:
        """The position of a token in its line, or of the first character of a list or an object."""
        at = node if isinstance(node, Token) else node.meta
        line, column = at.line or 1, at.column or 1
        width = len(node.split("\n")[0]) if isinstance(node, Token) else 1
        return Span(self._source.name, line, column, line, column + width)


def _wanted(parser: InteractiveParser, token: Token) -> tuple[str, str | None]:
    """The label that says what may come instead of a token, and a hint how to write it."""
    expected = expected_terminals(parser)
    values = parser.parser_state.value_stack
    keys = [str(value) for value in values if isinstance(value, Token) and value.type in _KEYS]
    if "OTHER" in expected:
        return "`}`", f"unclosed section '{keys[0]}'"
    if "LSQB" in expected:
        if token.type in ("OPEN", "ENDLESS"):
            return "a closed string", "close it with the same quotes"
        return "a value", 'write a string in quotes, or """ around SQL'
    if "$END" in expected:
        return "`block`", 'write `block "name" { ... }`'
    if "RSQB" in expected:
        return "a comma or `]`", None
    if "RBRACE" in expected:
        return "a key", "write `key = value`"
    if "EQUAL" in expected:
        return "`:`" if "COLON" in expected else "`=`", f"write `{values[-1]} = ...`"
    if "TEXT" in expected:
        return "a string in quotes", 'a block needs a name in quotes: `block "name" {`'
    return "`{`", None


def _is_deep(node: _Node) -> bool:
    trees = [node] if isinstance(node, Tree) else []
    for _ in range(_MOST_NESTED):
        trees = [child for tree in trees for child in tree.children if isinstance(child, Tree)]
    return bool(trees)


def _value(node: _Node) -> Value:
    if isinstance(node, Token):
        match node.type:
            case "TEXT" | "LONG":
                return _unescaped(node)
            case "NUMBER":
                is_float = "." in node or len(node) > _LONGEST_INTEGER
                return float(node) if is_float else int(node)
        return _TRUTH.get(node, str(node))
    return tuple(map(_value, node.children))


def _unescaped(text: str) -> str:
    if text.startswith('"""'):
        return text[3:-3]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("datalex_blocks.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", propagate_positions=True)
