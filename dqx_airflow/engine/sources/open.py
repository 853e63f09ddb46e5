"""Opens datasets as Spark DataFrames, pinned to their current version.

Tables, views and queries of the catalog are read as strictly as files at a path. Spark reads a
table of text files (`USING csv`) leniently unless the table says otherwise: values that do not fit
their column silently become NULL.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timezone

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from dqx_airflow.datasets.delta_log import require_whole_commits
from dqx_airflow.datasets.reader_options import given_options, is_on, of_delta_table, option_of
from dqx_airflow.datasets.settings import check_ref, timestamp_of
from dqx_airflow.dql.checks import read_only_sql
from dqx_airflow.engine.session import sail
from dqx_airflow.engine.session.sail import INSTEAD, sail_version
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.session.spark_session import TIME_ZONE, is_in_utc
from dqx_airflow.engine.session.spark_versions import condition_of
from dqx_airflow.engine.sources import csv_headers, dataset, footers, iceberg, listing
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.declared_texts import read_texts
from dqx_airflow.engine.sources.delta_files import COMMITS_READ, KEEP_THE_DATA
from dqx_airflow.engine.sources.delta_table import (
    deltalake_failures,
    open_delta,
    require_moments_of_table,
)
from dqx_airflow.engine.sources.footers import UNREADABLE, merges_schemas
from dqx_airflow.engine.sources.guessed_types import guess_csv, guess_json
from dqx_airflow.engine.sources.jdbc import open_database_table
from dqx_airflow.engine.sources.json_text import with_json_layout
from dqx_airflow.engine.sources.listing import GLOB, DataFile, DatasetFiles, absolute, paths_of
from dqx_airflow.engine.sources.partition_values import NO_VALUE, has_zone, moment_in_utc
from dqx_airflow.engine.sources.text_encoding import require_text
from dqx_airflow.engine.sources.text_faults import faults_of, faults_of_lines, with_faults_raised
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.values import MASK, DatasetRef


def open_dataset(spark: SparkSession, ref: DatasetRef) -> dataset.OpenDataset:
    """Opens a dataset. For a Delta table at a path no Spark job runs.

    :raises DatasetError: there is nothing to read, or no way to read it.
    """
    try:
        check_ref(ref)
    except RequestError as error:
        raise DatasetError(error.problem, error.hint) from error
    try:
        with spark_failures():
            dataset.require_plain_sql(spark, ref)
            if (objection := sail.objection_to_source(spark, ref)) is not None:
                raise DatasetError(f"dataset '{ref.name}': {objection}", sail.INSTEAD)
            of_sail = sail.sail_version(spark) is not None
            opened = _open(spark, ref)
            opened = dataset.in_one_form(_of_sail(opened) if of_sail else opened, of_sail=of_sail)
            if ref.filter is not None:
                opened = _filtered(spark, opened, ref.filter)
    except PySparkException as error:
        raise dataset.unreadable(spark, ref, error) from error
    if not opened.struct.names:
        message = f"dataset '{ref.name}': {opened.location} has no columns"
        raise DatasetError(message, "check its files")
    return opened


def _open(spark: SparkSession, ref: DatasetRef) -> dataset.OpenDataset:
    if ref.query is not None:
        return open_query(spark, ref, ref.query)
    if ref.conn_id is not None:
        return open_database_table(spark, ref)
    if ref.table is not None:
        return open_table(spark, ref, ref.table)
    path = absolute(ref.path or "")
    if ref.format == "delta":
        return open_delta(spark, ref, path)
    return open_files(spark, ref, path)


def _of_sail(opened: dataset.OpenDataset) -> dataset.OpenDataset:
    """The dataset with the values that Spark would read: of the files that we list.

    :raises DatasetError: Sail reads others.
    """
    files, alone = opened.files or (), opened.read_files
    if len({name.casefold() for name in opened.struct.names}) < len(opened.struct.names):
        other = "columns whose names differ only in case"
    elif folders := listing.partition_names(files):
        other = f"the values of {folders[0]} in the names of folders"
    elif any(map(GLOB.search, (opened.location, *(file.path for file in files)))):
        other = "paths with wildcard characters"
    elif any((opened.log, opened.texts, opened.ref.table)) or not opened.struct.names:
        return opened
    elif not files or alone is None:
        other = "files that cannot be listed from here"
    else:
        return replace(opened, read=lambda _: alone(files))
    message = f"dataset '{opened.ref.name}': Sail reads {other} differently from Spark"
    raise DatasetError(message, sail.INSTEAD)


def _filtered(
    spark: SparkSession, opened: dataset.OpenDataset, condition: str
) -> dataset.OpenDataset:
    """The dataset with its filter, tried on no rows so that errors in it are found here."""
    objection = read_only_sql.objection_to_filter(condition)
    if objection is not None:
        message = f"the filter of dataset '{opened.ref.name}': {objection}"
        raise DatasetError(message, "write one predicate over its columns")
    filtered = spark.createDataFrame([], opened.struct).where(condition)
    # Spark Connect checks the condition when the schema is requested.
    struct = filtered.schema
    alone = opened.read_files
    return replace(
        opened,
        struct=struct,
        read=lambda dates: opened.read(dates).where(condition),
        read_files=alone and (lambda files: alone(files).where(condition)),
    )


_OF_TEXT = ("csv", "json", "xml")
_STRICT = {"mode": "FAILFAST", "columnPruning": "false"}
"""Without column pruning, values of columns that no assertion uses are read as well."""
_DETAILS = "# Detailed Table Information"
_MOST_VIEWS = 20
"""The maximum nesting of views."""


def open_table(spark: SparkSession, ref: DatasetRef, table: str) -> dataset.OpenDataset:
    """A table or view by name; a Delta table is pinned to its current version.

    :raises DatasetError: it cannot be read as requested.
    """
    dataset.require_strict_session(spark, ref, "what it reads of the catalog")
    about = _description(spark, table)
    provider = about.get("Provider", "").lower()
    options = given_options(ref)
    if _text_format(about) and not _has_mode(about):
        options = {**_STRICT, **options}
    _require_strict_views(spark, ref, about)
    reader = spark.read.options(**options)
    # Before the table is read: whoever writes later writes another snapshot.
    snapshot, branch = None, None
    if provider == "iceberg":
        snapshot, branch = iceberg.snapshot_read(spark, ref, table)
    frame = reader.table(table)
    _require_moments(spark, ref, table, provider)
    if provider != "delta":
        if ref.version is not None or ref.timestamp is not None:
            raise DatasetError(
                f"dataset '{ref.name}': {table} is not a Delta table in this session, so it has no "
                "versions",
                "leave out version and timestamp",
            )
        opened = dataset.OpenDataset.of_frame(ref, frame, table)
        return replace(opened, snapshot=snapshot, branch=branch)
    if ref.options:
        wrong = of_delta_table(ref.options[0][0])
        raise DatasetError(f"dataset '{ref.name}' {wrong.problem}", wrong.hint)
    version = _version_of(spark, ref, table)
    location = about.get("Location") and absolute(about["Location"])
    if location and listing.is_local(location):
        with deltalake_failures(ref, location):
            require_whole_commits(location, version)
    opened = dataset.OpenDataset.of_frame(
        ref, reader.option("versionAsOf", version).table(table), table
    )
    is_of_now = ref.version is None and ref.timestamp is None
    return replace(
        opened,
        version=version,
        last_commit=(lambda: _last_commit(spark, table, version)) if is_of_now else lambda: None,
    )


def open_query(spark: SparkSession, ref: DatasetRef, text: str) -> dataset.OpenDataset:
    """A SELECT over tables and views.

    :raises DatasetError: the text is another statement, or reads a source that may lose values.
    """
    dataset.require_strict_session(spark, ref, "what it reads of the catalog")
    objection = read_only_sql.objection_to_select(text)
    if objection is not None:
        message = f"the query of dataset '{ref.name}': {objection}"
        raise DatasetError(message, "write one SELECT over tables of the catalog")
    for table in read_only_sql.tables_of_select(text):
        _require_strict(spark, ref, table)
    return dataset.OpenDataset.of_frame(ref, spark.sql(text), ref.location)


def _require_strict(spark: SparkSession, ref: DatasetRef, table: str, depth: int = 0) -> None:
    """Rejects text-file tables behind a query or a view, where no reader options apply.

    :raises DatasetError: values that do not fit a column would become NULL.
    """
    about = _description(spark, table)
    kind = _text_format(about)
    if kind and not _has_mode(about):
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in _STRICT.items())
        raise DatasetError(
            f"dataset '{ref.name}' reads {table}, a table of {kind} files, where Spark makes NULL "
            "of what does not fit its columns",
            f"ALTER TABLE {table} SET SERDEPROPERTIES ({properties}), or make {table} the dataset",
        )
    _require_moments(spark, ref, table, about.get("Provider", "").lower())
    _require_strict_views(spark, ref, about, depth)


def _require_moments(spark: SparkSession, ref: DatasetRef, table: str, provider: str) -> None:
    """Rejects a table of the catalog whose partitions are named by timestamps without a time zone,
    if this session would read them in another zone than UTC.

    :raises DatasetError: there is one.
    """
    if provider in ("", "iceberg") or "timestamp" not in dict(spark.table(table).dtypes).values():
        return
    if provider == "delta":
        require_moments_of_table(spark, ref, table)
        return
    if is_in_utc(spark):
        return
    for column in spark.catalog.listColumns(table):
        if column.isPartition and column.dataType == "timestamp":
            raise DatasetError(
                f"dataset '{ref.name}': {table} is partitioned by '{column.name}', whose "
                "timestamps have no time zone: this Spark session would read them in its own",
                f"set {TIME_ZONE}=UTC, at least for the gate",
            )


def _require_strict_views(
    spark: SparkSession, ref: DatasetRef, about: Mapping[str, str], depth: int = 0
) -> None:
    for table in _tables_behind(about):
        if depth >= _MOST_VIEWS:
            raise DatasetError(
                f"dataset '{ref.name}': {table} is behind more than {_MOST_VIEWS} nested views",
                "read one of the inner views or tables",
            )
        _require_strict(spark, ref, table, depth + 1)


def _tables_behind(about: Mapping[str, str]) -> Iterator[str]:
    """The full names of the tables that a view reads, possibly from other databases."""
    home = about.get("View Catalog and Namespace", "")
    for table in read_only_sql.tables_of_select(about.get("View Text", "")):
        yield f"{home}.{table}" if home and "." not in table else table


def _text_format(about: Mapping[str, str]) -> str | None:
    """The format of a table of text files, which may be given as the class of its reader."""
    provider = about.get("Provider", "").lower()
    return next((kind for kind in _OF_TEXT if kind in provider), None)


def _has_mode(about: Mapping[str, str]) -> bool:
    """True if the owner of a table has chosen what happens to values that do not fit."""
    properties = about.get("Storage Properties", "").strip("[]").lower().split(",")
    return any(item.strip().startswith("mode=") for item in properties)


def _description(spark: SparkSession, table: str) -> Mapping[str, str]:
    """The catalog's description of a table; empty for a temporary view."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    except PySparkException:
        return {}  # reading it fails as well, with the reason
    names = [str(row[0]) for row in rows]
    # The columns come before this line, and may have any names.
    start = names.index(_DETAILS) if _DETAILS in names else len(rows)
    return {str(row[0]): str(row[1]) for row in rows[start:]}


def _last_commit(spark: SparkSession, table: str, version: int) -> datetime | None:
    """The time of the last data change of a Delta table, if its history still has it."""
    kept = ", ".join(map(quote_literal, sorted(KEEP_THE_DATA)))
    history = (
        spark.sql(f"DESCRIBE HISTORY {table} LIMIT {COMMITS_READ}")
        .where(f"version <= {version} AND upper(operation) NOT IN ({kept})")
        .selectExpr("max(unix_micros(timestamp))")
        .collect()[0][0]
    )
    return None if history is None else datetime.fromtimestamp(history / 1_000_000, timezone.utc)


def _version_of(spark: SparkSession, ref: DatasetRef, table: str) -> int:
    if ref.version is not None:
        return ref.version
    commits = spark.sql(f"DESCRIBE HISTORY {table}")
    if ref.timestamp is not None:
        timestamp = timestamp_of(ref.timestamp).isoformat()
        commits = commits.where(f"timestamp <= TIMESTAMP_LTZ'{timestamp}'")
    newest = commits.selectExpr("max(version)").collect()[0][0]
    if newest is None:
        raise dataset.too_early(ref, table)
    return int(newest)


_SAMPLED = "columns that are not declared were looked for in the newest 64 MB of the files"
_OF_TABLES = ("parquet", "orc", "avro")
"""The file formats of tables."""


def open_files(spark: SparkSession, ref: DatasetRef, path: str) -> dataset.OpenDataset:
    if ref.format in _OF_TABLES and (table := listing.table_format(path)) is not None:
        raise dataset.of_table(ref, path, table)
    files = listing.files_at(path)
    chosen = [file for file in files or () if _is_chosen(ref, file)]
    unseen: dict[str, str] = {}
    if ref.format in ("csv", "json"):
        unseen = require_text(ref, path, chosen)
        ref = with_json_layout(ref, path, chosen)
    of_sail = sail_version(spark) is not None
    if of_sail and ref.format == "csv" and not files:
        raise dataset.nothing_there(ref, path)
    if of_sail and ref.format == "parquet" and ref.options:
        if merges_schemas(spark, ref):
            footers.require_same_columns(ref, path, files or ())
        ref = replace(ref, options=())
    source = DatasetFiles(spark, ref, path, files or ())
    if ref.format != "iceberg":  # its metadata says which files count
        _require_whole_files(source, chosen)
        _require_read_files(source)
    if ref.schema is not None and source.folders:
        dataset.require_checked_folders(spark, ref)
    if ref.is_of_texts:
        frame, kept = read_texts(source, unseen, is_sent=of_sail)
        visible = [quote_name(name) for name in frame.columns if name not in kept.hidden]
        struct = frame.selectExpr(*visible).schema
        dates = DateColumn.of(ref, struct)
        opened = dataset.OpenDataset(ref, struct, lambda _: frame, path, dates, texts=kept)
        opened = replace(opened, notes={"": _SAMPLED} if kept.is_sampled else {})
    else:
        snapshot, branch = None, None
        if ref.format == "iceberg":
            snapshot, branch = iceberg.snapshot_read(spark, ref, path)
        opened = replace(_open_columns(source, unseen), snapshot=snapshot, branch=branch)
    if ref.schema is not None and not (of_sail or opened.read(()).inputFiles()):
        raise dataset.nothing_there(ref, path)
    notes = _folder_notes(ref, opened.struct, source)
    opened = _with_dates_in_one_form(opened, source)
    return replace(opened, files=files, notes={**opened.notes, **notes})


def _with_dates_in_one_form(
    opened: dataset.OpenDataset, source: DatasetFiles
) -> dataset.OpenDataset:
    """Rejects folders that name a requested date in another form than that of the date column."""
    column, own = opened.dates, opened.read
    if column is None:
        return opened
    texts = listing.partition_texts(source.listed).get(column.name, ())

    def read(dates: Collection[date | None]) -> DataFrame:
        dataset.require_one_spelling(source.ref, column, dates, texts)
        return own(dates)

    # Files that are new beside a stored state are read without a date.
    is_odd = any(column.is_misspelled(on, text) for text in texts for on in column.dates_in(text))
    return replace(opened, read=read, read_files=None if is_odd else opened.read_files)


_WHOLE = re.compile(r"0|-?[1-9]\d*", re.ASCII)
_AS_WRITTEN = {
    "int": _WHOLE,
    "bigint": _WHOLE,
    "decimal": _WHOLE,
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    # A double has 15 digits, and does not tell 1.1 from 1.10.
    "double": re.compile(r"(?!-?[\d.]{17})-?(0|[1-9]\d*)(\.\d*[1-9])?", re.ASCII),
}
"""What has the form of a guessed type: of `007` it would be another one."""
_HAS_DAY = re.compile(r"[+-]?\d{4,7}(-|$)")


def _folder_notes(ref: DatasetRef, struct: StructType, source: DatasetFiles) -> dict[str, str]:
    """Notes about the values in the names of folders, by column.

    :raises DatasetError: a time there has no day, and Spark would read it as one of today.
    """
    notes = {}
    for name, texts in listing.partition_texts(source.listed).items():
        column = spelled_like(name, struct.names)
        if column is None:
            continue
        kind = struct[column].dataType.simpleString()
        hides = is_masked(column, ref.masked)
        if kind.startswith("timestamp"):
            timeless = [text for text in texts if text != NO_VALUE and not _HAS_DAY.match(text)]
            if timeless:
                raise DatasetError(
                    f"dataset '{ref.name}': the folder {column}="
                    f"{MASK if hides else timeless[0]} has a time without its day",
                    f"declare it as a string: schema='..., {column} string'",
                )
            is_bare = any(text != NO_VALUE and not has_zone(text) for text in texts)
            if kind == "timestamp" and is_bare and source.names_no_zone:
                notes[column] = (
                    f"the names of its folders have no time zone: {column} is read in UTC, unless "
                    "the option timeZone says otherwise"
                )
        form = _AS_WRITTEN.get(kind.partition("(")[0]) if ref.schema is None else None
        other = [text for text in texts if form and text != NO_VALUE and not form.fullmatch(text)]
        if other:
            notes[column] = (
                f"the folder {column}={MASK if hides else other[0]} is read as {kind}: to read "
                f"what is written, declare schema='..., {column} string'"
            )
    return notes


def _open_columns(source: DatasetFiles, unseen: Mapping[str, str]) -> dataset.OpenDataset:
    """Files whose values have types.

    :param unseen: the faults of texts that are left to be found.
    """
    ref, path, files, place = source.ref, source.path, source.listed, source.place
    guessed = None
    if ref.schema is None and ref.format == "csv":
        guessed = guess_csv(source)
    elif ref.schema is None and ref.format == "json":
        guessed = guess_json(source)
    schema = ref.schema or (guessed and guessed.struct)
    schema = schema or _schema_as_written(source)
    reader = source.strict_reader()
    reader = reader if schema is None else reader.schema(schema)
    try:
        frame = _with_folders_in_utc(source, reader.load(place), reader)
        struct = frame.schema  # Spark Connect only now looks at the files.
    except PySparkException as error:
        stored = _stored(source, error)
        return dataset.OpenDataset.of_frame(ref, stored, path)
    if ref.format in ("csv", "json"):
        if ref.format == "csv" and csv_headers.has_header(ref):
            names = [name for name in struct.names if name not in source.folders]
            csv_headers.require_names(ref, names, path, source.folders)
        if faults := {**unseen, **_faults_of_texts(source, struct)}:
            frame = with_faults_raised(frame, source.texts(), faults)
    opened = dataset.OpenDataset.of_frame(ref, frame, path)
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
        base = listing.partition_root(path) or path
        reader = source.strict_reader().schema(struct).option("basePath", base)
        try:
            with spark_failures():
                return reader.load(paths_of(path, chosen))
        except PySparkException as error:
            raise dataset.unreadable(source.spark, ref, error) from error

    return replace(opened, read_files=read_files)


def _stored(source: DatasetFiles, error: PySparkException) -> DataFrame:
    """Parquet files of types that Spark rejects, read as they are stored.

    :raises DatasetError: that is not possible for some columns.
    :raises PySparkException: the error, if it is another one.
    """
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
    faults = faults_of(source.ref, struct)
    if source.ref.format == "csv":
        in_files = [name for name in struct.names if name not in source.folders]
        faults |= faults_of_lines(source, len(in_files))
    return faults


def _schema_as_written(source: DatasetFiles) -> StructType | None:
    """The schema of Parquet files, in cases in which Spark need not start a job to find it. Sail
    would take the columns of all files: there it is that of the first one, as on Spark."""
    spark, ref, path, files = source.spark, source.ref, source.path, source.listed
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
    links = [link for link in listing.dangling_links(path) if _is_chosen(ref, DataFile(link, 0, 0))]
    if links:
        message = f"dataset '{ref.name}': {links[0]} is a link to a file that does not exist"
        raise DatasetError(message, "remove it, or restore the file: Spark would skip it")
    if is_on(ref, "recursiveFileLookup") or option_of(ref, "basePath") is not None:
        return
    listed = listing.unread_files(path, source.listed)
    unread = [file.path for file in listed if _is_chosen(ref, file)]
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
