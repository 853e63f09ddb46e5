"""Reads source files from disk. What is not text, or is far too long, gets a diagnostic instead."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.errors import SourceError
from dqx_airflow.values import SourceFile, Span
from dqx_airflow.values.files import first_bytes

LARGEST_FILE = 8_000_000
"""The maximum size of a file, in bytes."""
MOST_WORDS = 1_000_000
"""The maximum number of tokens in a file: 70,000 assertions, which take half a minute."""

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""The encodings by their marks, longer ones first, since some of them begin with others."""

_BEGINS_WITH_BLOCK = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z)|#[^\n]*(?:\n|\Z))*block\b")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The diagnostic of a file that cannot be read as a source; `text` is its displayable part."""

    diagnostic: Diagnostic
    text: str = ""
    is_missing: bool = False

    @property
    def error(self) -> SourceError:
        """The diagnostic as an exception, drawn."""
        return drawn_error((self.diagnostic,), {self.diagnostic.span.file: self.text})

    @property
    def reason(self) -> str:
        """The diagnostic on one line, for the statement that imports the file."""
        place = self.diagnostic.span
        help_line = self.diagnostic.help
        where = f" (line {place.line}, column {place.column})" if self.text else ""
        return f"{self.diagnostic.message}{where}{f'; {help_line}' if help_line else ''}"


def is_block_file(text: str) -> bool:
    """True if the first word of a text is `block`: its blocks are read by `datalex_blocks`."""
    return _BEGINS_WITH_BLOCK.match(text) is not None


def read_source(path: Path, name: str) -> SourceFile | Unreadable:
    """The file as text."""
    start = Span(name, 1, 1, 1, 2)
    try:
        content = first_bytes(path, LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Unreadable(Diagnostic("file not found", start, code="E010"), is_missing=True)
    except (OSError, ValueError) as error:
        message = f"cannot read this file: {getattr(error, 'strerror', None) or error}"
        return Unreadable(Diagnostic(message, start, code="E010"))
    return source_of(content, name)


def source_of(content: bytes, name: str) -> SourceFile | Unreadable:
    """The contents of a file as text, with Python's line endings."""
    if len(content) > LARGEST_FILE:
        return Unreadable(too_large_file(name))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_utf_8(content, error.start, name)
    return SourceFile(name, text.replace("\r\n", "\n").replace("\r", "\n"))


def too_large_file(name: str, size: str = f"{LARGEST_FILE // 1_000_000} MB") -> Diagnostic:
    """The diagnostic of a file that is larger than `size`."""
    message = f"this file has more than {size}"
    help_line = "split the suite, and share macros and constants through `import`"
    return Diagnostic(message, Span(name, 1, 1, 1, 2), code="E018", help=help_line)


def no_text(name: str) -> Diagnostic:
    message = "this is not a text file"
    help_line = "suites and contracts are UTF-8 text files"
    return Diagnostic(message, Span(name, 1, 1, 1, 2), code="E010", help=help_line)


def _not_utf_8(content: bytes, position: int, name: str) -> Unreadable:
    """The diagnostic of a text in another encoding, at the first position that shows it."""
    encoding = _encoding_of(content)
    if encoding is None:
        return Unreadable(no_text(name))
    text = content.decode(encoding, errors="replace")
    line = content.count(b"\n", 0, position) + 1
    before = content[content.rfind(b"\n", 0, position) + 1 : position]
    column = len(before.decode(encoding, errors="replace")) + 1
    help_line = f"it looks like {encoding}: save it as UTF-8, or run iconv -f {encoding} -t UTF-8"
    span = Span(name, line, column, line, column + 1)
    diagnostic = Diagnostic("this is not UTF-8 text", span, code="E010", help=help_line)
    return Unreadable(diagnostic, text)


def _encoding_of(content: bytes) -> str | None:
    """The likely encoding of a text; None if it is not text."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return encoding
    is_binary = any(content.count(byte) for byte in (*range(9), *range(14, 32)))
    return None if is_binary else "Windows-1252"
