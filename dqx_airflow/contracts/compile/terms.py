"""The nodes of DQL that compilation creates, and literals for the type of a field."""

from __future__ import annotations

import re
from datetime import date
from enum import Enum
from fractions import Fraction

from dqx_airflow.contracts.demand import Literal, literal_text
from dqx_airflow.contracts.field_types import names_in
from dqx_airflow.contracts.model import Field, parts_of, without_quoted
from dqx_airflow.dql import nodes
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.spark_values import has_nanoseconds, timestamp_in
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.values.exact import (
    WrittenFloat,
    WrittenInt,
    exact_as_written,
    is_finite_number,
    magnitude,
)


class ValueKind(str, Enum):
    """The kind of a field's values in comparisons."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BOOLEAN = "truth value"
    NESTED = "nested value"
    BINARY = "binary value"
    UNKNOWN = "value of any type"


_LARGEST_EXACT = 2**53
_MIRRORED = {"==": "!=", "!=": "==", ">": "<=", ">=": "<", "<": ">=", "<=": ">"}
_WHOLE = ("whole_number", "tinyint", "smallint", "int", "bigint")


def kind_of(item: Field | None) -> ValueKind:
    """The kind of a field; unknown for a column that the contract does not describe."""
    written = (item.type if item is not None else None) or "any"
    kinds = names_in("compared as")
    return ValueKind(kinds.get(written.partition("(")[0], ValueKind.BINARY))


def is_whole(item: Field | None) -> bool:
    """True if all values of a field are integers."""
    return item is not None and item.type in _WHOLE


def number(value: int | Fraction | float) -> nodes.Number:
    """The number as a literal.

    :raises NoCounterpartError: it is not finite.
    """
    if not is_finite_number(value):
        raise NoCounterpartError("not a finite number")
    if isinstance(value, float):
        exact = exact_as_written(value)
        value = exact if magnitude(exact) < _LARGEST_EXACT else Fraction(exact)
    return nodes.Number(value, nodes.Unit.PLAIN)


def duration(seconds: float) -> nodes.Number:
    """The duration as a literal.

    :raises NoCounterpartError: it is infinite.
    """
    if not is_finite_number(seconds):
        raise NoCounterpartError("not a finite duration")
    return nodes.Number(exact_as_written(seconds), nodes.Unit.DURATION)


def share(value: float) -> nodes.Number:
    return nodes.Number(exact_as_written(value), nodes.Unit.PERCENT)


def text(value: str) -> nodes.Text:
    """The string as a literal.

    :raises NoCounterpartError: a text file cannot contain it.
    """
    if not is_writable(value):
        raise NoCounterpartError("it contains a character that a text file cannot contain")
    return nodes.Text(value)


def is_writable(value: str) -> bool:
    return "\0" not in value and not any(0xD800 <= ord(sign) < 0xE000 for sign in value)


def call(function: str, *arguments: nodes.Expression) -> nodes.Call:
    return nodes.Call(nodes.Name(function), arguments)


def negated(operand: nodes.Expression) -> nodes.Expression:
    return operand.operand if isinstance(operand, nodes.Not) else nodes.Not(operand)


def negation(node: nodes.Expression) -> nodes.Expression:
    """The negation of a predicate, written without `not` if that reads better."""
    match node:
        case nodes.Compare(op="==", left=left, right=nodes.Truth(value=value)):
            return nodes.Compare("==", left, nodes.Truth(not value))
        case nodes.Compare(op=op, left=left, right=right):
            return nodes.Compare(_MIRRORED[op], left, right)
        case nodes.Junction(op=op, left=left, right=right):
            opposite = "or" if op == "and" else "and"
            return nodes.Junction(opposite, negation(left), negation(right))
        case _:
            return negated(node)


def member(operand: nodes.Expression, *choices: nodes.Expression) -> nodes.Member:
    return nodes.Member(operand, nodes.Listing(choices))


def values_of(column: str, dataset: str) -> nodes.Call:
    """`values(column, dataset other)`"""
    other = nodes.Parameter(nodes.Name("dataset"), nodes.Name(dataset))
    return nodes.Call(nodes.Name("values"), (nodes.Name(column),), (other,))


def literal(value: Literal, kind: ValueKind) -> nodes.Expression:
    """A value of a document as a literal that is comparable with values of the kind.

    Numbers and booleans may be written as strings, and strings as numbers or booleans.

    :raises NoCounterpartError: no value of this type equals it.
    """
    if kind is ValueKind.UNKNOWN:
        return _plain(value)
    if kind is ValueKind.TEXT:
        own = literal_text(value)
        if isinstance(value, WrittenFloat | WrittenInt) and value.digits != own:
            raise NoCounterpartError(
                f"{value.digits} without quotes is the number {own}, and the column has strings: "
                f"write '{value.digits}'"
            )
        return text(own)
    if kind is ValueKind.NUMBER and (numeric := _as_number(value)) is not None:
        return number(numeric)
    if kind is ValueKind.BOOLEAN and str(value).lower() in ("true", "false"):
        return nodes.Truth(str(value).lower() == "true")
    is_moment = isinstance(value, str) and len(value) > 4 and timestamp_in(value) is not None
    if kind is ValueKind.TIMESTAMP and is_moment:
        return text(_in_utc(str(value)))
    if kind is ValueKind.DATE and isinstance(value, str):
        try:
            return nodes.Day(date.fromisoformat(value if len(value) == 10 else ""))
        except ValueError:
            if is_moment:
                return text(value)
    raise NoCounterpartError(f"{literal_text(value)!r} is not of type {kind.value}")


def _in_utc(written: str) -> str:
    """A timestamp with the zone UTC: Spark reads one without a zone in the zone of the session.

    Spark drops the zone beside a timestamp without one, which is in UTC.
    """
    moment = timestamp_in(written)
    if moment is None or has_nanoseconds(written):  # an error of the suite
        return written
    return f"{moment.isoformat()}Z"


def _plain(value: Literal) -> nodes.Expression:
    match value:
        case bool():
            return nodes.Truth(value)
        case int() | float():
            return number(value)
        case _:
            return text(literal_text(value))


def _as_number(value: Literal) -> int | float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            try:
                return WrittenFloat(value)
            except ValueError:
                return None
    return value


_IN_ARRAY = re.compile(r"\[\]|\{key\}|\{value\}")


def column(path: str) -> nodes.Name:
    """The column or field of a struct at a path.

    :raises NoCounterpartError: DQL has no name for it.
    """
    if _IN_ARRAY.search(without_quoted(path)):
        raise NoCounterpartError("it is nested in an array or a map")
    return column_named(*parts_of(path))


def column_named(*parts: str) -> nodes.Name:
    """The column with a name; further names are fields of structs.

    :raises NoCounterpartError: DQL has no name for it.
    """
    named = ".".join(parts)
    if not all(parts) or "\n" in named or not is_writable(named):
        raise NoCounterpartError(f"DQL cannot contain the name {named!r}")
    return nodes.Name(named)


def field_of(operand: nodes.Name | nodes.Item, field: str) -> nodes.Name | nodes.Item:
    """A field of a struct.

    :raises NoCounterpartError: DQL has no name for it.
    """
    named = column_named(field)
    if isinstance(operand, nodes.Item):
        return nodes.Item((*operand.path, named.text))
    return nodes.Name(f"{operand.text}.{named.text}")


def sql_name(path: str) -> str:
    """A DQL column as Spark SQL: each name on its path in backticks."""
    return quote_name(*parts_of(path))


def quoted(path: str) -> str:
    """A DQL column as Spark SQL.

    :raises NoCounterpartError: DQL has no name for it.
    """
    column(path)
    return sql_name(path)
