"""An opened dataset: its columns and metadata, and how its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.declared_text import TextColumns
from dqx_airflow.engine.sources.delta.log import DeltaLog
from dqx_airflow.engine.sources.listing import DataFile, changed_files, files_at
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import DatasetField, DatasetRef

Reader: TypeAlias = Callable[[Collection[date | None]], DataFrame]
"""A frame with at least the rows of the given dates."""

FilesReader: TypeAlias = Callable[[Collection[DataFile]], DataFrame]
"""A frame with the rows of some files of a dataset."""

_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark, for which such columns are strings, says what their type is."""


@dataclass(frozen=True, slots=True)
class OpenDataset:
    """A dataset that can be scanned.

    `read` returns the frame for some dates: until it is called, no file of a Delta table is listed
    or read. `dates` is the column with the date of a row, `log` the transaction log of a Delta
    table, and `files` are the files at a path when it was opened. `texts` are the strings from
    which the values are cast, if any. `read_files` is set if some of the files can be read without
    the others. `last_commit` returns the time of the last commit that changed the data of a table,
    or None if no commit has it. `notes` say what verdicts about a column do not show, or, under the
    empty name, verdicts about the columns of the dataset.
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
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[DatasetField, ...]:
        return tuple(
            DatasetField(field.name, field.dataType.simpleString()) for field in self.struct.fields
        )

    @property
    def schema(self) -> Schema:
        return Schema.of(self.ref.name, self.fields)

    def char_type(self, column: str) -> str | None:
        """The type of a column whose strings Spark fills up with spaces, such as `char(5)`, and
        compares without them; None for all others."""
        name = spelled_like(column, self.struct.names)
        kind = self.struct[name].metadata.get(_CHAR_TYPE, "") if name is not None else ""
        return kind if kind.startswith("char(") else None

    @property
    def change(self) -> str | None:
        """How the files have changed since the dataset was opened; None without a change.

        New files are no change: they are not read.
        """
        if self.files is None:
            return None
        changed = changed_files(self.files, files_at(self.location) or ())
        return f"{changed[0]} was changed or removed while it was read" if changed else None

    def of_files(self, files: Collection[DataFile]) -> OpenDataset:
        """The dataset reduced to some of its files, which can be read separately."""
        read = self.read_files
        assert read is not None
        return replace(self, read=lambda _: read(files))

    @staticmethod
    def of_frame(ref: DatasetRef, frame: DataFrame, location: str) -> OpenDataset:
        """A dataset that is read in the same way for all dates."""
        struct = frame.schema
        return OpenDataset(ref, struct, lambda _: frame, location, DateColumn.of(ref, struct))
