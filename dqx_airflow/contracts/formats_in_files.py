"""The formats in which CSV and JSON hold dates and timestamps: there a value is a string, and its
format is how the string is read."""

from __future__ import annotations

import re

from dqx_airflow.contracts.model import Field, Model
from dqx_airflow.contracts.time_texts import TimeFormat
from dqx_airflow.metrics.sql import OPTIONS

TEXT_FORMATS = ("csv", "json")
"""The formats of files whose values are strings."""
_ISO = re.compile(r"yyyy-MM-dd(( |'T')HH:mm(:ss([.]S{1,6})?)?(XXX)?)?")
_PARTS_OF_DAYS = frozenset("aHkKhmsSVzOXxZ")


def format_problem(pattern: str, spark_type: str) -> str | None:
    """The reason why strings of a format are not read as values of a type; None if they are."""
    written = TimeFormat(pattern)
    if written.problem is not None:
        return written.problem
    if "y" not in written.letters:
        return f"the format '{pattern}' has no year (y): every value would be of 1970"
    if spark_type == "date" and written.letters & _PARTS_OF_DAYS:
        return f"the format '{pattern}' has a time, which a date loses: write `timestamp`"
    if spark_type == "timestamp_ntz" and written.has_zone:
        return f"the format '{pattern}' has a time zone, which a {spark_type} loses"
    return None


def readable_format(pattern: str | None, spark_type: str | None) -> str | None:
    """The format, if strings of it are read as values of the type."""
    if pattern is None or spark_type not in OPTIONS:
        return None
    return pattern if format_problem(pattern, spark_type) is None else None


def reader_options(model: Model) -> dict[str, str]:
    """The options by which text files are read in the formats of a model: one for each type whose
    fields all have the same format."""
    options = {}
    for kind, option in OPTIONS.items():
        formats = _formats_of(model, kind)
        if len(formats) == 1 and formats[0] is not None:
            options[option] = TimeFormat(formats[0]).spark_pattern
    return options


def objection_to_format(model: Model, item: Field) -> str | None:
    """The reason why the format of a field is not read: fields of its type have several, and not
    all of them are in ISO form, which is read without a format."""
    if item.type is None or all(map(_is_iso, _formats_of(model, item.type))):
        return None
    for other in model.walk():
        if other.type == item.type and other.text_format != item.text_format:
            has = f"the format '{other.text_format}'" if other.text_format else "no format"
            return (
                f"'{other.path}' has {has}, and text files are read with one format for each type: "
                "write `physicalType: string` at one of them"
            )
    return None


def _formats_of(model: Model, kind: str) -> list[str | None]:
    """The different formats of the fields of a type; None for fields without one."""
    return [*dict.fromkeys(item.text_format for item in model.walk() if item.type == kind)]


def _is_iso(pattern: str | None) -> bool:
    """True for a format of strings that Spark casts, and for none."""
    return pattern is None or _ISO.fullmatch(TimeFormat(pattern).spark_pattern) is not None
