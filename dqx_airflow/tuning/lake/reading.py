"""How the tables of a lake are read: files here, tables of catalogs by what knows the catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from dqx_airflow.tuning.column_tables import ColumnTable, read_files
from dqx_airflow.tuning.lake.found_tables import FoundTable

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class ReadTable(Protocol):
    """Reads a table, and computes a result from its columns."""

    def __call__(
        self, table: FoundTable, use: Callable[[ColumnTable], T], only: pa.Field | None = None
    ) -> T:
        """:param only: the one column that is used, with its type.
        :raises DatasetError: the table cannot be read.
        """


def read_table_files(
    table: FoundTable, use: Callable[[ColumnTable], T], only: pa.Field | None = None
) -> T:
    """A result computed from the files of a table.

    :param only: the one column that is used, with its type.
    :raises DatasetError: they cannot be read.
    """
    return read_files(table.path, table.format, use, table.options, only=only)
