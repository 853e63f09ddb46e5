"""Columns that some files of a dataset lack, or have in addition: Spark uses the columns of one
file.

The other files are read as if they had the same: missing columns are NULL, new ones are ignored.
Assertions about columns use the columns of the files of the date.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile, partition_names
from dqx_airflow.engine.sources.parquet_schema import merges_schemas
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import DatasetField

MOST_FILES = 100
"""The maximum number of files to compare, newest first: columns change over time."""

_FIRST = (
    "files of the date have it, but the first file, which defines the columns, does not; "
    "set the option mergeSchema"
)
_CHOOSE_FILES = ("modifiedafter", "modifiedbefore", "pathglobfilter")
"""Reader options by which Spark skips files that are listed here."""
_THREADS = 16


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """How the columns of files differ from those that Spark reads.

    `missing` maps a column to the path of a file without it, `new` are columns that Spark does not
    read.
    """

    missing: Mapping[str, str]
    new: tuple[DatasetField, ...]

    @property
    def unread(self) -> dict[str, str]:
        """Why columns are not read, by their names in lower case."""
        return {field.name.casefold(): _FIRST for field in self.new}

    def in_schema(self, schema: Schema) -> Schema:
        """The columns that all files have, and those that only some have."""
        kept = [
            DatasetField(name, kind)
            for name, kind in schema.types.items()
            if name not in self.missing
        ]
        return Schema.of(schema.dataset, [*kept, *self.new])


NO_DRIFT = SchemaDrift(MappingProxyType({}), ())


def drift_of(spark: SparkSession, dataset: OpenDataset, on: date) -> SchemaDrift:
    """The drift of the files with the rows of a date.

    If schemas are merged, files may differ, and only a column that none of them has is missing.
    Files that cannot be opened are skipped: the scan reports what is wrong with them.
    """
    return _drifts(spark, dataset, {on})[on]


def has_drift(spark: SparkSession, dataset: OpenDataset, dates: Collection[date]) -> bool:
    """True if `drift_of` finds a difference on one of the dates. Each file is read once."""
    return any(drift.missing or drift.new for drift in _drifts(spark, dataset, dates).values())


def _drifts(
    spark: SparkSession, dataset: OpenDataset, dates: Collection[date]
) -> dict[date, SchemaDrift]:
    ref = dataset.ref
    is_chosen = any(key.casefold() in _CHOOSE_FILES for key, _ in ref.options)
    if ref.format not in _SCHEMA_IN or is_chosen or not dataset.files:
        return dict.fromkeys(dates, NO_DRIFT)
    files = {on: _files_of(dataset, on) for on in dates}
    newest = {on: _newest(of_date) for on, of_date in files.items()}
    read = dict.fromkeys(file for chosen in newest.values() for file in chosen)
    there = columns_in(dataset.location, ref.format, tuple(read))
    merged = merges_schemas(spark, ref)
    return {
        on: _drift(
            dataset,
            files[on],
            {file.path: there[file.path] for file in newest[on] if file.path in there},
            merged=merged,
        )
        for on in dates
    }


def _files_of(dataset: OpenDataset, on: date) -> list[DataFile]:
    dates = dataset.dates
    return [file for file in dataset.files or () if dates is None or dates.may_be_in(on, file.path)]


def _newest(files: Sequence[DataFile]) -> list[DataFile]:
    return sorted(files, key=lambda file: (-file.modified_ns, file.path))[:MOST_FILES]


def _drift(
    dataset: OpenDataset,
    files: Sequence[DataFile],
    there: Mapping[str, Mapping[str, DatasetField]],
    *,
    merged: bool,
) -> SchemaDrift:
    """:param there: the columns of the files that were read, by path."""
    folders = {name.casefold() for name in partition_names(files)}
    read = {
        name.casefold(): name for name in dataset.struct.names if name.casefold() not in folders
    }
    missing: dict[str, str] = {}
    new: dict[str, DatasetField] = {}
    for key, name in read.items():
        without = [path for path, columns in there.items() if key not in columns]
        if without and (not merged or len(without) == len(files)):
            missing[name] = without[0]
    # With a declared schema, additional columns in a file are expected.
    for columns in there.values() if dataset.ref.schema is None else ():
        new |= {key: field for key, field in columns.items() if key not in {*read, *folders, *new}}
    return SchemaDrift(missing, tuple(new[key] for key in sorted(new)))


def _of_parquet(system: FileSystem, path: str) -> pa.Schema:
    return pq.read_schema(path, filesystem=system)


def _of_orc(system: FileSystem, path: str) -> pa.Schema:
    from pyarrow import orc

    with system.open_input_file(path) as file:
        return orc.ORCFile(file).schema


_SCHEMA_IN = MappingProxyType({"parquet": _of_parquet, "orc": _of_orc})
"""Reads the columns of a file, for the formats in which each file has its own."""


def columns_in(
    location: str, format: str, files: Sequence[DataFile]
) -> dict[str, dict[str, DatasetField]]:
    """The columns of each file by its path, and by their names in lower case."""
    read = _SCHEMA_IN[format]
    system, _ = FileSystem.from_uri(location)

    def columns(file: DataFile) -> dict[str, DatasetField] | None:
        try:
            fields = read(system, file.path)
        except (OSError, ValueError, pa.ArrowException):
            return None
        return {one.name.casefold(): DatasetField(one.name, _type(one.type)) for one in fields}

    with ThreadPoolExecutor(_THREADS) as threads:
        schemas = zip(files, threads.map(columns, files), strict=True)
        return {file.path: its for file, its in schemas if its is not None}


def _type(kind: Any) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        return str(from_arrow_type(kind).simpleString())
    except PySparkException:
        return str(kind)
