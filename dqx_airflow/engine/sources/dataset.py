"""A dataset that was opened: what it has, and how its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.declared_text import TextColumns
from dqx_airflow.engine.sources.delta.log import DeltaLog
from dqx_airflow.engine.sources.listing import DataFile, changed_files, files_at
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import DatasetRef, Field

Reader: TypeAlias = Callable[[Collection[date | None]], DataFrame]
"""A frame that holds at least the rows of some dates, and maybe others."""

FilesReader: TypeAlias = Callable[[Collection[DataFile]], DataFrame]
"""A frame with the rows of some of the files of a dataset."""


@dataclass(frozen=True, slots=True)
class OpenDataset:
    """A dataset that can be scanned.

    `read` gives the frame for some dates: nothing of a Delta table is listed or read before it is
    called. `dates` is the column that tells the date of a row, `log` the transaction log of a
    Delta table, and `files` are those of a path as they were when it was opened. `texts` are those
    from which the values are cast, where they are. `read_files` is there where some of the files
    can be read without the others. `last_commit` gives the time of the last commit of a table that
    changed its data, where that can be asked; None where no commit tells.
    """

    ref: DatasetRef
    struct: StructType
    read: Reader
    location: str
    dates: DateColumn | None
    version: int | None = None
    log: DeltaLog | None = None
    files: tuple[DataFile, ...] | None = None
    texts: TextColumns | None = None
    read_files: FilesReader | None = None
    last_commit: Callable[[], datetime | None] | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(
            Field(field.name, field.dataType.simpleString()) for field in self.struct.fields
        )

    @property
    def schema(self) -> Schema:
        return Schema.of(self.ref.name, self.fields)

    @property
    def change(self) -> str | None:
        """What became of the files since the dataset was opened; None where they are the same.

        New files are no change: they are not read.
        """
        if self.files is None:
            return None
        changed = changed_files(self.files, files_at(self.location) or ())
        return f"{changed[0]} was changed or removed while it was read" if changed else None

    def of_files(self, files: Collection[DataFile]) -> OpenDataset:
        """The dataset as if it had only some of its files, which can be read alone."""
        read = self.read_files
        assert read is not None
        return replace(self, read=lambda _: read(files))

    @staticmethod
    def of_frame(ref: DatasetRef, frame: DataFrame, location: str) -> OpenDataset:
        """A dataset that is read the same way for all dates."""
        struct = frame.schema
        return OpenDataset(ref, struct, lambda _: frame, location, DateColumn.of(ref, struct))
