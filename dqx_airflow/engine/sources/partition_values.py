"""The values of partition columns: in the log of a Delta table, in the names of folders, in Spark.

A value has its type, and a moment is in UTC, whatever the time zone of the session. The
log has each value as a string (Delta protocol, "Partition Value Serialization"): an empty one is
NULL there. Values that no such string stands for are refused before anything is committed.

The files of a promotion are in folders that are named by the same strings, so that one read finds
them all. A name that would depend on the file system is written in base64 behind `@`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import spelled_like

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder for NULL."""

IN_UTC = {"timeZone": "UTC"}
"""The option by which Spark reads times without a zone in the names of folders."""

IN_BOTH = "and in the name of its folder, which alone would be read"
"""What is wrong with a column in a file, unless its value is the same."""

IN_BOTH_HINT = "remove the column from the files, or write the same value there"

_ENCODED = "@"
_REFUSED = "@!"
_LONGEST_NAME = 255
"""The bytes in the name of a folder, on most file systems."""
_YEARS = {
    "date": ("DATE'0001-01-01'", "DATE'9999-12-31'"),
    "timestamp": (
        "TIMESTAMP_LTZ'0001-01-01 00:00:00+00:00'",
        "TIMESTAMP_LTZ'9999-12-31 23:59:59.999999+00:00'",
    ),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    ),
}
"""The first and the last value whose string all readers take for the same."""
_REASONS: Mapping[str, str] = {
    "empty": "an empty string: in a partition that is NULL",
    "null": f"the string '{NO_VALUE}': in a partition that is NULL",
    "long": "a string that is too long for the name of a folder",
    "bytes": "a string that is not valid UTF-8",
    "floating": "a floating-point number: without Spark, no partition is named by one",
    "binary": "binary values: each writer spells them differently",
    "year": "a year before 1 or after 9999: each reader spells them differently",
}
_TIME = re.compile(
    r"(?P<seconds>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(?P<digits>\d{1,6}))?"
    r"(?P<zone>Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)
_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
_ESCAPED_BYTES = re.compile(rb"(?:\\u00[0-9A-Fa-f]{2})+")


def literal(value: Any, kind: DataType) -> Column:
    """A value of a log as a column of a type, the same in every session."""
    name = kind.simpleString()
    if name in _YEARS and isinstance(value, date):
        words = {"date": "DATE", "timestamp": "TIMESTAMP_LTZ", "timestamp_ntz": "TIMESTAMP_NTZ"}
        return F.expr(f"{words[name]}'{value.isoformat()}'")
    return F.lit(value).cast(kind)


def as_bytes(logged: bytes) -> bytes:
    """The bytes of a partition, which some writers escape: `\\u0001`.

    :raises ValueError: the writer has lost some of them.
    """
    if _ESCAPED_BYTES.fullmatch(logged):
        return bytes(int(code, 16) for code in logged.decode().split("\\u00")[1:])
    if "\N{REPLACEMENT CHARACTER}".encode() in logged:
        raise ValueError("a partition of binary values has lost some of its bytes")
    return logged


def has_zone(text: str) -> bool:
    """False for a timestamp without a time zone, which is in the zone of its writer."""
    return not text or _ZONE.search(text) is not None


def is_named(text: str, value: Any) -> bool:
    """True if Spark certainly reads a value, as the log has it, from the name of a folder."""
    match value:
        case None:
            return text == NO_VALUE
        case str():
            return text == value and text.isascii() and text not in (NO_VALUE, "")
        case bool():
            return text == str(value).lower()
        case datetime():
            return _is_time(text, value)
    return text == str(value)


def _is_time(text: str, value: datetime) -> bool:
    time = _TIME.fullmatch(text)
    if time is None or (time["zone"] and value.tzinfo is None):
        return False
    try:
        found = datetime.fromisoformat(_with_digits(text).replace("Z", "+00:00"))
    except ValueError:
        return False
    if value.tzinfo is not None and found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    return found == value


def _with_digits(text: str) -> str:
    """A time with six digits behind its seconds."""
    time = _TIME.fullmatch(text)
    assert time is not None
    return f"{time['seconds']}.{time['digits'] or '':0<6}{time['zone'] or ''}"


_CODE = re.compile("%([0-9A-Fa-f]{2})")


def text_in_spark(folder: str) -> str:
    """The string that Spark reads from the value in the name of a folder: it takes each byte behind
    a `%` for a character."""
    return _CODE.sub(lambda code: chr(int(code[1], 16)), folder)


def are_utf8(encoded: Collection[str]) -> bool:
    """True if values in the names of folders are certainly bytes of UTF-8 behind `%`, as PyArrow
    writes them. Spark and Hive never write such a byte: they write `ü` itself.

    False if Spark reads the values rightly.
    """
    if not all(map(str.isascii, encoded)):
        return False
    try:
        decoded = [unquote(one, errors="strict") for one in encoded]
    except UnicodeDecodeError:
        return False
    return decoded != list(map(text_in_spark, encoded))


def utf8_columns(struct: StructType, in_utf8: Collection[str]) -> dict[str, str]:
    """The columns of folders of whose strings Spark has taken the bytes for characters, each with
    Spark SQL for its strings.

    :param in_utf8: the columns whose folders have bytes of UTF-8.
    """
    strings = [one.name for one in struct.fields if isinstance(one.dataType, StringType)]
    decoded = {}
    for name in in_utf8:
        column = spelled_like(name, strings)
        if column is not None:
            decoded[column] = f"decode(encode({quote_name(column)}, 'ISO-8859-1'), 'UTF-8')"
    return decoded


def moment_in_utc(name: str) -> str:
    """Spark SQL for the timestamp in a column of strings, in UTC unless it has a zone itself."""
    column = quote_name(name)
    bare = f"concat(CAST(CAST({column} AS TIMESTAMP_NTZ) AS STRING), 'Z')"
    has_own = f"{column} RLIKE '(Z|[+-][0-9][0-9]:?[0-9][0-9])$'"
    return f"CAST(CASE WHEN {has_own} THEN {column} ELSE {bare} END AS TIMESTAMP)"


@dataclass
class UnheldValueError(Exception):
    """Rows have a value that no partition holds.

    :param column: the partition column.
    :param why: the code of the reason.
    :param rows: some of them; None until it is known where they are.
    """

    column: str
    why: str
    rows: DataFrame | None = None

    @property
    def reason(self) -> str:
        return _REASONS[self.why]


def refusal(name: str, kind: str) -> str | None:
    """Spark SQL for the code of the reason why no partition holds the value of a column: NULL if
    one does. None if all values of the type can be held."""
    cases = " ".join(
        f"WHEN {condition} THEN '{code}'" for code, condition in _refused(name, kind).items()
    )
    return f"CASE {cases} END" if cases else None


def _refused(name: str, kind: str) -> dict[str, str]:
    """The conditions on values that cannot be held, by their codes."""
    column = quote_name(name)
    if kind == "binary":
        return {"binary": f"{column} IS NOT NULL"}
    if kind in _YEARS:
        first, last = _YEARS[kind]
        return {"year": f"{column} NOT BETWEEN {first} AND {last}"}
    if _is_text(kind):
        return {
            "empty": f"octet_length({column}) = 0",
            "null": f"{column} = '{NO_VALUE}'",
            "long": f"octet_length({column}) > {_room(name) * 3 // 4 - 2}",
        }
    return {}


def folder_text(name: str, kind: str) -> str:
    """Spark SQL for the text in the name of a folder for the value of a column: ASCII, and the same
    in every session."""
    column = quote_name(name)
    text = f"CAST({column} AS STRING)"
    if kind == "timestamp":
        # Not by a format or a cast: they use the time zone of the session, in which some times
        # exist twice.
        epoch = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
        in_utc = f"CAST(timestampadd(MICROSECOND, unix_micros({column}), {epoch}) AS STRING)"
        text = f"concat(replace({in_utc}, ' ', 'T'), 'Z')"
    elif _is_text(kind):
        is_short = f"octet_length({column}) <= {_room(name) // 3}"
        is_plain = f"NOT startswith({column}, '{_ENCODED}') AND NOT {column} RLIKE '[^ -~]'"
        coded = f"base64(CAST({column} AS BINARY))"
        coded = f"translate({coded}, concat('+/=', char(13), char(10)), '-_')"
        coded = f"concat('{_ENCODED}', {coded})"
        text = f"CASE WHEN {is_short} AND {is_plain} THEN {column} ELSE {coded} END"
    why = refusal(name, kind)
    return text if why is None else f"coalesce(concat('{_REFUSED}', {why}), {text})"


def value_in_folder(name: str, kind: str) -> str:
    """Spark SQL for the value of a column, from the text in the name of its folder."""
    column = quote_name(name)
    if not _is_text(kind):
        return f"try_cast({column} AS {kind})"
    code = f"translate(substr({column}, 2), '-_', '+/')"
    return (
        f"CASE WHEN startswith({column}, '{_REFUSED}') THEN NULL "
        f"WHEN startswith({column}, '{_ENCODED}') THEN CAST(unbase64({code}) AS STRING) "
        f"ELSE {column} END"
    )


def logged_values(path: str, kinds: Mapping[str, str]) -> dict[str, str | None]:
    """The strings for the log of the partition of a file.

    :param path: with the folders of its partition before the name of the file.
    :param kinds: the types of the partition columns, in the order of the folders.
    :raises UnheldValueError: a value cannot be held.
    :raises OSError: the file system has changed the name of a folder.
    """
    values: dict[str, str | None] = {}
    folders = path.split("/")[:-1]
    for folder, (name, kind) in zip(
        folders[len(folders) - len(kinds) :], kinds.items(), strict=True
    ):
        start, _, text = folder.partition("=")
        if unquote(start) != name:
            raise OSError(f"the file system has no folder for the column '{name}'")
        values[name] = _logged(name, kind, unquote(text))
    return values


def _logged(name: str, kind: str, text: str) -> str | None:
    if text == NO_VALUE:
        return None
    if text.startswith(_REFUSED):
        raise UnheldValueError(name, text.removeprefix(_REFUSED))
    if _is_text(kind) and text.startswith(_ENCODED):
        code = text.removeprefix(_ENCODED)
        try:
            return base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)).decode()
        except UnicodeDecodeError as error:
            raise UnheldValueError(name, "bytes") from error
    if kind.startswith("decimal"):  # without ANSI mode, Spark writes 0E-18
        return f"{Decimal(text):f}"
    if kind.startswith("timestamp"):
        return _with_digits(text)
    return text


def _room(name: str) -> int:
    """The bytes that the name of a folder has for a value."""
    return _LONGEST_NAME - len(quote(name)) - len("=") - len(_ENCODED)


def _is_text(kind: str) -> bool:
    return kind.startswith(("string", "char", "varchar"))
