"""What the constraints of Deequ become, by the methods of `Check`.

NULL is treated as in Deequ: it passes `isContainedIn` and `isNonNegative`, and fails a pattern or
`satisfies`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from dqx_airflow.contracts.demands import Condition, QueryGives, Required
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.contracts.dialects.foreign.values import aggregate_query, sql_name
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.migration.dql_text import (
    column_text,
    columns_text,
    list_text,
    number,
    percent_text,
    rows_text,
    value_text,
)
from dqx_airflow.migration.foreign_rule import Claims, Meaning, UntranslatableError

_INTEGRAL = r"^(-|\+)? ?\d+$"
_FRACTIONAL = r"^(-|\+)? ?\d+((\.\d+)|((?:\.\d+)?[Ee][-+]?\d+))$"
_BOOLEAN = "^(true|false)$"
_TYPES = {
    "Integral": (_INTEGRAL,),
    "Fractional": (_FRACTIONAL,),
    "Numeric": (_INTEGRAL, _FRACTIONAL),
    "Boolean": (_BOOLEAN,),
}
"""The patterns by which Deequ recognises the type of a value, written as a string."""

_EXACT = "Deequ approximates the value; here it is exact"
_FORMAT = "the format is checked as DQL defines it"
_NO_ROWS = "if no row meets the filter, the constraint fails in Deequ but passes here"


class DeequCondition(tuple[tuple[str, float], ...]):
    """An assertion on a metric: all of these comparisons hold."""

    __slots__ = ()


def difference_of(name: str, *, is_filtered: bool) -> str | None:
    """When the verdicts of the two tools differ."""
    if name.startswith("hasApprox"):
        return _EXACT
    if name in ("containsEmail", "containsURL"):
        return _FORMAT
    return _NO_ROWS if is_filtered and name.startswith(("is", "satisfies", "hasPattern")) else None


_ALL = DeequCondition((("==", 1.0),))


def _compared(subject: str, condition: Any, *, is_share: bool = False) -> tuple[str, ...]:
    if not isinstance(condition, DeequCondition):
        raise UntranslatableError("its assertion cannot be evaluated without running it")
    return tuple(
        f"{subject} {op} {percent_text(bound) if is_share else value_text(bound)}"
        for op, bound in condition
    )


def _metric(text: str, *, is_share: bool = False) -> Callable[[list[Any]], Meaning]:
    """A constraint on a metric of a column; the braces stand for it."""

    def meaning(given: list[Any]) -> Meaning:
        column = column_text(given[0])
        kind = text.partition("(")[0]
        return Claims(kind, _compared(text.format(column), given[1], is_share=is_share), column)

    return meaning


def _rows(kind: str, predicate: str, *, passes_null: bool = False) -> Callable[..., Meaning]:
    """A constraint on each value, or on the share of rows that satisfy it."""

    def meaning(given: list[Any]) -> Meaning:
        column = column_text(given[0])
        texts = _share_of_rows(predicate.format(column), given[1:], column if passes_null else None)
        return Claims(kind, texts, column)

    return meaning


def _condition_in(given: Sequence[Any]) -> DeequCondition:
    """The assertion among the arguments; without one, all rows satisfy the constraint."""
    return next((argument for argument in given if isinstance(argument, DeequCondition)), _ALL)


def _share_of_rows(predicate: str, rest: list[Any], passes_null: str | None) -> tuple[str, ...]:
    """The claims that all rows satisfy a predicate, or as many as an assertion requires.

    `passes_null` is a column whose NULL satisfies it; each row counts in a share.
    """
    condition = _condition_in(rest)
    if tuple(condition) in (((">=", 1),), (("==", 1),)):
        return (rows_text(predicate),)
    if passes_null is not None:
        predicate = f"({passes_null} is null or {predicate})"
    match tuple(condition):
        case ((">=", share),):
            return (rows_text(predicate, share),)
    return _compared(f"num_rows(where {predicate}) / num_rows()", condition, is_share=True)


def _aggregate(name: str, expression: str, condition: Any, column: str | None = None) -> Meaning:
    """A constraint on an aggregate of Spark."""
    if not isinstance(condition, DeequCondition):
        raise UntranslatableError("its assertion cannot be evaluated without running it")
    query = aggregate_query(expression)
    demands = (QueryGives(query, Condition(op, bound)) for op, bound in condition)
    return Translation(name, tuple(demands), column)


def _unique(given: list[Any]) -> Meaning:
    return _ratio("uniqueness")(
        [[argument for argument in given if isinstance(argument, str)], _ALL]
    )


def _ratio(metric: str) -> Callable[[list[Any]], Meaning]:
    """A constraint on a ratio of one or several columns."""

    def meaning(given: list[Any]) -> Meaning:
        columns = given[0] if isinstance(given[0], list) else [given[0]]
        listed = columns_text(columns)
        subject = f"{metric}({listed if len(columns) == 1 else f'[{listed}]'})"
        column = column_text(columns[0]) if len(columns) == 1 else None
        return Claims(metric, _compared(subject, given[1], is_share=True), column)

    return meaning


def _contained(given: list[Any]) -> Meaning:
    column = column_text(given[0])
    if isinstance(given[1], list):
        predicate = f"{column} in {list_text(given[1])}"
        return Claims("values", _share_of_rows(predicate, given[2:], column), column)
    low, high = (value_text(number(bound)) for bound in given[1:3])
    ends = [argument for argument in given[3:] if isinstance(argument, bool)]
    predicate = f"{column} between {low} and {high}"
    if False in ends:
        above, below = (">=" if is_in else ">" for is_in in ends), ("<=", "<")
        predicate = f"{column} {next(above)} {low} and {column} {below[not ends[1]]} {high}"
    return Claims("range", _share_of_rows(predicate, given[3:], column), column)


def _pair(op: str) -> Callable[[list[Any]], Meaning]:
    def meaning(given: list[Any]) -> Meaning:
        column, other = column_text(given[0]), column_text(given[1])
        predicate = f"{column} is not null and {other} is not null and {column} {op} {other}"
        return Claims("pair", _share_of_rows(predicate, given[2:], None), column)

    return meaning


def _satisfies(given: list[Any]) -> Meaning:
    condition = _condition_in(given[1:])
    name = given[1] if len(given) > 1 and isinstance(given[1], str) else "satisfies"
    if condition != _ALL:
        return _aggregate(name, f"count_if({given[0]}) / count(*)", condition)
    failing = f"count_if(NOT coalesce({given[0]}, false))"
    return _aggregate(name, failing, DeequCondition((("==", 0),)))


def _custom_sql(given: list[Any]) -> Meaning:
    """A query that gives one number."""
    if not isinstance(given[1], DeequCondition):
        raise UntranslatableError("its assertion would have to be run")
    query = re.sub(r"\bprimary\b", "{model}", str(given[0]))
    demands = (QueryGives(query, Condition(op, bound)) for op, bound in given[1])
    return Translation("custom_sql", tuple(demands))


def _complete_columns(link: str) -> Callable[[list[Any]], Meaning]:
    """A constraint on the rows in which all columns, or any, have a value."""

    def meaning(given: list[Any]) -> Meaning:
        complete = f" {link} ".join(f"{column_text(column)} is not null" for column in given[0])
        condition = _condition_in(given[1:])
        if condition == _ALL:
            return Claims("complete", (rows_text(complete),))
        subject = f"num_rows(where {complete}) / num_rows()"
        return Claims("complete", _compared(subject, condition, is_share=True))

    return meaning


def _quantile(given: list[Any]) -> Meaning:
    column = column_text(given[0])
    subject = f"percentile({column}, {percent_text(given[1])})"
    return Claims("quantile", _compared(subject, given[2]), column)


def _pattern(given: list[Any]) -> Meaning:
    column, pattern = column_text(given[0]), given[1]
    predicate = f"{column} is not null and {column} matches {value_text(pattern)}"
    try:
        may_be_empty = re.search(pattern, "") is not None
    except (re.error, TypeError):
        raise UntranslatableError(f"{pattern!r} is not a regular expression") from None
    if may_be_empty:  # for Deequ, an empty match is none
        if not (pattern.startswith("^") and pattern.endswith("$")):
            reason = "its pattern also matches an empty string, which Deequ ignores"
            raise UntranslatableError(f"{reason}: anchor it by ^ and $")
        predicate += f' and {column} != ""'
    return Claims("pattern", _share_of_rows(predicate, given[2:], None), column)


def _format(name: str) -> Callable[[list[Any]], Meaning]:
    return _rows(name, f"{{0}} is not null and {{0}} is {name}")


def _data_type(given: list[Any]) -> Meaning:
    column, kind = column_text(given[0]), str(given[1])
    condition = _condition_in(given[2:])
    if kind == "Null":
        subject = f"null_count({column}) / num_rows()"
        return Claims("data_type", _compared(subject, condition, is_share=True), column)
    name = sql_name(column)
    patterns = _TYPES.get(kind) or (*_TYPES["Numeric"], _BOOLEAN)
    fits = " OR ".join(
        f"CAST({name} AS STRING) RLIKE {quote_literal(pattern)}" for pattern in patterns
    )
    counted = fits if kind in _TYPES else f"NOT ({fits})"
    share = f"coalesce(try_divide(count_if({counted}), count({name})), 0)"
    return _aggregate("data_type", share, condition, column)


def _distinct_values(given: list[Any]) -> Meaning:
    """The bins of a histogram, of which NULL is one."""
    column = column_text(given[0])
    bins = f"unique_count({column}) + min(null_count({column}), 1)"
    return Claims("distinct_values", _compared(bins, _condition_in(given[1:])), column)


def _standard_deviation(given: list[Any]) -> Meaning:
    column = column_text(given[0])
    return _aggregate("deviation", f"stddev_pop({sql_name(column)})", given[1], column)


def _correlation(given: list[Any]) -> Meaning:
    columns = columns_text(given[:2])
    return Claims("correlation", _compared(f"correlation({columns})", given[2]))


CONSTRAINTS: dict[str, Callable[[list[Any]], Meaning]] = {
    "hasSize": lambda given: Claims("size", _compared("num_rows()", given[0])),
    "isComplete": lambda given: Translation("is_complete", (Required(),), column_text(given[0])),
    "hasCompleteness": _metric("count({0}) / num_rows()", is_share=True),
    "isUnique": _unique,
    "isPrimaryKey": _unique,
    "hasUniqueness": _ratio("uniqueness"),
    "hasDistinctness": _ratio("distinctness"),
    "hasUniqueValueRatio": _ratio("unique_value_ratio"),
    "hasEntropy": _metric("entropy({})"),
    "hasMin": _metric("minimum({})"),
    "hasMax": _metric("maximum({})"),
    "hasMean": _metric("average({})"),
    "hasSum": _metric("sum({})"),
    "hasStandardDeviation": _standard_deviation,
    "hasMinLength": _metric("min_length({})"),
    "hasMaxLength": _metric("max_length({})"),
    "hasApproxCountDistinct": _metric("unique_count({})"),
    "hasNumberOfDistinctValues": _distinct_values,
    "hasCorrelation": _correlation,
    "hasExactQuantile": _quantile,
    "hasApproxQuantile": _quantile,
    "areUnique": lambda given: _ratio("uniqueness")([given[0], _ALL]),
    "hasColumnCount": lambda given: Claims("columns", _compared("column_count()", given[0])),
    **dict.fromkeys(("areComplete", "haveCompleteness"), _complete_columns("and")),
    **dict.fromkeys(("areAnyComplete", "haveAnyCompleteness"), _complete_columns("or")),
    "hasPattern": _pattern,
    "hasDataType": _data_type,
    "isNonNegative": _rows("non_negative", "{} >= 0", passes_null=True),
    "isPositive": _rows("positive", "{} > 0", passes_null=True),
    "isContainedIn": _contained,
    "isLessThan": _pair("<"),
    "isLessThanOrEqualTo": _pair("<="),
    "isGreaterThan": _pair(">"),
    "isGreaterThanOrEqualTo": _pair(">="),
    "satisfies": _satisfies,
    "customSql": _custom_sql,
    "containsEmail": _format("email"),
    "containsURL": _format("url"),
}
"""The constraints of `Check` by their names in Scala, which PyDeequ shares."""
