"""CSV files that this process reads for Sail, whose reader differs from Spark's."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileSystem

from dqx_airflow.engine.session.sail import INSTEAD
from dqx_airflow.engine.sources import listing
from dqx_airflow.engine.sources.csv_headers import require_declared
from dqx_airflow.engine.sources.listing import DataFile, read_each
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.values import DatasetRef

MOST_SENT_BYTES = 50_000_000
"""The maximum size of the CSV files of a dataset that are sent to an engine."""

_READ_OTHERWISE = re.compile(
    r"[\\\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]|\r(?!\n)|\A\ufeff|^[ \t]+\r?$", re.MULTILINE
)
"""Escapes, control characters, a byte order mark, and lines of spaces."""
_QUOTED = re.compile(r'(?:^|(?<=,))"[^"\r\n]*"(?=,|\r?$)', re.MULTILINE)
_CAST_OTHERWISE = {
    "boolean": r"(?i)^\s*(tr|tru|ye|on|fa|fal|fals|off?)\s*$",
    "decimal": "[0-9.][eE]",
    "date": r"^\s*[0-9]+-[0-9]+-[0-9]+[T\s]|\t",
    # All zones but Z and +01:00.
    "timestamp": r"-.*:.*([^0-9:.Z+-]|[+-](.{0,4}|.{6,}|..[^:]..)$)|^\s*0001-01-01.*[+]",
}
"""By type, the strings that may be cast otherwise."""


def read_strings(
    ref: DatasetRef, location: str, files: Sequence[DataFile], types: Mapping[str, str], line: str
) -> pa.Table:
    """The strings of CSV files with declared columns, which this process reads and sends to Sail;
    and in the column `line` the lines with too few or too many values.

    Only files that all readers of CSV take alike, with strings that Sail and Spark cast alike.

    :param types: the types of the declared columns.
    :raises DatasetError: the files may be read or cast otherwise, or are too large to be sent.
    """
    folders = listing.partition_names(files)
    if folders:
        raise _refused(ref, f"the values of {folders[0]} in the names of folders")
    if sum(file.size for file in files) > MOST_SENT_BYTES:
        raise _refused(ref, f"more than {MOST_SENT_BYTES // 1_000_000} MB of CSV")

    def read(system: FileSystem, file: DataFile) -> pa.Table:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            text = str(stream.read(), "utf-8", "replace")
        if not _is_plain(text):
            other = f"escapes, quotes, spaces, or control characters in {file.path}"
            raise _refused(ref, other)
        lines = _lines_of(text)
        names = next(csv.reader(lines[:1]), [])
        require_declared(ref, names, types, file.path)
        if not all(names) or len({name.casefold() for name in names}) < len(names):
            raise _refused(ref, f"the header of {file.path}")
        return _table(names, lines[1:], line)

    table = pa.concat_tables(read_each(location, files, read), promote_options="default")
    for name, kind in types.items():
        others = _CAST_OTHERWISE.get(kind.split("(")[0])
        column = spelled_like(name, table.schema.names)
        if others is None or column is None:
            continue
        if pc.any(pc.match_substring_regex(table[column], others)).as_py():
            raise _refused(ref, f"the form of some {kind} values of column '{column}'")
    return table


def _refused(ref: DatasetRef, other: str) -> DatasetError:
    message = f"dataset '{ref.name}': Sail may read {other} differently from Spark"
    return DatasetError(message, f"write the data as Parquet, or {INSTEAD}")


def _lines_of(text: str) -> list[str]:
    """The lines that are not empty."""
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def _is_plain(text: str) -> bool:
    """True for CSV that all readers take alike: its values have no line breaks and no escapes."""
    if max(map(len, _lines_of(text)), default=0) >= csv.field_size_limit():
        return False
    if text.count('"') != 2 * len(_QUOTED.findall(text)):
        return False
    return _READ_OTHERWISE.search(text) is None


def _table(names: Sequence[str], lines: Sequence[str], line: str) -> pa.Table:
    """The values of the lines of a file, and whole lines with too few or too many values.

    :param line: the column of these lines.
    """
    schema = pa.schema([(name, pa.string()) for name in (*names, line)])
    rows: list[list[str | None]] = []
    for text, values in zip(lines, csv.reader(lines), strict=True):
        cells: list[str | None] = [value or None for value in values[: len(names)]]
        missing = [None] * (len(names) - len(cells))
        misfit = None if len(values) == len(names) else text
        rows.append([*cells, *missing, misfit])
    if not rows:
        return schema.empty_table()
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.table(columns, schema=schema)
