"""The encoding of text files: Spark puts a replacement character where bytes do not fit it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import given_options
from dqx_airflow.engine.sources.compression import (
    COMPRESSION_HINT,
    is_compressed,
    left_compression,
    refused_suffix,
)
from dqx_airflow.engine.sources.csv_headers import has_header
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""Byte order marks, longer ones first, since some of them begin with others."""
_MOST_BYTES = 1_000_000
_LINE_OF_NULS = re.compile(rb"(?:\A|\n)\0+(?:\r?\n|\Z)")
_PADDED = "ends with NUL bytes, so it may be incomplete", "write the file again"
_THREADS = 16


def require_text(ref: DatasetRef, location: str, files: Sequence[DataFile]) -> None:
    """Rejects text files that are in another encoding than they would be read in, or still
    compressed.

    Also rejects CSV files whose header is missing because they are empty: Spark skips such a file
    if there are others.

    The first megabyte of each file is checked, and the end of CSV files that are not compressed for
    a padding of NUL bytes. Files that cannot be opened are left to Spark.

    :raises DatasetError: there is one.
    """
    if ref.format not in ("csv", "json"):
        return
    for path in [file.path for file in files] or [location]:
        if (suffix := refused_suffix(path)) is not None:
            raise DatasetError(
                f"dataset '{ref.name}': {path}: {suffix} files are not supported", COMPRESSION_HINT
            )
    options = {name.lower(): value for name, value in given_options(ref).items()}
    encoding = options.get("encoding", options.get("charset", "UTF-8"))
    try:
        codecs.lookup(encoding)
    except LookupError:
        return
    filled = [file for file in files if file.size > 0]
    is_csv = ref.format == "csv"
    needs_line = is_csv and has_header(ref)
    try:
        system, _ = FileSystem.from_uri(location)
        with ThreadPoolExecutor(_THREADS) as threads:
            heads = threads.map(
                lambda file: (
                    _objection(system, file, encoding, is_csv=is_csv, needs_line=needs_line)
                    or (_padding(system, file, encoding) if is_csv else None)
                ),
                filled,
            )
            objected = next(
                ((file, fault) for file, fault in zip(filled, heads, strict=True) if fault), None
            )
    except (OSError, ValueError):
        return
    if objected is not None:
        file, (problem, hint) = objected
        raise DatasetError(f"dataset '{ref.name}': {file.path} {problem}", hint)


def _objection(
    system: FileSystem, file: DataFile, encoding: str, *, is_csv: bool, needs_line: bool
) -> tuple[str, str] | None:
    """What is wrong with the bytes of a file, and how to fix it."""
    try:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            head = bytes(stream.read(_MOST_BYTES))
    except OSError:
        return None
    if (kind := left_compression(head)) is not None:
        return f"contains {kind} data, but its name does not have that suffix", COMPRESSION_HINT
    if needs_line and len(head) < _MOST_BYTES and not head.removeprefix(codecs.BOM_UTF8).strip():
        return "has no header: it is empty", "remove it, or write the header"
    name = codecs.lookup(encoding).name
    mark = next(
        (name_of_mark for begin, name_of_mark in _MARKS.items() if head.startswith(begin)), None
    )
    if mark is not None and name in ("utf-8", "iso8859-1", "cp1252", "ascii"):
        return (
            f"starts with a {mark} byte order mark, but would be read as {encoding}",
            f'set the options encoding="{mark}" and multiLine="true"',
        )
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        return (
            f"is not valid {encoding}: byte 0x{head[error.start]:02X} in line {line}",
            'set the option encoding to that of the file, such as encoding="ISO-8859-1"',
        )
    return _nuls(head, encoding) if is_csv else None


def _nuls(head: bytes, encoding: str) -> tuple[str, str] | None:
    """The objection to the first bytes of a CSV file with a line that Spark skips."""
    if "\0".encode(encoding) != b"\0":
        return None
    if len(head) < _MOST_BYTES and head.endswith(b"\0"):
        return _PADDED
    if (found := _LINE_OF_NULS.search(head)) is None:
        return None
    line = head[: found.start()].count(b"\n") + 1 + found[0].startswith(b"\n")
    return f"has only NUL bytes in line {line}, so it may be incomplete", "write the file again"


def _padding(system: FileSystem, file: DataFile, encoding: str) -> tuple[str, str] | None:
    """The objection to a CSV file that ends with NUL bytes, as a file does whose writer crashed:
    Spark trims them off the last value, and skips a line that has nothing else."""
    if is_compressed(file.path) or "\0".encode(encoding) != b"\0":
        return None
    try:
        with system.open_input_file(file.path) as opened:
            opened.seek(file.size - 1)
            last = bytes(opened.read(1))
    except OSError:
        return None
    return _PADDED if last == b"\0" else None
