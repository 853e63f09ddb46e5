"""The rows of an expectation, as Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dqx_airflow.contracts.dialects.foreign.expectations.arguments import (
    ExpectationArguments,
    NoCounterpartError,
)
from dqx_airflow.contracts.dialects.foreign.expectations.pandas_condition import (
    pandas_condition,
    structured_condition,
)

_COLUMN_OF_GX = re.compile(r"""\bcol\((["'])(?P<name>[^"'`]+)\1\)""")
_NULL_OF_GX = re.compile(r"\.(?P<word>is|not)_?null\(\)", re.IGNORECASE)
_LINKS_OF_GX = {" & ": " AND ", " | ": " OR "}


def row_condition(arguments: ExpectationArguments) -> str | None:
    """The rows of an expectation, as Spark SQL; None for all of them."""
    condition, parser = arguments.take("row_condition"), arguments.take("condition_parser")
    if condition is None:
        return None
    if isinstance(condition, Mapping):
        return structured_condition(condition)
    if not isinstance(condition, str):
        raise NoCounterpartError("its row_condition is not a string")
    match parser:
        case "spark":
            return condition
        case "great_expectations" | "great_expectations__experimental__":
            sql = _COLUMN_OF_GX.sub(lambda match: f"`{match['name']}`", condition)
            for link, word in _LINKS_OF_GX.items():
                sql = sql.replace(link, word)
            words = {"is": " IS NULL", "not": " IS NOT NULL"}
            return _NULL_OF_GX.sub(lambda match: words[match["word"].lower()], sql)
        case "pandas":
            return pandas_condition(condition)
        case _:
            parsers = "'pandas', 'spark' or 'great_expectations'"
            raise NoCounterpartError(f"its row_condition needs the condition_parser {parsers}")
