"""Columns of databases whose values JDBC changes: the database sends strings.

A driver makes a date or a time one of Java's old classes: a time that the zone of the JVM leaves
out moves by an hour, days before 1582 move into another calendar, and a time of day becomes an
instant of 1970 with milliseconds. Spark reads a decimal of more than 38 digits with fewer decimals,
and the items of an array by the number of dimensions that its column was declared with. A type that
the user chose for a column may lose no value either: what it cannot hold is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from dqx_airflow.datasets.databases import DatabaseKind
from dqx_airflow.metrics.sql import quote_literal, quote_name

_TEXT = {"postgres": "({})::text", "mysql": "CAST({} AS char)"}
"""A value as a string, in the SQL of each kind of database."""
_TEXTS = (
    "CASE WHEN coalesce(array_ndims({array}), {depth}) = {depth} "
    "THEN array_to_json(({array})::text[])::text ELSE 'of other dimensions' END"
)
"""An array of PostgreSQL as JSON with its items as strings, and another text if it has another
number of dimensions; an instant has the zone of the connection."""
_INSTANT = {"postgres": "({} AT TIME ZONE 'UTC')::text || 'Z'"}
"""An instant as a string. MySQL has them from 1970 on and in UTC, where nothing moves."""
_MONEY = "({})::numeric::text"
"""PostgreSQL's `money` as the text of a number: by itself it is text with a currency."""
_INFINITE = {
    DateType: ("0001-01-01", "9999-12-31"),
    TimestampNTZType: ("0001-01-01", "9999-12-31 23:59:59.999999"),
    TimestampType: ("0001-01-01Z", "9999-12-31 23:59:59.999999Z"),
}
"""What PostgreSQL's `-infinity` and `infinity` are read as."""
_WITHOUT_PRECISION = ("numeric", "numeric[]")
"""The types of numbers whose further decimals Spark rounds, unless the user chose a type."""
_ITEMS = re.compile(
    r"(boolean|bytea|smallint|integer|bigint|oid|real|double precision|text|date|"
    r"numeric(\([0-9,-]+\))?|time.*)\[\]"
)
"""The types of arrays whose items are something else than strings in Spark, and `text[]`."""
_UNREAD = ("refcursor",)
"""The types that Spark does not read."""
_TIME_OF_DAY = re.compile(r"time\b", re.IGNORECASE)
_DECIMAL = re.compile(r"(?:numeric|decimal)\((\d+),(-?\d+)\)", re.IGNORECASE)
_MOST_DIGITS = 38
_STRINGS = (StringType, CharType, VarcharType)


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column that the database sends as a string, and the type that Spark reads from it.

    :param rounds: further decimals of a number are rounded; else they are an error.
    :param is_chosen: the user chose the type.
    """

    name: str
    kind: str
    data_type: DataType
    is_money: bool = False
    rounds: bool = False
    is_chosen: bool = False

    def text_of(self, sql: str) -> str:
        """The text of the column, as SQL of the database; for an array, JSON with the texts of its
        items.

        :param sql: the column, as SQL of the database.
        """
        if isinstance(self.data_type, ArrayType):
            return _TEXTS.format(array=sql, depth=_depth(self.data_type))
        if self.is_money:
            return _MONEY.format(sql)
        form = _INSTANT if isinstance(self.data_type, TimestampType) else _TEXT
        return form[self.kind].format(sql)

    @property
    def value(self) -> str:
        """The value that the text stands for, as Spark SQL; another text is an error."""
        text = quote_name(self.name)
        if not isinstance(self.data_type, ArrayType):
            return self._value_of(text, self.data_type)
        depth = _depth(self.data_type)
        problem = f"column {self.name} holds an array that does not have {depth} dimension"
        texts = _checked(
            f"from_json({text}, '{'array<' * depth}string{'>' * depth}')",
            f"WHEN {text} IS NOT NULL THEN {_raised(problem + ('' if depth == 1 else 's'))}",
        )
        return self._items(texts, self.data_type, 1)

    def _items(self, texts: str, data_type: ArrayType, level: int) -> str:
        item = f"item_{level}"
        inner = data_type.elementType
        if isinstance(inner, ArrayType):
            value = self._items(item, inner, level + 1)
        else:
            value = self._value_of(item, inner)
        return f"transform({texts}, {item} -> {value})"

    def _value_of(self, text: str, data_type: DataType) -> str:
        if isinstance(data_type, StringType):
            return text
        if isinstance(data_type, BinaryType):
            return f"unhex(substr({text}, 3))"  # \x00ff
        name = data_type.simpleString()
        if isinstance(data_type, DecimalType | IntegralType) and not self.rounds:
            read = _number_in(text, data_type)
        else:
            read = f"try_cast({text} AS {name})"
        if self.kind == "postgres":
            # Spark reads a date up to a space, and would leave out that it is before Christ.
            read = f"CASE WHEN instr({text}, 'BC') = 0 THEN {read} END"
        problem = _not_of_type(self.name, name, is_chosen=self.is_chosen)
        failed = f"{self._infinite(text, data_type)}WHEN {text} IS NOT NULL THEN {_raised(problem)}"
        return _checked(read, failed)

    def _infinite(self, text: str, data_type: DataType) -> str:
        bounds = _INFINITE.get(type(data_type))
        if bounds is None or self.kind != "postgres":
            return ""
        name = data_type.simpleString()
        first, last = bounds
        return (
            f"WHEN {text} IN ('-infinity', '-infinityZ') THEN CAST('{first}' AS {name}) "
            f"WHEN {text} IN ('infinity', 'infinityZ') THEN CAST('{last}' AS {name}) "
        )


@dataclass(frozen=True, slots=True)
class ChosenColumn:
    """A column with a type that the user chose.

    :param read_as: its type as it is read without that.
    """

    name: str
    read_as: DataType
    data_type: DataType

    @property
    def value(self) -> str:
        """The value in the chosen type, as Spark SQL; an error if it is another value there."""
        read, wanted = self.read_as.simpleString(), self.data_type.simpleString()
        column = quote_name(self.name)
        if isinstance(self.read_as, StringType) and _is_exact_number(self.data_type):
            kept = _number_in(column, self.data_type)
        else:
            cast = f"try_cast({column} AS {wanted})"
            kept = f"CASE WHEN try_cast({cast} AS {read}) = {column} THEN {cast} END"
        problem = _not_of_type(self.name, wanted, is_chosen=True)
        return _checked(kept, f"WHEN {column} IS NOT NULL THEN {_raised(problem)}")


def _is_exact_number(data_type: DataType) -> bool:
    return isinstance(data_type, DecimalType | IntegralType)


def _number_in(text: str, data_type: DataType) -> str:
    """The number in a string, as Spark SQL; NULL where a cast would round it."""
    decimals = data_type.scale if isinstance(data_type, DecimalType) else 0
    form = quote_literal(rf"^-?[0-9]+([.][0-9]{{0,{decimals}}}0*)?$")
    number = text if isinstance(data_type, DecimalType) else f"try_cast({text} AS decimal(38,0))"
    return (
        f"CASE WHEN {text} RLIKE {form} THEN try_cast({number} AS {data_type.simpleString()}) END"
    )


def _checked(value: str, failed: str) -> str:
    """The value, or what the branches say where there is none, as Spark SQL."""
    return f"coalesce({value}, CASE {failed} END)"


def _raised(problem: str) -> str:
    return f"raise_error({quote_literal(problem)})"


def _not_of_type(column: str, name: str, *, is_chosen: bool) -> str:
    whose = ", its type in customSchema: write a wider one" if is_chosen else " of Spark"
    return f"column {column} holds a value that is no {name}{whose}"


def _depth(data_type: DataType) -> int:
    """The number of dimensions of an array."""
    return 1 + _depth(data_type.elementType) if isinstance(data_type, ArrayType) else 0


@dataclass(frozen=True, slots=True)
class TypeThere:
    """The type of a column in its database.

    :param name: as the database writes it, without names for other types.
    :param dimensions: of an array; 0 if they are not declared.
    :param cast_to: the type that the database has to cast it to, so that Spark reads it.
    """

    name: str
    dimensions: int = 0
    cast_to: str | None = None

    def sql(self, quoted: str) -> str:
        """The column as the database sends it, or makes a text of it."""
        return quoted if self.cast_to is None else f"({quoted})::{self.cast_to}"


def type_there(name: str, written: str = "", dimensions: int = 0) -> TypeThere:
    """The type of a column, from a row of the answer to `column_types.sql`.

    :param written: as the column was written in PostgreSQL, maybe with names for other types.
    """
    if name in _UNREAD:
        return TypeThere("text", cast_to="text")
    if not name.endswith("[]"):
        return TypeThere(name)
    if name == "money[]":
        return TypeThere(name, dimensions, cast_to="numeric[]")
    if not _ITEMS.fullmatch(name):  # of enums and others, and arrays of arrays
        return TypeThere("text[]", dimensions, cast_to="text[]")
    return TypeThere(name, dimensions, cast_to=None if name == written else name)


@dataclass(frozen=True, slots=True)
class DatabaseColumns:
    """The columns of a table, and how they are read.

    :param as_read: as Spark reads them, except for the next two.
    :param texts: the columns to read from strings of the database, by their names.
    :param recast: the columns to cast to a type that the user chose.
    :param texts_of_driver: the columns that are the strings that the driver writes.
    :param hides_rows: policies of the table may hide rows from the user.
    """

    as_read: StructType
    types: Mapping[str, TypeThere]
    texts: Mapping[str, TextColumn]
    recast: Mapping[str, ChosenColumn]
    texts_of_driver: tuple[str, ...]
    hides_rows: bool

    @property
    def struct(self) -> StructType:
        """The columns with the types of their values."""
        types = {name: column.data_type for name, column in self.texts.items()}
        types.update({name: column.data_type for name, column in self.recast.items()})
        return _with_types(self.as_read, types)

    @property
    def are_rewritten(self) -> bool:
        """Whether a query has to name them."""
        return bool(self.texts) or any(one.cast_to for one in self.types.values())

    def sql(self, database: DatabaseKind, divided_by: str | None) -> str:
        """The columns of a query of the database.

        :param divided_by: the column by whose values the read is divided, if it is sent as a
            string; its values are sent, too, as `DIVIDING_COLUMN`.
        """
        if not self.are_rewritten:
            return "*"
        return selected(database, self.as_read.names, self.types, self.texts, divided_by)

    def values_in(self, frame: DataFrame) -> DataFrame:
        """A frame of what the database sends, with the values of the columns."""
        frame = _with_values(frame, self.as_read.names, self.texts)
        return _with_values(frame, self.as_read.names, self.recast)


def database_columns(
    database: DatabaseKind,
    as_written: StructType,
    types: Mapping[str, TypeThere],
    chosen_types: Mapping[str, DataType],
    *,
    turns_zero_dates: bool,
    hides_rows: bool,
) -> DatabaseColumns:
    """How the columns of a table are read.

    :param as_written: as Spark reads the table by itself.
    :param types: the types of the columns in the database.
    :param chosen_types: the types that the user chose, by the columns in lower case.
    :param turns_zero_dates: the driver reads `0000-00-00` as another value, so it reads the dates.
    :param hides_rows: policies of the table may hide rows from the user.
    """
    chosen: dict[str, DataType] = {}
    for name in as_written.names:
        wanted = chosen_types.get(name.lower())
        if wanted is not None:
            chosen[name] = StringType() if isinstance(wanted, _STRINGS) else wanted
    strings = tuple(
        name
        for name, wanted in chosen.items()
        if isinstance(wanted, StringType) and not isinstance(as_written[name].dataType, StringType)
    )
    as_read = _with_types(as_written, dict.fromkeys(strings, StringType()))
    texts = _text_columns(database, as_read, types, chosen, turns_zero_dates=turns_zero_dates)
    recast = {}
    for name, wanted in chosen.items():
        read_as = texts[name].data_type if name in texts else as_read[name].dataType
        if read_as != wanted:
            recast[name] = ChosenColumn(name, read_as, wanted)
    return DatabaseColumns(as_read, types, texts, recast, strings, hides_rows)


def _with_types(struct: StructType, types: Mapping[str, DataType]) -> StructType:
    """The columns, some with another type; the others keep their metadata, such as `char(5)`."""
    return StructType(
        [
            StructField(field.name, types[field.name], field.nullable)
            if field.name in types
            else field
            for field in struct.fields
        ]
    )


def _text_columns(
    database: DatabaseKind,
    struct: StructType,
    types: Mapping[str, TypeThere],
    chosen: Mapping[str, DataType],
    *,
    turns_zero_dates: bool,
) -> dict[str, TextColumn]:
    """The columns to read from strings of the database, by their names."""
    kind = database.kind
    if kind not in _TEXT:
        return {}
    found = {}
    for field in struct.fields:
        there = types.get(field.name, TypeThere(""))
        wanted = chosen.get(field.name)
        if isinstance(wanted, StringType):
            continue  # what the driver writes
        is_money = there.name == "money"
        if wanted is not None and _is_exact_number(wanted) and _is_decimal(there.name):
            found[field.name] = TextColumn(field.name, kind, wanted, is_money, is_chosen=True)
            continue
        data_type = _type_of_text(kind, field.dataType, there)
        is_left = turns_zero_dates and isinstance(data_type, DateType | TimestampNTZType)
        if data_type is not None and not is_left:
            rounds = there.name in _WITHOUT_PRECISION
            found[field.name] = TextColumn(
                field.name, kind, data_type, is_money=is_money, rounds=rounds
            )
    return found


def _is_decimal(type_there: str) -> bool:
    return type_there == "money" or type_there.startswith(("numeric", "decimal"))


def _type_of_text(kind: str, read_as: DataType, there: TypeThere) -> DataType | None:
    """The type in Spark of a column that is read as a string; None if it is read as it is."""
    if there.name.endswith("[]"):
        item = read_as
        while isinstance(item, ArrayType):
            item = item.elementType
        type_of_item = there.name.removesuffix("[]")
        data_type = _type_of_scalar(kind, item, type_of_item) or item
        for _ in range(max(1, there.dimensions)):
            data_type = ArrayType(data_type)
        return data_type
    return _type_of_scalar(kind, read_as, there.name)


def _type_of_scalar(kind: str, read_as: DataType, type_there: str) -> DataType | None:
    if _TIME_OF_DAY.match(type_there):
        return StringType()
    if type_there == "money":
        return DecimalType(19, 4)
    if isinstance(read_as, DateType | TimestampNTZType):
        return read_as
    if isinstance(read_as, TimestampType):
        return read_as if kind in _INSTANT else None
    sizes = _DECIMAL.fullmatch(type_there.removesuffix(" unsigned").removesuffix(" zerofill"))
    if not isinstance(read_as, DecimalType) or sizes is None:
        return None
    digits, decimals = int(sizes[1]), int(sizes[2])
    if digits <= _MOST_DIGITS and 0 <= decimals <= digits:
        return None
    if decimals < 0:  # 12300 of numeric(10, -2)
        return DecimalType(min(digits - decimals, _MOST_DIGITS), 0)
    return DecimalType(_MOST_DIGITS, decimals) if decimals <= _MOST_DIGITS else StringType()


def selected(
    database: DatabaseKind,
    names: Iterable[str],
    types: Mapping[str, TypeThere],
    texts: Mapping[str, TextColumn] | None = None,
    divided_by: str | None = None,
) -> str:
    """The columns of a query, some of them as a string, as SQL of the database."""
    columns = []
    for name in names:
        quoted = database.quoted(name)
        sql = types.get(name, TypeThere("")).sql(quoted)
        if texts and name in texts:
            sql = texts[name].text_of(sql)
        columns.append(quoted if sql == quoted else f"{sql} AS {quoted}")
        if name == divided_by:
            columns.append(f"{quoted} AS {database.quoted(DIVIDING_COLUMN)}")
    return ", ".join(columns)


DIVIDING_COLUMN = "dqx_divided_by"
"""The name of a second copy of a column that is sent as a string, as the index has its values."""


def _with_values(
    frame: DataFrame, names: Iterable[str], columns: Mapping[str, TextColumn | ChosenColumn]
) -> DataFrame:
    """The frame with the values of these columns in place of what was read."""
    if not columns:
        return frame
    return frame.selectExpr(
        *(
            f"{columns[name].value} AS {quote_name(name)}" if name in columns else quote_name(name)
            for name in names
        )
    )
