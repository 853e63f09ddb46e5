"""Block files: `block "name" { key = value ... }`, with `//` comments (seed 000).

A block is a query with its description. Its settings are strings, numbers, booleans, and lists and
objects of them; sections such as `visualization { ... }` are excluded from the settings. The parser
is written by hand, to report all mistakes in an incomplete file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.diagnostics.nearest import nearest
from dqx_airflow.values import SourceFile, Span

Value: TypeAlias = "str | int | float | bool | tuple[Value, ...] | None"
"""An object is the tuple of its pairs."""

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

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|//[^\n]*|\#[^\n]*)
    | (?P<long>\"\"\"(?:.|\n)*?\"\"\")
    | (?P<endless>\"\"\"(?:.|\n)*)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<number>[+-]?\d+(?:\.\d+)?(?![\w.]))
    | (?P<name>[A-Za-z_][\w.-]*)
    | (?P<sign>[{}\[\]=,:])
    | (?P<open>["'][^\n]*)
    | (?P<other>.)
    """,
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_BEGINS = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z)|#[^\n]*(?:\n|\Z))*block\b")
_TRUTH = {"true": True, "false": False, "null": None, "None": None}


@dataclass(frozen=True, slots=True)
class Setting:
    """`key = value`."""

    key: str
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
        """The position of the value of a setting; that of the block's name if it has none."""
        setting = self.settings.get(key)
        return setting.span if setting is not None else self.span


@dataclass(frozen=True, slots=True)
class BlockFile:
    """The blocks of a file, and the mistakes in it."""

    blocks: tuple[Block, ...]
    diagnostics: tuple[Diagnostic, ...]


def is_block_file(text: str) -> bool:
    """True if the first word of a text is `block`."""
    return _BEGINS.match(text) is not None


def read_blocks(source: SourceFile) -> BlockFile:
    """The blocks of a file, with every mistake in it."""
    return _BlockReader(source).read()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    span: Span


class _UnexpectedError(Exception):
    """An unexpected token; the diagnostic has been reported."""


class _BlockReader:
    def __init__(self, source: SourceFile) -> None:
        self.found: list[Diagnostic] = []
        self.tokens = [*_tokens(source)]
        self.position = 0
        last = source.text.count("\n") + 1
        width = len(source.text.rsplit("\n", 1)[-1]) + 1
        self.end = _Token("end", "the end of the file", Span(source.name, last, width, last, width))

    def read(self) -> BlockFile:
        blocks: dict[str, Block] = {}
        while self.position < len(self.tokens):
            try:
                block = self._block()
            except _UnexpectedError:
                self._skip_to_block()
                continue
            if block.name in blocks:
                first = Related(blocks[block.name].span, "first here")
                message = f"duplicate block '{block.name}'"
                help_line = "rename it"
                self.found.append(
                    Diagnostic(message, block.span, "E508", related=(first,), help=help_line)
                )
                continue
            blocks[block.name] = block
        return BlockFile(tuple(blocks.values()), tuple(self.found))

    def _block(self) -> Block:
        self._expect("name", "block", help_line='write block "name" { ... }')
        name = self._expect("text", help_line='a block needs a name in quotes: block "name" {')
        self._expect("sign", "{")
        settings: dict[str, Setting] = {}
        while not self._takes("}"):
            try:
                self._statement(settings)
            except _UnexpectedError:
                if not self._skip_statement():
                    break
        return Block(_unescaped(name.text), settings, name.span)

    def _statement(self, settings: dict[str, Setting]) -> None:
        key = self._expect("name", help_line="write key = value")
        if self._takes("{"):
            self._skip_section(key)
            return
        self._expect("sign", "=", help_line=f"write {key.text} = ...")
        start = self._peek()
        value = self._value()
        if key.text in settings:
            first = Related(settings[key.text].key_span, "first here")
            message = f"'{key.text}' is set twice"
            self.found.append(
                Diagnostic(message, key.span, "E508", related=(first,), help="remove one of them")
            )
            return
        settings[key.text] = Setting(key.text, value, key.span, start.span)
        near = nearest(key.text, KNOWN_SETTINGS)
        # An unknown setting is no mistake, but a misspelled one would go unnoticed.
        if key.text not in KNOWN_SETTINGS and near is not None and near not in settings:
            message = f"unknown key '{key.text}'"
            help_line = f"did you mean '{near}'?"
            self.found.append(Diagnostic(message, key.span, help=help_line, is_mild=True))

    def _value(self) -> Value:
        token = self._peek()
        match token.kind:
            case "text" | "long":
                self.position += 1
                return _unescaped(token.text)
            case "number":
                self.position += 1
                return float(token.text) if "." in token.text else int(token.text)
            case "name":
                self.position += 1
                return _TRUTH.get(token.text, token.text)
            case "sign" if token.text == "[":
                self.position += 1
                items: list[Value] = []
                while not self._takes("]"):
                    items.append(self._value())
                    if not self._takes(",") and self._peek().text != "]":
                        self._refuse(self._peek(), "a comma or ]", None)
                return tuple(items)
            case "sign" if token.text == "{":
                self.position += 1
                return self._object()
            case "open" | "endless":
                self._refuse(token, "a closed string", "close it with the same quotes")
        return self._refuse(token, "a value", 'write a string in quotes, or """ around SQL')

    def _object(self) -> Value:
        """`key = value` or `key: value`, separated by commas or line breaks."""
        pairs: list[Value] = []
        while not self._takes("}"):
            key = self._peek()
            if key.kind != "text":
                key = self._expect("name", help_line="write key = value")
            self.position += key.kind == "text"
            if not self._takes("="):
                self._expect("sign", ":", help_line=f"write {key.text} = ...")
            pairs.append((key.text, self._value()))
            self._takes(",")
        return tuple(pairs)

    def _peek(self) -> _Token:
        return self.tokens[self.position] if self.position < len(self.tokens) else self.end

    def _takes(self, sign: str) -> bool:
        token = self._peek()
        if token.kind == "sign" and token.text == sign:
            self.position += 1
            return True
        return False

    def _expect(self, kind: str, text: str | None = None, help_line: str | None = None) -> _Token:
        token = self._peek()
        if token.kind != kind or (text is not None and token.text != text):
            wanted = text or {"text": "a string in quotes", "name": "a key"}[kind]
            self._refuse(token, wanted, help_line)
        self.position += 1
        return token

    def _refuse(self, token: _Token, wanted: str, help_line: str | None) -> Value:
        shown = token.text.split("\n")[0]
        self.found.append(
            Diagnostic(f"expected {wanted}, found {shown}", token.span, "E508", help=help_line)
        )
        raise _UnexpectedError

    def _skip_statement(self) -> bool:
        """Skips to the next line; False at the end of the file."""
        line = self._peek().span.line
        if self._peek() is self.end:
            return False
        while self._peek() is not self.end and self._peek().span.line == line:
            if self._peek().text == "}":
                break
            self.position += 1
        return True

    def _skip_section(self, key: _Token) -> None:
        depth = 1
        while depth and self._peek() is not self.end:
            depth += {"{": 1, "}": -1}.get(self._peek().text, 0)
            self.position += 1
        if depth:
            self._refuse(self.end, "}", f"unclosed section '{key.text}'")

    def _skip_to_block(self) -> None:
        self.position += 1
        while self._peek() is not self.end and self._peek().text != "block":
            self.position += 1


def _tokens(source: SourceFile) -> Iterator[_Token]:
    line, begin = 1, 0
    for match in _TOKEN.finditer(source.text):
        text = match[0]
        kind = match.lastgroup or "other"
        breaks = text.count("\n")
        if kind != "blank":
            column = match.start() - begin + 1
            width = len(text.split("\n")[0])
            yield _Token(kind, text, Span(source.name, line, column, line, column + max(width, 1)))
        if breaks:
            line += breaks
            begin = match.start() + text.rindex("\n") + 1


def _unescaped(text: str) -> str:
    if text.startswith('"""'):
        return text[3:-3]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])
