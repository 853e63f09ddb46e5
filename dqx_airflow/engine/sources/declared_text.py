"""Text files with declared columns: every value is read as a string, and cast here.

A value that is not of its type then is one row that can be reported, instead of a file that cannot
be read, or a silent NULL. A line with too few or too many values, or one that is not JSON, is kept
whole next to its readable part, and counts as malformed in each of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import DataType, StringType, StructField, StructType

from dqx_airflow.datasets.reader_options import given_options
from dqx_airflow.engine.sources.csv_headers import groups_by_header, has_header, require_declared
from dqx_airflow.engine.sources.listing import DataFile, newest_paths, partition_names
from dqx_airflow.engine.sources.paths import for_spark
from dqx_airflow.engine.sources.unread_text import (
    csv_faults,
    json_faults,
    with_faults_as_lines,
    with_faults_raised,
)
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.text_casts import can_be_cast, cast_sql
from dqx_airflow.metrics.types import Family, family_of, spelled_like
from dqx_airflow.values import DatasetRef

MOST_SAMPLED_BYTES = 64_000_000
"""The maximum size of JSON, newest files first, from which columns are inferred."""

_LINE = "dqx: line"
_LINES = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _LINE}
_VALUE = "value"


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The strings behind the values of a dataset, in hidden columns of its frames.

    `columns` are those in the files, `cast` those of them that are not strings. `has_lines` is set
    if lines are kept that are malformed as a whole.
    """

    columns: tuple[str, ...]
    cast: frozenset[str]
    has_lines: bool

    def text(self, column: str) -> str:
        """The string of a column, as Spark SQL."""
        return quote_name(_hidden(column) if column in self.cast else column)

    @property
    def line(self) -> str:
        """The line if it is malformed as a whole, as Spark SQL."""
        return quote_name(_LINE) if self.has_lines else "CAST(NULL AS STRING)"

    def is_misfit(self, column: str) -> str:
        """True if the string of a column is not a value of its type, as Spark SQL."""
        if column not in self.cast:
            return "false"
        return f"({self.text(column)} IS NOT NULL AND {quote_name(column)} IS NULL)"

    @property
    def is_broken_line(self) -> str:
        """True if the whole line is malformed, as Spark SQL."""
        if not self.has_lines:
            return "false"
        # Spark refuses to read only the column of malformed lines.
        another = f"if({self.text(self.columns[0])} IS NULL, '', ' ')"
        return f"(concat({self.line}, {another}) IS NOT NULL)"

    def is_malformed(self, columns: Collection[str], *, or_broken: bool) -> str:
        """True if the string of a column is not a value, or the whole line is malformed."""
        conditions = [*map(self.is_misfit, columns), self.is_broken_line if or_broken else "false"]
        return f"({' OR '.join(conditions)})"

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the hidden columns."""
        return frozenset(map(_hidden, self.cast)) | ({_LINE} if self.has_lines else set())


def read_texts(
    ref: DatasetRef,
    fresh_reader: Callable[[], DataFrameReader],
    path: str,
    files: Sequence[DataFile] | None,
    plain: Callable[[Sequence[StructField]], DataFrame],
) -> tuple[DataFrame, TextColumns]:
    """A frame with the columns in the files, of their declared types, and their strings.

    The header of a CSV file decides which column is which, and which of them it has; the frame has
    the columns of all files. Undeclared columns stay as they are.

    :param fresh_reader: returns a reader with the options of the dataset.
    """
    partitions = partition_names(files or ())
    declared = fresh_reader().schema(ref.schema or "").load(for_spark(path)).schema
    in_folders = [f for f in declared.fields if spelled_like(f.name, partitions) is not None]
    wanted = {f.name: f.dataType for f in declared.fields if f not in in_folders}
    options = {name.lower(): value for name, value in ref.options}
    has_lines = "mode" not in options
    with_header = has_header(ref)

    def read(columns: Mapping[str, DataType], place: str | list[str]) -> DataFrame:
        fields = [
            StructField(name, kind if _declared(name, wanted) is None else StringType())
            for name, kind in columns.items()
        ]
        fields += [*in_folders, *([StructField(_LINE, StringType())] if has_lines else [])]
        reader = fresh_reader().schema(StructType(fields))
        return (reader.options(**_LINES) if has_lines else reader).load(place)

    is_sampled = False
    if ref.format == "csv":
        groups: list[list[str]] = []
        if with_header and not partitions:
            groups = groups_by_header(path, files or ())
        types_in_files: dict[str, DataType] = {}
        frames = []
        places: list[str] | list[list[str]] = groups or [for_spark(path)]
        for place in places:
            names = fresh_reader().option("inferSchema", "false").load(place).schema.names
            own = [name for name in names if spelled_like(name, partitions) is None]
            if with_header:
                file = place[0] if isinstance(place, list) else place
                require_declared(ref, own, wanted, file)
            if not with_header:
                own = [*wanted, *own[len(wanted) :]][: len(own)]
            columns: dict[str, DataType] = dict.fromkeys(own, StringType())
            frame = read(columns, place)
            frames.append(_with_safe_lines(frame, own[0]) if groups and has_lines else frame)
            types_in_files |= {
                n: kind for n, kind in columns.items() if spelled_like(n, [*types_in_files]) is None
            }
        raw = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    else:
        sample = newest_paths(path, files or (), MOST_SAMPLED_BYTES)
        is_sampled = bool(sample)
        types_in_files = _keys(fresh_reader(), path, sample, partitions, wanted)
        raw = read(types_in_files, for_spark(path))
    if not ref.is_lenient and (
        faults := faults_of(ref, _struct(types_in_files), is_sampled=is_sampled)
    ):
        texts_besides = plain(in_folders)
        if has_lines and ref.format == "json":
            raw = with_faults_as_lines(raw, texts_besides, faults, _LINE)
        else:
            raw = with_faults_raised(raw, texts_besides, faults)
    types = {name: _declared(name, wanted) for name in types_in_files}
    casts = {
        name: kind
        for name, kind in types.items()
        if kind is not None and family_of(kind.simpleString()) is not Family.TEXT
    }
    values = [
        _value(ref, name, casts[name], options).alias(name)
        if name in casts
        else F.expr(quote_name(name))
        for name in raw.columns
    ]
    texts = [F.expr(quote_name(name)).alias(_hidden(name)) for name in casts]
    return raw.select(*values, *texts), TextColumns(
        tuple(types_in_files), frozenset(casts), has_lines
    )


def faults_of(ref: DatasetRef, struct: StructType, *, is_sampled: bool = False) -> dict[str, str]:
    """What Spark's reader would drop from the strings of a dataset, each with its condition.

    :param struct: the columns that are read.
    :param is_sampled: true if they were inferred from some of the files.
    """
    if ref.format == "json":
        options = given_options(ref)
        is_part = is_sampled or "samplingratio" in map(str.lower, options)
        return json_faults(options, struct, is_inferred=not is_part)
    if ref.format == "csv" and is_multi_line(ref):
        return csv_faults(given_options(ref))
    return {}


def is_multi_line(ref: DatasetRef) -> bool:
    """True if a value, or a JSON object, may continue on the next line."""
    options = {name.lower(): value.lower() for name, value in given_options(ref).items()}
    return options.get("multiline") == "true"


def _struct(columns: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def _with_safe_lines(frame: DataFrame, column: str) -> DataFrame:
    """The frame with lines that can be read without its columns, which Spark refuses otherwise."""
    line = quote_name(_LINE)
    whole = f"substr(concat({line}, coalesce({quote_name(column)}, '')), 1, length({line}))"
    return frame.withColumn(_LINE, F.expr(whole))


def _declared(name: str, wanted: Mapping[str, DataType]) -> DataType | None:
    spelled = spelled_like(name, wanted)
    return None if spelled is None else wanted[spelled]


def _keys(
    reader: DataFrameReader,
    path: str,
    sample: Sequence[str],
    partitions: Collection[str],
    wanted: Mapping[str, DataType],
) -> dict[str, DataType]:
    """The columns of JSON: first the declared ones, then the others with the types that Spark
    infers.

    A declared column that no object has is missing, provided that all objects were read.

    :param sample: the files to infer from; empty for all.
    """
    inferred = reader.options(**_LINES).load(list(sample) or for_spark(path)).schema
    types = {
        field.name: field.dataType
        for field in inferred.fields
        if field.name != _LINE and spelled_like(field.name, partitions) is None
    }
    first = {name: kind for name, kind in wanted.items() if sample or name in types}
    return {**first, **types}


def _value(ref: DatasetRef, name: str, kind: DataType, options: Mapping[str, str]) -> Column:
    text, spark_type = quote_name(name), kind.simpleString()
    if can_be_cast(spark_type):
        return F.expr(cast_sql(text, spark_type, options))
    if ref.format != "json":
        raise DatasetError(
            f"dataset '{ref.name}': column '{name}' is declared as {spark_type}, which cannot be "
            "read from text",
            "declare it as string",
        )
    # As the only value of an object: only then does Spark report whether it could read it.
    struct = StructType([StructField(_VALUE, kind), StructField(_LINE, StringType())])
    whole = F.concat(F.lit(f'{{"{_VALUE}":'), F.expr(text), F.lit("}"))
    parsed = F.from_json(whole, struct, {**given_options(ref), **_LINES})
    return F.when(parsed.getField(_LINE).isNull(), parsed.getField(_VALUE))


def _hidden(column: str) -> str:
    return f"dqx: text of {column}"
