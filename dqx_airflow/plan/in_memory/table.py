"""Small tables in memory, with Spark's types. Strings are cast like the values of files with
declared columns, numbers computed like Spark's `try_` functions: NULL, never an error."""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isinf, isnan
from types import MappingProxyType
from typing import Any

from dqx_airflow.metrics import spark_values
from dqx_airflow.metrics.sql import PATTERNS, whole_pattern
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    WHOLE_SIZES,
    decimal_size,
    fields_of,
    parts_of,
    spelled_like,
    widest,
)
from dqx_airflow.values import DatasetField

_MICROSECOND = timedelta(microseconds=1)
_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_WHOLE_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def calculate(op: str, left: Any, right: Any, result_type: str) -> Any:
    """`left op right`, neither of them NULL; None if it has no value or does not fit the type.

    :param result_type: the result of `plan.row_types.arithmetic_type`.
    """
    try:
        if result_type in WHOLE_SIZES:
            whole = _OPERATORS[op](left, right)
            return whole if has_bits_for(whole, result_type) else None
        if result_type in ("float", "double"):
            return _floating(op, float(left), float(right), result_type)
        if result_type.startswith("decimal"):
            return _decimal(op, Decimal(left), Decimal(right), result_type)
        return _timestamps(op, left, right, result_type)
    except (ArithmeticError, ValueError):
        return None


def fitted(value: Any, operand_type: str) -> Any:
    """An operand in its type from `plan.row_types.operand_types`; None if it does not fit."""
    if value is None or not operand_type.startswith("decimal"):
        return value
    precision, scale = decimal_size(operand_type)
    decimal = Decimal(value)
    is_exact = spark_values.rounded_half_up(decimal, scale) == decimal
    return value if is_exact and spark_values.has_room(decimal, precision, scale) else None


def negated(value: Any, result_type: str) -> Any:
    """`-value`; None if it does not fit the type."""
    if result_type in WHOLE_SIZES:
        return -value if has_bits_for(-value, result_type) else None
    return value.copy_negate() if isinstance(value, Decimal) else -value


def has_bits_for(value: int, whole_type: str) -> bool:
    """Whether an integer type can hold the value."""
    most = 1 << (_WHOLE_BITS[whole_type] - 1)
    return -most <= value < most


def _floating(op: str, left: float, right: float, result_type: str) -> float | None:
    if op == "/" and right == 0:
        return None
    result: float = _OPERATORS[op](left, right)
    return narrowed(result) if result_type == "float" else result


def narrowed(value: float) -> float:
    """The nearest number of type float."""
    try:
        narrow: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return narrow


def _decimal(op: str, left: Decimal, right: Decimal, result_type: str) -> Decimal | None:
    exact = {
        "+": spark_values.EXACT.add,
        "-": spark_values.EXACT.subtract,
        "*": spark_values.EXACT.multiply,
        "/": spark_values.EXACT.divide,
    }[op](left, right)
    precision, scale = decimal_size(result_type)
    rounded = spark_values.rounded_half_up(exact, scale)
    return rounded if spark_values.has_room(rounded, precision, scale) else None


def _timestamps(op: str, left: Any, right: Any, result_type: str) -> Any:
    """Dates, timestamps and durations; a date next to a duration is its midnight in UTC."""
    if result_type == "date":
        day, days = (left, right) if isinstance(left, date) else (right, left)
        return day + timedelta(days=days if op == "+" else -days)
    if op in "*/":
        span, factor = (left, right) if isinstance(left, timedelta) else (right, left)
        result = timedelta(microseconds=_scaled(op, span // _MICROSECOND, factor))
    else:
        sides = (_zoneless(side) if isinstance(side, date) else side for side in (left, right))
        result = _OPERATORS[op](*sides)
    is_span = isinstance(result, timedelta)
    return (
        None if is_span and abs(result // _MICROSECOND) > spark_values.MOST_MICROSECONDS else result
    )


def _scaled(op: str, microseconds: int, factor: Any) -> int:
    """A duration times a number, or divided by it. The result is exact unless the number is
    floating-point, and rounded half away from zero."""
    scaled: Fraction | float
    if isinstance(factor, float):
        scaled = _OPERATORS[op](float(microseconds), factor)
    else:
        scaled = _OPERATORS[op](Fraction(microseconds), Fraction(factor))
    rounded = math.floor(abs(Fraction(scaled)) + Fraction(1, 2))
    return rounded if scaled > 0 else -rounded


def _zoneless(value: date) -> datetime:
    timestamp = spark_values.timestamp_of(value)
    assert timestamp is not None
    return timestamp


_BLANKS = "".join(map(chr, range(33)))
_TRUTHS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}


def value_of(text: str, spark_type: str) -> Any:
    """The value of a string; None if it is malformed."""
    kind = spark_type.split("(", 1)[0]
    bare = text.strip(_BLANKS)
    if kind in PATTERNS and not re.search(whole_pattern(kind), text):
        return None
    if kind in WHOLE_SIZES:
        whole = int(bare) if re.fullmatch(r"[+-]?[0-9]+", bare) else None
        return whole if whole is not None and has_bits_for(whole, kind) else None
    match kind:
        case "decimal":
            return _decimal_in_text(bare, *decimal_size(spark_type))
        case "float" | "double":
            number = float(bare) if kind == "double" else narrowed(float(bare))
            return None if math.isinf(number) and re.search("[0-9]", bare) else number
        case "boolean":
            return _TRUTHS.get(bare.lower())
        case "date":
            return spark_values.date_in(text)
        case "timestamp" | "timestamp_ntz":
            timestamp = spark_values.timestamp_in(text)
            zone = timezone.utc if kind == "timestamp" else None
            return None if timestamp is None else timestamp.replace(tzinfo=zone)
        case "binary":
            return text.encode()
        case _:
            return text


def _decimal_in_text(text: str, precision: int, scale: int) -> Decimal | None:
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent that no decimal has
        return None
    is_held = (
        spark_values.has_room(exact, precision, scale)
        and spark_values.rounded_half_up(exact, scale) == exact
    )
    return exact if is_held else None


_CLASSES: dict[str, type] = {
    "string": str,
    "varchar": str,
    "char": str,
    "boolean": bool,
    "binary": bytes,
}
_NESTED = ("array", "map", "struct")
_UNWRITABLE = re.compile(r"[,:<>()]")
"""In the name of a field, what a type cannot be written with."""


class TableError(ValueError):
    """A value does not fit the type of its column; the message says which."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with their types, and rows in their order; None stands for NULL.

    Timestamps are held in UTC, or without a time zone for the type timestamp_ntz, arrays as tuples,
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
        """Returns a table of values in the order of the columns.

        :raises TableError: a value does not fit its column.
        """
        held = list(rows)
        for number, row in enumerate(held, start=1):
            if len(row) != len(types):
                raise TableError(f"row {number} has {len(row)} values for {len(types)} columns")
        columns = {name: [row[at] for row in held] for at, name in enumerate(types)}
        return cls.of_columns(columns, types)

    @classmethod
    def cast(cls, types: Mapping[str, str], rows: Iterable[Sequence[str | None]]) -> Table:
        """Returns a table of strings in the order of the columns; malformed ones become NULL.

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
    def of_columns(
        cls,
        columns: Mapping[str, Sequence[Any]],
        types: Mapping[str, str] = MappingProxyType({}),
        wanted: Mapping[str, str] = MappingProxyType({}),
    ) -> Table:
        """Returns a table with the types of its values; a column without values has type void.

        :param types: the types of columns that are known.
        :param wanted: the types that columns, their items and fields get if all of their values
            have them.
        :raises TableError: the values of a column have no common type.
        """
        fields = []
        fitted = []
        for name, given in columns.items():
            cells = given if name in types else _with_null([*map(_plain, given)])
            asked = spelled_like(name, wanted)
            kind = types.get(name)
            if asked is not None:
                kind = _type_as_wanted(name, cells, wanted[asked], kind)
                cells = [_as_written(cell, kind) for cell in cells]
            elif kind is None:
                kind = _common_type(name, cells)
            values = [_fitted(cell, kind, row, name) for row, cell in enumerate(cells, 1)]
            fields.append(DatasetField(name, kind))
            fitted.append(values)
        return cls(tuple(fields), tuple(zip(*fitted, strict=True)))


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values of each column in rows that may lack some."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


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
        case Mapping() if _has_shape(value, "struct"):
            fields = (f"{name}:{type_of_value(item)}" for name, item in value.items())
            return f"struct<{','.join(fields)}>"
        case Mapping():
            return f"map<{_common_type('a key', value)},{_common_type('a map', value.values())}>"
        case Sequence():
            return f"array<{_common_type('an array', value)}>"
        case _:
            raise TableError(f"{type(value).__name__} is a type that Spark does not support")


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
    common: str | None = "void"
    for kind in types:
        common = _merged(common, kind)
    if common is None:
        raise TableError(f"{name} contains values of several types: {', '.join(types)}")
    return common


def _merged(first: str | None, other: str | None) -> str | None:
    """The type of the values of both types; None if there is none. NULL has every type."""
    if first is None or other is None:
        return None
    if first == "void" or other in (first, "void"):
        return other if first == "void" else first
    kinds = {kind.split("(")[0].split("<")[0] for kind in (first, other)}
    if kinds <= {"bigint", "double", "decimal"}:
        return widest(first, other)
    if kinds == {"array"}:
        inner = _merged(parts_of(first)[0], parts_of(other)[0])
        return f"array<{inner}>" if inner is not None else None
    if kinds != {"struct"}:
        return None
    fields: dict[str, str | None] = {**fields_of(first)}
    for name, kind in fields_of(other).items():
        fields[name] = _merged(fields.get(name, "void"), kind)
    if None in fields.values():
        return None
    return f"struct<{','.join(f'{name}:{kind}' for name, kind in fields.items())}>"


def _has_shape(value: Any, kind: str) -> bool:
    """Whether a value of Python stands for an array, a map or a struct. pandas has the maps of
    Arrow as lists of pairs."""
    match kind, value:
        case "array", list() | tuple():
            return True
        case "map", list() | tuple():
            return all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
        case "map", Mapping():
            return True
        case "struct", Mapping():
            return all(isinstance(name, str) for name in value)
    return False


def _pairs_of(held: Any) -> Collection[tuple[Any, Any]]:
    """The keys of a map with their values."""
    pairs: Collection[tuple[Any, Any]] = held.items() if isinstance(held, Mapping) else held
    return pairs


def _type_as_wanted(place: str, cells: Iterable[Any], wanted: str, known: str | None = None) -> str:
    """The wanted type, as far as all values have it: with the fields of their structs, and for
    other values with the type that these have.

    :param known: the type of the values, if it does not follow from them.
    :raises TableError: the values have no common type.
    """
    held = [cell for cell in cells if cell is not None]
    name = wanted.split("(", 1)[0].split("<", 1)[0]
    if not held:
        return wanted
    if name not in _NESTED:
        return wanted if _all_fit(held, wanted, place) else known or _common_type(place, held)
    if not all(_has_shape(cell, name) for cell in held):
        return known or _common_type(place, held)
    if name == "array":
        items = (item for cell in held for item in cell)
        return f"array<{_type_as_wanted(f'{place}[item]', items, *parts_of(wanted))}>"
    if name == "map":
        key, inner = parts_of(wanted)
        pairs = [pair for cell in held for pair in _pairs_of(cell)]
        of_keys = _type_as_wanted(f"{place}[key]", (pair[0] for pair in pairs), key)
        of_values = _type_as_wanted(f"{place}[value]", (pair[1] for pair in pairs), inner)
        return f"map<{of_keys},{of_values}>"
    return _struct_as_wanted(place, held, fields_of(wanted))


def _struct_as_wanted(
    place: str, held: Sequence[Mapping[str, Any]], types: Mapping[str, str]
) -> str:
    """The type of structs: the fields that they have, with the wanted types as far as all values
    have them."""
    fields = []
    for field in dict.fromkeys(field for cell in held for field in cell):
        asked = spelled_like(field, types)
        values = [cell[field] for cell in held if field in cell]
        within = f"{place}.{field}"
        kind = _common_type(within, values)
        if asked is not None:
            kind = _type_as_wanted(within, values, types[asked])
        fields.append(f"{field}:{kind}")
    return f"struct<{','.join(fields)}>"


def _all_fit(cells: Sequence[Any], wanted: str, place: str) -> bool:
    """Whether all values have a type that has no parts, or can be converted to it."""
    try:
        for cell in cells:
            _fitted(_as_written(cell, wanted), wanted, 0, place)
    except (TableError, KeyError, ArithmeticError):
        return False
    return True


def _as_written(cell: Any, wanted: str) -> Any:
    """Converts a value to the type that was wanted, also within a nested value: pandas has neither
    decimals, dates nor integers with NULL, and Python no sizes of numbers.

    :raises TableError: the value would become another number.
    """
    if wanted in WHOLE_SIZES and _is_whole(cell):
        return int(cell)
    match wanted.split("(", 1)[0].split("<", 1)[0], cell:
        case "decimal", float():
            return Decimal(repr(cell))
        case "float", int() if abs(cell) > 2**24:
            raise TableError("an integer would be rounded")
        case "float", int() | float() | Decimal() if isinf(narrowed(float(cell))):
            raise TableError("a number is larger than every float")
        case "date", datetime() if cell.time() == time():
            return cell.date()
        case "array", list() | tuple():
            return [_as_written(item, *parts_of(wanted)) for item in cell]
        case "struct", Mapping():
            types = fields_of(wanted)
            return {name: _as_written(cell.get(name), inner) for name, inner in types.items()}
        case "map", Mapping() | list() | tuple():
            key, inner = parts_of(wanted)
            pairs = _pairs_of(cell)
            return [(_as_written(k, key), _as_written(item, inner)) for k, item in pairs]
    return cell


def _is_whole(cell: Any) -> bool:
    is_number = isinstance(cell, int | float | Decimal) and not isinstance(cell, bool)
    return is_number and cell == cell // 1


def _plain(value: Any) -> Any:
    """Converts a value of NumPy or pandas to Python; their missing values to NULL."""
    package = type(value).__module__.partition(".")[0]
    if package == "pandas" and type(value).__name__ in ("NAType", "NaTType"):
        return None
    if package == "numpy":
        # Python has no nanoseconds, and no floats that are longer than its own.
        plain = value.astype("M8[us]" if value.dtype == "M8[ns]" else value.dtype).tolist()
        return value if type(plain) is type(value) else _plain(plain)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return [*map(_plain, value)] if isinstance(value, list) else value


def _fitted(value: Any, spark_type: str, row: int, column: str) -> Any:
    """The value as a column of the type holds it."""
    if value is None:
        return None
    try:
        return _checked(value, spark_type)
    except (TypeError, ValueError, ArithmeticError) as error:
        kind = type(value).__name__  # the value itself may have to stay hidden
        message = (
            f"row {row}: a value of type {kind} does not fit column '{column}' of type {spark_type}"
        )
        raise TableError(message) from error


def _checked(value: Any, spark_type: str) -> Any:
    """The value as a column of the type holds it.

    :raises ValueError: it does not fit.
    """
    name = spark_type.split("(", 1)[0].split("<", 1)[0]
    if value is None:
        return None
    _demand(value, name == "boolean" or not isinstance(value, bool))
    if name in _NESTED:
        return _checked_parts(_demand(value, _has_shape(value, name)), name, spark_type)
    if name in WHOLE_SIZES:
        return _demand(value, isinstance(value, int) and has_bits_for(value, name))
    match name:
        case "double":
            number = float(_demand(value, isinstance(value, int | float | Decimal)))
            # The shortest decimal of a double stands for it: 0.1.
            return _demand(number, isnan(number) or value in (number, Decimal(repr(number))))
        case "float":
            return narrowed(float(_demand(value, isinstance(value, int | float | Decimal))))
        case "decimal":
            return _held_decimal(value, *decimal_size(spark_type))
        case "date":
            return _demand(value, not isinstance(value, datetime) and isinstance(value, date))
        case "timestamp":
            timestamp = _demand(value, isinstance(value, datetime))
            zone = timestamp.tzinfo or timezone.utc
            return timestamp.replace(tzinfo=zone).astimezone(timezone.utc)
        case "timestamp_ntz":
            return _demand(value, isinstance(value, datetime) and value.tzinfo is None)
        case _:
            return _demand(value, isinstance(value, _CLASSES[name]))


def _checked_parts(value: Any, name: str, spark_type: str) -> Any:
    """The value as a column of arrays, maps or structs holds it."""
    match name:
        case "array":
            (inner,) = parts_of(spark_type)
            return tuple(_checked(item, inner) for item in value)
        case "map":
            key_type, value_type = parts_of(spark_type)
            given = _pairs_of(value)
            _demand(value, len(dict(given)) == len(given))
            pairs = [(_checked(k, key_type), _checked(v, value_type)) for k, v in given]
            return tuple(sorted(pairs, key=lambda pair: spark_values.order_key(pair[0])))
        case _:
            types = fields_of(spark_type)
            _demand(value, all(field in types or _UNWRITABLE.search(field) for field in value))
            return {field: _checked(value.get(field), inner) for field, inner in types.items()}


def _held_decimal(value: Any, precision: int, scale: int) -> Decimal:
    _demand(value, isinstance(value, int | Decimal))
    exact = Decimal(value)
    whole, _, digits = f"{exact.copy_abs():f}".partition(".")
    fits = len(whole.lstrip("0")) <= precision - scale and len(digits.rstrip("0")) <= scale
    _demand(exact, exact.is_finite() and fits)
    return exact


def _demand(value: Any, fits: bool) -> Any:
    if not fits:
        raise ValueError(value)
    return value
