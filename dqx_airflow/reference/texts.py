"""Strings cast like those of files with declared columns."""

from __future__ import annotations

import math
import re
from datetime import timezone
from decimal import Decimal
from typing import Any

from dqx_airflow.metrics.datetime_text import date_in, timestamp_in
from dqx_airflow.metrics.in_python import has_room, rounded_half_up
from dqx_airflow.metrics.text_casts import PATTERNS, whole_pattern
from dqx_airflow.metrics.types import WHOLE_SIZES, decimal_size
from dqx_airflow.reference.arithmetic import has_bits_for, narrowed

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
            return _decimal(bare, *decimal_size(spark_type))
        case "float" | "double":
            number = float(bare) if kind == "double" else narrowed(float(bare))
            return None if math.isinf(number) and re.search("[0-9]", bare) else number
        case "boolean":
            return _TRUTHS.get(bare.lower())
        case "date":
            return date_in(text)
        case "timestamp" | "timestamp_ntz":
            timestamp = timestamp_in(text)
            zone = timezone.utc if kind == "timestamp" else None
            return None if timestamp is None else timestamp.replace(tzinfo=zone)
        case "binary":
            return text.encode()
        case _:
            return text


def _decimal(text: str, precision: int, scale: int) -> Decimal | None:
    exact = Decimal(text)
    is_held = has_room(exact, precision, scale) and rounded_half_up(exact, scale) == exact
    return exact if is_held else None
