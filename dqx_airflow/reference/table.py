"""Small tables in memory, with Spark's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from dqx_airflow.metrics.comparison import order_key
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    WHOLE_SIZES,
    decimal_size,
    fields_of,
    parts_of,
    widest,
)
from dqx_airflow.reference.arithmetic import has_bits_for, narrowed
from dqx_airflow.reference.texts import value_of
from dqx_airflow.values import DatasetField

_CLASSES: dict[str, type] = {
    "string": str,
    "varchar": str,
    "char": str,
    "boolean": bool,
    "binary": bytes,
}


class TableError(ValueError):
    """A value does not fit the type of its column; the message says which."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with their types, and rows in their order; None stands for NULL.

    Timestamps are held in UTC, those of type timestamp_ntz without a time zone, arrays as tuples,
    structs as dicts, maps as tuples of pairs ordered by key.

    If the values were cast from strings, `texts` are the columns concerned. The values of a row are
    then followed by the set of its columns whose string is not a value, with None if the line is
    malformed.
    """

    fields: tuple[DatasetField, ...]
    rows: tuple[tuple[Any, ...], ...]
    texts: tuple[str, ...] | None = None

    @classmethod
    def typed(cls, types: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> Table:
        """A table of values in the order of the columns.

        :raises TableError: a value does not fit its column.
        """
        fitted = []
        for number, row in enumerate(rows, start=1):
            if len(row) != len(types):
                raise TableError(f"row {number} has {len(row)} values for {len(types)} columns")
            cells = zip(types.items(), row, strict=True)
            fitted.append(
                tuple(_fitted(cell, type_, number, name) for (name, type_), cell in cells)
            )
        return cls(tuple(DatasetField(name, type_) for name, type_ in types.items()), tuple(fitted))

    @classmethod
    def cast(cls, types: Mapping[str, str], rows: Iterable[Sequence[str | None]]) -> Table:
        """A table of strings in the order of the columns; malformed ones become NULL.

        A row that is too short or too long is a malformed line.
        """
        fields = tuple(DatasetField(name, type_) for name, type_ in types.items())
        read = []
        for row in rows:
            cells = [*row, *[None] * len(types)][: len(types)]
            values: list[Any] = []
            malformed: set[str | None] = set()
            for (name, type_), text in zip(types.items(), cells, strict=True):
                values.append(None if text is None else value_of(text, type_))
                if text is not None and values[-1] is None:
                    malformed.add(name)
            if len(row) != len(types):
                malformed.add(None)
            read.append((*values, frozenset(malformed)))
        return cls(fields, tuple(read), tuple(types))

    @classmethod
    def inferred(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """A table with the types of its values; a column without values has type void.

        :raises TableError: the values of a column have no common type.
        """
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        columns = {name: _with_null([row.get(name) for row in rows]) for name in names}
        types = {name: _common_type(name, values) for name, values in columns.items()}
        return cls.typed(types, list(zip(*columns.values(), strict=True)) if names else [])


def type_of_value(value: Any) -> str:
    """The Spark type of a Python value.

    :raises TableError: there is none.
    """
    match value:
        case None:
            return "void"
        case bool():
            return "boolean"
        case int():
            return "bigint" if has_bits_for(value, "bigint") else f"decimal({LONGEST_DECIMAL},0)"
        case float():
            return "double"
        case Decimal():
            return _decimal_type(value)
        case str():
            return "string"
        case bytes():
            return "binary"
        case datetime():
            return "timestamp" if value.tzinfo else "timestamp_ntz"
        case date():
            return "date"
        case Mapping():
            fields = (f"{name}:{type_of_value(item)}" for name, item in value.items())
            return f"struct<{','.join(fields)}>"
        case Sequence():
            return f"array<{_common_type('an array', value)}>"
        case _:
            raise TableError(f"{value!r} has a type that Spark does not support")


def _decimal_type(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TableError(f"{value} is not a decimal")
    scale = max(0, -exponent)
    return f"decimal({max(len(digits) + max(0, exponent), scale)},{scale})"


def _with_null(values: list[Any]) -> list[Any]:
    """The values of a column; NaN means NULL in pandas if the others are not numbers."""
    nan = [isinstance(value, float) and value != value for value in values]  # noqa: PLR0124
    if any(nan) and any(
        value is not None and not isinstance(value, float | int | Decimal) for value in values
    ):
        return [None if is_nan else value for value, is_nan in zip(values, nan, strict=True)]
    return values


def _common_type(name: str, values: Iterable[Any]) -> str:
    types = tuple(dict.fromkeys(type_of_value(value) for value in values if value is not None))
    if not types:
        return "void"
    numbers = {"bigint", "double"}
    if len(types) > 1 and not all(kind in numbers or kind.startswith("decimal") for kind in types):
        raise TableError(f"{name} contains values of several types: {', '.join(types)}")
    return widest(*types)


def _fitted(value: Any, spark_type: str, row: int, column: str) -> Any:
    """The value in its form in a column of the type."""
    if value is None:
        return None
    try:
        return _checked(value, spark_type)
    except (TypeError, ValueError, ArithmeticError) as error:
        message = f"row {row}: {value!r} does not fit column '{column}' of type {spark_type}"
        raise TableError(message) from error


def _checked(value: Any, spark_type: str) -> Any:
    name = spark_type.split("(", 1)[0].split("<", 1)[0]
    if value is None:
        return None
    if name in WHOLE_SIZES:
        return _demand(value, isinstance(value, int) and has_bits_for(value, name))
    match name:
        case "double":
            return float(_demand(value, isinstance(value, int | float | Decimal)))
        case "float":
            return narrowed(float(_demand(value, isinstance(value, int | float | Decimal))))
        case "decimal":
            return _held_decimal(value, *decimal_size(spark_type))
        case "date":
            return _demand(value, not isinstance(value, datetime) and isinstance(value, date))
        case "timestamp":
            timestamp = _demand(value, isinstance(value, datetime))
            return timestamp.astimezone(timezone.utc) if timestamp.tzinfo else _in_utc(timestamp)
        case "timestamp_ntz":
            return _demand(value, isinstance(value, datetime) and value.tzinfo is None)
        case "array":
            (inner,) = parts_of(spark_type)
            return tuple(_checked(item, inner) for item in value)
        case "map":
            key_type, value_type = parts_of(spark_type)
            pairs = [
                (_checked(k, key_type), _checked(item, value_type)) for k, item in value.items()
            ]
            return tuple(sorted(pairs, key=lambda pair: order_key(pair[0])))
        case "struct":
            types = fields_of(spark_type)
            return {field: _checked(value.get(field), inner) for field, inner in types.items()}
        case _:
            return _demand(value, isinstance(value, _CLASSES[name]))


def _held_decimal(value: Any, precision: int, scale: int) -> Decimal:
    _demand(value, isinstance(value, int | Decimal))
    exact = Decimal(value)
    whole, _, digits = f"{exact.copy_abs():f}".partition(".")
    fits = len(whole.lstrip("0")) <= precision - scale and len(digits.rstrip("0")) <= scale
    _demand(exact, fits)
    return exact


def _in_utc(timestamp: datetime) -> datetime:
    return timestamp.replace(tzinfo=timezone.utc)


def _demand(value: Any, fits: bool) -> Any:
    if not fits:
        raise ValueError(value)
    return value
