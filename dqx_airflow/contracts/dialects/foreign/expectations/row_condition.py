"""The rows of an expectation, as Spark SQL."""

from __future__ import annotations

import re

from dqx_airflow.contracts.dialects.foreign.expectations.arguments import (
    ExpectationArguments,
    NoCounterpartError,
)

_COLUMN_OF_GX = re.compile(r"""\bcol\((["'])(?P<name>[^"'`]+)\1\)""")
_NULL_OF_GX = re.compile(r"\.(?P<word>is|not)_?null\(\)", re.IGNORECASE)
_ONLY_PANDAS = re.compile(r"[&|~@\[]|!=|(?<![<>=!])=(?!=)|\bnot\b")
"""Syntax that SQL lacks, or that pandas evaluates differently if a value is missing."""


def row_condition(arguments: ExpectationArguments) -> str | None:
    """The rows of an expectation, as Spark SQL; None for all of them."""
    condition, parser = arguments.take("row_condition"), arguments.take("condition_parser")
    if condition is None:
        return None
    if not isinstance(condition, str):
        raise NoCounterpartError("its row_condition is not a string")
    match parser:
        case "spark":
            return condition
        case "great_expectations" | "great_expectations__experimental__":
            sql = _COLUMN_OF_GX.sub(lambda match: f"`{match['name']}`", condition)
            word = {"is": " IS NULL", "not": " IS NOT NULL"}
            return _NULL_OF_GX.sub(lambda match: word[match["word"].lower()], sql)
        case "pandas" if _ONLY_PANDAS.search(condition) is None:
            return condition
        case "pandas":
            reason = "its row_condition for pandas cannot be expressed in SQL"
            raise NoCounterpartError(f"{reason}: write it for condition_parser 'spark'")
        case _:
            raise NoCounterpartError("its row_condition has an unknown condition_parser")
