"""The types of CSV and JSON files without a schema, guessed so that no digit is lost.

Spark takes whole numbers beside decimals for doubles, and a column whose values differ in kind for
text. Here decimals stay decimals, numbers keep their leading zeros (as text), and values of several
kinds are an error or a note: a rule over text may hold where the same rule over numbers would not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from dqx_airflow.datasets.reader_options import given_options
from dqx_airflow.engine.session.spark_versions import objection_to_guessed_json, type_named
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import LONGEST_DECIMAL, spelled_like
from dqx_airflow.values import DatasetRef

_WHOLE, _DECIMAL, _FLOAT, _ZEROS, _TEXT, _DATE, _BOOLEAN, _TIME = (1 << bit for bit in range(8))
_NUMBER = _WHOLE | _DECIMAL | _FLOAT | _ZEROS
_KINDS = {_NUMBER: "numbers", _DATE | _TIME: "dates", _BOOLEAN: "booleans"}
_INTS = (("int", 2**31), ("bigint", 2**63))
_LOST = r"(^|[\\[:,\\s])-?(0*[.]?0*[1-9]([.]?[0-9]){17,}|[1-9][0-9]{15,})([.]0*)?\\s*($|[,\\]}])"
"""A number whose digits a double may not keep, in the text of a value: 18 digits, or a whole number
of 16."""
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
    """The columns of files, without those of folders; `notes` say why columns are strings."""

    struct: StructType
    notes: Mapping[str, str] = field(default_factory=dict)


def guess_csv(
    ref: DatasetRef,
    fresh_reader: Callable[[], DataFrameReader],
    path: str | Sequence[str],
    folders: Collection[str],
) -> GuessedTypes | None:
    """The types of CSV files; None if the options of the dataset leave them to Spark.

    :param folders: the columns in the names of folders.
    :raises DatasetError: they are numbers that no type holds, or other kinds in other files.
    """
    if any(name.lower() in _SPARKS_OWN for name in given_options(ref)):
        return None
    # Malformed lines, and other headers, are left to the scan.
    lenient = {"inferSchema": "false", "mode": "PERMISSIVE", "enforceSchema": "true"}
    texts = fresh_reader().options(**lenient).load(path)
    names = [name for name in texts.columns if spelled_like(name, folders) is None]
    if not names:
        return None
    seen = _seen(texts, names)
    types: dict[str, DataType] = {}
    notes: dict[str, str] = {}
    for name in names:
        types[name], note = seen[name].type(ref, name)
        if note is not None:
            notes[name] = f"column '{name}' is read as strings: {note}"
    times = [name for name in names if seen[name].is_time]
    if times:
        sparks = fresh_reader().load(path).schema
        types |= {name: sparks[name].dataType for name in times}
    return GuessedTypes(StructType([StructField(n, kind) for n, kind in types.items()]), notes)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The values of a column: the kinds of all, and of those in each file; digits of numbers."""

    mask: int
    by_file: Sequence[int]
    before: int
    after: int
    least: int
    most: int
    is_lost: bool

    @property
    def is_time(self) -> bool:
        return bool(self.mask & _TIME) and not self.mask & ~(_TIME | _DATE)

    def type(self, ref: DatasetRef, name: str) -> tuple[DataType, str | None]:
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
            return _parsed(simple), _MIXED if is_mixed else None
        if self.mask & _ZEROS:
            return StringType(), "some of its numbers begin with zeros"
        if self.mask & _FLOAT and not self.is_lost:
            return DoubleType(), None
        if self.before + self.after > LONGEST_DECIMAL or self.mask & _FLOAT:
            raise _too_long(ref, name)
        if not self.after:
            for simple, limit in _INTS:
                if -limit <= self.least <= self.most < limit:
                    return _parsed(simple), None
        return _parsed(f"decimal({self.before + self.after},{self.after})"), None


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


def _parsed(simple: str) -> DataType:
    return type_named(simple)


def _seen(texts: DataFrame, names: Sequence[str]) -> dict[str, _Seen]:
    """One pass over all values, as strings."""
    cells = texts.selectExpr(
        "_metadata.file_path AS file",
        *(f"trim({quote_name(name)}) AS t{at}" for at, name in enumerate(names)),
        *(f"{_kind_of(quote_name(name))} AS k{at}" for at, name in enumerate(names)),
    )
    per_file, whole = [], []
    for at in range(len(names)):
        number, text = f"k{at} IN ({_WHOLE}, {_DECIMAL})", f"ltrim('-', t{at})"
        value = f"CASE WHEN k{at} = {_WHOLE} THEN try_cast(t{at} AS DECIMAL(38,0)) END"
        per_file += [
            F.expr(f"bit_or(k{at}) AS k{at}"),
            F.expr(f"max(CASE WHEN {number} THEN length(split_part({text}, '.', 1)) END) AS b{at}"),
            F.expr(f"max(CASE WHEN {number} THEN length(split_part({text}, '.', 2)) END) AS a{at}"),
            F.expr(f"min({value}) AS n{at}"),
            F.expr(f"max({value}) AS x{at}"),
            F.expr(f"max(k{at} < {_TEXT} AND k{at} > 0 AND t{at} RLIKE '{_LOST}') AS l{at}"),
        ]
        whole.append(
            F.expr(
                f"struct(bit_or(k{at}), collect_set(k{at}), max(b{at}), max(a{at}), min(n{at}), "
                f"max(x{at}), max(l{at}))"
            )
        )
    found = cells.groupBy("file").agg(*per_file).agg(*whole).collect()[0]
    return {
        name: _Seen(
            mask or 0, by_file, before or 0, after or 0, int(least or 0), int(most or 0), bool(lost)
        )
        for name, (mask, by_file, before, after, least, most, lost) in zip(
            names, found, strict=True
        )
    }


def _kind_of(column: str) -> str:
    """The kind of a value, as Spark SQL."""
    text = f"trim({column})"
    rest = f"translate({text}, '0123456789', '')"
    signed = (
        f"(left({rest}, 1) <> '-' OR left({text}, 1) = '-') AND length({text}) > length({rest})"
    )
    digits = (
        f"CASE WHEN {text} <> {column} THEN {_FLOAT} WHEN {text} RLIKE '^-?0[0-9]' THEN {_ZEROS}"
    )
    return (
        f"CASE WHEN {column} IS NULL OR {column} = '' THEN 0"
        f" WHEN {rest} IN ('', '-') AND {signed} THEN {digits} ELSE {_WHOLE} END"
        f" WHEN {rest} IN ('.', '-.') AND {signed} THEN {digits} ELSE {_DECIMAL} END"
        f" WHEN {rest} = '--' AND {column} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$'"
        f" AND try_cast({column} AS DATE) IS NOT NULL THEN {_DATE}"
        f" WHEN left({rest}, 2) = '--' AND {column} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ T]'"
        f" THEN {_TIME}"
        f" WHEN lower({column}) IN ('true', 'false') THEN {_BOOLEAN}"
        f" WHEN {column} IN ('NaN', 'Inf', '-Inf', 'Infinity', '-Infinity') OR {column} RLIKE"
        f" '^-?([0-9]+[.]?[0-9]*|[.][0-9]+)[eE][-+]?[0-9]+$' THEN {_FLOAT}"
        f" ELSE {_TEXT} END"
    )


def guess_json(
    ref: DatasetRef,
    fresh_reader: Callable[[], DataFrameReader],
    path: str | Sequence[str],
    folders: Collection[str],
    texts: DataFrame,
) -> GuessedTypes:
    """The types of JSON files.

    :param texts: the same files as plain text: values of JSON.
    :raises DatasetError: values of a field are of several types, or numbers that no type holds.
    """
    is_plain = (
        all(name.lower() in _PLAIN_JSON for name in given_options(ref)) and not ref.is_lenient
    )
    objection = objection_to_guessed_json(texts.sparkSession)
    if is_plain and objection is not None:
        declared = "declare the columns in schema, as `schema=id int, note string`"
        raise DatasetError(f"dataset '{ref.name}': {objection}", declared)
    struct = _variants(ref, texts) if is_plain else None
    if struct is None:
        inferred = fresh_reader().load(path).schema.fields
        struct = StructType([f for f in inferred if spelled_like(f.name, folders) is None])
    doubles = [f.name for f in struct.fields if _has_double(f.dataType)]
    if doubles:
        strings = StructType([StructField(name, StringType()) for name in doubles])
        frame = fresh_reader().schema(strings).option("mode", "PERMISSIVE").load(path)
        lost = [f"max({quote_name(name)} RLIKE '{_LOST}')" for name in doubles]
        for name, is_lost in zip(doubles, frame.selectExpr(*lost).collect()[0], strict=True):
            if is_lost:
                raise _too_long(ref, name)
    return GuessedTypes(struct)


def _variants(ref: DatasetRef, texts: DataFrame) -> StructType | None:
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
    struct = _parsed(ddl)
    assert isinstance(struct, StructType)
    for name, kind in ((f.name, f.dataType) for f in struct.fields):
        if "variant" in kind.simpleString():
            raise DatasetError(
                f"dataset '{ref.name}': values of '{name}' are of different types, such as a "
                "number in one JSON object and a string in another",
                _declare(name, "string"),
            )
    return struct


def _has_double(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_double(f.dataType) for f in kind.fields)
    if isinstance(kind, MapType):
        return _has_double(kind.valueType)
    return _has_double(kind.elementType) if isinstance(kind, ArrayType) else kind == DoubleType()
