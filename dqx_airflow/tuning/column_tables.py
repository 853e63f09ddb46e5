"""Tables as columns of Arrow, read from files and Delta tables without a JVM.

The types are Spark's, and the options of Spark's readers have the same effect, or are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json

from dqx_airflow.datasets.delta_log import require_whole_commits
from dqx_airflow.datasets.settings import format_of as implied_format
from dqx_airflow.errors import DatasetError, DqxError, RequestError, first_line
from dqx_airflow.metrics.types import spark_type_of_arrow

T = TypeVar("T")

FORMATS = ("delta", "parquet", "csv", "json")
ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """A table whose columns are read one by one, as Arrow arrays. `types` are Spark types.

    `needed_options` are the reader options, by name, with which Spark reads the same values.
    """

    names: tuple[str, ...]
    types: dict[str, str]
    rows: int
    column: Callable[[str], Any]
    needed_options: Mapping[str, str] = field(default_factory=dict)


_LEVEL = re.compile(r"[^=]+=.*")
"""A folder of a partition, as Hive names it."""

_BLOCK_BYTES = 16 * 2**20
"""How much of a text file becomes a chunk. Arrow's own megabyte is too small for long rows of JSON,
and makes hundreds of chunks of a large file, each with a cost in every step."""

_ROW = re.compile(r"(Expected \d+ columns, got \d+):.*")
_QUOTED = re.compile(r"'.*'")


def read_files(
    place: str,
    file_format: str | None,
    use: Callable[[ColumnTable], T],
    options: tuple[tuple[str, str], ...] = (),
    version: int | str | None = None,
    only: pa.Field | None = None,
) -> T:
    """A result computed from the table at a path.

    :param options: the options of Spark's reader.
    :param version: of a Delta table, or the ISO timestamp at which it was the newest.
    :param only: the one column that is used, with its type: of CSV and JSON the others are not
        converted.
    :raises DatasetError: there is none, or it cannot be read.
    """
    format_name = file_format or format_of(place)
    if format_name not in _READERS:
        message = f"{place} has the format {format_name}"
        raise DatasetError(message, f"a draft reads only {', '.join(FORMATS)}")
    try:
        taken = replace(ReaderOptions.of(format_name, options), version=version, only=only)
        return use(_READERS[format_name](place, taken))
    except DqxError:
        raise
    except Exception as error:  # deltalake has no base class for its exceptions
        raise DatasetError(
            f"{place} cannot be read as {format_name}: {_without_values(first_line(error))}",
            f"name its format, as in {place}?format=csv, or draft from a Parquet copy",
        ) from error


def _without_values(message: str) -> str:
    """A message of Arrow without the row or the value that it quotes, which may be personal.

    >>> _without_values("Expected 2 columns, got 1: ann@example.org")
    'Expected 2 columns, got 1'
    >>> _without_values("invalid value 'ann'")
    "invalid value '...'"
    """
    return _QUOTED.sub("'...'", _ROW.sub(r"\1", message))


def format_of(place: str) -> str:
    """The format of a table, by its log or the endings of its files.

    :raises DatasetError: there is no table, or its format is unknown.
    """
    path = Path(place)
    if "://" not in place and not path.exists():
        raise DatasetError(
            f"nothing found at {place}",
            "give the path of a file or a folder, or table:NAME for a table of a catalog",
        )
    if (path / "_delta_log").is_dir():
        return "delta"
    files = [path] if path.is_file() or "://" in place else _files(path, tuple(ENDINGS))
    for file in files:
        for ending in file.suffixes:
            if ending.lower() in ENDINGS:
                return ENDINGS[ending.lower()]
    if (implied := implied_format(place)) is not None:
        return implied
    raise DatasetError(f"unknown file format of {place}", f"name it: {place}?format=csv")


def _files(path: Path, endings: tuple[str, ...] = ()) -> list[Path]:
    """The data files of a path that Spark reads as one table: those in a folder itself and in its
    partitions, without hidden ones. Other folders in it are other tables.

    :param endings: the endings of their names; any if there are none.
    """
    if path.is_file():
        return [path]
    shown = [entry for entry in sorted(path.iterdir()) if entry.name[0] not in "._"]
    files = [
        entry
        for entry in shown
        if entry.is_file() and (not endings or any(ending in endings for ending in entry.suffixes))
    ]
    for entry in shown:
        if _LEVEL.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():
            files += _files(entry, endings)
    return files


_QUOTE = '"'
_OPTION_NAMES = {"delimiter": "sep", "charset": "encoding"}
_OPTIONS_TAKEN = ("sep", "encoding", "quote", "escape", "header", "multiline", "nullvalue")
_OPTIONS_WITHOUT_EFFECT = ("inferschema", "mode", "enforceschema", "columnpruning", "samplingratio")
"""Reader options that do not affect the contents, or that drafts infer themselves."""


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """The options that a draft supports, in lower case, the version of a Delta table, and the one
    column that is used."""

    given: dict[str, str]
    version: int | str | None = None
    only: pa.Field | None = None

    @classmethod
    def of(cls, file_format: str, options: tuple[tuple[str, str], ...]) -> ReaderOptions:
        """:raises RequestError: another option changes what is read."""
        given = {_OPTION_NAMES.get(name.lower(), name.lower()): value for name, value in options}
        for name in given:
            is_known = name in _OPTIONS_TAKEN if file_format == "csv" else name == "header"
            if not is_known and name not in _OPTIONS_WITHOUT_EFFECT:
                raise RequestError(
                    f"a draft ignores the option '{name}'",
                    "draft from a Parquet copy, or from a table of the catalog",
                )
        return cls(given)

    @property
    def has_header(self) -> bool:
        return self.given.get("header", "true").lower() == "true"

    @property
    def null_values(self) -> tuple[str, ...]:
        return (self.given["nullvalue"],) if "nullvalue" in self.given else ()

    def reading(self) -> pa.csv.ReadOptions:
        return pa.csv.ReadOptions(
            block_size=_BLOCK_BYTES,
            encoding=self.given.get("encoding", "utf8"),
            autogenerate_column_names=not self.has_header,
        )

    def parsing(self) -> pa.csv.ParseOptions:
        """:raises RequestError: Arrow does not support separators with several characters."""
        separator = self.given.get("sep", ",").replace("\\t", "\t")
        if len(separator) != 1:
            message = f"a draft ignores the separator '{separator}'"
            raise RequestError(message, "draft from a Parquet copy, or from a table of the catalog")
        quote = self.given.get("quote", _QUOTE)
        escape = self.given.get("escape", "")
        # Spark then reads two quotes as one. Arrow does so anyway, and would escape what follows.
        is_doubled = escape == quote
        return pa.csv.ParseOptions(
            delimiter=separator,
            quote_char=quote or False,
            escape_char=False if is_doubled else escape or False,
            newlines_in_values=self.given.get("multiline", "false").lower() == "true",
        )


def texts_of(column: Any) -> Any:
    """A column as strings."""
    return pc.cast(column, pa.string())


def _delta(place: str, options: ReaderOptions) -> ColumnTable:
    from deltalake import DeltaTable

    table = DeltaTable(place)
    if options.version is not None:
        table.load_as_version(options.version)
    require_whole_commits(place, table.version())
    return _of_dataset(table.to_pyarrow_dataset())


def _parquet(place: str, _: ReaderOptions) -> ColumnTable:
    source: Any = place
    base = None
    if "://" not in place and Path(place).is_dir():
        source = list(map(str, _files(Path(place))))
        base = place
        if not source:
            raise DatasetError(
                f"no file in {place}, and none in partitions of it",
                "give the folder that has the files, or name its folders like day=2026-11-28",
            )
    dataset = pa.dataset.dataset(
        source, format="parquet", partitioning="hive", partition_base_dir=base
    )
    table = _of_dataset(dataset)
    first = next(iter(dataset.get_fragments()), None)
    inside = set(first.physical_schema.names) if first is not None else set(table.names)
    # Spark infers dates from folder names, Arrow does not.
    partitions = {
        name: "date"
        for name in table.names
        if name not in inside and _are_dates(table.column(name))
    }
    return replace(table, types=table.types | partitions)


def _are_dates(column: Any) -> bool:
    return _is_all(_DATE, pa.chunked_array([texts_of(pc.unique(column))]))


def _of_dataset(dataset: Any) -> ColumnTable:
    def column(name: str) -> Any:
        return typed_column(dataset.to_table(columns={"it": pc.field(name)}).column(0))

    types = {field.name: _spark_type(field.type) for field in dataset.schema}
    return ColumnTable(tuple(types), types, dataset.count_rows(), column)


def _csv(place: str, options: ReaderOptions) -> ColumnTable:
    """Each type is one to which all strings of a column can be cast."""
    parts = []
    reading, parsing = options.reading(), options.parsing()
    for file in _files(Path(place), (".csv",)) or [Path(place)]:
        opened = pa.csv.open_csv(file, reading, parsing)
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(opened.schema.names, pa.string()),
            null_values=["", *options.null_values],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=[options.only.name] if options.only and options.has_header else None,
        )
        table = pa.csv.read_csv(file, reading, parsing, convert)
        if not options.has_header:
            table = table.rename_columns([f"_c{number}" for number in range(table.num_columns)])
        repeated = [name for name, count in Counter(table.column_names).items() if count > 1]
        if repeated:
            message = f"{file} has several columns named '{repeated[0]}'"
            raise DatasetError(message, "name each column differently")
        parts.append(table)
    texts = pa.concat_tables(parts)
    typed = {name: _typed(texts.column(name)) for name in texts.column_names}
    types = {name: kind for name, (kind, _) in typed.items()}
    needed = {}
    if not {"escape", "quote"} & options.given.keys() and _has_doubled_quotes(texts):
        needed["escape"] = _QUOTE
    return ColumnTable(tuple(typed), types, texts.num_rows, lambda name: typed[name][1], needed)


def _has_doubled_quotes(texts: pa.Table) -> bool:
    """True if quotes within names or values were doubled in the file. False if a backslash may be
    the escape, which then stands in front of a quote."""
    columns = [pa.chunked_array([texts.column_names]), *texts.columns]
    with_quote = [column.filter(pc.match_substring(column, _QUOTE)) for column in columns]
    if any(pc.any(pc.match_substring(column, "\\")).as_py() for column in with_quote):
        return False
    return any(len(column) > 0 for column in with_quote)


def typed_column(column: Any) -> Any:
    """A column of NULL without a type as strings, as `_spark_type` has it; others unchanged."""
    return texts_of(column) if pa.types.is_null(column.type) else column


def column_table(rows: Any) -> ColumnTable:
    """A table that is in memory, as an Arrow table."""
    types = {field.name: _spark_type(field.type) for field in rows.schema}
    return ColumnTable(
        tuple(types), types, rows.num_rows, lambda name: typed_column(rows.column(name))
    )


def _json(place: str, options: ReaderOptions) -> ColumnTable:
    files = _files(Path(place), (".json", ".jsonl", ".ndjson")) or [Path(place)]
    reading = pa.json.ReadOptions(block_size=_BLOCK_BYTES)
    parsing = None
    if options.only is not None:
        schema = pa.schema([options.only])
        parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")

    def read(options: Any) -> Any:
        parts = [pa.json.read_json(file, reading, options) for file in files]
        return pa.concat_tables(parts, promote_options="permissive")

    table = read(parsing)
    stamped = [field for field in table.schema if _in_texts(field.type) != field.type]
    if stamped and options.only is None:
        # Arrow also takes `2024-03-01T23:30Z` for a timestamp, which Spark does not read.
        schema = pa.schema([field.with_type(_in_texts(field.type)) for field in stamped])
        written = read(
            pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        )
        for field in stamped:
            texts = written.column(field.name)
            if not all(_is_all(_DATE_OR_MOMENT_FORM, leaf) for leaf in _texts_in(texts)):
                place_of = table.schema.get_field_index(field.name)
                table = table.set_column(place_of, field.name, texts)
    types = {field.name: _spark_type(field.type, has_zone=True) for field in table.schema}
    # Arrow knows only those without fractions of a second.
    types |= {
        name: "timestamp"
        for name, kind in types.items()
        if kind == "string" and _are_moments(typed_column(table.column(name)))
    }
    return ColumnTable(
        tuple(types), types, table.num_rows, lambda name: typed_column(table.column(name))
    )


def _in_texts(kind: Any) -> Any:
    """A type in which strings take the place of timestamps."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_in_texts(kind.value_type))
    if pa.types.is_struct(kind):
        parts = [kind.field(number) for number in range(kind.num_fields)]
        return pa.struct([part.with_type(_in_texts(part.type)) for part in parts])
    return kind


def _texts_in(column: Any) -> Iterator[Any]:
    """The strings within the values of a column, of each field by itself; none without a value."""
    kind = column.type
    if pa.types.is_string(kind) and column.null_count < len(column):
        yield column
    elif pa.types.is_list(kind):
        yield from _texts_in(pc.list_flatten(column))
    elif pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _texts_in(pc.struct_field(column, [number]))


_READERS: dict[str, Callable[[str, ReaderOptions], ColumnTable]] = {
    "delta": _delta,
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
}

_WHOLE = r"-?(0|[1-9][0-9]{0,17})"
_DIGITS = r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)"
_NUMBER = rf" *{_DIGITS} *|{_DIGITS}[eE][+-]?[0-9]+|NaN|-?Inf(inity)?"
"""What a gate guesses to be a number: not `+41`, which is a string there."""
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT_FORM = _DATE + (
    r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?"
    r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00)?)?"
)
_DATE_OR_MOMENT_FORM = f"{_DATE}|{_MOMENT_FORM}"


def _typed(texts: Any) -> tuple[str, Any]:
    """The common type of all strings, and their values. A number with leading zeros is a string."""
    if texts.null_count == len(texts):
        return "string", texts
    for pattern, type_name, arrow_type in (
        (_WHOLE, "bigint", pa.int64()),
        (_NUMBER, "double", pa.float64()),
        ("(?i)true|false", "boolean", pa.bool_()),
        (_DATE, "date", pa.date32()),
    ):
        if _is_all(pattern, texts):
            try:
                return type_name, pc.cast(pc.utf8_trim(texts, " "), arrow_type)
            except pa.ArrowInvalid:
                break
    # The strings sort like the timestamps, and no bound is derived from them.
    return ("timestamp" if _are_moments(texts) else "string"), texts


def _are_moments(texts: Any) -> bool:
    """True if there are strings, and all of them are timestamps: `2024-02-30T00:00:00` is none."""
    if not _is_all(_MOMENT_FORM, texts):
        return False
    try:
        moments_of(texts)
    except pa.ArrowInvalid:
        return False
    return True


MOMENT = pa.timestamp("us", "UTC")


def moments_of(texts: Any) -> Any:
    """The instants of strings in a column of timestamps. Without a zone, they are in UTC.

    :raises pyarrow.ArrowInvalid: a string is no timestamp.
    """
    is_zoned = pc.match_substring_regex(texts, "(Z|[+-][0-9]{2}:[0-9]{2})$")
    nothing = pa.scalar(None, pa.string())
    zoned = pc.cast(pc.if_else(is_zoned, texts, nothing), MOMENT)
    plain = pc.cast(pc.if_else(is_zoned, nothing, texts), pa.timestamp("us"))
    return pc.coalesce(zoned, pc.assume_timezone(plain, "UTC"))


def _is_all(pattern: str, texts: Any) -> bool:
    """True if there are strings, and all of them match. The chunks after the first with another
    string are not searched: most columns show what they are at their beginning."""
    has_match = False
    for chunk in texts.chunks:
        is_match = pc.all(pc.match_substring_regex(chunk, f"^({pattern})$")).as_py()
        if is_match is False:
            return False
        has_match = has_match or is_match is True
    return has_match


def _spark_type(kind: Any, *, has_zone: bool = False) -> str:
    """The Spark type for an Arrow type; a string if all values are NULL.

    :raises DatasetError: there is none.
    """
    try:
        return spark_type_of_arrow(kind, has_zone=has_zone, of_nulls="string")
    except ValueError:
        raise DatasetError(f"no Spark type for {kind}", "cast the column, or remove it") from None
