"""The encoding and compression of text files, and the NUL bytes of incomplete ones."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyarrow import NativeFile
from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import given_options, is_on
from dqx_airflow.dql.syntax.source_file import BYTE_ORDER_MARKS
from dqx_airflow.engine.session.spark_versions import is_valid_utf8
from dqx_airflow.engine.sources import listing
from dqx_airflow.engine.sources.csv_headers import has_header
from dqx_airflow.engine.sources.listing import (
    COMPRESSION_HINT,
    HEAD_BYTES,
    TEXT_COLUMN,
    DataFile,
    read_each,
)
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

_LINE_OF_NULS = re.compile(rb"(?:\A|\n)\0+(?:\r?\n|\Z)")
_DECODED_BY_SPARK = ("utf-16", "utf-32")
_OF_SEVERAL_BYTES = ("utf-16", "utf-32")
"""Encodings whose characters, also the end of a line, have several bytes."""
_CHECKED_BY_SPARK = ("utf-", "iso8859-1")
"""The encodings whose rest Spark SQL checks: no more than the first part of a file is read here."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """Something wrong with the bytes of a file, and how to mend it."""

    problem: str
    hint: str


_PADDED = _Fault("ends with NUL bytes, so it may be incomplete", "write the file again")


def require_text(ref: DatasetRef, location: str, files: Sequence[DataFile]) -> dict[str, str]:
    """Rejects CSV and JSON files that are in another encoding than they would be read in, or still
    compressed; returns the faults of texts that are left to be found, with their conditions as
    Spark SQL.

    Also rejects CSV files whose header is missing because they are empty: Spark skips such a file
    if there are others.

    Here the first megabyte of each file is read, which is enough to name the place of most faults,
    and the end of CSV files that are not compressed, for a padding of NUL bytes. Files in encodings
    that Spark SQL does not know are read whole. Files that cannot be opened are left to Spark.

    :raises DatasetError: there is one, or the encoding of CSV needs `multiLine`.
    """
    for path in [file.path for file in files] or [location]:
        suffix = listing.refused_suffix(path)
        if suffix is not None:
            message = f"dataset '{ref.name}': {path}: {suffix} files are not supported"
            raise DatasetError(message, COMPRESSION_HINT)
    options = {name.lower(): value for name, value in given_options(ref).items()}
    encoding = options.get("encoding", options.get("charset", "UTF-8"))
    try:
        codec = codecs.lookup(encoding).name
    except LookupError:
        return {}
    _require_lines(ref, options, encoding, codec)
    is_csv = ref.format == "csv"
    is_split = is_csv and is_on(ref, "multiLine") and "linesep" not in options
    values = _Values.of(options) if is_split else None
    text_format = _TextFormat(encoding, codec, is_csv, is_csv and has_header(ref), values)
    filled = [file for file in files if file.size > 0]
    try:
        looks = read_each(location, filled, text_format.look)
    except (OSError, ValueError):
        return {}
    for file, look in zip(filled, looks, strict=True):
        if look.fault is not None:
            message = f"dataset '{ref.name}': {file.path} {look.fault.problem}"
            raise DatasetError(message, look.fault.hint)
    if all(look.is_whole for look in looks):
        return {}
    return _unseen_faults(codec, lines_are_skipped=is_csv and not is_on(ref, "multiLine"))


def _require_lines(ref: DatasetRef, options: Mapping[str, str], encoding: str, codec: str) -> None:
    """:raises DatasetError: Spark splits lines of CSV in this encoding within their characters."""
    is_in_lines = not is_on(ref, "multiLine") and "linesep" not in options
    if ref.format == "csv" and is_in_lines and codec.startswith(_OF_SEVERAL_BYTES):
        raise DatasetError(
            f"dataset '{ref.name}': Spark cannot separate lines of CSV in {encoding}: it looks "
            "for their end byte by byte",
            'set the option multiLine="true", which reads each file whole',
        )


def _unseen_faults(codec: str, *, lines_are_skipped: bool) -> dict[str, str]:
    """The faults that text may have beyond its first part, with their conditions as Spark SQL.

    :param lines_are_skipped: true if the reader skips lines of nothing but NUL bytes.
    """
    faults = {}
    if codec == "utf-8":
        invalid = f"NOT {is_valid_utf8(TEXT_COLUMN)}"
        faults["it is not valid UTF-8; set the option encoding"] = invalid
    elif codec.startswith(_DECODED_BY_SPARK):
        decoded = f"decode(CAST({TEXT_COLUMN} AS BINARY), '{codec}')"
        faults[f"it is not valid {codec}"] = f"{decoded} IS NULL"  # it fails by itself
    if lines_are_skipped and _has_nul_bytes(codec):
        faults["a line has only NUL bytes, so it may be incomplete"] = (
            f"(startswith({TEXT_COLUMN}, chr(0)) AND trim(LEADING chr(0) FROM {TEXT_COLUMN}) = '')"
        )
    return faults


@dataclass(frozen=True, slots=True)
class _Look:
    """The result of a look at a file: its fault, and whether its first part is all of it."""

    fault: _Fault | None
    is_whole: bool


_LINE_BREAK = re.compile("\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class _Values:
    """What surrounds the values of CSV."""

    separator: str
    quote: str
    escape: str

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Values:
        separator = options.get("sep") or options.get("delimiter") or ","
        quote = options.get("quote", '"').strip("\0")
        escape = options.get("escape", "\\").strip("\0")
        return cls(separator.replace("\\t", "\t"), quote, escape)

    def fault_of_first_break(self, text: str) -> _Fault | None:
        """The first line break, if it is within a value and not the one between rows: Spark would
        separate the rows by it."""
        first = _LINE_BREAK.search(text)
        between = self._first_between(text)
        # Spark reads both ends of `\r\n` where it has seen a `\r`.
        if first is None or between is None or between in (first[0], f"{first[0]}\n"):
            return None
        shown = between.replace("\r", "\\r").replace("\n", "\\n")
        return _Fault(
            "has a value with another line break than the one between its rows, before the first "
            "of these: Spark would separate the rows by it",
            f'set the option lineSep to the line break between rows: "{shown}"',
        )

    def _first_between(self, text: str) -> str | None:
        """The first line break that is not within quotes."""
        position = 0
        begins = True
        while position < len(text):
            if begins and self.quote and text.startswith(self.quote, position):
                position = self._end_of_quotes(text, position + 1)
                begins = False
            elif found := _LINE_BREAK.match(text, position):
                return found[0]
            else:
                begins = text.startswith(self.separator, position)
                position += len(self.separator) if begins else 1
        return None

    def _end_of_quotes(self, text: str, position: int) -> int:
        """The position behind the closing quote of a value."""
        while position < len(text):
            is_escaped = text[position] == self.escape and self.escape != self.quote
            if is_escaped or text.startswith(self.quote * 2, position):
                position += 2
            elif text[position] == self.quote:
                return position + 1
            else:
                position += 1
        return position


@dataclass(frozen=True, slots=True)
class _TextFormat:
    """The form in which files are to be read: the encoding as a user wrote it, and its name in
    Python; with `values`, Spark takes the first line break for the one between rows."""

    encoding: str
    codec: str
    is_csv: bool
    has_header: bool
    values: _Values | None = None

    def look(self, system: FileSystem, file: DataFile) -> _Look:
        """Looks for faults in the bytes of a file."""
        try:
            with system.open_input_stream(file.path) as stream:  # decompresses by the file name
                head = bytes(stream.read(HEAD_BYTES))
                fault = self._fault_of_head(head) or self._undecodable_byte(head, stream)
        except OSError:
            return _Look(None, is_whole=True)
        if fault is None and self.is_csv and _has_nul_bytes(self.codec):
            fault = _nul_bytes(head) or _padding(system, file)
        if fault is None and self.values is not None:
            text = head.decode(self.encoding, "ignore").removeprefix("\ufeff")
            fault = self.values.fault_of_first_break(text)
        return _Look(fault, is_whole=len(head) < HEAD_BYTES)

    def _fault_of_head(self, head: bytes) -> _Fault | None:
        """A compression, an empty header, or a byte order mark of another encoding."""
        compression = listing.left_compression(head)
        if compression is not None:
            problem = f"contains {compression} data, but its name does not have that suffix"
            return _Fault(problem, COMPRESSION_HINT)
        is_blank = len(head) < HEAD_BYTES and not head.removeprefix(codecs.BOM_UTF8).strip()
        if self.has_header and is_blank:
            return _Fault("has no header: it is empty", "remove it, or write the header")
        if self.codec in ("utf-8", "iso8859-1", "cp1252", "ascii"):
            for mark, encoding in BYTE_ORDER_MARKS.items():
                if head.startswith(mark):
                    begins = f"starts with a {encoding} byte order mark"
                    return _Fault(
                        f"{begins}, but would be read as {self.encoding}",
                        f'set the options encoding="{encoding}" and multiLine="true"',
                    )
        return None

    def _undecodable_byte(self, head: bytes, stream: NativeFile) -> _Fault | None:
        """The first byte that is not of the encoding.

        :param head: the first part of the file.
        :param stream: the rest of it.
        """
        decoder = codecs.getincrementaldecoder(self.encoding)()
        part = head
        line = 1
        try:
            while True:
                is_last = len(part) < HEAD_BYTES
                decoder.decode(part, final=is_last)
                if is_last or self.codec.startswith(_CHECKED_BY_SPARK):
                    return None
                line += part.count(b"\n")
                part = bytes(stream.read(HEAD_BYTES))
        except UnicodeDecodeError as error:
            read = error.object  # with the rest of a character from the part before
            line += read[: error.start].count(b"\n")
            return _Fault(
                f"is not valid {self.encoding}: byte 0x{read[error.start]:02X} in line {line}",
                'set the option encoding to what the file has, such as encoding="ISO-8859-1"',
            )


def _nul_bytes(head: bytes) -> _Fault | None:
    """The first line of a CSV file that has only NUL bytes: Spark skips it."""
    if len(head) < HEAD_BYTES and head.endswith(b"\0"):
        return _PADDED
    found = _LINE_OF_NULS.search(head)
    if found is None:
        return None
    line = head[: found.start()].count(b"\n") + 1
    if found[0].startswith(b"\n"):
        line += 1
    problem = f"has only NUL bytes in line {line}, so it may be incomplete"
    return _Fault(problem, "write the file again")


def _padding(system: FileSystem, file: DataFile) -> _Fault | None:
    """NUL bytes at the end of a CSV file, whose writer may have crashed: Spark trims them off the
    last value, and skips a line that has nothing else."""
    if listing.is_compressed(file.path):
        return None
    try:
        with system.open_input_file(file.path) as opened:
            opened.seek(file.size - 1)
            last = bytes(opened.read(1))
    except OSError:
        return None
    return _PADDED if last == b"\0" else None


def _has_nul_bytes(codec: str) -> bool:
    """True if a NUL byte stands for itself, and for nothing else."""
    return "\0".encode(codec) == b"\0"


_DECODED = ("utf-16", "utf-16le", "utf-16be", "utf-32", "iso-8859-1")


def text_of(options: Mapping[str, str]) -> str:
    """The text of a line or a file, as Spark SQL."""
    by_name = {name.lower(): text for name, text in options.items()}
    encoding = by_name.get("encoding", by_name.get("charset", "")).lower()
    if encoding in _DECODED:
        return f"decode(CAST({TEXT_COLUMN} AS BINARY), '{encoding}')"
    return TEXT_COLUMN
