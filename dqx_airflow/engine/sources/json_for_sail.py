"""JSON files that this process reads for Sail, whose reader differs from Spark's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import is_on
from dqx_airflow.engine.sources.listing import DataFile, read_each
from dqx_airflow.engine.sources.sent_texts import refused, require_alike_casts, require_sendable
from dqx_airflow.metrics.spark_values import FLOATING
from dqx_airflow.metrics.sql import can_be_cast
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.values import DatasetRef

_READ_OTHERWISE = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]|\r(?!\n)|\A\ufeff")
"""Control characters, and a byte order mark."""
_ONLY_SPARK_READS = re.compile(r"'|NaN|INF|Infinity|/[/*]")
"""Parts of text that is not JSON, and that Spark may read all the same."""
_IN_VALUES = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd\ud800-\udfff]")
"""Characters of strings that engines take differently."""
_EXPONENT = re.compile(r"[eE]|\A-0\Z")
_LINE_BREAK = re.compile(r"[\r\n]")
_BLANK = " \t\r\n"


class _Number(str):
    """A number, as it is written."""

    __slots__ = ()


class _OtherwiseError(ValueError):
    """A text that readers may take differently; the message says which part."""


def read_strings(
    ref: DatasetRef, location: str, files: Sequence[DataFile], types: Mapping[str, str], line: str
) -> pa.Table:
    """The strings of JSON objects with declared columns, which this process reads and sends to
    Sail; and in the column `line` the lines that are not JSON. Spark has the same strings.

    :param types: the types of the declared columns.
    :raises DatasetError: the files may be read or cast otherwise, or are too large to be sent.
    """
    require_sendable(ref, location, files)
    for name, kind in types.items():
        if not can_be_cast(kind):
            raise refused(ref, f"column '{name}' of type {kind} in JSON")
    is_document = is_on(ref, "multiLine")

    def read(system: FileSystem, file: DataFile) -> list[dict[str, str | None]]:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            text = str(stream.read(), "utf-8", "replace")
        if _READ_OTHERWISE.search(text):
            raise refused(ref, f"control characters or the encoding of {file.path}")
        objects = _objects_in_document(text) if is_document else _objects_in_lines(text, line)
        try:
            return [_strings(value, types, line) for value in objects]
        except (_OtherwiseError, RecursionError) as error:
            raise refused(ref, f"{error} in {file.path}") from None

    rows = [row for part in read_each(location, files, read) for row in part]
    present = {name for row in rows for name in row}
    names = [name for name in types if name in present]
    columns = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in names}
    columns[line] = pa.array([row.get(line) for row in rows], pa.string())
    table = pa.table(columns)
    require_alike_casts(ref, table, types)
    return table


def _objects_in_lines(text: str, line: str) -> Iterator[dict[str, Any]]:
    """Yields the object of each line that is not blank.

    :param line: the key of a line that is not JSON.
    """
    for part in text.replace("\r\n", "\n").split("\n"):
        stripped = part.strip(_BLANK)
        if not stripped:
            continue
        try:
            value, end = _DECODER.raw_decode(stripped)
        except json.JSONDecodeError:
            if _ONLY_SPARK_READS.search(part):
                raise _OtherwiseError("a line that is not JSON") from None
            yield {line: part}
            continue
        if end < len(stripped):
            raise _OtherwiseError("a line with more than one value")
        if not isinstance(value, dict):
            raise _OtherwiseError("a line that is not an object")
        yield value


def _objects_in_document(text: str) -> Iterator[dict[str, Any]]:
    """Yields the objects of a document: one, or an array of them."""
    stripped = text.strip(_BLANK)
    if not stripped:
        return
    try:
        value, end = _DECODER.raw_decode(stripped)
    except json.JSONDecodeError:
        raise _OtherwiseError("a document that is not JSON") from None
    values = value if isinstance(value, list) else [value]
    if end < len(stripped) or not all(isinstance(one, dict) for one in values):
        raise _OtherwiseError("a document that is not an array of objects")
    yield from values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _OtherwiseError("an object with a duplicate field")
    return found


def _refuse_constant(name: str) -> Any:
    raise _OtherwiseError(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_refuse_constant,
)


def _strings(
    value: Mapping[str, Any], types: Mapping[str, str], line: str
) -> dict[str, str | None]:
    """The values of an object as strings, as Spark reads them into string columns."""
    row: dict[str, str | None] = {}
    for name, held in value.items():
        if name == line:
            row[name] = held
            continue
        if name not in types:
            if spelled_like(name, types) is not None:
                raise _OtherwiseError(f"the case of '{name}'")
            raise _OtherwiseError(f"column '{name}', which is not declared,")
        row[name] = _string(name, held, types[name])
    return row


def _string(name: str, value: Any, kind: str) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case _Number():
            if kind not in FLOATING and _EXPONENT.search(value):
                raise _OtherwiseError(f"the number {value}")
            return str(value)
        case str():
            is_cast = not kind.startswith("string")
            if _IN_VALUES.search(value) or (is_cast and _LINE_BREAK.search(value)):
                raise _OtherwiseError(f"special characters in column '{name}'")
            return value
    raise _OtherwiseError(f"nested values of column '{name}'")
