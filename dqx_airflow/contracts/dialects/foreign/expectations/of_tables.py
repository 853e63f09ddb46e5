"""Expectations about several columns, about types, and about the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

from dqx_airflow.contracts.demands import Condition, MetricRule, QueryGives, RowsSatisfy, Unique
from dqx_airflow.contracts.demands.measured import NONE
from dqx_airflow.contracts.dialects.foreign.expectations.arguments import (
    Demands,
    ExpectationArguments,
    Expectations,
    NoCounterpartError,
    conditions_in,
)
from dqx_airflow.contracts.dialects.foreign.values import (
    aggregate_query,
    is_value,
    literals,
    sql_name,
)
from dqx_airflow.exact import is_finite_number
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.types import TypeTextError, canonical_type

_TYPES = {
    **dict.fromkeys(("integer", "int32"), "int"),
    **dict.fromkeys(("long", "int64"), "bigint"),
    **dict.fromkeys(("str", "varchar", "text", "char"), "string"),
    **dict.fromkeys(("float64", "double precision"), "double"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("datetime", "datetime64"), "timestamp"),
    **dict.fromkeys(("numeric", "number"), "decimal"),
}

_IGNORED = {
    **dict.fromkeys(("all", "all_values_are_missing", "both_values_are_missing"), " AND "),
    **dict.fromkeys(("any_value_is_missing", "either_value_is_missing"), " OR "),
    **dict.fromkeys(("never", "neither"), ""),
}
"""How the NULL of columns are linked in rows that an expectation ignores."""


def _compound_unique(arguments: ExpectationArguments) -> Demands:
    columns = arguments.paths("column_list")
    if arguments.mostly() < 1:
        raise NoCounterpartError("mostly, a share of rows that are unique, has no counterpart")
    ignored = arguments.take("ignore_row_if", "all_values_are_missing")
    if ignored == "any_value_is_missing":
        return (Unique(columns),)
    # Here a row with some NULLs counts, which `Unique` excludes.
    names = [sql_name(column) for column in columns]
    query = aggregate_query(f"count(*) - count(DISTINCT struct({', '.join(names)}))")
    if ignored == "all_values_are_missing":
        query += " WHERE " + " OR ".join(f"{name} IS NOT NULL" for name in names)
    return (QueryGives(query, NONE),)


def _unique_within_record(arguments: ExpectationArguments) -> Demands:
    names = [sql_name(column) for column in arguments.paths("column_list")]
    if len(names) < 2:
        raise NoCounterpartError("its column_list needs two columns")
    # NULL equals NULL.
    predicate = " AND ".join(
        f"({name} IS NOT NULL OR {other_name} IS NOT NULL) AND "
        f"({name} IS NULL OR {other_name} IS NULL OR {name} <> {other_name})"
        for name, other_name in combinations(names, 2)
    )
    return _of_kept_rows(arguments, names, predicate, is_total=True)


def _a_greater_than_b(arguments: ExpectationArguments) -> Demands:
    return _pair(arguments, ">=" if arguments.take("or_equal", False) is True else ">")


def _pair_equal(arguments: ExpectationArguments) -> Demands:
    return _pair(arguments, "=")


def _pair_in_set(arguments: ExpectationArguments) -> Demands:
    column, other_column = (sql_name(arguments.path(key)) for key in ("column_A", "column_B"))
    pairs = []
    for pair in arguments.items("value_pairs_set"):
        match pair:
            case [first, second]:
                pairs.append(f"({_equals(column, first)} AND {_equals(other_column, second)})")
            case _:
                raise NoCounterpartError("its value_pairs_set is not a list of pairs")
    return _of_kept_rows(arguments, [column, other_column], " OR ".join(pairs), is_of_nulls=True)


def _equals(name: str, value: Any) -> str:
    if value is None:
        return f"{name} IS NULL"
    if not is_value(value):
        raise NoCounterpartError(f"{value!r} cannot be compared with")
    return f"{name} = {literals((value,))}"


def _pair(arguments: ExpectationArguments, op: str) -> Demands:
    column, other_column = (sql_name(arguments.path(key)) for key in ("column_A", "column_B"))
    return _of_kept_rows(arguments, [column, other_column], f"{column} {op} {other_column}")


def _of_kept_rows(
    arguments: ExpectationArguments,
    names: list[str],
    predicate: str,
    dialect: str | None = None,
    *,
    is_total: bool = False,
    is_of_nulls: bool = False,
) -> Demands:
    """The predicate over the rows that are not ignored, in which NULL fulfils nothing. Ignored rows
    do not count for `mostly`.

    :param is_total: the predicate is never NULL. `is_of_nulls`: it may hold for NULL.
    """
    ignored, share = arguments.take("ignore_row_if", "all"), arguments.mostly()
    if ignored not in _IGNORED:
        raise NoCounterpartError(f"its ignore_row_if is '{ignored}'")
    link = _IGNORED[ignored]
    missing = link.join(f"{name} IS NULL" for name in names)
    if link == " OR " and not (is_total or is_of_nulls):
        pass  # NULL for the ignored rows alone
    elif link and share < 1:
        predicate = f"if({missing}, NULL, coalesce({predicate}, false))"
    elif link == " OR " or (link and is_total):
        predicate = f"{missing} OR ({predicate})"
    elif not is_total:
        predicate = f"coalesce({predicate}, {missing if link else 'false'})"
    return (RowsSatisfy(predicate, dialect, share),)


def _of_type(arguments: ExpectationArguments) -> Demands:
    return _typed(arguments, [arguments.text("type_")])


def _in_type_list(arguments: ExpectationArguments) -> Demands:
    return _typed(arguments, arguments.items("type_list"))


def _typed(arguments: ExpectationArguments, names: list[Any]) -> Demands:
    """The column has a Spark type, which other systems name differently."""
    name = sql_name(arguments.own_column())
    types = dict.fromkeys(_spark_type(str(written)) for written in names)
    begins = [f"typeof({name}) LIKE {quote_literal(kind + '%')}" for kind in types]
    arguments.mostly()  # a column has one type
    return (RowsSatisfy(" OR ".join(begins), "spark"),)


def _spark_type(written: str) -> str:
    word = re.sub(r"type(\(\))?$", "", written.strip().lower())
    word = _TYPES.get(word, word)
    try:
        return canonical_type(word)
    except TypeTextError:
        raise NoCounterpartError(f"Spark has no type '{written}'") from None


def _multicolumn_sum(arguments: ExpectationArguments) -> Demands:
    names = [sql_name(column) for column in arguments.paths("column_list")]
    total = arguments.take("sum_total")
    if not is_finite_number(total):
        raise NoCounterpartError("its sum_total is not a number")
    return _of_kept_rows(arguments, names, f"{' + '.join(names)} = {total}", "spark")


def _count_between(metric: str) -> Callable[[ExpectationArguments], Demands]:
    """An expectation about a range for the number of rows or columns."""
    return lambda arguments: tuple(
        MetricRule(metric, (), condition) for condition in conditions_in(arguments)
    )


def _count_equal(metric: str) -> Callable[[ExpectationArguments], Demands]:
    """An expectation about the number of rows or columns."""

    def demands(arguments: ExpectationArguments) -> Demands:
        value = arguments.take("value")
        if not is_finite_number(value):
            raise NoCounterpartError("its value is not a number")
        return (MetricRule(metric, (), Condition("==", value)),)

    return demands


def _unexpected_rows(arguments: ExpectationArguments) -> Demands:
    rows = arguments.text("unexpected_rows_query").strip().rstrip(";")
    query = " ".join(("SELECT count(*) FROM (", rows.replace("{batch}", "{model}"), ") AS rows"))
    return (QueryGives(query, NONE, arguments.sql_dialect),)


OF_TABLES: Expectations = {
    "expect_column_pair_values_a_to_be_greater_than_b": _a_greater_than_b,
    "expect_column_pair_values_to_be_equal": _pair_equal,
    "expect_column_pair_values_to_be_in_set": _pair_in_set,
    "expect_column_values_to_be_in_type_list": _in_type_list,
    "expect_column_values_to_be_of_type": _of_type,
    "expect_compound_columns_to_be_unique": _compound_unique,
    "expect_multicolumn_sum_to_equal": _multicolumn_sum,
    "expect_multicolumn_values_to_be_unique": _unique_within_record,
    "expect_select_column_values_to_be_unique_within_record": _unique_within_record,
    "expect_table_column_count_to_be_between": _count_between("column_count"),
    "expect_table_column_count_to_equal": _count_equal("column_count"),
    "expect_table_row_count_to_be_between": _count_between("num_rows"),
    "expect_table_row_count_to_equal": _count_equal("num_rows"),
    "unexpected_rows_expectation": _unexpected_rows,
}
