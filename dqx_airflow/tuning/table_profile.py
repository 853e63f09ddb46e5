"""The profile of a table, observed with Arrow: exact over all rows, one column at a time; for
suggestions, of its last days.

Files and Delta tables are read here, without a JVM; any other table by those who give its columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json

from dqx_airflow.contracts import drafting
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.contracts.drafting import ObservedColumn, ObservedTable
from dqx_airflow.datasets.delta_log import require_whole_commits
from dqx_airflow.datasets.reader_options import with_default_options
from dqx_airflow.errors import DatasetError, DqxError, RequestError, first_line
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.metrics.types import WHOLE_SIZES, Family, family_of, spark_type_of_arrow
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.tuning.suggested import Seen, SeenDays
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.json_form import iso_timestamp
from dqx_airflow.values.request import days_before

T = TypeVar("T")
_NONE: Mapping[str, Mapping[str, str]] = MappingProxyType({})

FORMATS = ("delta", "parquet", "csv", "json")
_ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}

_FEWEST_ROWS = 20
"""With fewer rows, few distinct values and similar strings are coincidental."""

_MOST_VALUES = 20
_LONGEST_VALUE = 40
_MOST_TEXTS = 200_000
_MOST_KEY_CANDIDATES = 8
_MOST_KEY_ROWS = 5_000_000
_PERSONAL_FORMATS = ("email", "phone", "iban")
_NAMED_FORMATS = ("uuid", "ipv4")


Defaults: TypeAlias = "Mapping[str, Mapping[str, str]]"
"""Reader options by format, as in `dqx.toml`."""


def observe(
    place: str, file_format: str | None, defaults: Defaults = _NONE, masked: Sequence[str] = ()
) -> ObservedTable:
    """The contents of the table at a path.

    :param defaults: reader options by format.
    :param masked: columns whose values are not observed.
    :raises DatasetError: there is none, or it cannot be read.
    """
    format_name = file_format or _format_of(place)
    name = slug(Path(place.rstrip("/")).name.partition(".")[0]) or "data"
    ref = DatasetRef(name, path=place, format=format_name)
    options = with_default_options(ref, defaults).options
    return read_files(
        place, format_name, lambda table: observed(table, name, place, format_name, masked), options
    )


def read_files(
    place: str,
    file_format: str | None,
    use: Callable[[ColumnTable], T],
    options: tuple[tuple[str, str], ...] = (),
    version: int | str | None = None,
) -> T:
    """A result computed from the table at a path.

    :param options: the options of Spark's reader.
    :param version: of a Delta table, or the ISO timestamp at which it was the newest.
    :raises DatasetError: there is none, or it cannot be read.
    """
    format_name = file_format or _format_of(place)
    if format_name not in _READERS:
        message = f"{place} has the format {format_name}"
        raise DatasetError(message, f"a draft reads only {', '.join(FORMATS)}")
    try:
        taken = replace(ReaderOptions.of(format_name, options), version=version)
        return use(_READERS[format_name](place, taken))
    except DqxError:
        raise
    except Exception as error:  # deltalake has no base class for its exceptions
        raise DatasetError(
            f"{place} cannot be read as {format_name}: {first_line(error)}",
            "set its format with --format, or draft from a Parquet copy",
        ) from error


def observed(
    table: ColumnTable,
    name: str,
    place: str,
    file_format: str | None = None,
    masked: Sequence[str] = (),
) -> ObservedTable:
    """The contents of a table whose columns can be read."""
    columns = tuple(_observed(table, name, is_masked(name, masked)) for name in table.names)
    found = ObservedTable(name, place, file_format, table.rows, columns, _key(table, columns))
    newest = _newest(table, found)
    if newest is None and found.clock is not None and table.types[found.clock] == "date":
        return replace(found, newest=pc.max(table.column(found.clock)).as_py())
    return replace(found, newest=newest.date() if newest is not None else None)


def _format_of(place: str) -> str:
    path = Path(place)
    if "://" not in place and not path.exists():
        raise DatasetError(
            f"nothing found at {place}",
            "give the path of a file or a folder, or table:NAME for a table of a catalog",
        )
    if (path / "_delta_log").is_dir():
        return "delta"
    files = [path] if path.is_file() or "://" in place else _files(path, tuple(_ENDINGS))
    for file in files:
        for ending in file.suffixes:
            if ending.lower() in _ENDINGS:
                return _ENDINGS[ending.lower()]
    raise DatasetError(f"unknown file format of {place}", "set its format with --format")


def _files(path: Path, endings: tuple[str, ...]) -> list[Path]:
    """The data files of a path, without hidden ones, as in Spark."""
    if path.is_file():
        return [path]
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and not any(part[0] in "._" for part in file.relative_to(path).parts)
        and any(ending in endings for ending in file.suffixes)
    ]


# Reading -----------------------------------------------------------------------------------------


_OPTION_NAMES = {"delimiter": "sep", "charset": "encoding"}
_OPTIONS_TAKEN = ("sep", "encoding", "quote", "escape", "header", "multiline", "nullvalue")
_OPTIONS_WITHOUT_EFFECT = ("inferschema", "mode", "enforceschema", "columnpruning", "samplingratio")
"""Reader options that do not affect the contents, or that drafts infer themselves."""


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """The options that a draft supports, in lower case, and the version of a Delta table."""

    given: dict[str, str]
    version: int | str | None = None

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
            encoding=self.given.get("encoding", "utf8"),
            autogenerate_column_names=not self.has_header,
        )

    def parsing(self) -> pa.csv.ParseOptions:
        """:raises RequestError: Arrow does not support separators with several characters."""
        separator = self.given.get("sep", ",").replace("\\t", "\t")
        if len(separator) != 1:
            message = f"a draft ignores the separator '{separator}'"
            raise RequestError(message, "draft from a Parquet copy, or from a table of the catalog")
        return pa.csv.ParseOptions(
            delimiter=separator,
            quote_char=self.given.get("quote", '"') or False,
            escape_char=self.given.get("escape") or False,
            newlines_in_values=self.given.get("multiline", "false").lower() == "true",
        )


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """A table whose columns are read one by one, as Arrow arrays. `types` are Spark types."""

    names: tuple[str, ...]
    types: dict[str, str]
    rows: int
    column: Callable[[str], Any]


def _delta(place: str, options: ReaderOptions) -> ColumnTable:
    from deltalake import DeltaTable

    table = DeltaTable(place)
    if options.version is not None:
        table.load_as_version(options.version)
    require_whole_commits(place, table.version())
    return _of_dataset(table.to_pyarrow_dataset())


def _parquet(place: str, _: ReaderOptions) -> ColumnTable:
    dataset = pa.dataset.dataset(place, format="parquet", partitioning="hive")
    table = _of_dataset(dataset)
    first = next(iter(dataset.get_fragments()), None)
    inside = set(first.physical_schema.names) if first is not None else set(table.names)
    # Spark infers dates from folder names, Arrow does not.
    partitions = {
        name: "date"
        for name in table.names
        if name not in inside and _is_all(_DATE, _texts(table.column(name)))
    }
    return replace(table, types=table.types | partitions)


def _of_dataset(dataset: Any) -> ColumnTable:
    def column(name: str) -> Any:
        return dataset.to_table(columns={"it": pc.field(name)}).column(0)

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
        )
        table = pa.csv.read_csv(file, reading, parsing, convert)
        if not options.has_header:
            table = table.rename_columns([f"_c{number}" for number in range(table.num_columns)])
        parts.append(table)
    texts = pa.concat_tables(parts)
    typed = {name: _typed(texts.column(name)) for name in texts.column_names}
    types = {name: kind for name, (kind, _) in typed.items()}
    return ColumnTable(tuple(typed), types, texts.num_rows, lambda name: typed[name][1])


def _json(place: str, _: ReaderOptions) -> ColumnTable:
    files = _files(Path(place), (".json", ".jsonl", ".ndjson")) or [Path(place)]
    parts = [pa.json.read_json(file) for file in files]
    table = pa.concat_tables(parts, promote_options="permissive")
    types = {field.name: _spark_type(field.type, has_zone=True) for field in table.schema}
    return ColumnTable(tuple(types), types, table.num_rows, table.column)


_READERS: dict[str, Callable[[str, ReaderOptions], ColumnTable]] = {
    "delta": _delta,
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
}

_WHOLE = r"[+-]?(0|[1-9][0-9]{0,17})"
_NUMBER = r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = _DATE + r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?"


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
                return type_name, pc.cast(texts, arrow_type)
            except pa.ArrowInvalid:
                break
    # The strings sort like the timestamps, and no bound is derived from them.
    return ("timestamp" if _is_all(_MOMENT, texts) else "string"), texts


def _is_all(pattern: str, texts: Any) -> bool:
    is_match = pc.all(pc.match_substring_regex(texts, f"^({pattern})$")).as_py()
    return is_match is True


def _texts(column: Any) -> Any:
    return pc.cast(column, pa.string())


def _spark_type(kind: Any, *, has_zone: bool = False) -> str:
    """The Spark type for an Arrow type; a string if all values are NULL.

    :raises DatasetError: there is none.
    """
    try:
        return spark_type_of_arrow(kind, has_zone=has_zone, of_nulls="string")
    except ValueError:
        raise DatasetError(f"no Spark type for {kind}", "cast the column, or remove it") from None


# Observing ---------------------------------------------------------------------------------------


def _observed(table: ColumnTable, name: str, is_hidden: bool) -> ObservedColumn:
    column, type_name = table.column(name), table.types[name]
    family = family_of(type_name)
    observed_column = ObservedColumn(name, type_name, nulls=column.null_count)
    if family in (Family.ARRAY, Family.MAP, Family.OTHER):
        return replace(observed_column, is_personal=drafting.is_personal(name, is_hidden))
    if family is Family.TEXT:
        column = _texts(column)
    observed_column = replace(
        observed_column, distinct=pc.count_distinct(column, mode="only_valid").as_py()
    )
    texts = _distinct_texts(column, observed_column) if family is Family.TEXT else []
    if drafting.is_personal(name, is_hidden or _look_personal(texts)):
        return replace(observed_column, is_personal=True)
    if family is Family.NUMBER:
        lowest, highest = _ends(column)
        return replace(observed_column, lowest=lowest, highest=highest)
    return _with_form(observed_column, texts, table.rows)


def _distinct_texts(column: Any, observed_column: ObservedColumn) -> list[str]:
    if not observed_column.distinct or observed_column.distinct > _MOST_TEXTS:
        return []
    return [text for text in pc.unique(column).to_pylist() if text is not None]


def _look_personal(texts: Sequence[str]) -> bool:
    """Whether most of the strings are email addresses, phone numbers or account numbers."""
    patterns = [re.compile(TEXT_FORMATS[name].pattern) for name in _PERSONAL_FORMATS]
    return any(
        2 * sum(pattern.fullmatch(text) is not None for text in texts) > len(texts)
        for pattern in patterns
    )


def _with_form(observed_column: ObservedColumn, texts: list[str], rows: int) -> ObservedColumn:
    """The column with its few values, or with the common pattern of its strings."""
    filled = rows - observed_column.nulls
    if filled < _FEWEST_ROWS or not texts:
        return observed_column
    is_short = max(map(len, texts)) <= _LONGEST_VALUE
    if len(texts) <= _MOST_VALUES and 2 * len(texts) <= filled and is_short:
        return replace(observed_column, values=tuple(sorted(texts)))
    for name in _NAMED_FORMATS:
        pattern = re.compile(TEXT_FORMATS[name].pattern)
        if all(pattern.fullmatch(text) for text in texts):
            return replace(observed_column, pattern=f"^({pattern.pattern})$")
    return replace(observed_column, pattern=drafting.common_pattern(texts))


def _ends(column: Any) -> tuple[int | float | None, int | float | None]:
    """The minimum and maximum; none if some numbers are infinite or NaN."""
    if pa.types.is_floating(column.type) and pc.all(pc.is_finite(column)).as_py() is not True:
        return None, None
    extremes = pc.min_max(column).as_py()
    lowest, highest = _number(extremes["min"]), _number(extremes["max"])
    # Some decimals have no exact number in YAML.
    is_below = lowest is not None and Decimal(lowest) <= Decimal(extremes["min"])
    is_above = highest is not None and Decimal(highest) >= Decimal(extremes["max"])
    return (lowest if is_below else None), (highest if is_above else None)


def _number(value: Any) -> int | float | None:
    if not isinstance(value, Decimal):
        return value if value is None or isinstance(value, int) else float(value)
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else None


# Keys --------------------------------------------------------------------------------------------


def _key(table: ColumnTable, columns: Sequence[ObservedColumn]) -> tuple[str, ...]:
    """The columns that identify the rows: one, or else two; none if that would be coincidental."""
    candidates = sorted(
        (column for column in columns if column.nulls == 0 and _may_be_key(column)), key=_key_rank
    )
    if table.rows > 1:
        for column in candidates:
            if column.distinct == table.rows:
                return (column.name,)
    if not _FEWEST_ROWS <= table.rows <= _MOST_KEY_ROWS:
        return ()
    named = [
        column
        for column in candidates
        if column.is_named_like_a_key or family_of(column.type) is not Family.NUMBER
    ]
    for first, second in combinations(named[:_MOST_KEY_CANDIDATES], 2):
        if (first.distinct or 0) * (second.distinct or 0) < table.rows:
            continue
        pair = pa.table({"one": table.column(first.name), "other": table.column(second.name)})
        if pair.group_by(["one", "other"]).aggregate([]).num_rows == table.rows:
            return first.name, second.name
    return ()


def _may_be_key(column: ObservedColumn) -> bool:
    is_whole = column.type in WHOLE_SIZES
    is_keyable = is_whole or family_of(column.type) in (Family.TEXT, Family.TIME)
    return is_keyable and not column.is_personal


def _key_rank(column: ObservedColumn) -> tuple[bool, int]:
    families = (Family.TEXT, Family.NUMBER, Family.TIME)
    return not column.is_named_like_a_key, families.index(family_of(column.type))


# The last days ------------------------------------------------------------------------------------


def observer(ref: DatasetRef, place: str, days: int) -> Callable[[ColumnTable], Seen]:
    """Observes a table as the dataset of a suite: its last days, if it has a date column."""

    def look(table: ColumnTable) -> Seen:
        observed_rows, seen_days = (
            _last_days(table, ref, days) if ref.date_column else (table, None)
        )
        file_format = ref.format if ref.path else None
        observed_table = observed(observed_rows, ref.name, place, file_format, ref.masked)
        return Seen(ref.name, observed_table, seen_days, _newest(observed_rows, observed_table))

    return look


def _last_days(table: ColumnTable, ref: DatasetRef, days: int) -> tuple[ColumnTable, SeenDays]:
    """The rows of the last days of a table, without those that have no date; and what is seen of
    each day, which is complete for a column once it was read.

    :raises RequestError: it has no such date column.
    :raises DatasetError: no row has a date.
    """
    date_column, all_dates = date_column_of(table, ref)
    last = pc.max(all_dates).as_py()
    if last is None:
        raise DatasetError(f"no row of {ref.name} has a date in {date_column}")
    wanted = pc.fill_null(pc.greater(all_dates, days_before(last, days)), False)
    dates = pc.filter(all_dates, wanted)
    seen = SeenDays(date_column, dict(sorted(counted(dates).items())))

    def column(name: str) -> Any:
        values = pc.filter(table.column(name), wanted)
        if values.null_count:
            seen.nulls[name] = counted(pc.filter(dates, pc.is_null(values)))
        family = family_of(table.types[name])
        if family is Family.NUMBER and len(values):
            seen.numbers[name] = _numbers_of_days(dates, values)
        elif family is Family.TEXT:
            seen.rare[name] = _share_of_rare(dates, values, seen.rows)
        return values

    return replace(table, rows=sum(seen.rows.values()), column=column), seen


def _share_of_rare(dates: Any, values: Any, rows: Mapping[date, int]) -> Fraction:
    """The largest share of the rows of a day whose strings are on no other day."""
    table = pa.table({"on": dates, "it": _texts(values)}).drop_null()
    of_values = table.group_by("it").aggregate([("on", "min"), ("on", "max"), ("on", "count")])
    rare = of_values.filter(pc.equal(of_values["on_min"], of_values["on_max"]))
    of_days = rare.group_by("on_min").aggregate([("on_count", "sum")]).to_pylist()
    shares = (Fraction(day["on_count_sum"], rows[day["on_min"]]) for day in of_days)
    return max(shares, default=Fraction(0))


def _numbers_of_days(dates: Any, values: Any) -> dict[date, tuple[float, float, float]]:
    """The minimum, maximum and mean of numbers on each day that has some."""
    table = pa.table({"on": dates, "it": pc.cast(values, pa.float64(), safe=False)}).drop_null()
    by_day = table.group_by("on").aggregate([("it", "min"), ("it", "max"), ("it", "mean")])
    return {row["on"]: (row["it_min"], row["it_max"], row["it_mean"]) for row in by_day.to_pylist()}


def counted(dates: Any) -> dict[date, int]:
    return {entry["values"]: entry["counts"] for entry in pc.value_counts(dates).to_pylist()}


def date_column_of(table: ColumnTable, ref: DatasetRef) -> tuple[str, Any]:
    """The name of the date column, and the date of each row.

    :raises RequestError: the table lacks it.
    """
    assert ref.date_column is not None
    column = next((name for name in table.names if name.lower() == ref.date_column.lower()), None)
    if column is None:
        message = f"{ref.name} has no column '{ref.date_column}'"
        raise RequestError(message, f"its columns are {', '.join(table.names)}")
    return column, _dates(table.column(column), ref)


def _dates(column: Any, ref: DatasetRef) -> Any:
    """The date of each value, as a gate computes it."""
    kind = column.type
    if pa.types.is_date(kind):
        return pc.cast(column, pa.date32())
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            zone = ref.time_zone or "UTC"
            column = pc.local_timestamp(pc.cast(column, pa.timestamp("us", zone)))
        return pc.cast(pc.floor_temporal(column, unit="day"), pa.date32())
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
    if pa.types.is_string(column.type) and ref.date_format is None:
        try:
            return pc.cast(pc.utf8_slice_codeunits(column, 0, 10), pa.date32())
        except pa.ArrowInvalid as error:
            raise DatasetError(
                f"{ref.date_column} of {ref.name} contains strings that are not dates: {error}",
                "write them as 2024-03-01, or choose another date_column",
            ) from error
    message = f"{ref.date_column} of {ref.name} is of type {kind}"
    raise DatasetError(message, "suggestions need a column of dates, timestamps or ISO strings")


def _newest(table: ColumnTable, observed_table: ObservedTable) -> datetime | None:
    """The newest timestamp of the clock column, in UTC; None if there is none."""
    if observed_table.clock is None or "timestamp" not in table.types[observed_table.clock]:
        return None
    newest = pc.max(table.column(observed_table.clock)).as_py()
    if isinstance(newest, str):
        newest = iso_timestamp(newest)
    if not isinstance(newest, datetime):
        return None
    return newest.replace(tzinfo=newest.tzinfo or timezone.utc).astimezone(timezone.utc)
