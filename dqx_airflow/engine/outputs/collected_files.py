"""The data files of a commit, written by this process: for Sail, which writes no data.

The rows are taken from Sail as Arrow, at most `MOST_COLLECTED_BYTES` of them. Their files have the
names, folders and statistics that files of Spark have.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.engine.session.sail import arrow_parts, sail_version
from dqx_airflow.engine.sources.partition_values import NO_VALUE, UnheldValueError
from dqx_airflow.limits import MOST_COLLECTED_BYTES
from dqx_airflow.metrics.sql import quote_literal, quote_name

_COUNTED = "dqx: counted"
_LONGEST_NAME = 255
"""The bytes in the name of a folder, on most file systems."""
_REFUSED_TYPES = ("float", "double", "binary")
"""Types of partition columns whose values Spark spells in its own way."""


class TooManyRowsError(Exception):
    """There are more rows than this process takes from Sail."""


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file that was written.

    :param name: its path below the folder of all files.
    :param partition: the strings of its partition for the log.
    :param rows: the number of its rows.
    :param counted: the number of its rows that satisfy the condition.
    :param extremes: for some columns the minimum, the maximum and the number of values.
    """

    name: str
    size: int
    partition: Mapping[str, str | None]
    rows: int
    counted: int
    extremes: tuple[tuple[str, Any, Any, int], ...]


def write_collected(
    frame: DataFrame,
    root: str,
    folder: str,
    partition_by: Sequence[str],
    extremes_of: Sequence[str],
    count_if: str | None,
) -> list[PartFile]:
    """Writes the rows of a frame into a folder below the root of a table, a file a partition.

    The arguments are those of `write_files`.

    :raises UnheldValueError: a partition cannot hold a value.
    :raises TooManyRowsError: there are more rows than this process takes.
    """
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    divided = {name: kinds[name] for name in partition_by}
    table = _collected(
        frame.withColumn(_COUNTED, F.expr(f"coalesce({count_if or 'false'}, false)"))
    )
    bounded = [name for name in dict.fromkeys(extremes_of) if name not in divided]
    kept = [name for name in kinds if name not in divided]
    system, path = FileSystem.from_uri(f"{root}/{folder}")
    files = []
    for values, rows in _by_partition(table, divided):
        folders = []
        partition = {}
        for name, kind in divided.items():
            try:
                text = _logged(name, kind, values[name])
            except UnheldValueError as error:
                error.rows = _rows_with(frame, name, kind, values[name])
                raise
            partition[name] = text
            folders.append(f"{quote(name)}={_in_folder(name, text)}")
        system.create_dir("/".join([path, *folders]), recursive=True)
        file = "/".join([*folders, f"part-00000-{uuid.uuid4()}.snappy.parquet"])
        pq.write_table(rows.select(kept), f"{path}/{file}", filesystem=system)
        (info,) = system.get_file_info([f"{path}/{file}"])
        files.append(
            PartFile(
                file,
                info.size,
                partition,
                len(rows),
                pc.sum(rows[_COUNTED]).as_py() or 0,
                tuple(_extremes(name, rows[name]) for name in bounded),
            )
        )
    return files


def _collected(frame: DataFrame) -> pa.Table:
    """All rows of a frame.

    :raises TooManyRowsError: there are more than this process takes.
    """
    parts = []
    size = 0
    for part in arrow_parts(frame):
        size += part.nbytes
        if size > MOST_COLLECTED_BYTES:
            most = f"{MOST_COLLECTED_BYTES // 1_000_000:,} MB"
            sail = sail_version(frame.sparkSession)
            raise TooManyRowsError(
                f"the rows take more than {most}, which is all that is written "
                f"without Spark (Sail {sail})"
            )
        parts.append(part)
    return pa.concat_tables(parts)


def _by_partition(
    table: pa.Table, divided: Mapping[str, str]
) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """The rows of each partition, with its values; nothing for no rows."""
    if not len(table):
        return
    if not divided:
        yield {}, table
        return
    names = [*divided]
    keys = [_comparable(table[name]) for name in names]
    numbered = pa.table(
        [*keys, pa.array(np.arange(len(table)))], [*map(str, range(len(keys))), "row"]
    )
    groups = numbered.group_by([*map(str, range(len(keys)))]).aggregate([("row", "list")])
    for rows in groups["row_list"]:
        chosen = table.take(rows.values)
        yield {name: _value(name, chosen[name][0]) for name in names}, chosen


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column by which Arrow groups: of decimals the strings."""
    return column.cast(pa.string()) if pa.types.is_decimal(column.type) else column


def _value(name: str, cell: pa.Scalar) -> Any:
    try:
        return cell.as_py()
    except (OverflowError, ValueError) as error:
        raise UnheldValueError(name, "year") from error


def _logged(name: str, kind: str, value: Any) -> str | None:
    """The string of a value in the log of a table.

    :raises UnheldValueError: a partition cannot hold it.
    """
    if kind.startswith(_REFUSED_TYPES):
        if value is None:
            return None
        raise UnheldValueError(name, "binary" if kind == "binary" else "floating")
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case str():
            return _string(name, value)
        case datetime() if value.tzinfo is not None:
            moment = value.astimezone(timezone.utc).replace(tzinfo=None)
            return f"{moment.isoformat(timespec='microseconds')}Z"
        case datetime():
            return value.isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return str(value)


def _string(name: str, value: str) -> str:
    if value == "":
        raise UnheldValueError(name, "empty")
    if value == NO_VALUE:
        raise UnheldValueError(name, "null")
    if len(_in_folder(name, value)) > _LONGEST_NAME - len(quote(name)) - 1:
        raise UnheldValueError(name, "long")
    return value


def _in_folder(name: str, text: str | None) -> str:
    """The string of a partition in the name of a folder: ASCII, and short enough if possible."""
    if text is None:
        return NO_VALUE
    plain = quote(text, safe=" ")
    is_plain = text.isascii() and text.isprintable() and not text.startswith("@")
    if is_plain and len(plain) <= _LONGEST_NAME - len(quote(name)) - 1:
        return plain
    return "@" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _rows_with(frame: DataFrame, name: str, kind: str, value: Any) -> DataFrame | None:
    """The rows with a string, for a message; None for other values."""
    if not isinstance(value, str):
        return None
    return frame.where(f"{quote_name(name)} = {quote_literal(value)}")


def _extremes(name: str, column: pa.ChunkedArray) -> tuple[str, Any, Any, int]:
    bounds: Callable[..., Any] = pc.min_max
    found = bounds(column)
    return name, _known(found["min"]), _known(found["max"]), len(column) - column.null_count


def _known(cell: pa.Scalar) -> Any:
    """A value; None for one that Python does not have."""
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return None
