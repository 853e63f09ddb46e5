"""Text that Spark's readers of CSV and JSON silently drop or misread: its conditions, and frames
that report it.

The CSV parser, if values may contain line breaks, takes everything after an unclosed quote for one
value. So the files are also read as plain text, in the same pass.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dqx_airflow.datasets.reader_options import given_options, is_on, option_of
from dqx_airflow.engine.sources import csv_quotes
from dqx_airflow.engine.sources.json_text import folder_faults, json_faults
from dqx_airflow.engine.sources.listing import (
    HEAD_BYTES,
    TEXT_COLUMN,
    DataFile,
    DatasetFiles,
    read_each,
)
from dqx_airflow.engine.sources.partition_values import utf8_columns
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.values import DatasetRef

RAISED = "dqx: "
"""The prefix of errors that a pass raises itself."""

SOME_LINE = "a line does not match the columns"

_FAULT = "dqx: fault"


def faults_of(ref: DatasetRef, struct: T.StructType, *, is_sampled: bool = False) -> dict[str, str]:
    """The faults of texts of which Spark's reader would drop a part, each with its condition.

    :param struct: the columns that are read.
    :param is_sampled: true if they were inferred from some of the files.
    """
    if ref.format == "json":
        is_part = is_sampled or option_of(ref, "samplingRatio") is not None
        return json_faults(given_options(ref), struct, is_inferred=not is_part)
    # A value may continue on the next line.
    if ref.format == "csv" and is_on(ref, "multiLine"):
        return csv_quotes.faults_of_file(given_options(ref))
    return {}


def with_folder_faults_raised(
    source: DatasetFiles, frame: DataFrame, texts: DataFrame
) -> DataFrame:
    """The frame, which fails to be read if a field of JSON has another value than the folder.

    :param texts: the same files, read as plain text, with the columns of folders.
    """
    folders = {one.name: one.dataType for one in texts.schema.fields if one.name != TEXT_COLUMN}
    if source.ref.format != "json" or not folders:
        return frame
    decoded = utf8_columns(texts.schema, source.partitions.in_utf8)
    faults = folder_faults(given_options(source.ref), folders, decoded)
    return with_faults_raised(frame, texts, faults)


def faults_of_lines(source: DatasetFiles, columns: int) -> dict[str, str]:
    """The faults of lines of CSV files that Spark's reader would misread, each with its condition.

    :param columns: the number of columns of the files.
    """
    ref = source.ref
    if ref.is_lenient or is_on(ref, "multiLine"):
        return {}
    return csv_quotes.faults_of_lines(given_options(ref), columns, may_quote=may_quote(source))


def may_quote(source: DatasetFiles) -> bool:
    """False only if all files are small, and no file has a quote."""
    quote = (option_of(source.ref, "quote") or '"').encode()

    def look(system: FileSystem, file: DataFile) -> bool:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            head = bytes(stream.read(HEAD_BYTES))
        return len(head) == HEAD_BYTES or quote in head

    try:
        return not source.listed or any(read_each(source.path, source.listed, look))
    except (OSError, ValueError):
        return True


def with_faults_raised(frame: DataFrame, texts: DataFrame, faults: Mapping[str, str]) -> DataFrame:
    """The frame, which fails to be read if one of the conditions is true for a text.

    :param texts: the same files, read as plain text.
    """
    place = f"concat({quote_literal(RAISED)}, _metadata.file_path, ' cannot be read: ', "
    cases = " ".join(
        f"WHEN {condition} THEN raise_error({place}{quote_literal(problem)}))"
        for problem, condition in faults.items()
    )
    # The error is also the value of each column: a filter on one of them must not be answered
    # before the text was checked.
    faulty = texts.withColumn(_FAULT, F.expr(f"CASE {cases} END"))
    columns = []
    for field in frame.schema.fields:
        if field.name in texts.columns:
            columns.append(F.expr(quote_name(field.name)))
        else:
            error = F.expr(quote_name(_FAULT))
            columns.append(error.cast(field.dataType).alias(field.name))
    broken = faulty.where(f"{quote_name(_FAULT)} IS NOT NULL").select(*columns)
    return frame.unionByName(broken)


def with_faults_as_lines(
    frame: DataFrame, texts: DataFrame, faults: Mapping[str, str], line: str
) -> DataFrame:
    """The frame with an additional row for each text for which one of the conditions is true.

    :param line: the column of lines that are malformed as a whole.
    """
    columns = []
    for field in frame.schema.fields:
        if field.name in texts.columns:
            columns.append(F.expr(quote_name(field.name)))
        else:
            value = quote_name(TEXT_COLUMN) if field.name == line else "NULL"
            columns.append(F.expr(value).cast(field.dataType).alias(field.name))
    malformed = texts.where(" OR ".join(faults.values())).select(*columns)
    return frame.unionByName(malformed)
