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
    # All zones but Z and those of the form +01:00.
    "timestamp": r"-.*:.*([^0-9:.Z+-]|[+-](.{0,4}|.{6,}|..[^:]..)$)|^\s*0001-01-01.*[+]",
}
"""By type, the strings that may be cast otherwise."""


def read_strings(
    ref: DatasetRef, location: str, files: Sequence[DataFile], types: Mapping[str, str], line: str
) -> pa.Table:
    """The strings of CSV files with declared columns that this process reads, to send them to an
    engine that would read them unlike Spark; and in the column `line` the lines with too few or too
    many values. Only files that all readers of CSV take alike, with strings that both cast alike.

    :param types: those of the declared columns.
    :raises DatasetError: they may be read or cast otherwise, or are too large to be sent.
    """

    def refused(other: str) -> DatasetError:
        message = f"dataset '{ref.name}': Sail may read {other} differently from Spark"
        return DatasetError(message, f"write the data as Parquet, or {INSTEAD}")

    def read(system: FileSystem, file: DataFile) -> pa.Table:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            text = str(stream.read(), "utf-8", "replace")
        lines = [one for one in text.replace("\r\n", "\n").split("\n") if one]
        is_plain = max(map(len, lines), default=0) < csv.field_size_limit()
        is_plain &= text.count('"') == 2 * len(_QUOTED.findall(text))
        if not is_plain or _READ_OTHERWISE.search(text):
            raise refused(f"escapes, quotes, spaces, or control characters in {file.path}")
        names, *rows = [*csv.reader(lines)] or [[]]
        require_declared(ref, names, types, file.path)
        if not all(names) or len({name.casefold() for name in names}) < len(names):
            raise refused(f"the header of {file.path}")
        width, found = len(names), []
        for row, one in zip(rows, lines[1:], strict=True):
            cells = [cell or None for cell in [*row, *[""] * width][:width]]
            found.append([*cells, None if len(row) == width else one])
        schema = pa.schema([(name, pa.string()) for name in (*names, line)])
        columns = map(pa.array, zip(*found, strict=True))
        return pa.table([*columns], schema=schema) if found else schema.empty_table()

    if folders := listing.partition_names(files):
        raise refused(f"the values of {folders[0]} in the names of folders")
    if sum(file.size for file in files) > MOST_SENT_BYTES:
        raise refused(f"more than {MOST_SENT_BYTES // 1_000_000} MB of CSV")
    table = pa.concat_tables(read_each(location, files, read), promote_options="default")
    for name, kind in types.items():
        others = _CAST_OTHERWISE.get(kind.split("(")[0])
        column = spelled_like(name, table.schema.names)
        if others and column and pc.any(pc.match_substring_regex(table[column], others)).as_py():
            raise refused(f"the form of some {kind} values of column '{column}'")
    return table
