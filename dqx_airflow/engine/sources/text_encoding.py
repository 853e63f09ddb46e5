"""The encoding of text files: Spark puts a replacement character where bytes do not fit it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import given_options, is_on
from dqx_airflow.engine.sources.csv_headers import has_header
from dqx_airflow.engine.sources.listing import (
    COMPRESSION_HINT,
    DataFile,
    is_compressed,
    left_compression,
    read_each,
    refused_suffix,
)
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
_DECODED_BY_SPARK = ("utf-16", "utf-32")
_PADDED = "ends with NUL bytes, so it may be incomplete", "write the file again"


def require_text(ref: DatasetRef, location: str, files: Sequence[DataFile]) -> dict[str, str]:
    """Rejects text files that are in another encoding than they would be read in, or still
    compressed; returns the faults of texts that are left to be found, with their conditions as
    Spark SQL.

    Also rejects CSV files whose header is missing because they are empty: Spark skips such a file
    if there are others.

    Here the first megabyte of each file is read, which is enough to name the place of most faults,
    and the end of CSV files that are not compressed, for a padding of NUL bytes. Files in encodings
    that Spark SQL does not know are read whole. Files that cannot be opened are left to Spark.

    :raises DatasetError: there is one.
    """
    if ref.format not in ("csv", "json"):
        return {}
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
        return {}
    is_csv = ref.format == "csv"
    needs_line = is_csv and has_header(ref)

    def look(system: FileSystem, file: DataFile) -> tuple[tuple[str, str] | None, bool]:
        fault, is_whole = _objection(system, file, encoding, is_csv=is_csv, needs_line=needs_line)
        return fault or (_padding(system, file, encoding) if is_csv else None), is_whole

    filled = [file for file in files if file.size > 0]
    try:
        looks = read_each(location, filled, look)
    except (OSError, ValueError):
        return {}
    for file, (fault, _) in zip(filled, looks, strict=True):
        if fault is not None:
            raise DatasetError(f"dataset '{ref.name}': {file.path} {fault[0]}", fault[1])
    if all(is_whole for _, is_whole in looks):
        return {}
    lines_are_skipped = is_csv and not is_on(ref, "multiLine")
    return unseen_faults(codecs.lookup(encoding).name, lines_are_skipped=lines_are_skipped)


def unseen_faults(encoding: str, *, lines_are_skipped: bool) -> dict[str, str]:
    """What may be wrong with text beyond what was read of it, with the conditions as Spark SQL.

    :param encoding: its name in Python.
    :param lines_are_skipped: true if the reader skips lines of nothing but NUL bytes.
    """
    faults = {}
    if encoding == "utf-8":
        faults["it is not valid UTF-8; set the option encoding"] = "NOT is_valid_utf8(value)"
    elif encoding.startswith(_DECODED_BY_SPARK):
        decoded = f"decode(CAST(value AS BINARY), '{encoding}')"
        faults[f"it is not valid {encoding}"] = f"{decoded} IS NULL"  # it fails by itself
    if lines_are_skipped and _has_nul_bytes(encoding):
        faults["a line has only NUL bytes, so it may be incomplete"] = (
            "(startswith(value, chr(0)) AND trim(LEADING chr(0) FROM value) = '')"
        )
    return faults


def _objection(
    system: FileSystem, file: DataFile, encoding: str, *, is_csv: bool, needs_line: bool
) -> tuple[tuple[str, str] | None, bool]:
    """What is wrong with the bytes of a file and how to fix it, and whether all were read."""
    name = codecs.lookup(encoding).name
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    try:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            head = part = bytes(stream.read(_MOST_BYTES))
            is_whole = len(head) < _MOST_BYTES
            if (fault := _of_head(head, name, encoding, needs_line=needs_line)) is not None:
                return fault, is_whole
            while True:
                decoder.decode(part, final=len(part) < _MOST_BYTES)
                is_whole = len(part) < _MOST_BYTES
                if is_whole or name.startswith(("utf-", "iso8859-1")):
                    break
                line += part.count(b"\n")
                part = bytes(stream.read(_MOST_BYTES))
    except OSError:
        return None, True
    except UnicodeDecodeError as error:
        read = error.object  # with the rest of a character from the part before
        line += read[: error.start].count(b"\n")
        return (
            f"is not valid {encoding}: byte 0x{read[error.start]:02X} in line {line}",
            'set the option encoding to that of the file, such as encoding="ISO-8859-1"',
        ), is_whole
    return _nuls(head, encoding) if is_csv else None, is_whole and part is head


def _of_head(head: bytes, name: str, encoding: str, *, needs_line: bool) -> tuple[str, str] | None:
    """What is wrong with the first bytes of a file."""
    if (kind := left_compression(head)) is not None:
        return f"contains {kind} data, but its name does not have that suffix", COMPRESSION_HINT
    if needs_line and len(head) < _MOST_BYTES and not head.removeprefix(codecs.BOM_UTF8).strip():
        return "has no header: it is empty", "remove it, or write the header"
    mark = next(
        (name_of_mark for begin, name_of_mark in _MARKS.items() if head.startswith(begin)), None
    )
    if mark is not None and name in ("utf-8", "iso8859-1", "cp1252", "ascii"):
        return (
            f"starts with a {mark} byte order mark, but would be read as {encoding}",
            f'set the options encoding="{mark}" and multiLine="true"',
        )
    return None


def _nuls(head: bytes, encoding: str) -> tuple[str, str] | None:
    """The objection to the first bytes of a CSV file with a line that Spark skips."""
    if not _has_nul_bytes(encoding):
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
    if is_compressed(file.path) or not _has_nul_bytes(encoding):
        return None
    try:
        with system.open_input_file(file.path) as opened:
            opened.seek(file.size - 1)
            last = bytes(opened.read(1))
    except OSError:
        return None
    return _PADDED if last == b"\0" else None


def _has_nul_bytes(encoding: str) -> bool:
    """True if a NUL byte stands for itself, and for nothing else."""
    return "\0".encode(encoding) == b"\0"
