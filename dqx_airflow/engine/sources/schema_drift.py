"""Columns that some files of a dataset lack, or have in addition: Spark uses the columns of one
file.

The other files are read as if they had the same: missing columns and fields of structs are NULL,
new ones are ignored. Assertions about columns use the columns of the files of the date.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from pyspark.sql import SparkSession

from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.footers import columns_in, has_footers, merges_schemas
from dqx_airflow.engine.sources.listing import DataFile, partition_names
from dqx_airflow.metrics.types import fields_of, parts_of
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import DatasetField

_FIRST = (
    "files of the date have it, but the first file, which defines the columns, does not; "
    "set the option mergeSchema"
)
_CHOOSE_FILES = ("modifiedafter", "modifiedbefore", "pathglobfilter")
"""Reader options by which Spark skips files that are listed here."""


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """How the columns of files differ from those that Spark reads.

    `missing` maps a column to the path of a file without it, `new` are columns that Spark does not
    read. `reshaped` maps a column with other nested fields in a file to the path of that file and
    the type there. `key_of` maps names of the same column to one.
    """

    missing: Mapping[str, str]
    new: tuple[DatasetField, ...]
    reshaped: Mapping[str, tuple[str, str]]
    key_of: Callable[[str], str] = str.lower

    def __bool__(self) -> bool:
        return bool(self.missing or self.new or self.reshaped)

    @property
    def unread(self) -> dict[str, str]:
        """Why columns are not read, by their names; in lower case unless the session distinguishes
        names by case."""
        return {self.key_of(field.name): _FIRST for field in self.new}

    def in_schema(self, schema: Schema) -> Schema:
        """The columns that all files have, and those that only some have. If a file has other
        nested fields, the column has the type of that file."""
        kept = [
            DatasetField(name, self.reshaped[name][1] if name in self.reshaped else kind)
            for name, kind in schema.types.items()
            if name not in self.missing
        ]
        # Suites do not distinguish names by case: one of two such columns is not the other.
        lacking = {name.lower() for name in self.missing}
        new = [field for field in self.new if field.name.lower() not in lacking]
        return Schema.of(schema.dataset, [*kept, *new])

    def difference(self, column: str) -> str | None:
        """What is different about a column, and in which file; None if nothing is."""
        if column in self.missing:
            return f"{self.missing[column]} is without it"
        if column in self.reshaped:
            path, kind = self.reshaped[column]
            return f"in {path} it is {kind}"
        return None


NO_DRIFT = SchemaDrift(MappingProxyType({}), (), MappingProxyType({}))


def drift_of(spark: SparkSession, dataset: OpenDataset, on: date) -> SchemaDrift:
    """The drift of the files with the rows of a date.

    If schemas are merged, files may differ, and only a column that none of them has is missing.
    Files that cannot be opened are skipped: the scan reports what is wrong with them.
    """
    return _drifts(spark, dataset, {on})[on]


def has_drift(spark: SparkSession, dataset: OpenDataset, dates: Collection[date]) -> bool:
    """True if `drift_of` finds a difference on one of the dates. Each file is read once."""
    return any(_drifts(spark, dataset, dates).values())


def _drifts(
    spark: SparkSession, dataset: OpenDataset, dates: Collection[date]
) -> dict[date, SchemaDrift]:
    ref = dataset.ref
    is_chosen = any(key.casefold() in _CHOOSE_FILES for key, _ in ref.options)
    if not has_footers(ref.format) or is_chosen or not dataset.files:
        return dict.fromkeys(dates, NO_DRIFT)
    files = {on: _files_of(dataset, on) for on in dates}
    read = dict.fromkeys(file for chosen in files.values() for file in chosen)
    key_of = _keys(spark)
    columns_by_file = columns_in(dataset.location, ref.format, tuple(read), key_of)
    merged = merges_schemas(spark, ref)
    return {
        on: _drift(
            dataset,
            files[on],
            {
                file.path: columns_by_file[file.path]
                for file in files[on]
                if file.path in columns_by_file
            },
            key_of,
            merged=merged,
        )
        for on in dates
    }


def _keys(spark: SparkSession) -> Callable[[str], str]:
    """How names are compared: as Spark does, without their case unless the session says so."""
    is_exact = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    return str if is_exact else str.lower


def _files_of(dataset: OpenDataset, on: date) -> list[DataFile]:
    dates = dataset.dates
    return [file for file in dataset.files or () if dates is None or dates.may_be_in(on, file.path)]


def _drift(
    dataset: OpenDataset,
    files: Sequence[DataFile],
    columns_by_file: Mapping[str, Mapping[str, DatasetField]],
    key_of: Callable[[str], str],
    *,
    merged: bool,
) -> SchemaDrift:
    """:param there: the columns of the files that were read, by path."""
    folders = {key_of(name) for name in partition_names(files)}
    read = {key_of(name): name for name in dataset.struct.names if key_of(name) not in folders}
    missing: dict[str, str] = {}
    new: dict[str, DatasetField] = {}
    for key, name in read.items():
        without = [path for path, columns in columns_by_file.items() if key not in columns]
        if without and (not merged or len(without) == len(files)):
            missing[name] = without[0]
    # With a declared schema, additional columns in a file are expected.
    is_declared = dataset.ref.schema is not None
    for columns in columns_by_file.values() if not is_declared else ():
        new |= {key: field for key, field in columns.items() if key not in {*read, *folders, *new}}
    reshaped: dict[str, tuple[str, str]] = {}
    if not merged:
        for path, columns in columns_by_file.items():
            for key in columns.keys() & read.keys():
                name, file_type = read[key], columns[key].type
                if _is_reshaped(
                    dataset.schema.types[name], file_type, more_is_expected=is_declared
                ):
                    reshaped.setdefault(name, (path, file_type))
    return SchemaDrift(missing, tuple(new[key] for key in sorted(new)), reshaped, key_of)


def _is_reshaped(read: str, file_type: str, *, more_is_expected: bool) -> bool:
    """True if a type does not have the nested fields of the type that is read, whatever their
    types."""
    if read == file_type:
        return False
    expected = dict(_nested_fields(read))
    # In a file, a variant is a struct whose fields depend on its values.
    variants = tuple(
        f"{path}." for path, kind in (("", read), *expected.items()) if kind == "variant"
    )
    existing = {path for path, _ in _nested_fields(file_type) if not path.startswith(variants)}
    return not expected.keys() <= existing or (expected.keys() != existing and not more_is_expected)


def _nested_fields(kind: str, outer: str = "") -> Iterator[tuple[str, str]]:
    """The paths of the fields within a type, in lower case, and their types."""
    inner = fields_of(kind)
    if not inner and kind.startswith(("array<", "map<")):
        inner = {f"<{number}>": part for number, part in enumerate(parts_of(kind))}
    for name, part in inner.items():
        path = f"{outer}.{name.casefold()}"
        yield path, part
        yield from _nested_fields(part, path)
