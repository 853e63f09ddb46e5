"""Source texts, and positions in them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A range in a source file. Lines and columns count from 1, `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A DQL file with its content, so that it is read only once."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that `importer` imports as `path`."""

    importer: str
    path: str
    file: SourceFile


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """The location of the file of a suite or a contract, for users.

    `url` links to the file itself. In a Git checkout, `repository` is the address of its `origin`,
    `path` the file below its root, and `version` the commit.
    """

    url: str
    repository: str | None = None
    path: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class SourceDigest:
    """A source text of a gate: the name of its file, and its SHA-256 in hexadecimal digits."""

    file: str
    digest: str
