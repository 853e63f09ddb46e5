"""A dataset: the facts about its rows that need no scan; and opened, how its rows are read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from typing import TypeAlias
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.declared_texts import TextColumns
from dqx_airflow.engine.sources.delta_files import DeltaLog
from dqx_airflow.engine.sources.listing import DataFile, ListedFiles, changed_files, files_at
from dqx_airflow.engine.sources.partition_folders import PartitionFolders
from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.passes import are_few, are_small
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import MASK, DatasetField, DatasetRef, MetricValue
from dqx_airflow.values.redact import redact_urls
from dqx_airflow.values.report import Arrival

Reader: TypeAlias = Callable[[Collection[date | None]], DataFrame]
"""A frame with at least the rows of the given dates."""

FilesReader: TypeAlias = Callable[[Collection[DataFile]], DataFrame]
"""A frame with the rows of some files of a dataset."""


@dataclass(frozen=True, slots=True)
class DatasetFacts(ABC):
    """A dataset, with the facts about its rows that need no scan."""

    ref: DatasetRef

    @property
    @abstractmethod
    def log(self) -> DeltaLog | None:
        """The transaction log of a Delta table."""

    @property
    @abstractmethod
    def files(self) -> tuple[DataFile, ...] | None:
        """The files at a path; None if they are not known."""

    def has_few_rows(self, dates: Collection[date | None]) -> bool:
        """True if the log says that the dates have few rows, or the files are small."""
        if self.log is None:
            return self.files is not None and are_small(sum(file.size for file in self.files))
        total = 0
        for on in dates:
            rows = self.log.rows_of(on)
            if rows is None:
                return False
            total += rows
        return are_few(total)

    def answers_of_log(
        self, aggregates: Iterable[Aggregate], on: date | None
    ) -> Mapping[str, MetricValue]:
        """The exact results that the log has for a date; none with a filter."""
        if self.log is None or self.ref.filter is not None:
            return {}
        return self.log.answers(aggregates, on)


@dataclass(frozen=True, slots=True)
class StoredForm:
    """The frames of a dataset with further columns: the values as the files have them.

    :param columns: the further columns, by the name of the column.
    """

    read: Reader
    columns: Mapping[str, str]

    def with_frames(self, change: Callable[[DataFrame], DataFrame]) -> StoredForm:
        """The frames with a change, which does not see the further columns."""
        return replace(self, read=lambda dates: change(self.read(dates)))


@dataclass(frozen=True, slots=True)
class OpenDataset(DatasetFacts):
    """A dataset that can be scanned.

    `read` returns the frame for some dates: until it is called, no file of a Delta table is listed
    or read. `dates` is the column with the date of a row, `log` the transaction log of a Delta
    table, and `files` are the files at a path when it was opened. `texts` are the strings from
    which the values are cast, if any. `read_files` is set if some of the files can be read without
    the others. `check_files` compares the columns in the files of some dates with those that are
    read, and raises a `DatasetError` if values would be read as others. `last_commit` returns the
    time of the last commit that changed the data of a table, or None if no commit has it.
    `char_types` are the types of the columns whose values Spark pads with spaces, such as
    `char(5)`; they are read without them. `snapshot` and `branch` belong to an Iceberg table.
    `notes` are remarks for verdicts about a column, or, under the empty name, for verdicts about
    the columns of the dataset; `partial` is one for all verdicts. `read_dates` are the dates whose
    files were read so far, None for all files. `partitions` are the folders of the files. `stored`
    is set if equal values have another form in the frames than in the files.
    """

    struct: StructType
    read: Reader
    location: str
    dates: DateColumn | None
    version: int | None = None
    log: DeltaLog | None = None
    files: tuple[DataFile, ...] | None = None
    texts: TextColumns | None = None
    read_files: FilesReader | None = None
    check_files: Callable[[Collection[date | None]], None] | None = None
    last_commit: Callable[[], datetime | None] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    partial: str | None = None
    char_types: Mapping[str, str] = field(default_factory=dict)
    snapshot: int | None = None
    branch: str | None = None
    read_dates: set[date | None] = field(default_factory=set, compare=False)
    partitions: PartitionFolders | None = None
    stored: StoredForm | None = None

    @property
    def fields(self) -> tuple[DatasetField, ...]:
        return tuple(
            DatasetField(field.name, field.dataType.simpleString()) for field in self.struct.fields
        )

    @property
    def schema(self) -> Schema:
        return Schema.of(self.ref.name, self.fields)

    def files_on(self, on: date | None, listed: ListedFiles) -> list[DataFile]:
        """The listed files that may hold rows of a date: all of them if one of both has no date."""
        is_all = self.dates is None or on is None
        return list(listed.files) if is_all else listed.in_folders(self.folders_of({on}))

    def folders_of(self, dates: Collection[date | None]) -> Callable[[str], bool]:
        """Whether the path of a folder may lead to rows of some dates. None is all of them."""
        if self.dates is None or self.partitions is None:
            return lambda _: True
        return self.partitions.lead_to(self.dates, dates)

    def arrivals(self, on: date | None, most: int = 10) -> tuple[Arrival, ...]:
        """The commits, or else the files, that added the rows of a date, newest first; empty if
        unknown."""
        if self.log is not None:
            return self.log.arrivals(on if self.dates is not None else None, most)
        files = self.files_on(on, ListedFiles(self.files or ()))
        files.sort(key=lambda file: file.modified_ns, reverse=True)
        return tuple(
            Arrival(
                redact_urls(re.sub(r"/([^/=]+)=[^/]*", self._partition, file.path)),
                datetime.fromtimestamp(file.modified_ns / 1e9, timezone.utc),
                files=1,
                size=file.size,
            )
            for file in files[:most]
        )

    def _partition(self, folder: re.Match[str]) -> str:
        """The folder of a partition; the value of a masked column is hidden."""
        hidden = is_masked(unquote(folder[1]), self.ref.masked)
        return f"/{folder[1]}={MASK}" if hidden else folder[0]

    def char_type(self, column: str) -> str | None:
        """The type of a column that a table holds as `char(5)`; None for all others."""
        return self.char_types.get(spelled_like(column, self.struct.names) or "")

    @property
    def change(self) -> str | None:
        """How the files that were read have changed since the dataset was opened; None without a
        change.

        New files are no change: they are not read.
        """
        if self.files is None or not self.read_dates:
            return None
        is_read = self.folders_of(self.read_dates)
        before = ListedFiles(self.files).in_folders(is_read)
        changed = changed_files(before, files_at(self.location, is_read) or ())
        return f"{changed[0]} was changed or removed while it was read" if changed else None

    def watching_reads(self) -> OpenDataset:
        """The dataset, which notes from now on the dates whose files are read."""
        read, read_files, read_dates = self.read, self.read_files, self.read_dates

        def noted(dates: Collection[date | None]) -> DataFrame:
            read_dates.update(dates)
            return read(dates)

        def noted_files(files: Collection[DataFile]) -> DataFrame:
            assert read_files is not None
            read_dates.add(None)
            return read_files(files)

        return replace(self, read=noted, read_files=None if read_files is None else noted_files)

    def of_files(self, files: Collection[DataFile]) -> OpenDataset:
        """The dataset reduced to some of its files, which can be read separately."""
        read = self.read_files
        assert read is not None
        return replace(self, read=lambda _: read(files))

    def with_frames(self, change: Callable[[DataFrame], DataFrame]) -> OpenDataset:
        """The dataset with a change of each frame that is read."""
        read_files = self.read_files
        return replace(
            self,
            read=lambda dates: change(self.read(dates)),
            read_files=None if read_files is None else lambda files: change(read_files(files)),
            stored=self.stored and self.stored.with_frames(change),
        )

    @staticmethod
    def of_frame(ref: DatasetRef, frame: DataFrame, location: str) -> OpenDataset:
        """A dataset that is read in the same way for all dates."""
        struct = frame.schema
        dates = DateColumn.of(ref, struct) if ref.date_column else None
        return OpenDataset(ref, struct, lambda _: frame, location, dates)
