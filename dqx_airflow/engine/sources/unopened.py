"""A dataset at a path without Spark: its files, its Delta log, its columns.

Plans, costs and coverage are made from it: no JVM is started, and no rows are read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from dqx_airflow.engine.sources.dataset import DatasetFacts
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of
from dqx_airflow.engine.sources.delta_table import table_at
from dqx_airflow.engine.sources.footers import columns_in
from dqx_airflow.engine.sources.listing import (
    DataFile,
    ListedFiles,
    absolute,
    files_at,
    partitions_of,
)
from dqx_airflow.engine.sources.partition_folders import PartitionFolders
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.types import declared_types
from dqx_airflow.plan.schema_check import Schema

_WITH_COLUMNS = ("parquet", "orc")
"""The formats whose files hold the names and types of their columns."""


@dataclass(frozen=True)
class UnopenedDataset(DatasetFacts):
    """A dataset at a path before it is opened: a `KnownDataset` of the plan."""

    @cached_property
    def path(self) -> str:
        """Its location, absolute on this machine."""
        return absolute(self.ref.path or "")

    @cached_property
    def log(self) -> DeltaLog | None:
        """Its transaction log.

        :raises DatasetError: the Delta table does not exist, or its log is broken.
        """
        if self.ref.format != "delta":
            return None
        table = table_at(self.ref, self.path)
        struct = struct_of(table)
        is_of_now = self.ref.version is None and self.ref.timestamp is None
        dates = DateColumn.of(self.ref, struct)
        return DeltaLog(table, self.path, struct, dates, is_of_now, self.ref.trust_log)

    @cached_property
    def exists(self) -> bool:
        """False if there is nothing at its path, or it cannot be looked at from here."""
        try:
            return self.log is not None or self.files is not None
        except DatasetError:
            return False

    @cached_property
    def files(self) -> tuple[DataFile, ...] | None:
        """The files at its path; None for a Delta table, and if they cannot be listed."""
        return None if self.ref.format == "delta" else files_at(self.path)

    @cached_property
    def schema(self) -> Schema | None:
        """Its columns; None if only Spark finds their types: of text files without a declared
        schema, of folders whose names have values, and of files that differ."""
        name = self.ref.name
        if self.log is not None:
            types = {field.name: field.dataType.simpleString() for field in self.log.schema.fields}
            return Schema(name, types)
        if self.ref.schema is not None:
            declared = declared_types(self.ref.schema)
            return None if declared is None else Schema(name, declared)
        if self.ref.format not in _WITH_COLUMNS:
            return None
        files = self.files or ()
        if not files or self._partitions.names:
            return None
        by_file = columns_in(self.path, self.ref.format, files)
        columns = [fields.values() for fields in by_file.values()]
        if len(columns) < len(files) or any(list(one) != list(columns[0]) for one in columns):
            return None
        return Schema.of(name, columns[0])

    def files_on(self, dates: Collection[date | None]) -> Collection[DataFile]:
        """The files that may hold rows of the dates."""
        if self.log is not None:
            return {file for on in dates for file in self.log.files_of(on)}
        column = DateColumn(self.ref.date_column or "", "date")
        is_wanted = self._partitions.lead_to(column, dates)
        return self._listed.in_folders(is_wanted)

    @cached_property
    def _listed(self) -> ListedFiles:
        return ListedFiles(self.files or ())

    @cached_property
    def _partitions(self) -> PartitionFolders:
        return partitions_of(self.ref, self.path, self._listed)
