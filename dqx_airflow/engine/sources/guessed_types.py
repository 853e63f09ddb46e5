"""The types of CSV and JSON files without a schema, guessed so that no digit is lost.

Spark takes whole numbers beside decimals for doubles, and a column whose values differ in kind for
text. Here decimals stay decimals, numbers keep their leading zeros (as text), and values of several
kinds are an error or a note: a rule over text may hold where the same rule over numbers would not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dqx_airflow.datasets.reader_options import given_options
from dqx_airflow.engine.session.spark_errors import is_out_of_memory, spark_failures
from dqx_airflow.engine.session.spark_versions import objection_to_guessed_json, type_named
from dqx_airflow.engine.sources.listing import DatasetFiles
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import LONGEST_DECIMAL, spelled_like
from dqx_airflow.values import DatasetRef

_WHOLE = 1
_DECIMAL = 2
_FLOAT = 4
_ZEROS = 8
_TEXT = 16
_DATE = 32
_BOOLEAN = 64
_TIME = 128
"""The kinds of values: a bit each, so that the kinds of a column are one number."""
_NUMBER = _WHOLE | _DECIMAL | _FLOAT | _ZEROS
_KINDS = {_NUMBER: "numbers", _DATE | _TIME: "dates", _BOOLEAN: "booleans"}
_ALL_KINDS = 255
_BEYOND_INT = 256
_BEYOND_BIGINT = 512
_LOSES = 1024
_BEFORE = 2048
"""Bits above the bits of kinds: a whole number that an int, or a bigint, does not hold; digits that
a double, or a timestamp, loses; and from the last one on the number of digits before the point."""
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
    """The columns in files, without the columns of folders.

    :param notes: why columns are strings, or what is lost with their type, by name.
    """

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
    """The facts about the values of a column: the bits of all values, the kinds of the values in
    each file, and a bit for each number of digits after the point."""

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
        """The type of the column, and the reason if it is a string.

        :raises DatasetError: the kinds of files differ, or no type holds its numbers.
        """
        kinds = sorted({_kind(mask) for mask in self.by_file if mask})
        if len(kinds) > 1:
            raise DatasetError(
                f"dataset '{ref.name}': column '{name}' has {kinds[0]} in one file and {kinds[1]} "
                "in another",
                _declare(name, "string"),
            )
        if self.mask == _DATE:
            return type_named("date"), None
        if self.mask == _BOOLEAN:
            return type_named("boolean"), None
        if self.mask & ~_NUMBER or not self.mask:
            is_mixed = self.mask & ~_TEXT and not self.is_time
            return T.StringType(), _MIXED if is_mixed else None
        return self._type_of_numbers(ref, name)

    def _type_of_numbers(self, ref: DatasetRef, name: str) -> tuple[T.DataType, str | None]:
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
    """The name of the kinds in a mask."""
    for bits, kind in _KINDS.items():
        if not mask & ~bits:
            return kind
    return "strings"


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

    Each value is a row here, so that the plan is the same for any number of columns. The facts
    about a value are two whole numbers, which are combined with a bitwise OR, first by file, which
    is known by a number: a path in each row would have to be copied and compared.
    """
    lines = texts.selectExpr(
        "xxhash64(_metadata.file_path) AS file",
        f"array({', '.join(map(quote_name, names))}) AS cells",
    )
    cells = lines.selectExpr("file", "posexplode(cells) AS (at, value)")
    # Each step uses columns of the step before several times, so Spark does not merge them.
    stripped = cells.selectExpr("file", "at", "value", "trim(value) AS trimmed")
    parts = stripped.selectExpr(
        "*", "ltrim('-', trimmed) AS unsigned", f"{_IS_NUMBER} AS is_number"
    )
    kinds = parts.selectExpr("file", "at", "trimmed", "unsigned", f"{_KIND} AS kind")
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


_POINT = "locate('.', unsigned)"
_MOST = LONGEST_DECIMAL + 1
_WHOLE_DIGITS = f"if({_POINT} = 0, length(unsigned), {_POINT} - 1)"
_BEFORE_POINT = f"least({_WHOLE_DIGITS}, {_MOST})"
_AFTER_POINT = f"least(if({_POINT} = 0, 0, length(unsigned) - {_POINT}), {_MOST})"
"""The number of digits before and after the point, at most one more than fit."""
_BEGINS_AS_NUMBER = f"left(trimmed, 1) IN ({', '.join(map(repr, '-.0123456789'))})"
_IS_NUMBER = f"{_BEGINS_AS_NUMBER} AND trimmed RLIKE '^-?([0-9]+[.]?[0-9]*|[.][0-9]+)$'"
_HAS_ZEROS = "left(unsigned, 1) = '0' AND length(unsigned) > 1 AND substring(unsigned, 2, 1) <> '.'"
_BEGINS_AS_DATE = "substring(value, 5, 1) = '-' AND value RLIKE '^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_KIND = (
    f"CASE WHEN value IS NULL OR value = '' THEN 0"
    f" WHEN is_number AND trimmed <> value THEN {_FLOAT}"
    f" WHEN is_number AND {_HAS_ZEROS} THEN {_ZEROS}"
    f" WHEN is_number THEN if({_POINT} = 0, {_WHOLE}, {_DECIMAL})"
    f" WHEN length(value) = 10 AND {_BEGINS_AS_DATE}$'"
    f" AND try_cast(value AS DATE) IS NOT NULL THEN {_DATE}"
    f" WHEN {_BEGINS_AS_DATE}[ T]' THEN {_TIME}"
    f" WHEN length(value) IN (4, 5) AND lower(value) IN ('true', 'false') THEN {_BOOLEAN}"
    f" WHEN value IN ('NaN', 'Inf', '-Inf', 'Infinity', '-Infinity') THEN {_FLOAT}"
    f" WHEN {_BEGINS_AS_NUMBER}"
    f" AND value RLIKE '^-?([0-9]+[.]?[0-9]*|[.][0-9]+)[eE][-+]?[0-9]+$' THEN {_FLOAT}"
    f" ELSE {_TEXT} END"
)
"""The kind of a `value`, from its `trimmed` form and what is `unsigned` of it. Lengths and parts
come first: a pattern takes ten times as long."""
_IS_LOST = (
    f"(kind & {_NUMBER} <> 0 AND ({_WHOLE_DIGITS} > 15 OR length(unsigned) > 17 OR kind = {_FLOAT})"
    f" AND trimmed RLIKE '{_LOST}' OR kind = {_TIME} AND trimmed RLIKE '{_NANOSECONDS}')"
)
_HAS_DIGITS = f"kind IN ({_WHOLE}, {_DECIMAL})"


def _is_beyond(kind: str, digits: int) -> str:
    """Whether a whole number does not fit: one of at most that number of digits does."""
    return (
        f"kind = {_WHOLE} AND length(unsigned) > {digits} AND try_cast(trimmed AS {kind}) IS NULL"
    )


_FACTS = (
    "CAST(kind AS BIGINT)"
    f" | if({_is_beyond('INT', 9)}, {_BEYOND_INT}L, 0L)"
    f" | if({_is_beyond('BIGINT', 18)}, {_BEYOND_BIGINT}L, 0L)"
    f" | if({_IS_LOST}, {_LOSES}L, 0L)"
    f" | if({_HAS_DIGITS}, shiftleft({_BEFORE}L, {_BEFORE_POINT}), 0L)"
)
"""The kind of a value as a bit, and those above."""
_AFTER = f"if({_HAS_DIGITS}, shiftleft(1L, {_AFTER_POINT}), 0L)"
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
    struct = _variants(source) if is_plain else None
    if struct is None:
        struct = _without_folders(source, source.strict_reader().load(place).schema)
    doubles = [f.name for f in struct.fields if _has_double(f.dataType)]
    if doubles:
        strings = T.StructType([T.StructField(name, T.StringType()) for name in doubles])
        frame = source.strict_reader().schema(strings).option("mode", "PERMISSIVE").load(place)
        lost = [f"max({quote_name(name)} RLIKE '{_LOST}')" for name in doubles]
        for name, is_lost in zip(doubles, frame.selectExpr(*lost).collect()[0], strict=True):
            if is_lost:
                raise _too_long(ref, name)
    return GuessedTypes(struct)


_NAME_OR_TYPE = re.compile(
    r"`(?:[^`]|``)*`|\b(?P<string>VOID\b(?!:)|OBJECT<>)|\b(?P<struct>OBJECT)(?=<)"
)
"""A quoted name, or a type that only variants have, in the schema of a variant."""


def _type_of_schema(found: re.Match[str]) -> str:
    """The type of a schema for a type of variants; a name is unchanged."""
    if found["string"]:
        return "STRING"
    return "STRUCT" if found["struct"] else found[0]


def _without_folders(source: DatasetFiles, struct: T.StructType) -> T.StructType:
    """The columns that are only in the files: of the others, the folders have the values."""
    in_files = [f for f in struct.fields if spelled_like(f.name, source.folders) is None]
    return T.StructType(in_files)


def _variants(source: DatasetFiles) -> T.StructType | None:
    """The columns of JSON values, each with the narrowest type that holds all of its values: NULL
    and objects without fields are strings. None if a value cannot be parsed.

    :raises DatasetError: the values of a field have several types.
    """
    value = "trim(LEADING '\ufeff' FROM value)"
    parsed = source.texts().where("trim(value) <> ''").selectExpr(f"try_parse_json({value}) AS v")
    found, broken = parsed.selectExpr(
        "schema_of_variant_agg(v)", "count_if(v IS NULL OR is_variant_null(v))"
    ).collect()[0]
    match = re.fullmatch(r"(?:ARRAY<)?OBJECT<(.*?)>(?:(?<=>>)|(?<!>>))", found or "", re.DOTALL)
    if broken or match is None or not match[1]:
        return None
    text = found.removeprefix("ARRAY<").removesuffix(">") if found.startswith("ARRAY<") else found
    struct = type_named(_NAME_OR_TYPE.sub(_type_of_schema, text))
    assert isinstance(struct, T.StructType)
    struct = _without_folders(source, struct)
    for name, kind in ((f.name, f.dataType) for f in struct.fields):
        if "variant" in kind.simpleString():
            raise DatasetError(
                f"dataset '{source.ref.name}': values of '{name}' are of different types, such as "
                "a number in one JSON object and a string in another",
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
