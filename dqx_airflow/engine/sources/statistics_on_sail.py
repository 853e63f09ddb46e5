"""Parquet files in which a Sail server would read other values than Spark.

A server that collects statistics reads a column whose extremes in a footer are equal as that value
in each row. But NaN is not among the extremes, and some writers do not count NULL. The server of
this process collects none. How another one was started is not known, so such a column is read here
as well, and the numbers of its values are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, SubTreeFileSystem
from pyspark.sql import SparkSession

from dqx_airflow.engine.session.sail import INSTEAD, STATISTICS_SETTING, is_own_server, sail_version
from dqx_airflow.engine.sources.listing import is_local
from dqx_airflow.errors import DatasetError, first_line
from dqx_airflow.metrics.sql import quote_name

_THREADS = 16
_FLOATING = ("FLOAT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class _HeldColumn:
    """A column that a server may read as one value, with what the file has.

    :param values: the number of its values that are not NULL.
    :param nans: the number of its values that are NaN.
    """

    uri: str
    name: str
    values: int
    nans: int


def files_below(folder: str) -> FileSystem:
    """The file system below a folder, with the credentials of this process."""
    system, base = FileSystem.from_uri(folder)
    return SubTreeFileSystem(base, system)


def require_own_values(
    spark: SparkSession,
    root: str,
    uris: Collection[str],
    system_below: Callable[[str], FileSystem] = files_below,
) -> None:
    """Rejects files with a column that the Sail server of a session reads as one value, and that
    has others.

    :param root: the folder of the dataset or of the table.
    :param uris: files, as the server reads them.
    :param system_below: opens the file system below a folder that is not on this machine.
    :raises DatasetError: there is one, or a file that cannot be read from here.
    """
    if sail_version(spark) is None or is_own_server(spark):
        return
    below = None if is_local(root) else system_below(root)
    with ThreadPoolExecutor(_THREADS) as threads:
        for columns in threads.map(partial(_columns_in_doubt, below, root), uris):
            for column in columns:
                _require_values(spark, column)


def _require_values(spark: SparkSession, column: _HeldColumn) -> None:
    name = quote_name(column.name)
    nans = f"count_if(isnan({name}))" if column.nans else "0"
    reader = spark.read.option("recursiveFileLookup", "true")
    (found,) = reader.parquet(column.uri).selectExpr(f"count({name})", nans).collect()
    if tuple(found) != (column.values, column.nans):
        raise DatasetError(
            f"Sail reads one value in all rows of column '{column.name}' of {column.uri}, which "
            "also has NULL or NaN",
            f"start its server with {STATISTICS_SETTING}=false, or {INSTEAD}",
        )


def _columns_in_doubt(below: FileSystem | None, root: str, uri: str) -> list[_HeldColumn]:
    """The columns of a file with NULL or NaN, which its footer does not show.

    :param below: the file system below the root; None on this machine.
    :raises DatasetError: the file cannot be read from here.
    """
    folder = f"{root.rstrip('/')}/"
    try:
        if below is not None and uri.startswith(folder):
            system, path = below, uri.removeprefix(folder)
        else:  # a clone has its files elsewhere
            system, path = FileSystem.from_uri(uri)
        with system.open_input_file(path) as opened, pq.ParquetFile(opened) as file:
            return [
                column
                for name, is_floating in _constant_in_footer(file.metadata)
                if (column := _in_doubt(uri, name, file.read([name]).column(name), is_floating))
            ]
    except (OSError, ValueError, pa.ArrowException) as error:
        message = f"{uri} cannot be read: {first_line(error)}"
        raise DatasetError(message, "remove it, or write it again") from error


def _in_doubt(
    uri: str, name: str, column: pa.ChunkedArray, is_floating: bool
) -> _HeldColumn | None:
    """A column with what it holds; None without NULL and NaN."""
    nans = 0
    if is_floating:
        nans = pc.sum(pc.is_nan(column)).as_py() or 0
    if not column.null_count and not nans:
        return None
    return _HeldColumn(uri, name, len(column) - column.null_count, nans)


def _constant_in_footer(footer: pq.FileMetaData) -> Iterator[tuple[str, bool]]:
    """The columns with equal extremes that may have NULL or NaN, and whether their type has NaN."""
    for position in range(len(footer.schema)):
        column = footer.schema.column(position)
        if column.max_repetition_level or column.path != column.name:
            continue  # of a nested column, which has no extremes as a whole
        groups = (footer.row_group(group) for group in range(footer.num_row_groups))
        held = [group.column(position).statistics for group in groups]
        # A group of nothing but NaN has no extremes.
        extremes = {(one.min, one.max) for one in held if one is not None and one.has_min_max}
        is_constant = len(extremes) == 1 and all(least == most for least, most in extremes)
        is_floating = column.physical_type in _FLOATING
        counts_nulls = all(one is not None and one.has_null_count for one in held)
        if is_constant and (is_floating or not counts_nulls):
            yield column.name, is_floating
