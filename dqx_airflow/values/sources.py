"""Text that people wrote, and places in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source file. Lines and columns count from 1, `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of DQL text, inlined, so that nobody needs to read it twice."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that `importer` imports by writing `path`."""

    importer: str
    path: str
    file: SourceFile


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where people find the file of a suite or a contract.

    `url` leads to the file itself. In a checkout of Git, `repository` is the address of its
    `origin`, `path` the file below its root, and `version` the commit.
    """

    url: str
    repository: str | None = None
    path: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class SourceDigest:
    """A text that a gate went by: the name of its file, and its SHA-256 in hexadecimal digits."""

    file: str
    digest: str
