"""The types of CSV and JSON files without a schema, guessed so that no digit is lost.

Spark takes whole numbers beside decimals for doubles, and a column whose values differ in kind for
text. Here decimals stay decimals, numbers keep their leading zeros (as text), and values of several
kinds are an error or a note: a rule over text may hold where the same rule over numbers would not.

Text files with declared columns: every value is read as a string, and cast here.

A value that is not of its type then is one row that can be reported, instead of a file that cannot
be read, or a silent NULL. A line with too few or too many values, or one that is not JSON, is kept
whole next to its readable part, and counts as malformed in each of its columns.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dqx_airflow.datasets.reader_options import given_options, is_on, option_of
from dqx_airflow.engine.session.spark_errors import is_out_of_memory, spark_failures
from dqx_airflow.engine.session.spark_versions import objection_to_guessed_json, type_named
from dqx_airflow.engine.sources import csv_quotes, text_files
from dqx_airflow.engine.sources.listing import DatasetFiles, newest_paths
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import can_be_cast, cast_sql, quote_name
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, family_of, spelled_like
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
    if lines are kept that are malformed as a whole, `is_sampled` if other columns than the declared
    ones were looked for in some of the files only.
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
    :param is_sent: true if CSV is read here because this is a Sail.
    """
    ref, declared = source.ref, _DeclaredFiles.of(source)
    if ref.format == "csv":
        strings, is_sampled = declared.sent() if is_sent else declared.csv(), False
    else:
        sample = newest_paths(source.path, source.listed, MOST_SAMPLED_BYTES)
        strings, is_sampled = declared.json(sample), bool(sample)
    frame = strings.frame
    struct = T.StructType([T.StructField(name, kind) for name, kind in strings.columns.items()])
    left_out = {} if ref.is_lenient else faults_of(ref, struct, is_sampled=is_sampled)
    # A line of JSON that is not in its encoding is malformed. What is sent was read whole.
    if faults := {**(unseen if ref.format == "csv" and not is_sent else {}), **left_out}:
        besides = source.texts(declared.in_folders)
        if declared.has_lines and ref.format == "json":
            frame = text_files.with_faults_as_lines(frame, besides, faults, _LINE)
        else:
            frame = text_files.with_faults_raised(frame, besides, faults)
    frame, kept = declared.cast(frame, strings.columns)
    return frame, replace(kept, is_sampled=is_sampled)


@dataclass(frozen=True, slots=True)
class _Strings:
    """A frame with the strings of files, and their columns: undeclared ones have the type that
    Spark infers."""

    frame: DataFrame
    columns: Mapping[str, T.DataType]


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
        source, groups = self.source, list[list[str]]()
        with_header = text_files.has_header(source.ref)
        if with_header and not source.folders:
            groups = text_files.groups_by_header(source.path, source.listed)
        frames: list[DataFrame] = []
        all_columns: dict[str, T.DataType] = {}
        places: list[str] | list[list[str]] = groups or [source.place]
        may_quote = _may_quote(source)
        for place in places:
            reader = source.strict_reader().option("inferSchema", "false")
            names = [name for name in reader.load(place).schema.names if self._is_in_files(name)]
            if with_header:
                file = place[0] if isinstance(place, list) else place
                text_files.require_declared(source.ref, names, self.declared, file)
            else:
                names = [*self.declared, *names[len(self.declared) :]][: len(names)]
            columns: dict[str, T.DataType] = dict.fromkeys(names, T.StringType())
            frame = self._read(columns, place)
            safe = _with_safe_lines(frame, names[0]) if groups and self.has_lines else frame
            frames.append(self._with_misread_lines(safe, len(names), place, may_quote=may_quote))
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
        return text_files.with_faults_as_lines(frame, texts, faults, _LINE)

    def sent(self) -> _Strings:
        """The strings of CSV files that are read here."""
        source, spark = self.source, self.source.spark
        types = {name: kind.simpleString() for name, kind in self.declared.items()}
        table = text_files.read_strings(source.ref, source.path, source.listed, types, _LINE)
        struct = T.StructType([T.StructField(name, T.StringType()) for name in table.column_names])
        view = f"dqx_{uuid.uuid4().hex}"  # which is sent once, and not with every query
        spark.createDataFrame(table, struct).createOrReplaceTempView(view)
        names = (name for name in struct.names if name != _LINE)
        return _Strings(spark.table(view), dict.fromkeys(names, T.StringType()))

    def json(self, sample: Sequence[str]) -> _Strings:
        """The strings of JSON: first the declared columns, then the others with the types that
        Spark infers.

        A declared column that no object has is missing, provided that all objects were read.

        :param sample: the files to infer from; empty for all.
        """
        reader, place = self.source.strict_reader().options(**_LINES), self.source.place
        inferred = {
            field.name: field.dataType
            for field in reader.load(list(sample) or place).schema.fields
            if field.name != _LINE and self._is_in_files(field.name)
        }
        unseen = [] if sample else [name for name in self.declared if name not in inferred]
        if unseen:  # Spark infers nothing from empty objects.
            found = self._read(dict.fromkeys(unseen, T.StringType()), place)
            is_there = [F.expr(f"max({quote_name(name)} IS NOT NULL)") for name in unseen]
            present = zip(unseen, found.select(*is_there).collect()[0], strict=True)
            unseen = [name for name, is_present in present if not is_present]
        columns = {name: kind for name, kind in self.declared.items() if name not in unseen}
        columns |= inferred
        return _Strings(self._read(columns, place), columns)

    def cast(
        self, frame: DataFrame, columns: Mapping[str, T.DataType]
    ) -> tuple[DataFrame, TextColumns]:
        """The values of strings, in their declared types, and the strings."""
        types = {name: self._declared_type(name) for name in columns}
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
        strings = [F.expr(quote_name(name)).alias(_hidden(name)) for name in casts]
        kept = TextColumns(tuple(columns), frozenset(casts), self.has_lines)
        return frame.select(*values, *strings), kept

    def _read(self, columns: Mapping[str, T.DataType], place: str | list[str]) -> DataFrame:
        """Declared columns as strings, the others as they are."""
        fields = [
            T.StructField(name, kind if self._declared_type(name) is None else T.StringType())
            for name, kind in columns.items()
        ]
        fields += [*self.in_folders, *([T.StructField(_LINE, T.StringType())] * self.has_lines)]
        reader = self.source.strict_reader().schema(T.StructType(fields))
        return (reader.options(**_LINES) if self.has_lines else reader).load(place)

    def _declared_type(self, name: str) -> T.DataType | None:
        spelled = spelled_like(name, self.declared)
        return None if spelled is None else self.declared[spelled]

    def _is_in_files(self, name: str) -> bool:
        return spelled_like(name, self.source.folders) is None


def faults_of(ref: DatasetRef, struct: T.StructType, *, is_sampled: bool = False) -> dict[str, str]:
    """What Spark's reader would drop from the strings of a dataset, each with its condition.

    :param struct: the columns that are read.
    :param is_sampled: true if they were inferred from some of the files.
    """
    if ref.format == "json":
        is_part = is_sampled or option_of(ref, "samplingRatio") is not None
        return text_files.json_faults(given_options(ref), struct, is_inferred=not is_part)
    # A value may continue on the next line.
    if ref.format == "csv" and is_on(ref, "multiLine"):
        return csv_quotes.faults_of_file(given_options(ref))
    return {}


def faults_of_lines(source: DatasetFiles, columns: int) -> dict[str, str]:
    """What Spark's reader would misread in the lines of CSV files, each with its condition.

    :param columns: the number of columns of the files.
    """
    ref = source.ref
    if ref.is_lenient or is_on(ref, "multiLine"):
        return {}
    return csv_quotes.faults_of_lines(given_options(ref), columns, may_quote=_may_quote(source))


def _may_quote(source: DatasetFiles) -> bool:
    """False if no file has a quote."""
    quote = option_of(source.ref, "quote") or '"'
    return text_files.may_contain(source.path, source.listed, quote)


def _with_safe_lines(frame: DataFrame, column: str) -> DataFrame:
    """The frame with lines that can be read without its columns, which Spark refuses otherwise."""
    line = quote_name(_LINE)
    whole = f"substr(concat({line}, coalesce({quote_name(column)}, '')), 1, length({line}))"
    return frame.withColumn(_LINE, F.expr(whole))


def _value(ref: DatasetRef, name: str, kind: T.DataType) -> Column:
    text, spark_type = quote_name(name), kind.simpleString()
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


_WHOLE, _DECIMAL, _FLOAT, _ZEROS, _TEXT, _DATE, _BOOLEAN, _TIME = (1 << bit for bit in range(8))
_NUMBER = _WHOLE | _DECIMAL | _FLOAT | _ZEROS
_KINDS = {_NUMBER: "numbers", _DATE | _TIME: "dates", _BOOLEAN: "booleans"}
_ALL_KINDS = 2 * _TIME - 1
_BEYOND_INT, _BEYOND_BIGINT, _LOSES, _BEFORE = (2 * _TIME << bit for bit in range(4))
"""Bits above those of kinds: a whole number that an int, or a bigint, does not hold; digits that a
double, or a timestamp, loses; and from the last one on the number of digits before the point."""
_INTS = (("int", _BEYOND_INT), ("bigint", _BEYOND_BIGINT))
_BEYOND = "[0-9.]+[eE][+-]?0*(3(09|[1-9][0-9])|[4-9][0-9]{2}|[1-9][0-9]{3,})"
_LOST = (
    r"(^|[\\[:,\\s])-?(0*[.]?0*[1-9]([.]?[0-9]){17,}|[1-9][0-9]{15,}|"
    + _BEYOND
    + r")([.]0*)?\\s*($|[,\\]}])"
)
"""A number whose digits a double may not keep, in the text of a value: 18 digits, or a whole number
of 16, or an exponent of 309 or more."""
_NANOSECONDS = "[.][0-9]{6}0*[1-9]"
_MIXED = "some of its values look like numbers, dates or booleans, and others do not"
_SPARKS_OWN = frozenset(
    {
        *("dateformat", "timestampformat", "timestampntzformat", "locale", "preferdate"),
        *("samplingratio", "inferschema", "nanvalue", "positiveinf", "negativeinf"),
    }
)
"""Options of CSV with which Spark alone decides."""
_PLAIN_JSON = ("multiline", "mode", "pathglobfilter", "recursivefilelookup", "basepath")


@dataclass(frozen=True, slots=True)
class GuessedTypes:
    """The columns of files, without those of folders; `notes` say why columns are strings, or
    what their type does not hold."""

    struct: T.StructType
    notes: Mapping[str, str] = field(default_factory=dict)


def guess_csv(source: DatasetFiles) -> GuessedTypes | None:
    """The types of CSV files; None if the options of the dataset leave them to Spark.

    :raises DatasetError: they are numbers that no type holds, or other kinds in other files.
    """
    ref, place = source.ref, source.place
    if any(name.lower() in _SPARKS_OWN for name in given_options(ref)):
        return None
    # Malformed lines, and other headers, are left to the scan.
    lenient = {"inferSchema": "false", "mode": "PERMISSIVE", "enforceSchema": "true"}
    texts = source.strict_reader().options(**lenient).load(place)
    names = [name for name in texts.columns if spelled_like(name, source.folders) is None]
    if not names:
        return None
    with _memory_explained(ref, len(names)):
        seen = _seen(texts, names)
    types: dict[str, T.DataType] = {}
    notes: dict[str, str] = {}
    for name in names:
        types[name], note = seen[name].type(ref, name)
        if note is not None:
            notes[name] = f"column '{name}' is read as strings: {note}"
    times = [name for name in names if seen[name].is_time]
    if times:
        sparks = source.strict_reader().load(place).schema
        types |= {name: sparks[name].dataType for name in times}
        lost = (name for name in times if seen[name].is_lost and types[name] != T.StringType())
        notes |= {name: f"column '{name}' is read without its nanoseconds" for name in lost}
    return GuessedTypes(T.StructType([T.StructField(n, kind) for n, kind in types.items()]), notes)


@contextmanager
def _memory_explained(ref: DatasetRef, columns: int) -> Iterator[None]:
    """Names the number of columns, and the way out, if Java runs out of memory."""
    try:
        with spark_failures():
            yield
    except PySparkException as error:
        if not is_out_of_memory(error):
            raise
        raise DatasetError(
            f"dataset '{ref.name}': Java ran out of memory while the types of {columns} columns "
            "were guessed",
            'declare them: schema="id bigint, ...", or set spark.driver.memory and '
            "spark.executor.memory",
        ) from error


@dataclass(frozen=True, slots=True)
class _Seen:
    """The values of a column: the bits of all, and the kinds of those in each file; a bit for each
    number of digits after the point."""

    facts: int
    by_file: Sequence[int]
    digits_after: int

    @property
    def mask(self) -> int:
        """The kinds of the values."""
        return self.facts & _ALL_KINDS

    @property
    def before(self) -> int:
        """The maximum number of digits before the point, one more than fit if they do not fit."""
        return max((self.facts // _BEFORE).bit_length() - 1, 0)

    @property
    def after(self) -> int:
        """The maximum number of digits after the point, one more than fit if they do not fit."""
        return max(self.digits_after.bit_length() - 1, 0)

    @property
    def is_lost(self) -> bool:
        return bool(self.facts & _LOSES)

    @property
    def is_time(self) -> bool:
        return bool(self.mask & _TIME) and not self.mask & ~(_TIME | _DATE)

    def type(self, ref: DatasetRef, name: str) -> tuple[T.DataType, str | None]:
        kinds = sorted({_kind(mask) for mask in self.by_file if mask})
        if len(kinds) > 1:
            raise DatasetError(
                f"dataset '{ref.name}': column '{name}' has {kinds[0]} in one file and {kinds[1]} "
                "in another",
                _declare(name, "string"),
            )
        if self.mask & ~_NUMBER or not self.mask:
            simple = {_DATE: "date", _BOOLEAN: "boolean"}.get(self.mask, "string")
            is_mixed = simple == "string" and self.mask & ~_TEXT and not self.is_time
            return type_named(simple), _MIXED if is_mixed else None
        if self.mask & _ZEROS:
            return T.StringType(), "some of its numbers begin with zeros"
        if self.mask & _FLOAT and not self.is_lost:
            return T.DoubleType(), None
        if self.before + self.after > LONGEST_DECIMAL or self.mask & _FLOAT:
            raise _too_long(ref, name)
        if not (self.after or self.mask & _DECIMAL):
            for simple, beyond in _INTS:
                if not self.facts & beyond:
                    return type_named(simple), None
        return type_named(f"decimal({self.before + self.after},{self.after})"), None


_NOTHING_SEEN = _Seen(0, (), 0)


def _kind(mask: int) -> str:
    return next((kind for bits, kind in _KINDS.items() if not mask & ~bits), "strings")


def _declare(name: str, kind: str) -> str:
    return f'declare its type: schema="{quote_name(name)} {kind}"'


def _too_long(ref: DatasetRef, name: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': column '{name}' has numbers with more digits than a guessed type "
        "holds",
        f"{_declare(name, 'decimal(38,10)')}, double if digits may be lost, or string",
    )


def _seen(texts: DataFrame, names: Sequence[str]) -> dict[str, _Seen]:
    """One pass over all values, as strings.

    Each value is a row here, so that the plan is the same for any number of columns. What is seen
    of a value is two whole numbers, which are combined with a bitwise OR, first those of a file.
    """
    cells = texts.selectExpr(
        "_metadata.file_path AS file",
        f"posexplode(array({', '.join(map(quote_name, names))})) AS (at, value)",
    )
    # Each step uses columns of the step before several times, so Spark does not merge them.
    stripped = cells.selectExpr("file", "at", "value", "trim(value) AS trimmed")
    parts = stripped.selectExpr("*", "translate(trimmed, '0123456789', '') AS rest")
    kinds = parts.selectExpr("file", "at", "trimmed", f"{_KIND} AS kind")
    codes = kinds.selectExpr("file", "at", f"{_FACTS} AS facts", f"{_AFTER} AS after")
    per_file = codes.groupBy("file", "at").agg(
        F.expr("bit_or(facts) AS facts"), F.expr("bit_or(after) AS after")
    )
    found = per_file.groupBy("at").agg(
        F.expr("bit_or(facts)"),
        F.expr(f"collect_set(facts & {_ALL_KINDS})"),
        F.expr("bit_or(after)"),
    )
    seen = {names[at]: _Seen(*facts) for at, *facts in found.collect()}
    return {name: seen.get(name, _NOTHING_SEEN) for name in names}


def _length_of_part(number: int) -> str:
    """The number of digits before (1) or after (2) the point, at most one more than fit."""
    return f"least(length(split_part(ltrim('-', trimmed), '.', {number})), {LONGEST_DECIMAL + 1})"


_SIGNED = "(left(rest, 1) <> '-' OR left(trimmed, 1) = '-') AND length(trimmed) > length(rest)"
_OF_DIGITS = (
    f"CASE WHEN trimmed <> value THEN {_FLOAT} WHEN trimmed RLIKE '^-?0[0-9]' THEN {_ZEROS}"
)
_KIND = (
    f"CASE WHEN value IS NULL OR value = '' THEN 0"
    f" WHEN rest IN ('', '-') AND {_SIGNED} THEN {_OF_DIGITS} ELSE {_WHOLE} END"
    f" WHEN rest IN ('.', '-.') AND {_SIGNED} THEN {_OF_DIGITS} ELSE {_DECIMAL} END"
    f" WHEN rest = '--' AND value RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$'"
    f" AND try_cast(value AS DATE) IS NOT NULL THEN {_DATE}"
    f" WHEN left(rest, 2) = '--' AND value RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ T]'"
    f" THEN {_TIME}"
    f" WHEN lower(value) IN ('true', 'false') THEN {_BOOLEAN}"
    f" WHEN value IN ('NaN', 'Inf', '-Inf', 'Infinity', '-Infinity') OR value RLIKE"
    f" '^-?([0-9]+[.]?[0-9]*|[.][0-9]+)[eE][-+]?[0-9]+$' THEN {_FLOAT}"
    f" ELSE {_TEXT} END"
)
"""The kind of a `value`, from its `trimmed` form and the `rest` of it without digits."""
_IS_LOST = (
    f"(kind < {_TEXT} AND kind > 0 AND (length(trimmed) > 15 OR kind = {_FLOAT})"
    f" AND trimmed RLIKE '{_LOST}' OR kind = {_TIME} AND trimmed RLIKE '{_NANOSECONDS}')"
)
_HAS_DIGITS = f"kind IN ({_WHOLE}, {_DECIMAL})"
_FACTS = (
    "CAST(kind AS BIGINT)"
    f" | if(kind = {_WHOLE} AND try_cast(trimmed AS INT) IS NULL, {_BEYOND_INT}L, 0L)"
    f" | if(kind = {_WHOLE} AND try_cast(trimmed AS BIGINT) IS NULL, {_BEYOND_BIGINT}L, 0L)"
    f" | if({_IS_LOST}, {_LOSES}L, 0L)"
    f" | if({_HAS_DIGITS}, shiftleft({_BEFORE}L, {_length_of_part(1)}), 0L)"
)
"""The kind of a value as a bit, and those above."""
_AFTER = f"if({_HAS_DIGITS}, shiftleft(1L, {_length_of_part(2)}), 0L)"
"""The number of digits after the point as a bit."""


def guess_json(source: DatasetFiles) -> GuessedTypes:
    """The types of JSON files.

    :raises DatasetError: values of a field are of several types, or numbers that no type holds.
    """
    ref, place = source.ref, source.place
    is_plain = (
        all(name.lower() in _PLAIN_JSON for name in given_options(ref)) and not ref.is_lenient
    )
    objection = objection_to_guessed_json(source.spark)
    if is_plain and objection is not None:
        declared = "declare the columns in schema, as `schema=id int, note string`"
        raise DatasetError(f"dataset '{ref.name}': {objection}", declared)
    struct = _variants(ref, source.texts()) if is_plain else None
    if struct is None:
        inferred = source.strict_reader().load(place).schema.fields
        struct = T.StructType([f for f in inferred if spelled_like(f.name, source.folders) is None])
    doubles = [f.name for f in struct.fields if _has_double(f.dataType)]
    if doubles:
        strings = T.StructType([T.StructField(name, T.StringType()) for name in doubles])
        frame = source.strict_reader().schema(strings).option("mode", "PERMISSIVE").load(place)
        lost = [f"max({quote_name(name)} RLIKE '{_LOST}')" for name in doubles]
        for name, is_lost in zip(doubles, frame.selectExpr(*lost).collect()[0], strict=True):
            if is_lost:
                raise _too_long(ref, name)
    return GuessedTypes(struct)


def _variants(ref: DatasetRef, texts: DataFrame) -> T.StructType | None:
    """The columns of JSON values, each with the narrowest type that holds all of its values: NULL
    and objects without fields are strings. None if a value cannot be parsed.

    :raises DatasetError: the values of a field have several types.
    """
    value = "trim(LEADING '\ufeff' FROM value)"
    parsed = texts.where("trim(value) <> ''").selectExpr(f"try_parse_json({value}) AS v")
    found, broken = parsed.selectExpr(
        "schema_of_variant_agg(v)", "count_if(v IS NULL OR is_variant_null(v))"
    ).collect()[0]
    match = re.fullmatch(r"(?:ARRAY<)?OBJECT<(.*?)>(?:(?<=>>)|(?<!>>))", found or "", re.DOTALL)
    if broken or match is None or not match[1]:
        return None
    text = found.removeprefix("ARRAY<").removesuffix(">") if found.startswith("ARRAY<") else found
    ddl = re.sub(
        r"`(?:[^`]|``)*`|\b(VOID\b(?!:)|OBJECT<>)|\b(OBJECT)(?=<)",
        lambda m: "STRING" if m[1] else "STRUCT" if m[2] else m[0],
        text,
    )
    struct = type_named(ddl)
    assert isinstance(struct, T.StructType)
    for name, kind in ((f.name, f.dataType) for f in struct.fields):
        if "variant" in kind.simpleString():
            raise DatasetError(
                f"dataset '{ref.name}': values of '{name}' are of different types, such as a "
                "number in one JSON object and a string in another",
                _declare(name, "string"),
            )
    return struct


def _has_double(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_has_double(f.dataType) for f in kind.fields)
    if isinstance(kind, T.MapType):
        return _has_double(kind.valueType)
    if isinstance(kind, T.ArrayType):
        return _has_double(kind.elementType)
    return isinstance(kind, T.DoubleType)
