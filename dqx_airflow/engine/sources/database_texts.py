"""Columns of databases whose values JDBC changes: the database sends strings.

A driver makes a date or a time one of Java's old classes: a time that the zone of the JVM leaves
out moves by an hour, days before 1582 move into another calendar, and a time of day becomes an
instant of 1970 with milliseconds. Spark reads a decimal of more than 38 digits with fewer decimals.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dqx_airflow.datasets.databases import DatabaseKind
from dqx_airflow.metrics.sql import quote_literal, quote_name

_TEXT = {"postgres": "({})::text", "mysql": "CAST({} AS char)"}
"""A value as a string, in the SQL of each kind of database."""
_TEXTS = "({})::text[]"
"""The items of an array of PostgreSQL as strings; an instant has the zone of the connection."""
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
_TIME_OF_DAY = re.compile(r"time\b", re.IGNORECASE)
_DECIMAL = re.compile(r"(?:numeric|decimal)\((\d+),(-?\d+)\)", re.IGNORECASE)
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column that the database sends as a string, and the type that Spark reads from it."""

    name: str
    kind: str
    data_type: DataType
    is_money: bool = False

    def text_of(self, quoted: str) -> str:
        """The text of the column with this quoted name, as SQL of the database; the texts of the
        items of an array."""
        if isinstance(self.data_type, ArrayType):
            return _TEXTS.format(quoted)
        if self.is_money:
            return _MONEY.format(quoted)
        form = _INSTANT if isinstance(self.data_type, TimestampType) else _TEXT
        return form[self.kind].format(quoted)

    @property
    def value(self) -> str:
        """The value that the text stands for, as Spark SQL; another text is an error."""
        text = quote_name(self.name)
        if isinstance(self.data_type, ArrayType):
            return (
                f"transform({text}, item -> {self._value_of('item', self.data_type.elementType)})"
            )
        return self._value_of(text, self.data_type)

    def _value_of(self, text: str, data_type: DataType) -> str:
        if isinstance(data_type, StringType):
            return text
        name = data_type.simpleString()
        read = f"try_cast({text} AS {name})"
        if self.kind == "postgres":
            # Spark reads a date up to a space, and would leave out that it is before Christ.
            read = f"CASE WHEN instr({text}, 'BC') = 0 THEN {read} END"
        problem = f"column {self.name} holds a value that is no {name} of Spark"
        return (
            f"coalesce({read}, CASE {self._infinite(text, data_type)}"
            f"WHEN {text} IS NOT NULL THEN raise_error({quote_literal(problem)}) END)"
        )

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


def text_columns(
    database: DatabaseKind,
    struct: StructType,
    types: Mapping[str, str],
    given: Collection[str],
    *,
    turns_zero_dates: bool,
) -> dict[str, TextColumn]:
    """The columns to read from strings, by their names.

    :param struct: as Spark reads the table.
    :param types: the types of the columns in the database.
    :param given: the columns whose type the user chose, in lower case.
    :param turns_zero_dates: the driver reads `0000-00-00` as another value, so it reads the dates.
    """
    kind = database.kind
    if kind not in _TEXT:
        return {}
    found = {}
    for field in struct.fields:
        type_there = types.get(field.name, "")
        data_type = _type_of_text(kind, field, type_there)
        is_left = turns_zero_dates and isinstance(data_type, DateType | TimestampNTZType)
        if data_type is not None and not is_left and field.name.lower() not in given:
            is_money = type_there == "money"
            found[field.name] = TextColumn(field.name, kind, data_type, is_money)
    return found


def _type_of_text(kind: str, field: StructField, type_there: str) -> DataType | None:
    """The type in Spark of a column that is read as a string, or of an array that is read as
    strings; None if it is read as it is."""
    if type_there.endswith("[]"):
        if not isinstance(field.dataType, ArrayType):
            return None
        item = StructField(field.name, field.dataType.elementType)
        kind_of_item = _type_of_text(kind, item, type_there.removesuffix("[]"))
        return None if kind_of_item is None else ArrayType(kind_of_item)
    if _TIME_OF_DAY.match(type_there):
        return StringType()
    if type_there == "money":
        return DecimalType(19, 4)
    if isinstance(field.dataType, DateType | TimestampNTZType):
        return field.dataType
    if isinstance(field.dataType, TimestampType):
        return field.dataType if kind in _INSTANT else None
    sizes = _DECIMAL.fullmatch(type_there.removesuffix(" unsigned").removesuffix(" zerofill"))
    if not isinstance(field.dataType, DecimalType) or sizes is None:
        return None
    digits, decimals = int(sizes[1]), int(sizes[2])
    if digits <= _MOST_DIGITS and 0 <= decimals <= digits:
        return None
    if decimals < 0:  # 12300 of numeric(10, -2)
        return DecimalType(min(digits - decimals, _MOST_DIGITS), 0)
    return DecimalType(_MOST_DIGITS, decimals) if decimals <= _MOST_DIGITS else StringType()


def selected(
    database: DatabaseKind,
    struct: StructType,
    texts: Mapping[str, TextColumn],
    divided_by: str | None,
) -> str:
    """The columns of a query, some of them as a string, as SQL of the database.

    :param divided_by: the column by whose values the read is divided, if it is sent as a string;
        its values are sent, too, as `DIVIDING_COLUMN`.
    """
    columns = []
    for name in struct.names:
        quoted = database.quoted(name)
        text = texts.get(name)
        columns.append(quoted if text is None else f"{text.text_of(quoted)} AS {quoted}")
        if name == divided_by:
            columns.append(f"{quoted} AS {database.quoted(DIVIDING_COLUMN)}")
    return ", ".join(columns)


DIVIDING_COLUMN = "dqx_divided_by"
"""The name of a second copy of a column that is sent as a string, as the index has its values."""


def with_values(
    frame: DataFrame, names: Iterable[str], texts: Mapping[str, TextColumn]
) -> DataFrame:
    """The frame with the values in place of the texts."""
    return frame.selectExpr(
        *(
            f"{texts[name].value} AS {quote_name(name)}" if name in texts else quote_name(name)
            for name in names
        )
    )
