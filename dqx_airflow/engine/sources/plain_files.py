"""Files at a path that belong to no table: Parquet, ORC, Avro, CSV, JSON; and Iceberg tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from dqx_airflow.datasets.reader_options import is_on, option_of
from dqx_airflow.engine.session.sail import INSTEAD, sail_version
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.session.spark_versions import condition_of, has_types_since, settings_named
from dqx_airflow.engine.sources import csv_headers, footers, iceberg, listing
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn, require_one_spelling
from dqx_airflow.engine.sources.declared_texts import read_texts
from dqx_airflow.engine.sources.folders_on_sail import SailFolders
from dqx_airflow.engine.sources.folders_on_spark import SparkFolders
from dqx_airflow.engine.sources.footers import UNREADABLE, merges_schemas
from dqx_airflow.engine.sources.guessed_types import GuessedTypes, guess_csv, guess_json
from dqx_airflow.engine.sources.json_text import with_json_layout
from dqx_airflow.engine.sources.listing import GLOB, DataFile, DatasetFiles, paths_of
from dqx_airflow.engine.sources.parquet_types import ReadColumns
from dqx_airflow.engine.sources.partition_values import (
    NO_VALUE,
    has_zone,
    moment_in_utc,
    text_in_spark,
    utf8_columns,
)
from dqx_airflow.engine.sources.source_errors import nothing_there, of_table, unreadable
from dqx_airflow.engine.sources.statistics_on_sail import require_own_values
from dqx_airflow.engine.sources.strict_session import require_checked_folders
from dqx_airflow.engine.sources.text_encoding import require_text
from dqx_airflow.engine.sources.text_faults import (
    faults_of,
    faults_of_lines,
    with_faults_raised,
    with_folder_faults_raised,
)
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.values import MASK, DatasetRef

_SAMPLED = "columns that are not declared were looked for in the newest 64 MB of the files"
_OF_TABLES = ("parquet", "orc", "avro")
"""The file formats of tables."""


def open_files(spark: SparkSession, ref: DatasetRef, path: str) -> OpenDataset:
    """The files at a path, or below it.

    :raises DatasetError: there are none, or some would not be read as they are meant.
    """
    _require_no_table(ref, path)
    files = listing.files_at(path)
    chosen = _chosen(ref, files or ())
    unseen: dict[str, str] = {}
    if ref.format in ("csv", "json"):
        unseen = require_text(ref, path, chosen)
        ref = with_json_layout(ref, path, chosen)
    if sail_version(spark) is not None:
        ref = _ref_on_sail(spark, ref, path, files or ())
    source = DatasetFiles(spark, ref, path, files or ())
    if ref.format != "iceberg":  # its metadata lists the files that count
        _require_whole_files(source, chosen)
        _require_read_files(source)
    if ref.schema is not None and source.folders:
        require_checked_folders(spark, ref)
    if ref.format == "csv" and source.folders and csv_headers.has_header(ref):
        for first in chosen[:1]:
            csv_headers.require_no_columns_of_folders(ref, path, first, source.folders)
    opened = _with_folders_in_utf8(_open_source(source, unseen), source)
    _require_some_file(source, opened)
    notes = _folder_notes(ref, opened.struct, source)
    opened = _with_dates_in_one_form(opened, source)
    opened = replace(opened, files=files, partitions=source.partitions)
    return replace(opened, notes={**opened.notes, **notes}).watching_reads()


def _require_no_table(ref: DatasetRef, path: str) -> None:
    """Rejects files of a table, which may be replaced or deleted ones.

    :raises DatasetError: they are.
    """
    if ref.format in _OF_TABLES:
        table = listing.table_format(path)
        if table is not None:
            raise of_table(ref, path, table)


def _ref_on_sail(
    spark: SparkSession, ref: DatasetRef, path: str, files: Sequence[DataFile]
) -> DatasetRef:
    """The dataset as Sail has to read it, which knows no options of Parquet, and no `\\t`.

    :raises DatasetError: there are no files, or they have different columns that are to be merged.
    """
    if ref.format in ("csv", "json") and not files:
        raise nothing_there(ref, path)
    if ref.format == "csv":
        written = [(name, "\t" if value == "\\t" else value) for name, value in ref.options]
        return replace(ref, options=tuple(written))
    if ref.format != "parquet" or not ref.options:
        return ref
    if merges_schemas(spark, ref):
        footers.require_same_columns(ref, path, files)
    return replace(ref, options=())


def _open_source(source: DatasetFiles, unseen: Mapping[str, str]) -> OpenDataset:
    """The files, read as their format and the settings of the dataset require.

    :param unseen: the faults of texts that are left to be found.
    """
    if source.ref.is_of_texts:
        return _open_declared_texts(source, unseen)
    if source.ref.format == "parquet" and source.folders:
        if sail_version(source.spark) is not None:
            return _open_folders_on_sail(source)
        if (opened := _open_folders_on_spark(source)) is not None:
            return opened
    if source.ref.format != "iceberg":
        return _open_columns(source, unseen)
    snapshot, branch = iceberg.snapshot_read(source.spark, source.ref, source.path)
    return replace(_open_columns(source, unseen), snapshot=snapshot, branch=branch)


def _open_folders_on_sail(source: DatasetFiles) -> OpenDataset:
    """Parquet files in folders of partitions, on Sail.

    :raises DatasetError: Spark may read them differently.
    """
    folders = SailFolders.of(source, _schema_as_written(source))
    struct = folders.struct
    dates = DateColumn.of(source.ref, struct) if source.ref.date_column else None
    checks = _FooterChecks(source, struct, folders)

    def check_files(requested: Collection[date | None]) -> None:
        checks.check(_files_of(source, dates, requested))

    def read_files(files: Collection[DataFile]) -> DataFrame:
        checks.check(files)
        return folders.read(files)

    def read(requested: Collection[date | None]) -> DataFrame:
        return read_files(_files_of(source, dates, requested))

    opened = OpenDataset(source.ref, struct, read, source.path, dates, read_files=read_files)
    return replace(opened, check_files=check_files)


def _open_folders_on_spark(source: DatasetFiles) -> OpenDataset | None:
    """Parquet files in folders of partitions that name the dates; None if Spark has to look at all
    of them to find the columns."""
    folders = None
    if _can_read_some(source):
        folders = SparkFolders.of(source, _schema_as_written(source))
    if folders is None:
        return None
    struct, dates = folders.struct, folders.dates
    checks = _FooterChecks(source, struct)

    def check_files(requested: Collection[date | None]) -> None:
        checks.check(_files_of(source, dates, requested))

    def read(requested: Collection[date | None]) -> DataFrame:
        check_files(requested)
        return folders.read(requested)

    def read_files(chosen: Collection[DataFile]) -> DataFrame:
        checks.check(chosen)
        return _read_some(source, struct, chosen)

    opened = OpenDataset(source.ref, struct, read, source.path, dates, read_files=read_files)
    return replace(opened, check_files=check_files)


def _open_declared_texts(source: DatasetFiles, unseen: Mapping[str, str]) -> OpenDataset:
    """Text files with declared columns, whose strings are kept beside the values."""
    ref = source.ref
    is_sent = sail_version(source.spark) is not None
    frame, kept = read_texts(source, unseen, is_sent=is_sent)
    visible = [quote_name(name) for name in frame.columns if name not in kept.hidden]
    struct = frame.selectExpr(*visible).schema
    dates = DateColumn.of(ref, struct)
    notes = {"": _SAMPLED} if kept.is_sampled else {}
    return OpenDataset(ref, struct, lambda _: frame, source.path, dates, texts=kept, notes=notes)


def _require_some_file(source: DatasetFiles, opened: OpenDataset) -> None:
    """Rejects a path without files, which a declared schema would make an empty dataset.

    :raises DatasetError: there is no file.
    """
    is_of_spark = sail_version(source.spark) is None
    if source.ref.schema is not None and is_of_spark and not opened.read(()).inputFiles():
        raise nothing_there(source.ref, source.path)


def _with_dates_in_one_form(opened: OpenDataset, source: DatasetFiles) -> OpenDataset:
    """The dataset, which rejects folders with a requested date in another form than the date column
    has."""
    column, own = opened.dates, opened.read
    if column is None:
        return opened
    texts = source.partitions.texts.get(column.name, ())

    def read(dates: Collection[date | None]) -> DataFrame:
        require_one_spelling(source.ref, column, dates, texts)
        return own(dates)

    # Files that are new beside a stored state are read without a date.
    is_odd = any(column.misspelled_dates(text) for text in texts)
    return replace(opened, read=read, read_files=None if is_odd else opened.read_files)


def _with_folders_in_utf8(opened: OpenDataset, source: DatasetFiles) -> OpenDataset:
    """The dataset with the strings in the names of folders, where these certainly are UTF-8.

    Sail reads them so.
    """
    if not source.folders or sail_version(source.spark) is not None:
        return opened
    decoded = utf8_columns(opened.struct, source.partitions.in_utf8)
    if not decoded:
        return opened
    texts = {name: F.expr(text) for name, text in decoded.items()}
    return opened.with_frames(lambda frame: frame.withColumns(texts))


_WHOLE = re.compile(r"0|-?[1-9]\d*", re.ASCII)
_AS_WRITTEN = {
    "int": _WHOLE,
    "bigint": _WHOLE,
    "decimal": _WHOLE,
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    # A double has 15 digits, and is the same for 1.1 and 1.10.
    "double": re.compile(r"(?!-?[\d.]{17})-?(0|[1-9]\d*)(\.\d*[1-9])?", re.ASCII),
}
"""The strings that a value of a guessed type is written as: `7` is, `007` is not."""
_HAS_DAY = re.compile(r"[+-]?\d{4,7}(-|$)")


def _folder_notes(ref: DatasetRef, struct: StructType, source: DatasetFiles) -> dict[str, str]:
    """Notes about the values in the names of folders, by column.

    :raises DatasetError: a time there has no day, and Spark would read it as one of today.
    """
    notes: dict[str, str] = {}
    decoded = utf8_columns(struct, source.partitions.in_utf8)
    for name, encoded in source.partitions.encoded.items():
        column = spelled_like(name, struct.names)
        if column is None or column in decoded or struct[column].dataType != StringType():
            continue
        for value in encoded:
            if text_in_spark(value) != unquote(value):
                written = _shown(ref, column, value)
                read = _shown(ref, column, text_in_spark(value))
                notes[column] = f"the folder {column}={written} is read as '{read}', not as UTF-8"
    for name, texts in source.partitions.texts.items():
        column = spelled_like(name, struct.names)
        if column is None:
            continue
        kind = struct[column].dataType.simpleString()
        values = [text for text in texts if text != NO_VALUE]
        if kind.startswith("timestamp"):
            _require_days(ref, column, values)
        if kind == "timestamp" and source.names_no_zone and not all(map(has_zone, values)):
            notes[column] = (
                f"the names of its folders have no time zone: {column} is read in UTC, unless "
                "the option timeZone says otherwise"
            )
        changed = _read_otherwise(values, kind) if ref.schema is None else None
        if changed is not None:
            notes[column] = (
                f"the folder {column}={_shown(ref, column, changed)} is read as {kind}: to read "
                f"what is written, declare schema='..., {column} string'"
            )
    return notes


def _require_days(ref: DatasetRef, column: str, values: Iterable[str]) -> None:
    """Rejects a time without its day in the name of a folder.

    :raises DatasetError: there is one.
    """
    for text in values:
        if not _HAS_DAY.match(text):
            raise DatasetError(
                f"dataset '{ref.name}': the folder {column}={_shown(ref, column, text)} has a "
                "time without its day",
                f"declare it as a string: schema='..., {column} string'",
            )


def _read_otherwise(values: Iterable[str], kind: str) -> str | None:
    """The first value that Spark does not write as it is in the name of a folder, such as `007`."""
    form = _AS_WRITTEN.get(kind.partition("(")[0])
    if form is not None:
        for text in values:
            if not form.fullmatch(text):
                return text
    return None


def _shown(ref: DatasetRef, column: str, value: str) -> str:
    return MASK if is_masked(column, ref.masked) else value


def _open_columns(source: DatasetFiles, unseen: Mapping[str, str]) -> OpenDataset:
    """Files whose values have types.

    :param unseen: the faults of texts that are left to be found.
    """
    ref = source.ref
    guessed = _guess(source)
    reader = source.strict_reader()
    schema = _schema(source, guessed)
    if schema is not None:
        reader = reader.schema(schema)
    try:
        with spark_failures():
            frame = _with_folders_in_utc(source, reader.load(source.place), reader)
            struct = frame.schema  # Spark Connect only now looks at the files.
    except PySparkException as error:
        stored = _stored(source, error)
        return OpenDataset.of_frame(ref, stored, source.path)
    if ref.format in ("csv", "json"):
        frame = _with_text_faults(source, frame, struct, unseen)
    opened = OpenDataset.of_frame(ref, frame, source.path)
    if guessed is not None:
        opened = replace(opened, notes=guessed.notes)
    checks = _FooterChecks(source, struct)

    def check_files(dates: Collection[date | None]) -> None:
        checks.check(_files_of(source, opened.dates, dates))

    def read(dates: Collection[date | None]) -> DataFrame:
        check_files(dates)
        return frame

    def read_files(chosen: Collection[DataFile]) -> DataFrame:
        checks.check(chosen)
        return _read_some(source, struct, chosen)

    read_some = read_files if _can_read_some(source) else None
    return replace(opened, read=read, read_files=read_some, check_files=check_files)


def _guess(source: DatasetFiles) -> GuessedTypes | None:
    """The types of text files without a schema; None if they are declared or left to Spark."""
    if source.ref.schema is not None:
        return None
    match source.ref.format:
        case "csv":
            return guess_csv(source)
        case "json":
            return guess_json(source)
    return None


def _schema(source: DatasetFiles, guessed: GuessedTypes | None) -> StructType | str | None:
    """The schema for the reader; None if Spark infers it."""
    if guessed is not None and guessed.struct.fields:
        return guessed.struct
    return source.ref.schema or _schema_as_written(source)


def _with_text_faults(
    source: DatasetFiles, frame: DataFrame, struct: StructType, unseen: Mapping[str, str]
) -> DataFrame:
    """The frame, which fails to be read if a text has a fault.

    :raises DatasetError: the first line of a CSV file is no header.
    """
    ref = source.ref
    if ref.format == "csv" and csv_headers.has_header(ref):
        names = [name for name in struct.names if name not in source.folders]
        csv_headers.require_names(ref, names, source.path, source.folders)
    faults = {**unseen, **_faults_of_texts(source, struct)}
    if faults:
        frame = with_faults_raised(frame, source.texts(), faults)
    return with_folder_faults_raised(source, frame, source.texts()) if source.folders else frame


@dataclass(frozen=True)
class _FooterChecks:
    """The checks of footers before files are read, each file once."""

    source: DatasetFiles
    struct: StructType
    folders: SailFolders | None = None
    _checked: set[DataFile] = field(default_factory=set)

    @cached_property
    def _read_columns(self) -> ReadColumns:
        ref = self.source.ref
        as_stored = ref.schema is not None or _reads_what_is_stored(self.source.spark)
        return ReadColumns.of(self.struct, as_stored=as_stored)

    def check(self, files: Iterable[DataFile]) -> None:
        """Checks the files that were not checked before.

        :raises DatasetError: Spark, or Sail, would not read one as it was written.
        """
        ref, path = self.source.ref, self.source.path
        unchecked = [file for file in files if file not in self._checked]
        if ref.format == "orc":
            footers.require_orc_types(ref, self.struct, path, unchecked, self.source.folders)
        if ref.format == "parquet":
            footers.require_read_as_written(
                ref,
                path,
                unchecked,
                self._read_columns,
                self.source.partitions,
                reads_half_floats=_reads_half_floats(self.source.spark),
            )
            require_own_values(self.source.spark, path, paths_of(path, unchecked))
        if self.folders is not None:
            self.folders.check(unchecked)
        self._checked.update(unchecked)


def _reads_half_floats(spark: SparkSession) -> bool:
    return has_types_since(spark, footers.READS_HALF_FLOATS)


_AS_STORED = ("spark.sql.parquet.binaryAsString", "spark.sql.legacy.parquet.nanosAsLong")


def _reads_what_is_stored(spark: SparkSession) -> bool:
    """True in a session that reads some types of Parquet as what is stored for them."""
    return "true" in settings_named(spark, dict.fromkeys(_AS_STORED, "false")).values()


def _files_of(
    source: DatasetFiles, column: DateColumn | None, dates: Collection[date | None]
) -> Sequence[DataFile]:
    """The files that may hold rows of some dates."""
    if column is None:
        return source.listed if dates else ()
    return source.by_folder.in_folders(source.partitions.lead_to(column, dates))


def _can_read_some(source: DatasetFiles) -> bool:
    """True for files that can be read without the others."""
    if source.ref.format != "parquet" or option_of(source.ref, "basePath") is not None:
        return False
    return not GLOB.search(source.path) and bool(paths_of(source.path, source.listed))


def _read_some(source: DatasetFiles, struct: StructType, chosen: Collection[DataFile]) -> DataFrame:
    """Some of the files, with the types that Spark found in all of them."""
    # Folder values have the types that Spark inferred from all folders.
    reader = source.reader_of_some().schema(struct)
    try:
        with spark_failures():
            return reader.load(paths_of(source.path, chosen))
    except PySparkException as error:
        raise unreadable(source.spark, source.ref, error) from error


_NO_FOOTER = "CANNOT_READ_FILE_FOOTER"


def _stored(source: DatasetFiles, error: PySparkException) -> DataFrame:
    """Parquet files of types that Spark rejects, read as they are stored.

    :raises DatasetError: that is not possible for some columns.
    :raises PySparkException: the error, if it is another one.
    """
    if condition_of(error) == _NO_FOOTER and not _reads_half_floats(source.spark):
        raise footers.half_float_in(source) or error
    if source.ref.schema is not None or not condition_of(error).startswith(UNREADABLE):
        raise error
    frame = footers.read_stored(source)
    if frame is not None:
        return frame
    raise footers.unreadable_columns(source) or error


def _with_folders_in_utc(
    source: DatasetFiles, frame: DataFrame, reader: DataFrameReader
) -> DataFrame:
    """Text files whose types are guessed, with the timestamps in the names of their folders in UTC,
    and not in the time zone of the other values."""
    if source.ref.format not in ("csv", "json") or not source.names_no_zone:
        return frame
    struct = frame.schema
    moments = {
        field.name
        for field in struct.fields
        if field.dataType == TimestampType() and spelled_like(field.name, source.folders)
    }
    if not moments:
        return frame
    fields = [
        StructField(field.name, StringType()) if field.name in moments else field
        for field in struct.fields
    ]
    texts = reader.schema(StructType(fields)).load(source.place)
    return texts.withColumns({name: F.expr(moment_in_utc(name)) for name in moments})


def _faults_of_texts(source: DatasetFiles, struct: StructType) -> dict[str, str]:
    """The faults in text files that Spark's reader would not detect, each with its condition."""
    if source.ref.is_lenient:
        return {}
    in_files = [field for field in struct.fields if field.name not in source.folders]
    faults = faults_of(source.ref, StructType(in_files))
    if source.ref.format == "csv":
        faults |= faults_of_lines(source, len(in_files))
    return faults


def _schema_as_written(source: DatasetFiles) -> StructType | None:
    """The schema of Parquet files, in cases in which Spark need not start a job to find it. Sail
    would take the columns of all files: there the schema is that of the first file, as on Spark."""
    spark, ref, path, files = source.spark, source.ref, source.path, source.listed
    if ref.format != "parquet" or ref.options or GLOB.search(path) or merges_schemas(spark, ref):
        return None
    written = footers.schema_as_written(path, files, source.folders)
    if written is not None or sail_version(spark) is None:
        return written
    first = [place for place in paths_of(path, files[:1]) if not GLOB.search(place)]
    if first and (column := footers.read_unlike_spark(path, files[0])) is not None:
        message = f"dataset '{ref.name}': Sail may read column '{column}' differently from Spark"
        raise DatasetError(message, INSTEAD)
    return spark.read.parquet(*first).schema if first else None


def _require_whole_files(source: DatasetFiles, chosen: Iterable[DataFile]) -> None:
    """Rejects empty files among the chosen ones, where even a file without rows has some bytes.

    :raises DatasetError: there is one.
    """
    ref = source.ref
    if ref.format == "json" or (ref.format == "csv" and not csv_headers.has_header(ref)):
        return
    empty = [file.path for file in chosen if file.size == 0]
    if empty and len(empty) < len(source.listed):
        message = f"dataset '{ref.name}' cannot be read: {empty[0]} is empty"
        raise DatasetError(message, "remove it, or write it again: Spark would skip it")


def _require_read_files(source: DatasetFiles) -> None:
    """Rejects files that Spark would not read: those in subfolders that are not partitions, and
    links to files that do not exist.

    :raises DatasetError: there is one.
    """
    ref, path = source.ref, source.path
    links = _chosen(ref, [DataFile(link, 0, 0) for link in listing.dangling_links(path)])
    if links:
        message = f"dataset '{ref.name}': {links[0].path} is a link to a file that does not exist"
        raise DatasetError(message, "remove it, or restore the file: Spark would skip it")
    if is_on(ref, "recursiveFileLookup") or option_of(ref, "basePath") is not None:
        return
    unread = _chosen(ref, listing.unread_files(path, source.listed))
    if unread:
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        raise DatasetError(
            f"dataset '{ref.name}': {unread[0].path}{more} would not be read: it is in a folder "
            "that is not a partition, or next to partitions",
            "move it, select the files by a glob, or set the option recursiveFileLookup=true",
        )


def _chosen(ref: DatasetRef, files: Sequence[DataFile]) -> Sequence[DataFile]:
    """The files without those that the option pathGlobFilter excludes."""
    glob = option_of(ref, "pathGlobFilter")
    if glob is None:
        return files
    return [file for file in files if listing.matches_glob(file.path.rpartition("/")[2], glob)]
