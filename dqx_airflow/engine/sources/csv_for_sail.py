"""CSV files that this process reads for Sail, whose reader differs from Spark's."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import option_of
from dqx_airflow.engine.sources.csv_headers import has_header, require_declared
from dqx_airflow.engine.sources.listing import DataFile, read_each
from dqx_airflow.engine.sources.sent_texts import refused, require_alike_casts, require_sendable
from dqx_airflow.values import DatasetRef

_READ_OTHERWISE = re.compile(
    r"[\\\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]|\r(?!\n)|\A\ufeff|^[ \t]+\r?$", re.MULTILINE
)
"""Escapes, control characters, a byte order mark, and lines of spaces."""
_SEPARATORS = (",", ";", "|", ":", "\t")


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of CSV: the separator of values, and a string that stands for NULL beside none."""

    separator: str
    null: str | None

    @property
    def quoted(self) -> re.Pattern[str]:
        """A quoted value."""
        sep = re.escape(self.separator)
        return re.compile(rf'(?:^|(?<={sep}))"[^"\r\n]*"(?={sep}|\r?$)', re.MULTILINE)

    @property
    def empty(self) -> re.Pattern[str]:
        """A quoted value without characters, which is not NULL if another string is."""
        sep = re.escape(self.separator)
        return re.compile(rf'(?:^|(?<={sep}))""(?={sep}|\r?$)', re.MULTILINE)

    def rows(self, lines: Sequence[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self.separator)


def _form_of(ref: DatasetRef) -> _Form:
    """:raises DatasetError: the separator was not tried."""
    separator = option_of(ref, "sep") or option_of(ref, "delimiter") or ","
    if separator not in _SEPARATORS:
        raise refused(ref, f"CSV with the separator {separator!r}")
    return _Form(separator, option_of(ref, "nullValue") or None)


def read_strings(
    ref: DatasetRef, location: str, files: Sequence[DataFile], types: Mapping[str, str], line: str
) -> pa.Table:
    """The strings of CSV files with declared columns, which this process reads and sends to Sail;
    and in the column `line` the lines with too few or too many values.

    Only files that all readers of CSV take alike, with strings that Sail and Spark cast alike.

    :param types: the types of the declared columns.
    :raises DatasetError: the files may be read or cast otherwise, or are too large to be sent.
    """
    require_sendable(ref, location, files)
    form = _form_of(ref)
    with_header = has_header(ref)

    def read(system: FileSystem, file: DataFile) -> pa.Table:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            text = str(stream.read(), "utf-8", "replace")
        if not _is_plain(text, form):
            other = f"escapes, quotes, spaces, or control characters in {file.path}"
            raise refused(ref, other)
        lines = _lines_of(text)
        names = next(form.rows(lines[:1]), [])
        if not with_header:
            if lines and len(names) != len(types):
                raise refused(ref, f"other columns than the declared ones in {file.path}")
            return _table([*types], lines, line, form)
        require_declared(ref, names, types, file.path)
        if not all(names) or len({name.casefold() for name in names}) < len(names):
            raise refused(ref, f"the header of {file.path}")
        return _table(names, lines[1:], line, form)

    table = pa.concat_tables(read_each(location, files, read), promote_options="default")
    require_alike_casts(ref, table, types)
    return table


def _lines_of(text: str) -> list[str]:
    """The lines that are not empty."""
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def _is_plain(text: str, form: _Form) -> bool:
    """True for CSV that all readers take alike: its values have no line breaks and no escapes."""
    if max(map(len, _lines_of(text)), default=0) >= csv.field_size_limit():
        return False
    if text.count('"') != 2 * len(form.quoted.findall(text)):
        return False
    if form.null is not None and form.empty.search(text):
        return False
    return _READ_OTHERWISE.search(text) is None


def _table(names: Sequence[str], lines: Sequence[str], line: str, form: _Form) -> pa.Table:
    """The values of the lines of a file, and whole lines with too few or too many values.

    :param line: the column of these lines.
    """
    schema = pa.schema([(name, pa.string()) for name in (*names, line)])
    rows: list[list[str | None]] = []
    nothing = ("", form.null)
    for text, values in zip(lines, form.rows(lines), strict=True):
        cells = [None if value in nothing else value for value in values[: len(names)]]
        missing = [None] * (len(names) - len(cells))
        misfit = None if len(values) == len(names) else text
        rows.append([*cells, *missing, misfit])
    if not rows:
        return schema.empty_table()
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.table(columns, schema=schema)
