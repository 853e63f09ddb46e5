"""Values in the form that OpenLineage requires: strings that every consumer can store, numbers that
are valid JSON."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dqx_airflow.values.exact import exact_as_written, exact_text, is_decimal, nearest_float

NAME = 500
VALUE = 500
DESCRIPTION = 1_000
CONTENT = 2_000
MESSAGE = 4_000

# Above this, a reader that holds numbers as doubles (JavaScript) changes them silently.
_LARGEST_SAFE_INT = 2**53


def shortened(value: str, limit: int) -> str:
    """`value` in at most `limit` characters, truncated with an ellipsis.

    NUL characters (rejected by PostgreSQL, which many consumers use) and lone surrogates (not
    Unicode) are replaced.
    """
    value = value[: limit + 1].replace("\0", "\ufffd")
    value = value.encode("utf-8", "replace").decode("utf-8")
    return value if len(value) <= limit else value[: limit - 1] + "…"


def optional_shortened(value: str | None, limit: int) -> str | None:
    return None if value is None else shortened(value, limit)


def name(value: str) -> str:
    return shortened(value, NAME)


def optional_name(value: str | None) -> str | None:
    return optional_shortened(value, NAME)


def content(value: str) -> str:
    return shortened(value, CONTENT)


def optional_uri(uri: str | None) -> str | None:
    """`uri`, which is ASCII; None if it is too long, since a truncated URI is wrong."""
    return uri if uri is None or len(uri) <= CONTENT else None


def value_text(value: Any) -> str | None:
    """A metric value as a string, in full precision. None for no value, NaN and infinity."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, Fraction):
        return shortened(exact_text(value), VALUE)
    return shortened(repr(value) if isinstance(value, float) else str(value), VALUE)


def finite_number(value: Any) -> int | float | None:
    """`value` if it is a finite number, else None; the nearest float of a fraction."""
    if isinstance(value, Fraction):
        value = nearest_float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def integer(value: Any) -> int | None:
    """`value` if it is an integer, else None."""
    finite = finite_number(value)
    return int(finite) if finite is not None and finite == int(finite) else None


def param(value: Any) -> int | float | str | None:
    """A metric value for free-form parameters: a number if every reader keeps it, else a string."""
    finite = finite_number(value)
    if finite is not None and abs(finite) <= _LARGEST_SAFE_INT and _is_exact(finite, value):
        return finite
    return value_text(value)


def _is_exact(shown: float, value: Any) -> bool:
    """False for a decimal that is printed with other digits as a float."""
    return (
        not isinstance(value, Fraction) or not is_decimal(value) or exact_as_written(shown) == value
    )
