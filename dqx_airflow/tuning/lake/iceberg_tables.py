"""The tables of an Iceberg catalog, listed and read by PyIceberg without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from dqx_airflow.errors import DatasetError, RequestError, first_line
from dqx_airflow.tuning.column_tables import ColumnTable, column_table
from dqx_airflow.tuning.lake.found_tables import FoundTable, table_of_catalog
from dqx_airflow.values.redact import redact

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

FORMAT = "iceberg"
SCHEME = f"{FORMAT}:"

_FEWEST_PARTS = 3
_MOST_BYTES = 2_000_000_000
"""The compressed bytes of a table, which is in memory as a whole."""


class IcebergTables:
    """The tables of catalogs in the configuration of PyIceberg, each of which is opened once."""

    def __init__(self) -> None:
        self._opened: dict[str, Any] = {}

    def matching(self, pattern: str) -> list[FoundTable]:
        """The tables that match `catalog.namespace.*`, still without names.

        :raises RequestError: the pattern has no catalog and namespace, or PyIceberg is not
            installed.
        :raises DatasetError: the catalog cannot be read.
        """
        parts = pattern.split(".")
        if len(parts) < _FEWEST_PARTS or not all(parts):
            raise RequestError(
                f"{SCHEME}{pattern} names no catalog, namespace and table",
                f"write {SCHEME}CATALOG.NAMESPACE.*, with the catalog as PyIceberg names it",
            )
        catalog, *wanted = parts
        try:
            opened = self._catalog(catalog)
            names = [
                name
                for namespace in _namespaces(opened)
                for name in opened.list_tables(namespace)
                if fnmatchcase(".".join(name), ".".join(wanted))
            ]
        except RequestError:
            raise
        except Exception as error:  # each catalog has exceptions of its own
            problem = redact(first_line(error))
            message = f"the Iceberg catalog {catalog} cannot be read: {problem}"
            raise DatasetError(message) from error
        return [_found(opened, catalog, name) for name in names]

    def read(
        self, table: FoundTable, use: Callable[[ColumnTable], T], only: pa.Field | None = None
    ) -> T:
        """A result computed from the newest snapshot of a table.

        :param only: the one column that is used.
        :raises DatasetError: it cannot be read.
        """
        catalog, *name = table.place.split(".")
        try:
            wanted = ("*",) if only is None else (only.name,)
            scan = self._catalog(catalog).load_table(tuple(name)).scan(selected_fields=wanted)
            size = sum(task.file.file_size_in_bytes for task in scan.plan_files())
            rows = scan.to_arrow() if size <= _MOST_BYTES else None
        except Exception as error:
            problem = redact(first_line(error))
            raise DatasetError(f"{table.place} cannot be read: {problem}") from error
        if rows is None:
            message = f"{table.place} has {size} bytes, too many for PyIceberg"
            raise DatasetError(message, "read it with Spark: table:CATALOG.NAMESPACE.TABLE")
        return use(column_table(rows))

    def _catalog(self, name: str) -> Any:
        """:raises RequestError: PyIceberg is not installed."""
        if name not in self._opened:
            try:
                from pyiceberg.catalog import load_catalog
            except ModuleNotFoundError:
                hint = "pip install 'dqx-airflow[iceberg]'"
                raise RequestError("PyIceberg is not installed", hint) from None
            self._opened[name] = load_catalog(name)
        return self._opened[name]


def _namespaces(catalog: Any, parent: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the namespaces of a catalog, also those within others."""
    for namespace in catalog.list_namespaces(parent):
        if namespace != parent:
            yield namespace
            yield from _namespaces(catalog, namespace)


def _found(catalog: Any, catalog_name: str, name: tuple[str, ...]) -> FoundTable:
    """A table with its newest snapshot, which says whether it has changed."""
    parts = (catalog_name, *name)
    quoted = ".".join(part if part.isidentifier() else f"`{part}`" for part in parts)
    found = table_of_catalog(quoted, parts, FORMAT)
    if any("." in part for part in parts):
        return replace(found, problem="a part of its name has a dot")
    try:
        table = catalog.load_table(name)
    except Exception as error:
        return replace(found, problem=f"cannot be read: {redact(first_line(error))}")
    snapshot = table.current_snapshot()
    if snapshot is None:
        return replace(found, stamp="none")
    summary = snapshot.summary
    size = summary["total-files-size"] if summary and "total-files-size" in summary else 0
    return replace(found, stamp=str(snapshot.snapshot_id), size=int(size or 0))
