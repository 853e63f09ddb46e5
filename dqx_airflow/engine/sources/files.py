"""Opens the files at a path or a glob."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import StringType, StructField, StructType

from dqx_airflow.datasets.reader_options import given_options, is_on, option_of
from dqx_airflow.engine.session.sail import INSTEAD, sail_version
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.session.spark_versions import condition_of
from dqx_airflow.engine.sources import footers, listing, text_files
from dqx_airflow.engine.sources.dataset import (
    NOTHING_IGNORED,
    OpenDataset,
    nothing_there,
    of_table,
    require_checked_folders,
    unreadable,
)
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.footers import UNREADABLE, merges_schemas
from dqx_airflow.engine.sources.guessed_types import faults_of, guess_csv, guess_json, read_texts
from dqx_airflow.engine.sources.listing import GLOB, DataFile, for_spark, partition_names, paths_of
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.values import DatasetRef

_STRICT = {
    # For a line that does not fit, PERMISSIVE would return NULLs, which most rules let pass. To
    # notice such lines Spark must read them whole, including the names in each file.
    "csv": {
        "header": "true",
        "inferSchema": "true",
        "mode": "FAILFAST",
        "enforceSchema": "false",
        "columnPruning": "false",
    },
    "json": {"mode": "FAILFAST"},
    # Its log has counts and extremes of files that may no longer exist.
    "iceberg": {"aggregate-push-down-enabled": "false"},
}
"""Read strictly unless the options of a dataset say otherwise."""
_SAMPLED = "columns that are not declared were looked for in the newest 64 MB of the files"
_OF_TABLES = ("parquet", "orc", "avro")
"""The file formats of tables."""


def open_files(spark: SparkSession, ref: DatasetRef, path: str) -> OpenDataset:
    if ref.format in _OF_TABLES and (table := listing.table_format(path)) is not None:
        raise of_table(ref, path, table)
    # Listed before Spark lists them, so that no change goes unnoticed.
    files = listing.files_at(path)
    chosen = [file for file in files or () if _is_chosen(ref, file)]
    unseen = text_files.require_text(ref, path, chosen)
    ref = text_files.with_json_layout(ref, path, chosen)
    options = given_options(ref)
    if ref.format != "iceberg":  # its metadata says which files count
        _require_whole_files(ref, files or ())
        _require_read_files(ref, path, files or ())
    if ref.schema is not None and partition_names(files or ()):
        require_checked_folders(spark, ref)

    def reader(format: str) -> DataFrameReader:
        spark_reader = spark.read.format(format)
        if format != "iceberg":
            spark_reader = spark_reader.options(**NOTHING_IGNORED)
        root = listing.partition_root(path)
        return spark_reader if root is None else spark_reader.option("basePath", root)

    def fresh_reader() -> DataFrameReader:
        strict = reader(ref.format).options(**_STRICT.get(ref.format, {}))
        return strict.options(**options)

    def texts(folders: Sequence[StructField]) -> DataFrame:
        texts = text_files.plain_texts(reader, options, is_whole=is_on(ref, "multiLine"))
        if folders:
            texts = texts.schema(StructType([StructField("value", StringType()), *folders]))
        return texts.load(for_spark(path))

    if ref.is_of_texts:
        frame, kept = read_texts(ref, fresh_reader, path, files, texts, unseen)
        visible = [quote_name(name) for name in frame.columns if name not in kept.hidden]
        struct = frame.selectExpr(*visible).schema
        dates = DateColumn.of(ref, struct)
        opened = OpenDataset(ref, struct, lambda _: frame, path, dates, texts=kept)
        opened = replace(opened, notes={"": _SAMPLED} if kept.is_sampled else {})
    else:
        opened = _open_columns(spark, ref, fresh_reader, path, files or (), texts, unseen)
    if ref.schema is not None and not opened.read(()).inputFiles():
        raise nothing_there(ref, path)
    return replace(opened, files=files)


def _open_columns(
    spark: SparkSession,
    ref: DatasetRef,
    fresh_reader: Callable[[], DataFrameReader],
    path: str,
    files: Sequence[DataFile],
    texts: Callable[[Sequence[StructField]], DataFrame],
    unseen: Mapping[str, str],
) -> OpenDataset:
    """Files whose values have types.

    :param unseen: the faults of texts that are left to be found.
    """
    folders = partition_names(files)
    place = for_spark(path)
    guessed = None
    if ref.schema is None and ref.format == "csv":
        guessed = guess_csv(ref, fresh_reader, place, folders)
    elif ref.schema is None and ref.format == "json":
        guessed = guess_json(ref, fresh_reader, place, folders, texts(()))
    schema = ref.schema or (guessed and guessed.struct)
    schema = schema or _schema_as_written(spark, ref, path, files)
    reader = fresh_reader() if schema is None else fresh_reader().schema(schema)
    try:
        frame = reader.load(place)
        struct = frame.schema  # Spark Connect only now looks at the files.
    except PySparkException as error:
        is_refused = ref.schema is None and condition_of(error) == UNREADABLE
        stored = footers.read_stored(fresh_reader, path, files) if is_refused else None
        if stored is None:
            raise
        return OpenDataset.of_frame(ref, stored, path)
    if ref.format == "csv" and text_files.has_header(ref):
        text_files.require_names(ref, [n for n in struct.names if n not in folders], path)
    if faults := {**unseen, **({} if ref.is_lenient else faults_of(ref, struct))}:
        frame = text_files.with_faults_raised(frame, texts(()), faults)
    opened = OpenDataset.of_frame(ref, frame, path)
    if guessed:
        opened = replace(opened, notes=guessed.notes)
    checked = set[DataFile]()

    def check_footers(chosen: Iterable[DataFile]) -> None:
        unchecked = [file for file in chosen if file not in checked]
        if ref.format == "orc":
            footers.require_orc_types(ref, struct, path, unchecked)
        if ref.format == "parquet":
            footers.require_folders_as_in_files(ref, path, unchecked)
        checked.update(unchecked)

    def read(dates: Collection[date | None]) -> DataFrame:
        column = opened.dates
        check_footers(
            file
            for file in files
            if any(not (on and column) or column.may_be_in(on, file.path) for on in dates)
        )
        return frame

    opened = replace(opened, read=read)
    has_own_base = option_of(ref, "basePath") is not None
    if ref.format != "parquet" or has_own_base or GLOB.search(path) or not paths_of(path, files):
        return opened

    def read_files(chosen: Collection[DataFile]) -> DataFrame:
        check_footers(chosen)
        # Folder values have the types that Spark inferred from all folders.
        reader = (
            fresh_reader().schema(struct).option("basePath", listing.partition_root(path) or path)
        )
        try:
            with spark_failures():
                return reader.load(paths_of(path, chosen))
        except PySparkException as error:
            raise unreadable(spark, ref, error) from error

    return replace(opened, read_files=read_files)


def _schema_as_written(
    spark: SparkSession, ref: DatasetRef, path: str, files: Sequence[DataFile]
) -> StructType | None:
    """The schema of Parquet files, in cases in which Spark need not start a job to find it. Sail
    would take the columns of all files: there it is that of the first one, as on Spark."""
    if ref.format != "parquet" or ref.options or GLOB.search(path) or merges_schemas(spark, ref):
        return None
    written = footers.schema_as_written(path, files)
    if written is not None or sail_version(spark) is None:
        return written
    first = [place for place in paths_of(path, files[:1]) if not GLOB.search(place)]
    if first and (column := footers.read_unlike_spark(path, files[0])) is not None:
        message = f"dataset '{ref.name}': Sail may read column '{column}' differently from Spark"
        raise DatasetError(message, INSTEAD)
    return spark.read.parquet(*first).schema if first else None


def _require_whole_files(ref: DatasetRef, files: Sequence[DataFile]) -> None:
    """Rejects empty files, where even a file without rows has some bytes.

    :raises DatasetError: there is one.
    """
    if ref.format == "json" or (ref.format == "csv" and not text_files.has_header(ref)):
        return
    empty = [file.path for file in files if file.size == 0 and _is_chosen(ref, file)]
    if empty and len(empty) < len(files):
        message = f"dataset '{ref.name}' cannot be read: {empty[0]} is empty"
        raise DatasetError(message, "remove it, or write it again: Spark would skip it")


def _require_read_files(ref: DatasetRef, path: str, files: Sequence[DataFile]) -> None:
    """Rejects files that Spark would not read: those in subfolders that are not partitions, and
    links to files that do not exist.

    :raises DatasetError: there is one.
    """
    links = [link for link in listing.dangling_links(path) if _is_chosen(ref, DataFile(link, 0, 0))]
    if links:
        message = f"dataset '{ref.name}': {links[0]} is a link to a file that does not exist"
        raise DatasetError(message, "remove it, or restore the file: Spark would skip it")
    if is_on(ref, "recursiveFileLookup") or option_of(ref, "basePath") is not None:
        return
    unread = [file.path for file in listing.unread_files(path, files) if _is_chosen(ref, file)]
    if unread:
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        raise DatasetError(
            f"dataset '{ref.name}': {unread[0]}{more} would not be read: it is in a folder that "
            "is not a partition, or beside partitions",
            "move it, select the files by a glob, or set the option recursiveFileLookup=true",
        )


def _is_chosen(ref: DatasetRef, file: DataFile) -> bool:
    """False for a file that the option pathGlobFilter excludes."""
    glob = option_of(ref, "pathGlobFilter")
    return glob is None or listing.matches_glob(file.path.rpartition("/")[2], glob)
