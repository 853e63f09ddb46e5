"""Tests of dbt-expectations that are those of Great Expectations, and two with claims of their
own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dqx_airflow.contracts.dialects.foreign import great_expectations
from dqx_airflow.metrics.derived import MOST_COMMON
from dqx_airflow.migration.dbt_arguments import Arguments
from dqx_airflow.migration.dql_text import column_text, list_text, number, value_text
from dqx_airflow.migration.foreign_rule import Claims, Meaning, UntranslatableError

MOST_COMMON_VALUE = "expect_column_most_common_value_to_be_in_set"
ORDERS = {
    "expect_column_values_to_be_increasing": "decrease_count",
    "expect_column_values_to_be_decreasing": "increase_count",
}
"""Expectations about the order of rows, and the metric that counts violations."""

_RENAMED = {"column_name": "column", "column_type": "type_", "column_type_list": "type_list"}


def expectation_of(kind: str, arguments: Arguments) -> Meaning:
    """The translation of an expectation.

    :raises UntranslatableError: an argument has no counterpart.
    """
    if kind in ORDERS:
        return _in_order(kind, arguments)
    if kind == MOST_COMMON_VALUE:
        return _most_common(arguments)
    given = dict(arguments)
    strictly = given.pop("strictly", None)
    flags = given.pop("flags", None)
    if flags not in (None, "", "i"):
        raise UntranslatableError(f"the flags '{flags}' have no counterpart")
    if flags:
        given |= _without_case(given)
    for written, meant in _RENAMED.items():
        if written in given:
            given[meant] = given.pop(written)
    if any("{{" in str(given.get(key)) for key in ("type_", "type_list")):
        raise UntranslatableError("its type is a warehouse type: write the Spark type")
    if strictly:
        given |= {"strict_min": "min_value" in given, "strict_max": "max_value" in given}
    if arguments.column is not None:
        given.setdefault("column", arguments.column)
    given.pop("is_raw", None)  # patterns are used as they are
    if (is_quoted := given.pop("quote_values", None)) is not None:
        given |= _quoted(given, is_quoted=bool(is_quoted))
    return great_expectations.translate({"type": kind, "kwargs": given}, None)


def _quoted(given: Mapping[str, Any], *, is_quoted: bool) -> dict[str, Any]:
    """The values of an expectation: quoted, they are compared as strings; otherwise they are SQL.

    :raises UntranslatableError: one of them is SQL.
    """
    values = given.get("value_set")
    if not isinstance(values, list):
        return {}
    if is_quoted:
        return {"value_set": [str(value) for value in values]}
    if any(isinstance(value, str) for value in values):
        raise UntranslatableError("its values are SQL expressions, since quote_values is false")
    return {}


def _without_case(given: dict[str, Any]) -> dict[str, Any]:
    """The regular expressions of an expectation, made case-insensitive."""
    ignored: dict[str, Any] = {}
    if isinstance(given.get("regex"), str):
        ignored["regex"] = f"(?i){given['regex']}"
    if isinstance(given.get("regex_list"), list):
        ignored["regex_list"] = [f"(?i){pattern}" for pattern in given["regex_list"]]
    return ignored


def _in_order(kind: str, arguments: Arguments) -> Claims:
    """No value is smaller, or larger, than the previous one; strictly so by default."""
    arguments.only("sort_column", "strictly")
    column = arguments.path
    order = column_text(arguments.get("sort_column") or column)
    count = f"{ORDERS[kind]}({column}, order_by {order})"
    if arguments.get("strictly", True):
        count += f" + unchanged_count({column}, order_by {order})"
    return Claims(kind.removeprefix("expect_column_values_to_be_"), (f"{count} == 0",), column)


def _most_common(arguments: Arguments) -> Claims:
    arguments.only("value_set", "top_n", "quote_values", "data_type", "strictly")
    column, listed = arguments.path, list_text(arguments.list_of("value_set"))
    most = value_text(number(arguments.get("top_n", 1)))
    return Claims("most_common", (f"{MOST_COMMON}({column}, {most}) in {listed}",), column)
