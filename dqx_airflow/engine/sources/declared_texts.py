"""CSV and JSON files with declared columns: every value is read as a string, and cast here.

A value that is not of its type then is one row that can be reported, instead of a file that cannot
be read, or a silent NULL. A line with too few or too many values, or one that is not JSON, is kept
whole next to its readable part, and counts as malformed in each of its columns.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dqx_airflow.datasets.reader_options import given_options, is_on
from dqx_airflow.engine.sources import csv_for_sail, csv_headers, csv_quotes, json_for_sail
from dqx_airflow.engine.sources.listing import DatasetFiles, newest_paths
from dqx_airflow.engine.sources.text_faults import (
    faults_of,
    may_quote,
    with_faults_as_lines,
    with_faults_raised,
    with_folder_faults_raised,
)
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import can_be_cast, cast_sql, quote_name
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

    `columns` are the columns in the files, `cast` the columns that are not strings. `has_lines` is
    set if lines are kept that are malformed as a whole, `is_sampled` if other columns than the
    declared ones were looked for in some of the files only.
    """

    columns: tuple[str, ...]
    cast: frozenset[str]
    has_lines: bool
    is_sampled: bool = False

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
    source: DatasetFiles, unseen: Mapping[str, str], *, is_sent: bool
) -> tuple[DataFrame, TextColumns]:
    """A frame with the columns in the files, of their declared types, and their strings.

    The header of a CSV file decides which column is which, and which of them it has; the frame has
    the columns of all files. Undeclared columns stay as they are.

    :param unseen: faults of the text that are left to be found.
    :param is_sent: true if the files are read here because this is a Sail.
    """
    ref = source.ref
    declared = _DeclaredFiles.of(source)
    is_sampled = False
    if is_sent:
        strings = declared.sent()
    elif ref.format == "json":
        sample = newest_paths(source.path, source.listed, MOST_SAMPLED_BYTES)
        is_sampled = bool(sample)
        strings = declared.json(sample)
    else:
        strings = declared.csv()
    frame = strings.frame
    struct = T.StructType([T.StructField(name, kind) for name, kind in strings.types.items()])
    faults: dict[str, str] = {}
    # A line of JSON that is not in its encoding is malformed. A file that is sent was read whole.
    if ref.format == "csv" and not is_sent:
        faults.update(unseen)
    if not ref.is_lenient and not is_sent:
        faults.update(faults_of(ref, struct, is_sampled=is_sampled))
    if faults:
        besides = source.texts(declared.in_folders)
        if declared.has_lines and ref.format == "json":
            frame = with_faults_as_lines(frame, besides, faults, _LINE)
        else:
            frame = with_faults_raised(frame, besides, faults)
    if source.folders and not is_sent:
        frame = with_folder_faults_raised(source, frame, source.texts(declared.in_folders))
    frame, kept = declared.cast(frame, strings)
    return frame, replace(kept, is_sampled=is_sampled)


@dataclass(frozen=True, slots=True)
class _Strings:
    """A frame with the strings of files, and their columns: undeclared ones have the type that
    Spark infers. `found` are the declared types with the fields that the files have."""

    frame: DataFrame
    columns: Mapping[str, T.DataType]
    found: Mapping[str, T.DataType] = field(default_factory=dict)

    @property
    def types(self) -> Mapping[str, T.DataType]:
        """The columns with the types of their values, as far as these are known."""
        return {**self.columns, **self.found}


@dataclass(frozen=True, slots=True)
class _DeclaredFiles:
    """Text files and their declared columns: those in the files, and those in the names of their
    folders. `has_lines` is set if malformed lines are kept whole."""

    source: DatasetFiles
    declared: Mapping[str, T.DataType]
    in_folders: Sequence[T.StructField]
    has_lines: bool

    @classmethod
    def of(cls, source: DatasetFiles) -> _DeclaredFiles:
        ref = source.ref
        fields = source.strict_reader().schema(ref.schema or "").load(source.place).schema.fields
        in_folders = [f for f in fields if spelled_like(f.name, source.folders) is not None]
        declared = {field.name: field.dataType for field in fields if field not in in_folders}
        has_lines = all(name.lower() != "mode" for name, _ in ref.options)
        return cls(source, declared, in_folders, has_lines)

    def csv(self) -> _Strings:
        """The strings of CSV files, each group of files with the columns of its header."""
        source = self.source
        groups: list[list[str]] = []
        with_header = csv_headers.has_header(source.ref)
        if with_header and not source.folders:
            groups = csv_headers.groups_by_header(source.path, source.listed)
        frames: list[DataFrame] = []
        all_columns: dict[str, T.DataType] = {}
        places: list[str] | list[list[str]] = groups or [source.place]
        has_quotes = may_quote(source)
        for place in places:
            reader = source.strict_reader().option("inferSchema", "false")
            names = [name for name in reader.load(place).schema.names if self._is_in_files(name)]
            if with_header:
                file = place[0] if isinstance(place, list) else place
                csv_headers.require_declared(source.ref, names, self.declared, file)
            else:
                names = [*self.declared, *names[len(self.declared) :]][: len(names)]
            columns: dict[str, T.DataType] = dict.fromkeys(names, T.StringType())
            frame = self._read(columns, place)
            safe = _with_safe_lines(frame, names[0]) if groups and self.has_lines else frame
            frames.append(self._with_misread_lines(safe, len(names), place, may_quote=has_quotes))
            all_columns |= {
                name: kind
                for name, kind in columns.items()
                if spelled_like(name, [*all_columns]) is None
            }
        frame = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
        return _Strings(frame, all_columns)

    def _with_misread_lines(
        self, frame: DataFrame, columns: int, place: str | list[str], *, may_quote: bool
    ) -> DataFrame:
        """The frame with a malformed line for each that Spark splits into as many values as there
        are columns, but not as it is meant."""
        source = self.source
        if not self.has_lines or is_on(source.ref, "multiLine"):
            return frame
        options = given_options(source.ref)
        faults = csv_quotes.misread_lines(options, columns, may_quote=may_quote)
        if not faults:
            return frame
        texts = source.texts(self.in_folders, place)
        return with_faults_as_lines(frame, texts, faults, _LINE)

    def sent(self) -> _Strings:
        """The strings of files that are read here."""
        source = self.source
        spark = self.source.spark
        types = {name: kind.simpleString() for name, kind in self.declared.items()}
        reader = json_for_sail if source.ref.format == "json" else csv_for_sail
        table = reader.read_strings(source.ref, source.path, source.listed, types, _LINE)
        struct = T.StructType([T.StructField(name, T.StringType()) for name in table.column_names])
        view = f"dqx_{uuid.uuid4().hex}"  # which is sent once, and not with every query
        spark.createDataFrame(table, struct).createOrReplaceTempView(view)
        names = (name for name in struct.names if name != _LINE)
        return _Strings(spark.table(view), dict.fromkeys(names, T.StringType()))

    def json(self, sample: Sequence[str]) -> _Strings:
        """The strings of JSON: first the declared columns, then the others with the types that
        Spark infers.

        A declared column that no object has is missing, provided that all objects were read. So is
        a field of a struct.

        :param sample: the files to infer from; empty for all.
        """
        reader = self.source.strict_reader().options(**_LINES)
        place = self.source.place
        inferred = {
            field.name: field.dataType
            for field in reader.load(list(sample) or place).schema.fields
            if field.name != _LINE and self._is_in_files(field.name)
        }
        spelled = {name: spelled_like(name, inferred) for name in self.declared}
        unseen = [] if sample else [name for name, found in spelled.items() if found is None]
        if unseen:  # Spark infers nothing from empty objects.
            found = self._read(dict.fromkeys(unseen, T.StringType()), place)
            is_there = [F.expr(f"max({quote_name(name)} IS NOT NULL)") for name in unseen]
            present = zip(unseen, found.select(*is_there).collect()[0], strict=True)
            unseen = [name for name, is_present in present if not is_present]
        declared = {
            spelled[name] or name: kind
            for name, kind in self.declared.items()
            if name not in unseen
        }
        types = {
            name: _as_found(kind, inferred.get(name), is_whole=not sample)
            for name, kind in declared.items()
        }
        columns = {**declared, **inferred}
        return _Strings(self._read(columns, place), columns, types)

    def cast(self, frame: DataFrame, strings: _Strings) -> tuple[DataFrame, TextColumns]:
        """The values of strings, in their declared types, and the strings.

        :param frame: the frame of the strings, with those of faults.
        """
        types = {
            name: strings.found.get(name) or self._declared_type(name) for name in strings.columns
        }
        casts = {
            name: kind
            for name, kind in types.items()
            if kind is not None and family_of(kind.simpleString()) is not Family.TEXT
        }
        values = [
            _value(self.source.ref, name, casts[name]).alias(name)
            if name in casts
            else F.expr(quote_name(name))
            for name in frame.columns
        ]
        texts = [F.expr(quote_name(name)).alias(_hidden(name)) for name in casts]
        kept = TextColumns(tuple(strings.columns), frozenset(casts), self.has_lines)
        return frame.select(*values, *texts), kept

    def _read(self, columns: Mapping[str, T.DataType], place: str | list[str]) -> DataFrame:
        """Declared columns as strings, the others as they are."""
        fields = [
            T.StructField(name, kind if self._declared_type(name) is None else T.StringType())
            for name, kind in columns.items()
        ]
        fields += self.in_folders
        reader = self.source.strict_reader()
        if self.has_lines:
            fields.append(T.StructField(_LINE, T.StringType()))
            reader = reader.options(**_LINES)
        return reader.schema(T.StructType(fields)).load(place)

    def _declared_type(self, name: str) -> T.DataType | None:
        spelled = spelled_like(name, self.declared)
        return None if spelled is None else self.declared[spelled]

    def _is_in_files(self, name: str) -> bool:
        return spelled_like(name, self.source.folders) is None


def _as_found(declared: T.DataType, found: T.DataType | None, *, is_whole: bool) -> T.DataType:
    """A declared type with the fields that objects have, as they spell them.

    :param found: the type that Spark infers; None if it infers none.
    :param is_whole: true if it is inferred from all objects: a field that none has is missing.
    """
    match declared, found:
        case T.ArrayType(), T.ArrayType():
            return T.ArrayType(
                _as_found(declared.elementType, found.elementType, is_whole=is_whole)
            )
        case T.StructType(), T.StructType():
            types = {inner.name: inner.dataType for inner in found.fields}
            fields = []
            for inner in declared.fields:
                spelled = spelled_like(inner.name, types)
                if spelled is not None:
                    kind = _as_found(inner.dataType, types[spelled], is_whole=is_whole)
                    fields.append(T.StructField(spelled, kind))
                elif not is_whole:
                    fields.append(inner)
            # No file can hold a struct without fields.
            return T.StructType(fields or [T.StructField(name, T.StringType()) for name in types])
    return declared


def _with_safe_lines(frame: DataFrame, column: str) -> DataFrame:
    """The frame with lines that can be read without its columns, which Spark refuses otherwise."""
    line = quote_name(_LINE)
    whole = f"substr(concat({line}, coalesce({quote_name(column)}, '')), 1, length({line}))"
    return frame.withColumn(_LINE, F.expr(whole))


def _value(ref: DatasetRef, name: str, kind: T.DataType) -> Column:
    text = quote_name(name)
    spark_type = kind.simpleString()
    if can_be_cast(spark_type):
        options = {name.lower(): value for name, value in ref.options}
        return F.expr(cast_sql(text, spark_type, options))
    if ref.format != "json":
        raise DatasetError(
            f"dataset '{ref.name}': column '{name}' is declared as {spark_type}, which cannot be "
            "read from text",
            "declare it as string",
        )
    # As the only value of an object: only then does Spark report whether it could read it.
    struct = T.StructType([T.StructField(_VALUE, kind), T.StructField(_LINE, T.StringType())])
    whole = F.concat(F.lit(f'{{"{_VALUE}":'), F.expr(text), F.lit("}"))
    parsed = F.from_json(whole, struct, {**given_options(ref), **_LINES})
    return F.when(parsed.getField(_LINE).isNull(), parsed.getField(_VALUE))


def _hidden(column: str) -> str:
    return f"dqx: text of {column}"
