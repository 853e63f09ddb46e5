"""Conditions in Spark SQL of tools for which NULL is a failure, as demands.

Without this, a row whose condition is NULL because an operand is NULL is not judged.
"""

from __future__ import annotations

from typing import Any

from dqx_airflow.contracts.demands import Condition, QueryGives, RowsSatisfy
from dqx_airflow.contracts.dialects.foreign import aggregate_query
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule
from dqx_airflow.importing.foreign_rule import Claims, column_text, value_text

_AGGREGATES = {"AVG": "average", "SUM": "sum", "MIN": "minimum", "MAX": "maximum"}
_OPS = {"EQ": "==", "NEQ": "!=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}
_FLIPPED = {"==": "==", "!=": "!=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}


def rows_hold(condition: str, share: float = 1.0) -> RowsSatisfy:
    """The demand that the condition is true for each row, or for a share of them: a row for which
    it is NULL violates it.

    :raises NoCounterpartError: it is not a condition.
    """
    columns = _columns_of_strict(_parsed(condition))
    if columns is None:
        return RowsSatisfy(f"coalesce(({condition}), false)", share=share)
    parts = [f"{column} IS NOT NULL" for column in columns]
    return RowsSatisfy(" AND ".join([*parts, f"({condition})"]), share=share)


def metrics_hold(kind: str, condition: str) -> Claims | None:
    """The claims that a condition on aggregates is true, each on a metric of DQL; None if one of
    them is no metric.

    :raises NoCounterpartError: it is not a condition.
    """
    texts = []
    for part in _conjuncts(_parsed(condition)):
        compared = _compared_with_numbers(part)
        if compared is None:
            return None
        subject, limit = compared
        try:
            metric = metric_text(subject)
        except NoCounterpartError:
            return None
        bounds = value_text(limit.bound)
        if limit.op == "between":
            bounds += f" and {value_text(limit.high)}"
        texts.append(f"{metric} {limit.op} {bounds}")
    return Claims(kind, tuple(texts))


def aggregates_hold(condition: str) -> tuple[QueryGives, ...]:
    """The demands that a condition on aggregates of the rows is true: one for each comparison of an
    aggregate, or a query, with numbers.

    :raises NoCounterpartError: it is not a condition.
    """
    demands: list[QueryGives] = []
    for part in _conjuncts(_parsed(condition)):
        compared = _compared_with_numbers(part)
        if compared is None:
            return (_as_number(condition),)
        subject, limit = compared
        demands.append(QueryGives(_query_of(subject), limit))
    return tuple(demands)


def _as_number(condition: str) -> QueryGives:
    """The demand that a condition is true, as a number that is 1."""
    number = f"CAST(({condition}) AS INT)"
    query = " ".join(("SELECT", number)) if _is_of_queries(condition) else aggregate_query(number)
    return QueryGives(query, Condition("==", 1))


def _parsed(condition: str) -> Any:
    from sqlglot import exp

    from dqx_airflow.dql.sql_parser import InvalidSqlError, parse_sql

    try:
        statements = parse_sql(" ".join(("SELECT", condition)), "spark")
    except InvalidSqlError as error:
        raise NoCounterpartError(f"invalid SQL: {error}") from None
    clauses = {key for key, value in statements[0].args.items() if value}
    if len(statements) != 1 or clauses != {"expressions"} or len(statements[0].expressions) != 1:
        raise NoCounterpartError("it is not one condition in SQL")
    (condition_of_row,) = statements[0].expressions
    if isinstance(condition_of_row, exp.Alias | exp.Star):
        raise NoCounterpartError("it is not one condition in SQL")
    return condition_of_row


def _is_of_queries(condition: str) -> bool:
    """Whether a condition reads its rows in queries of its own."""
    from sqlglot import exp

    tree = _parsed(condition)
    outside = (node for node in tree.find_all(exp.Column) if node.find_ancestor(exp.Select) is None)
    return tree.find(exp.Subquery, exp.Exists) is not None and next(outside, None) is None


def _conjuncts(node: Any) -> list[Any]:
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return [*_conjuncts(node.left), *_conjuncts(node.right)]
    return [node]


def _compared_with_numbers(node: Any) -> tuple[Any, Condition] | None:
    from sqlglot import exp

    if isinstance(node, exp.Between):
        low, high = _number(node.args["low"]), _number(node.args["high"])
        if low is None or high is None or low > high:
            return None
        return node.this, Condition("between", low, high)
    op = _OPS.get(type(node).__name__)
    if op is None:
        return None
    if (right := _number(node.right)) is not None:
        return node.left, Condition(op, right)
    if (left := _number(node.left)) is not None:
        return node.right, Condition(_FLIPPED[op], left)
    return None


def _number(node: Any) -> int | float | None:
    from sqlglot import exp

    if isinstance(node, exp.Neg):
        number = _number(node.this)
        return None if number is None else -number
    if isinstance(node, exp.Literal) and not node.is_string:
        text = node.name
        return int(text) if text.isdigit() else float(text)
    return None


def _query_of(subject: Any) -> str:
    from sqlglot import exp

    while isinstance(subject, exp.Paren):
        subject = subject.this
    if isinstance(subject, exp.Subquery) and not subject.alias:
        return str(subject.this.sql("spark"))
    text = str(subject.sql("spark"))
    return " ".join(("SELECT", text)) if _is_of_queries(text) else aggregate_query(text)


def _columns_of_strict(node: Any) -> list[str] | None:
    """The columns of a condition that is NULL only if one of them is, or false; None for any
    other."""
    from sqlglot import exp

    found: dict[str, None] = {}
    atoms = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like)
    parts = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Boolean)
    numbers = (exp.Add, exp.Sub, exp.Mul)
    for part in _conjuncts(node):
        bare = part.this if isinstance(part, exp.Not) else part
        if isinstance(bare, exp.Is):
            continue
        if not isinstance(bare, (*atoms, exp.RegexpLike)):
            return None
        for inner in bare.walk():
            if inner is not bare and not isinstance(inner, (*parts, *numbers)):
                return None
            if isinstance(inner, exp.Column):
                found[inner.sql("spark")] = None
    return list(found)


def share_below(condition: str, percent: float) -> QueryGives:
    """The demand that the condition is not true for less than this percentage of the rows, which is
    rounded to two digits."""
    failing = f"round(100 * count_if(NOT coalesce(({condition}), false)) / count(*), 2)"
    return QueryGives(aggregate_query(failing), Condition("<", percent))


def metric_text(node: Any) -> str:
    """An SQL aggregate of one or all columns as a metric of DQL.

    :raises NoCounterpartError: it has no counterpart.
    """
    from sqlglot import exp

    match node:
        case exp.Count(this=exp.Star()):
            return "num_rows()"
        case exp.Count(this=exp.Distinct(expressions=[exp.Column() as column])):
            return f"unique_count({_path(column)})"
        case exp.Count(this=exp.Column() as column):
            return f"count({_path(column)})"
        case exp.Avg() | exp.Sum() | exp.Min() | exp.Max() if isinstance(node.this, exp.Column):
            return f"{_AGGREGATES[node.key.upper()]}({_path(node.this)})"
        case exp.AggFunc():
            return f"sql({foreign_rule.value_text(node.sql('spark'))})"
    raise NoCounterpartError(f"`{node.sql()}` is not an aggregate of a column")


def _path(column: Any) -> str:
    """A column of SQL in DQL, with the structs that lead to it: `address.city`."""
    names = [part.name for part in column.parts]
    has_dot = any("." in name for name in names)
    path = ".".join(names)
    return foreign_rule.quoted_name(path) if has_dot else column_text(path)
