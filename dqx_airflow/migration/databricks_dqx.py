"""Databricks DQX: checks as YAML or JSON, `criticality`, `filter` and `check.function`.

Checks of DQX let NULL pass unless they say otherwise, as predicates over rows do here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dqx_airflow.migration.documents import one_line
from dqx_airflow.migration.dql_text import (
    column_text,
    columns_text,
    number,
    rows_text,
    value_text,
)
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, UntranslatableError
from dqx_airflow.migration.request import Request
from dqx_airflow.values import Severity

_AGGREGATES = {
    "count": "count({})",
    "sum": "sum({})",
    "avg": "average({})",
    "min": "minimum({})",
    "max": "maximum({})",
    "count_distinct": "unique_count({})",
    "stddev": "sqrt(variance({}))",
    "variance": "variance({})",
}


def recognises(document: Any) -> bool:
    return isinstance(document, list) and any(
        isinstance(one, Mapping) and isinstance(one.get("check"), Mapping) for one in document
    )


def rules_of(document: list[Any], request: Request) -> Iterator[ForeignRule]:
    dataset = request.dataset or "data"
    for index, entry in enumerate(document):
        place = f"{request.file}: [{index}]"
        check = entry.get("check") if isinstance(entry, Mapping) else None
        if not isinstance(check, Mapping):
            yield ForeignRule(dataset, place, one_line(entry), "this is not a check")
            continue
        for arguments in _each(check):
            yield _rule(entry, str(check.get("function")), arguments, dataset, place)


def _each(check: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of the check, for each of its columns."""
    arguments = dict(check.get("arguments") or {})
    every = check.get("for_each_column")
    if not isinstance(every, list):
        yield arguments
        return
    for column in every:
        yield {**arguments, ("columns" if isinstance(column, list) else "column"): column}


def _rule(
    entry: Mapping[str, Any], function: str, arguments: dict[str, Any], dataset: str, place: str
) -> ForeignRule:
    shown = f"{function}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"
    own_filter = arguments.pop("row_filter", None)
    filters = [f"({one})" for one in (entry.get("filter"), own_filter) if one]
    try:
        if function not in _FUNCTIONS:
            raise UntranslatableError(f"the function '{function}' has no counterpart")
        reader, known = _FUNCTIONS[function]
        for key in arguments:
            if key not in known:
                raise UntranslatableError(f"'{key}' has no counterpart for {function}")
        meaning: Claims | str = reader(arguments)
    except UntranslatableError as error:
        meaning = str(error)
    return ForeignRule(
        dataset,
        place,
        shown,
        meaning,
        name=str(entry["name"]) if entry.get("name") else None,
        severity=Severity.P3 if entry.get("criticality") == "warn" else None,
        where=" AND ".join(filters) or None,
    )


_Arguments = Mapping[str, Any]


def _rows(kind: str, predicate: str) -> Callable[[_Arguments], Claims]:
    """A check of each value; the braces stand for the column."""

    def claims(arguments: _Arguments) -> Claims:
        column = column_text(arguments.get("column"))
        return Claims(kind, (rows_text(predicate.format(column)),), column)

    return claims


def _not_empty(predicate: str) -> Callable[[_Arguments], Claims]:
    def claims(arguments: _Arguments) -> Claims:
        column = column_text(arguments.get("column"))
        value = f"trim({column})" if arguments.get("trim_strings") else column
        return Claims("not_empty", (rows_text(predicate.format(column, value)),), column)

    return claims


def _in_list(predicate: str) -> Callable[[_Arguments], Claims]:
    def claims(arguments: _Arguments) -> Claims:
        column = column_text(arguments.get("column"))
        values = arguments.get("allowed") or arguments.get("forbidden") or ()
        if arguments.get("case_sensitive", True) is False:
            raise UntranslatableError("a list without regard to case has no counterpart")
        items = f"[{', '.join(map(_limit, values))}]"
        return Claims("values", (rows_text(predicate.format(column, items)),), column)

    return claims


def _limit(value: object) -> str:
    """A value to compare with. A string is SQL: a literal in quotes, or the name of a column."""
    if not isinstance(value, str):
        return value_text(value)
    if found := re.fullmatch(r"'((?:[^']|'')*)'", value.strip()):
        return value_text(found[1].replace("''", "'"))
    if re.fullmatch(r"[A-Za-z_]\w*", value):
        return column_text(value)
    raise UntranslatableError(f"'{value}' is an expression: DQX reads strings as SQL")


def _compared(kind: str, predicate: str, *keys: str) -> Callable[[_Arguments], Claims]:
    """A check of each value against limits."""

    def claims(arguments: _Arguments) -> Claims:
        column = column_text(arguments.get("column"))
        limits = [_limit(arguments.get(key)) for key in keys]
        return Claims(kind, (rows_text(predicate.format(column, *limits)),), column)

    return claims


def _regex(arguments: _Arguments) -> Claims:
    column = column_text(arguments.get("column"))
    op = "not matches" if arguments.get("negate") else "matches"
    pattern = value_text(str(arguments.get("regex") or ""))
    return Claims("pattern", (rows_text(f"{column} {op} {pattern}"),), column)


def _expression(arguments: _Arguments) -> Claims:
    expression = str(arguments.get("expression") or "")
    failing = f"({expression})" if arguments.get("negate") else f"NOT ({expression})"
    text = value_text(f"count_if({failing})")
    return Claims(str(arguments.get("name") or "sql_expression"), (f"sql({text}) == 0",))


def _unique(arguments: _Arguments) -> Claims:
    columns = arguments.get("columns") or [arguments.get("column")]
    if arguments.get("nulls_distinct", True) is False:
        names = ", ".join(f"`{str(one).strip('`')}`" for one in columns)
        text = value_text(f"count(*) - count(DISTINCT struct({names}))")
        return Claims("unique", (f"sql({text}) == 0",))
    return Claims("unique", (f"repeated_count({_key(columns)}) == 0",), _single(columns))


def _key(columns: list[object]) -> str:
    return columns_text(columns) if len(columns) == 1 else f"[{columns_text(columns)}]"


def _single(columns: list[object]) -> str | None:
    return column_text(columns[0]) if len(columns) == 1 else None


def _foreign_key(arguments: _Arguments) -> Claims:
    columns, others = arguments.get("columns") or [], arguments.get("ref_columns") or []
    table = arguments.get("ref_table")
    if len(columns) != 1 or len(others) != 1 or not table or arguments.get("negate"):
        raise UntranslatableError("a foreign key of one column and a ref_table has a counterpart")
    own, other = column_text(columns[0]), column_text(others[0])
    dataset = column_text(str(table).split(".")[-1])
    return Claims("reference", (rows_text(f"{own} in values({other}, dataset {dataset})"),), own)


def _aggregate(op: str) -> Callable[[_Arguments], Claims]:
    def claims(arguments: _Arguments) -> Claims:
        kind = str(arguments.get("aggr_type") or "count")
        if kind not in _AGGREGATES or arguments.get("group_by"):
            what = "group_by" if arguments.get("group_by") else f"aggr_type '{kind}'"
            raise UntranslatableError(f"{what} has no counterpart")
        column = arguments.get("column")
        is_rows = kind == "count" and column in ("*", None)
        subject = "num_rows()" if is_rows else _AGGREGATES[kind].format(column_text(column))
        limit = number(arguments.get("limit"))
        about = None if is_rows else column_text(column)
        return Claims(kind, (f"{subject} {op} {value_text(limit)}",), about)

    return claims


def _older_than(arguments: _Arguments) -> Claims:
    column = column_text(arguments.get("column"))
    days = number(arguments.get("days"))
    if arguments.get("curr_date") or arguments.get("negate"):
        raise UntranslatableError("curr_date and negate have no counterpart")
    text = value_text(f"count_if(NOT (`{column.strip('`')}` < date_sub(current_date(), {days})))")
    return Claims("older", (f"sql({text}) == 0",), column)


def _not_in_future(arguments: _Arguments) -> Claims:
    column = column_text(arguments.get("column"))
    offset = number(arguments.get("offset", 0))
    if arguments.get("curr_timestamp"):
        raise UntranslatableError("curr_timestamp has no counterpart")
    bare = column.strip("`")
    late = f"count_if(`{bare}` > timestampadd(SECOND, {offset}, current_timestamp()))"
    return Claims("not_in_future", (f"sql({value_text(late)}) == 0",), column)


_COLUMN = ("column",)
_LIST = ("column", "allowed", "forbidden", "case_sensitive")
_AGGREGATE = ("column", "limit", "aggr_type", "group_by")
_FUNCTIONS: dict[str, tuple[Callable[[_Arguments], Claims], tuple[str, ...]]] = {
    "is_not_null": (_rows("not_null", "{} is not null"), _COLUMN),
    "is_null": (_rows("null", "{} is null"), _COLUMN),
    "is_not_empty": (_not_empty('{1} != ""'), ("column", "trim_strings")),
    "is_not_null_and_not_empty": (
        _not_empty('{0} is not null and {1} != ""'),
        ("column", "trim_strings"),
    ),
    "is_in_list": (_in_list("{0} in {1}"), _LIST),
    "is_not_in_list": (_in_list("{0} not in {1}"), _LIST),
    "is_not_null_and_is_in_list": (_in_list("{0} is not null and {0} in {1}"), _LIST),
    "is_not_less_than": (_compared("minimum", "{} >= {}", "limit"), ("column", "limit")),
    "is_not_greater_than": (_compared("maximum", "{} <= {}", "limit"), ("column", "limit")),
    "is_equal_to": (_compared("equal", "{} == {}", "value"), ("column", "value")),
    "is_not_equal_to": (_compared("not_equal", "{} != {}", "value"), ("column", "value")),
    "is_in_range": (
        _compared("range", "{} between {} and {}", "min_limit", "max_limit"),
        ("column", "min_limit", "max_limit"),
    ),
    "is_not_in_range": (
        _compared("range", "{} not between {} and {}", "min_limit", "max_limit"),
        ("column", "min_limit", "max_limit"),
    ),
    "regex_match": (_regex, ("column", "regex", "negate")),
    "sql_expression": (_expression, ("expression", "msg", "name", "negate", "columns")),
    "is_unique": (_unique, ("column", "columns", "nulls_distinct")),
    "foreign_key": (_foreign_key, ("columns", "ref_columns", "ref_table", "negate")),
    "is_aggr_not_greater_than": (_aggregate("<="), _AGGREGATE),
    "is_aggr_not_less_than": (_aggregate(">="), _AGGREGATE),
    "is_aggr_equal": (_aggregate("=="), _AGGREGATE),
    "is_aggr_not_equal": (_aggregate("!="), _AGGREGATE),
    "is_older_than_n_days": (_older_than, ("column", "days", "curr_date", "negate")),
    "is_not_in_future": (_not_in_future, ("column", "offset", "curr_timestamp")),
    "is_ipv4_address": (_rows("ipv4", "{} is ipv4"), _COLUMN),
    "is_ipv6_address": (_rows("ipv6", "{} is ipv6"), _COLUMN),
}
"""The checks by function, each with the arguments that it knows."""
