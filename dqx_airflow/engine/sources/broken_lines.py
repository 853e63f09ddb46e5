"""Where the first line of a CSV or JSON file is that cannot be read, and what to do about it.

Spark names the file at best. Only after it has failed are its files read here, line by line.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import is_on, option_of
from dqx_airflow.engine.sources import text_files
from dqx_airflow.engine.sources.listing import absolute, files_at
from dqx_airflow.values import MASK, DatasetRef

_FAULTS = (text_files.LINE_ENDS_IN_QUOTES, text_files.SOME_LINE, text_files.MORE, text_files.TWICE)
_WITH_SCHEMA = 'mend it, or declare the columns with schema="...", with which it is a failing row'
_BREAKS = (
    'set multiLine="true" if values have line breaks, or escape="\\"" if a backslash is no escape'
)
_MOST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Dialect:
    """The separator, the quote and the escape of CSV; an empty quote is none."""

    separator: str = ","
    quote: str = '"'
    escape: str = "\\"

    @classmethod
    def of(cls, ref: DatasetRef) -> Dialect:
        """The dialect that the options of a dataset give."""
        separator = option_of(ref, "sep") or option_of(ref, "delimiter") or ","
        quote, escape = option_of(ref, "quote"), option_of(ref, "escape")
        return cls(
            separator.replace("\\t", "\t"),
            '"' if quote is None else quote.strip("\0"),
            "\\" if escape is None else escape,
        )

    def values_in(self, line: str) -> tuple[int, bool]:
        """The number of values in a line, and whether it ends within one in quotes."""
        count, position = 0, 0
        while True:
            count += 1
            if self.quote and line.startswith(self.quote, position):
                end = self._end_of_quoted(line, position + 1)
                if end is None:
                    return count, True
                position = end
            following = line.find(self.separator, position)
            if following < 0:
                return count, False
            position = following + len(self.separator)

    def _end_of_quoted(self, line: str, position: int) -> int | None:
        """The position after the closing quote; None if there is none."""
        while position < len(line):
            character = line[position]
            if character == self.escape != self.quote:
                position += 2
            elif character != self.quote:
                position += 1
            elif line.startswith(self.quote, position + 1):
                position += 2
            else:
                return position + 1
        return None


def located(ref: DatasetRef, problem: str) -> str:
    """The problem of a dataset with the file and the number of the first line that cannot be read,
    its beginning unless columns are masked, and an advice; unchanged if it is another problem, or
    the line is not found."""
    if ref.path is None or not any(fault in problem for fault in _FAULTS):
        return problem
    if is_on(ref, "multiLine") or ref.format not in ("csv", "json"):
        return problem
    with suppress(OSError, ValueError, LookupError):
        for path, number, line, what, advice in _broken(ref, problem):
            shown = MASK if ref.masked else json.dumps(line[:_MOST_SHOWN], ensure_ascii=False)
            return f"{path} cannot be read: line {number} {what}: {shown}; {advice}"
    return problem


def _broken(ref: DatasetRef, problem: str) -> Iterator[tuple[str, int, str, str, str]]:
    """The lines that cannot be read: file, number, text, what is wrong, and what to do."""
    location = absolute(ref.path or "")
    system, _ = FileSystem.from_uri(location)
    encoding = option_of(ref, "encoding") or option_of(ref, "charset") or "utf-8-sig"
    files = files_at(location) or ()
    # The file that Spark names comes first.
    for file in sorted(files, key=lambda one: one.path not in problem):
        with system.open_input_stream(file.path) as stream:
            lines = io.TextIOWrapper(stream, encoding, errors="replace", newline=None)
            found = _broken_csv(ref, lines) if ref.format == "csv" else _broken_json(lines)
            for number, line, what, advice in found:
                yield file.path, number, line, what, advice


def _broken_csv(ref: DatasetRef, lines: Iterator[str]) -> Iterator[tuple[int, str, str, str]]:
    dialect = Dialect.of(ref)
    comment = option_of(ref, "comment")
    width: int | None = None  # as many values as the header has, or the first line without one
    for number, text in enumerate(lines, start=1):
        line = text.rstrip("\r\n")
        if not line.strip() or (comment and line.startswith(comment)):
            continue
        count, is_open = dialect.values_in(line)
        if is_open:
            yield number, line, "ends within a value in quotes", _BREAKS
        elif width is None:
            width = count
        elif count != width:
            values = "1 value" if count == 1 else f"{count} values"
            yield number, line, f"has {values} instead of {width}", _WITH_SCHEMA


def _broken_json(lines: Iterator[str]) -> Iterator[tuple[int, str, str, str]]:
    for number, text in enumerate(lines, start=1):
        line = text.strip()
        if not line:
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            if "'" not in line:  # which Spark takes for a quote, and Python does not
                yield number, line, "is not JSON, or more than one value", _WITH_SCHEMA
            continue
        if not isinstance(value, dict | list):
            yield number, line, "is no JSON object", _WITH_SCHEMA
