"""The first line of a CSV or JSON file that cannot be read, and how to mend it.

Spark names the file at best. Only after it has failed are its files read here, line by line, or as
a whole if values may have line breaks.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import given_options, is_on, option_of
from dqx_airflow.engine.sources import csv_quotes
from dqx_airflow.engine.sources.csv_quotes import CsvDialect
from dqx_airflow.engine.sources.json_text import DUPLICATE_FIELD, MORE_VALUES, is_document
from dqx_airflow.engine.sources.listing import DataFile, absolute, files_at
from dqx_airflow.engine.sources.text_faults import SOME_LINE
from dqx_airflow.values import MASK, DatasetRef

_FAULTS = (csv_quotes.MISREAD, csv_quotes.SKIPPED, SOME_LINE, MORE_VALUES, DUPLICATE_FIELD)
_WITH_SCHEMA = 'mend it, or declare the columns with schema="...", with which it is a failing row'
_MEND = "mend it, or write the file again"
_BREAKS = (
    'set multiLine="true" if values have line breaks, '
    'or escape="\\"" if a backslash is not an escape'
)
_CLOSE = 'close the quotes, or set escape="\\"" if a backslash is not an escape'
_STATED = "correct the option escape: none of its values reads all of the file, if both occur"
_AFTER = (
    'double the quotes within values and set escape="\\"", or set quote="" if they are part of the '
    'values, or unescapedQuoteHandling="STOP_AT_DELIMITER" to keep such values as they are written'
)
_SKIPPED = "remove the line, or put its value in quotes"
_MOST_SHOWN = 60
_MOST_CHARACTERS = 100_000_000
"""How much of a file is read as a whole to find a line."""


@dataclass(frozen=True, slots=True)
class _Broken:
    """A line that cannot be read: its number, its text, its fault, and how to mend it."""

    number: int
    text: str
    what: str
    advice: str


def located(ref: DatasetRef, problem: str) -> str:
    """The problem of a dataset with the file and the number of the first line that cannot be read,
    its beginning unless columns are masked, and an advice; unchanged if it is another problem, or
    the line is not found."""
    if ref.path is None or not any(fault in problem for fault in _FAULTS):
        return problem
    if ref.format not in ("csv", "json"):
        return problem
    with suppress(OSError, ValueError, LookupError):
        for path, line in _broken(ref, problem):
            start = json.dumps(line.text[:_MOST_SHOWN], ensure_ascii=False)
            shown = MASK if ref.masked else start
            return f"{path} cannot be read: line {line.number} {line.what}: {shown}; {line.advice}"
    return problem


def _broken(ref: DatasetRef, problem: str) -> Iterator[tuple[str, _Broken]]:
    """The lines that cannot be read, each with the path of its file."""
    location = absolute(ref.path or "")
    system, _ = FileSystem.from_uri(location)
    files = files_at(location) or ()
    # The file that Spark names comes first.
    for file in sorted(files, key=lambda one: one.path not in problem):
        for line in _broken_in(ref, system, file):
            yield file.path, line


def _broken_in(ref: DatasetRef, system: FileSystem, file: DataFile) -> Iterator[_Broken]:
    encoding = option_of(ref, "encoding") or option_of(ref, "charset") or "utf-8-sig"
    is_whole = is_on(ref, "multiLine")
    if ref.format == "json" and option_of(ref, "multiLine") is None:
        is_whole = is_document(system, file) is True or _begins_document(system, file)
    # Lines with an end of their own are split here, too.
    line_break = option_of(ref, "lineSep")
    with system.open_input_stream(file.path) as stream:
        lines = io.TextIOWrapper(
            stream, encoding, errors="replace", newline="" if is_whole or line_break else None
        )
        if not is_whole and not line_break:
            found = _broken_csv(ref, lines) if ref.format == "csv" else _broken_json(ref, lines)
            yield from found
            return
        text = lines.read(_MOST_CHARACTERS + 1)
    if len(text) > _MOST_CHARACTERS:
        return
    if not is_whole and line_break:
        lines_of_text = iter(text.split(line_break))
        split = _broken_csv if ref.format == "csv" else _broken_json
        yield from split(ref, lines_of_text)
    elif ref.format == "csv":
        yield from _broken_records(ref, text)
    else:
        yield from _broken_document(ref, text)


def _begins_document(system: FileSystem, file: DataFile) -> bool:
    """True if the first line of a JSON file is only the beginning of an object or an array."""
    with system.open_input_stream(file.path) as stream:
        first_line = bytes(stream.read(4096)).lstrip().split(b"\n", maxsplit=1)[0]
    return first_line.strip() in (b"{", b"[")


def _broken_csv(ref: DatasetRef, lines: Iterator[str]) -> Iterator[_Broken]:
    dialect = CsvDialect.of(given_options(ref))
    width: int | None = None  # as many values as the header has, or the first line without one
    for number, text in enumerate(lines, start=1):
        line = text.rstrip("\r\n")
        if not line or (dialect.comment and line.startswith(dialect.comment)):
            continue
        if not line.strip():
            if width is not None and _is_blank_row(dialect, line, width):
                yield _Broken(number, line, "has nothing but spaces", _SKIPPED)
            continue
        if (fault := _fault_of_quotes(dialect, line)) is not None:
            yield _Broken(number, line, *fault)
            continue
        count, _ = dialect.values_in(line)
        if width is None:
            width = count
        elif count != width:
            yield _Broken(number, line, _other_width(count, width), _WITH_SCHEMA)


def _is_blank_row(dialect: CsvDialect, line: str, width: int) -> bool:
    """True if a line of nothing but spaces has as many values as the others."""
    return dialect.loses_blank_lines(width) and dialect.values_in(line)[0] == width


def _other_width(count: int, width: int) -> str:
    values = "1 value" if count == 1 else f"{count} values"
    return f"has {values} instead of {width}"


def _fault_of_quotes(dialect: CsvDialect, record: str) -> tuple[str, str] | None:
    """The fault for which Spark misreads a record, and how to mend it; None without a fault."""
    if not dialect.quote or dialect.quote not in record:
        return None
    fit = dialect.fit_of(record)
    if fit.is_sound:
        return None
    if fit.if_doubled and fit.if_escaped and not dialect.is_escape_stated:
        what = f"has {dialect.escape} in quotes, which may be an escape"
        is_none = _as_option(dialect.quote)
        is_one = _as_option(dialect.escape)
        return what, f"set escape={is_none} if it is none, or escape={is_one} if it is one"
    if fit.if_doubled:
        advice = f"set escape={_as_option(dialect.quote)}, which reads a doubled quote as one"
        return "has quotes or escapes in quotes that Spark reads otherwise", advice
    if fit.if_escaped:
        return f"has {dialect.quote} in quotes that is not doubled, as escape says", _STATED
    if dialect.values_in(record)[1]:
        return "ends within a value in quotes", _BREAKS
    return "has text behind a closing quote", _AFTER


def _as_option(character: str) -> str:
    """A character as the value of an option in Python or TOML."""
    return json.dumps(character, ensure_ascii=False)


def _broken_records(ref: DatasetRef, text: str) -> Iterator[_Broken]:
    """The records of a CSV file whose values may have line breaks, by their first lines."""
    dialect = CsvDialect.of(given_options(ref))
    width: int | None = None
    start = 0
    while start < len(text):
        number = _number_at(text, start)
        if dialect.comment and text.startswith(dialect.comment, start):
            end = dialect.end_of_line(text, start)
            start = dialect.after_break(text, end)
            continue
        end_of_record = dialect.end_of_record(text, start)
        if end_of_record is None:
            line = text[start : dialect.end_of_line(text, start)]
            what = "has quotes that are not closed, or text behind a closing quote"
            yield _Broken(number, line, what, _CLOSE)
            return
        record = text[start:end_of_record]
        start = dialect.after_break(text, end_of_record)
        if not record.strip():
            continue
        first_line = record[: dialect.end_of_line(record, 0)]
        if (fault := _fault_of_quotes(dialect, record)) is not None:
            yield _Broken(number, first_line, *fault)
            continue
        count, _ = dialect.values_in(record)
        if width is None:
            width = count
        elif count != width:
            yield _Broken(number, first_line, _other_width(count, width), _WITH_SCHEMA)


def _number_at(text: str, position: int) -> int:
    """The number of the line at a position."""
    return len(re.findall(r"\r\n|\r|\n", text[:position])) + 1


_OWN_JSON = (
    *("allowbackslashescapinganycharacter", "allowcomments", "allownumericleadingzeros"),
    *("allowunquotedcontrolchars", "allowunquotedfieldnames"),
)
"""Options with which Spark reads what Python does not, in lower case."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
_INSIDE = re.compile(r'\\(.)|"')


def _is_read_by_python(ref: DatasetRef) -> bool:
    return not any(is_on(ref, name) for name in _OWN_JSON)


def _loaded(ref: DatasetRef, text: str) -> object:
    """The value of JSON text, with strings in single quotes as Spark reads them.

    :raises ValueError: it is not JSON, or an object repeats a field.
    """
    if is_on(ref, "allowSingleQuotes", by_default=True):
        text = _STRING.sub(_in_double_quotes, text)
    return json.loads(text, object_pairs_hook=_without_repeats)


def _in_double_quotes(string: re.Match[str]) -> str:
    """A string literal of JSON, of the same length in lines."""
    if string[0].startswith('"'):
        return string[0]

    def escaped(part: re.Match[str]) -> str:
        if part[0] == '"':
            return '\\"'
        return "'" if part[1] == "'" else part[0]

    return f'"{_INSIDE.sub(escaped, string[0][1:-1])}"'


class _RepeatedFieldError(ValueError):
    """An object repeats a field."""


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RepeatedFieldError(twice)
    return found


def _broken_json(ref: DatasetRef, lines: Iterator[str]) -> Iterator[_Broken]:
    if not _is_read_by_python(ref):
        return
    for number, text in enumerate(lines, start=1):
        line = text.strip()
        if not line:
            continue
        try:
            value = _loaded(ref, line)
        except _RepeatedFieldError:
            yield _Broken(number, line, "repeats a field", _WITH_SCHEMA)
        except (ValueError, RecursionError):
            yield _Broken(number, line, "is not JSON, or more than one value", _WITH_SCHEMA)
        else:
            if not isinstance(value, dict | list):
                yield _Broken(number, line, "is not a JSON object", _WITH_SCHEMA)


def _broken_document(ref: DatasetRef, text: str) -> Iterator[_Broken]:
    """The line at which a JSON document ends to be one."""
    if not _is_read_by_python(ref):
        return
    lines = text.splitlines() or [""]
    try:
        _loaded(ref, text)
    except json.JSONDecodeError as error:
        number = min(error.lineno, len(lines))
        what = "is where the file stops being one JSON value"
        yield _Broken(number, lines[number - 1].strip(), what, _MEND)
    except _RepeatedFieldError as error:
        name = json.dumps(str(error), ensure_ascii=False)
        numbers = [number for number, line in enumerate(lines, start=1) if name in line]
        number = numbers[0] if numbers else 1
        yield _Broken(number, lines[number - 1].strip(), "has a field that is repeated", _MEND)
