"""Expectations of Great Expectations: `expectation_type` of 0.x, `type` of 1.x, and `kwargs`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from dqx_airflow.contracts.demands import (
    AmongRows,
    Bound,
    Complete,
    Condition,
    Demand,
    Length,
    Literal,
    MetricRule,
    OneOf,
    Pattern,
    Presence,
    QueryGives,
    Required,
    RowsSatisfy,
    Unique,
)
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.contracts.dialects.foreign.severities import severity_of
from dqx_airflow.contracts.dialects.foreign.thresholds import is_number
from dqx_airflow.contracts.dialects.foreign.values import (
    ValueDemand,
    aggregate_query,
    all_hold,
    is_value,
    literals,
    rlike,
    sql_name,
    values_in,
)
from dqx_airflow.contracts.dialects.naming import column_path
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.types import TypeTextError, canonical_type

_REMARKS = ("meta", "notes", "description", "id", "severity", "rendered_content")
_ARGUMENT_REMARKS = (
    *("result_format", "include_config", "catch_exceptions", "batch_id", "meta"),
    *("allow_relative_error", "severity"),
)
_BETWEEN = ("min_value", "max_value", "strict_min", "strict_max")
_NONE = Condition("==", 0)
_TYPES = {
    **dict.fromkeys(("integer", "int32"), "int"),
    **dict.fromkeys(("long", "int64"), "bigint"),
    **dict.fromkeys(("str", "varchar", "text", "char"), "string"),
    **dict.fromkeys(("float64", "double precision"), "double"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("datetime", "datetime64"), "timestamp"),
    **dict.fromkeys(("numeric", "number"), "decimal"),
}


class _NoCounterpartError(Exception):
    """Why an expectation cannot be translated."""


@dataclass(slots=True)
class _Arguments:
    """The `kwargs` of an expectation; which of them were asked for is kept.

    `share` is the share of values that a single demand is about, as `Rule` has it.
    """

    given: Mapping[str, Any]
    column: str | None
    sql_dialect: str | None
    share: float = 1.0
    asked: set[str] = field(default_factory=set)

    def take(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        value = self.given.get(key)
        return default if value is None else value

    def text(self, key: str) -> str:
        value = self.take(key)
        if not isinstance(value, str) or not value:
            raise _NoCounterpartError(f"it has no {key}")
        return value

    def items(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, list) or not value:
            raise _NoCounterpartError(f"it has no {key}, or an empty one")
        return value

    def values(self, key: str) -> tuple[Literal, ...]:
        found = values_in(self.take(key))
        if found is None:
            raise _NoCounterpartError(f"its {key} is not a list of values")
        return found

    def path(self, key: str) -> str:
        """A column as DQL writes it; a dot leads into a struct, as in Spark."""
        return _path(self.text(key))

    def paths(self, key: str) -> tuple[str, ...]:
        return tuple(_path(str(name)) for name in self.items(key))

    def own_column(self) -> str:
        """The column of the expectation; without one, that of the field it stands at."""
        if self.column is None or self.given.get("column") is not None:
            self.column = self.path("column")
        return self.column

    def mostly(self) -> float:
        share = self.take("mostly", 1)
        if not is_number(share) or not 0 <= share <= 1:
            raise _NoCounterpartError("mostly takes a share between 0 and 1")
        return float(share)


def translate(
    expectation: Mapping[str, Any], column: str | None, sql_dialect: str | None = None
) -> Translation | str:
    """What an expectation demands. Its `column` wins over the one of the field it stands at.

    :param sql_dialect: the dialect of the SQL in the expectation.
    """
    written = str(expectation.get("type") or expectation.get("expectation_type") or "")
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", written).lower()
    if kind not in _KINDS:
        return f"the expectation '{written}' has no counterpart"
    extra = [key for key in expectation if key not in (*_REMARKS, *_STRUCTURE)]
    if extra:
        return f"an expectation has no '{extra[0]}'"
    given = expectation.get("kwargs") or {}
    if not isinstance(given, Mapping):
        return "its kwargs are not a mapping"
    arguments = _Arguments(given, column, sql_dialect)
    try:
        demands, where = _KINDS[kind](arguments), _row_condition(arguments)
    except _NoCounterpartError as error:
        return f"{kind}: {error}"
    if where is not None:
        demands = tuple(AmongRows(demand, where, "spark") for demand in demands)
    for key, value in given.items():
        if key not in arguments.asked and key not in _ARGUMENT_REMARKS and value is not None:
            return f"{kind}: '{key}' has no counterpart"
    severity = expectation.get("severity")
    remarks = tuple(key for key in _REMARKS if key in expectation)
    return Translation(
        kind.removeprefix("expect_"),
        demands,
        arguments.column,
        severity=severity_of(severity) if isinstance(severity, str) else None,
        share=arguments.share,
        remarks=remarks,
    )


_STRUCTURE = ("type", "expectation_type", "kwargs")
_Demands = tuple[Demand, ...]


_COLUMN_OF_GX = re.compile(r"""\bcol\((["'])(?P<name>[^"'`]+)\1\)""")
_NULL_OF_GX = re.compile(r"\.(?P<word>is|not)_?null\(\)", re.IGNORECASE)
_ONLY_PANDAS = re.compile(r"[&|~@\[]|!=|(?<![<>=!])=(?!=)|\bnot\b")
"""What SQL does not have, and what pandas answers otherwise where a value is missing."""


def _row_condition(arguments: _Arguments) -> str | None:
    """The rows that an expectation is about, as Spark SQL; None for all of them."""
    condition, parser = arguments.take("row_condition"), arguments.take("condition_parser")
    if condition is None:
        return None
    if not isinstance(condition, str):
        raise _NoCounterpartError("its row_condition is not a string")
    match parser:
        case "spark":
            return condition
        case "great_expectations" | "great_expectations__experimental__":
            sql = _COLUMN_OF_GX.sub(lambda found: f"`{found['name']}`", condition)
            word = {"is": " IS NULL", "not": " IS NOT NULL"}
            return _NULL_OF_GX.sub(lambda found: word[found["word"].lower()], sql)
        case "pandas" if _ONLY_PANDAS.search(condition) is None:
            return condition
        case "pandas":
            reason = "its row_condition is one of pandas that SQL cannot say"
            raise _NoCounterpartError(f"{reason}: write it for condition_parser 'spark'")
        case _:
            raise _NoCounterpartError("its row_condition has no condition_parser that is known")


def _path(name: str) -> str:
    return ".".join(column_path(part) for part in name.split("."))


def _each(arguments: _Arguments, demands: tuple[ValueDemand, ...]) -> _Demands:
    """The demands; where `mostly` is less than 1, of that share of the values, taken together."""
    share = arguments.mostly()
    if share == 1:
        return demands
    if len(demands) == 1:
        arguments.share = share
        return demands
    return (RowsSatisfy(all_hold(arguments.own_column(), demands), share=share),)


def _between(arguments: _Arguments) -> list[tuple[str, Any]]:
    """The bounds as comparisons: `(">=", 1)`."""
    bounds = []
    for key, strict, ops in (("min", "strict_min", ">>="), ("max", "strict_max", "<<=")):
        value = arguments.take(f"{key}_value")
        op = ops[0] if arguments.take(strict, False) is True else ops[1:]
        if value is not None and not is_value(value):
            raise _NoCounterpartError(f"its {key}_value is not a value")
        if value is not None:
            bounds.append((op, value))
    if not bounds:
        raise _NoCounterpartError("it has neither min_value nor max_value")
    return bounds


def _conditions(arguments: _Arguments) -> tuple[Condition, ...]:
    bounds = _between(arguments)
    if not all(is_number(value) for _, value in bounds):
        raise _NoCounterpartError("its bounds are not numbers")
    match bounds:
        case [(">=", low), ("<=", high)] if low <= high:
            return (Condition("between", low, high),)
    return tuple(Condition(op, value) for op, value in bounds)


# Expectations about each value ---------------------------------------------------------------


def _not_null(arguments: _Arguments) -> _Demands:
    column, share = arguments.own_column(), arguments.mostly()
    return (Required(),) if share == 1 else (Complete(column, share),)


def _null(arguments: _Arguments) -> _Demands:
    column, share = arguments.own_column(), arguments.mostly()
    if share == 1:
        return (MetricRule("count", (column,), _NONE),)
    most = Condition("<=", round(100 * (1 - share), 9))
    return (MetricRule("count", (column,), most, is_percent=True),)


def _unique(arguments: _Arguments) -> _Demands:
    column, share = arguments.own_column(), arguments.mostly()
    if share < 1:
        return (MetricRule("uniqueness", (column,), Condition(">=", share)),)
    return (Unique((column,)),)


def _in_set(arguments: _Arguments) -> _Demands:
    arguments.own_column()
    return _each(arguments, (OneOf(arguments.values("value_set")),))


def _not_in_set(arguments: _Arguments) -> _Demands:
    name = sql_name(arguments.own_column())
    predicate = f"{name} NOT IN ({literals(arguments.values('value_set'))})"
    return (RowsSatisfy(predicate, share=arguments.mostly()),)


def _values_between(arguments: _Arguments) -> _Demands:
    arguments.own_column()
    return _each(arguments, tuple(Bound(op, value) for op, value in _between(arguments)))


def _lengths_between(arguments: _Arguments) -> _Demands:
    arguments.own_column()
    lengths = []
    for op, value in _between(arguments):
        if not isinstance(value, int):
            raise _NoCounterpartError("its bounds are not whole numbers")
        strict = {">": 1, "<": -1}.get(op, 0)
        lengths.append(Length(f"{op[0]}=", value + strict))
    return _each(arguments, tuple(lengths))


def _lengths_equal(arguments: _Arguments) -> _Demands:
    arguments.own_column()
    value = arguments.take("value")
    if not isinstance(value, int):
        raise _NoCounterpartError("its value is not a whole number")
    return _each(arguments, (Length(">=", value), Length("<=", value)))


def _regex(text: object) -> str:
    if not isinstance(text, str) or not text:
        raise _NoCounterpartError("its regular expression is not a string")
    if "(?P" in text:
        raise _NoCounterpartError("(?P...) is for Python alone: write (?:...) for a group")
    return text


def _match_regex(arguments: _Arguments) -> _Demands:
    arguments.own_column()
    return _each(arguments, (Pattern(_regex(arguments.take("regex"))),))


def _not_match_regex(arguments: _Arguments) -> _Demands:
    return _none_match(arguments, [arguments.take("regex")])


def _match_regex_list(arguments: _Arguments) -> _Demands:
    name = sql_name(arguments.own_column())
    expressions = [_regex(item) for item in arguments.items("regex_list")]
    if arguments.take("match_on", "any") == "all":
        return _each(arguments, tuple(Pattern(expression) for expression in expressions))
    predicate = " OR ".join(rlike(name, item) for item in expressions)
    return (RowsSatisfy(predicate, share=arguments.mostly()),)


def _not_match_regex_list(arguments: _Arguments) -> _Demands:
    return _none_match(arguments, arguments.items("regex_list"))


def _none_match(arguments: _Arguments, expressions: list[Any]) -> _Demands:
    name = sql_name(arguments.own_column())
    predicate = " AND ".join(f"NOT ({rlike(name, _regex(item))})" for item in expressions)
    return (RowsSatisfy(predicate, share=arguments.mostly()),)


def _like(key: str, negation: str = "") -> Callable[[_Arguments], _Demands]:
    """An expectation about one or several patterns of LIKE."""

    def demands(arguments: _Arguments) -> _Demands:
        name = sql_name(arguments.own_column())
        found = arguments.items(key) if key.endswith("_list") else [arguments.text(key)]
        is_any = not negation and arguments.take("match_on", "any") != "all"
        link = " OR " if is_any else " AND "
        patterns = (quote_literal(str(item)) for item in found)
        predicate = link.join(f"{name} {negation}LIKE {pattern}" for pattern in patterns)
        return (RowsSatisfy(predicate, share=arguments.mostly()),)

    return demands


# Expectations about a column as a whole ------------------------------------------------------


def _exists(arguments: _Arguments) -> _Demands:
    arguments.own_column()
    return (Presence(),)


def _measured(metric: str) -> Callable[[_Arguments], _Demands]:
    """An expectation about a metric of DQL."""

    def demands(arguments: _Arguments) -> _Demands:
        column = arguments.own_column()
        return tuple(MetricRule(metric, (column,), item) for item in _conditions(arguments))

    return demands


def _computed(expression: str) -> Callable[[_Arguments], _Demands]:
    """An expectation about an aggregate of Spark; the braces stand for the column."""

    def demands(arguments: _Arguments) -> _Demands:
        name = sql_name(arguments.own_column())
        query = aggregate_query(expression.format(name))
        return tuple(QueryGives(query, item) for item in _conditions(arguments))

    return demands


def _quantiles(arguments: _Arguments) -> _Demands:
    name = sql_name(arguments.own_column())
    match arguments.take("quantile_ranges"):
        case {"quantiles": [*shares], "value_ranges": [*ranges]} if len(shares) == len(ranges):
            pass
        case _:
            raise _NoCounterpartError("quantile_ranges takes quantiles and as many value_ranges")
    demands: list[Demand] = []
    for share, bounds in zip(shares, ranges, strict=True):
        if not is_number(share) or not 0 <= share <= 1:
            raise _NoCounterpartError("a quantile is a number between 0 and 1")
        query = aggregate_query(f"percentile({name}, {share})")
        match bounds:
            case [low, high] if is_number(low) and is_number(high):
                demands.append(QueryGives(query, Condition("between", low, high)))
            case [None, high] if is_number(high):
                demands.append(QueryGives(query, Condition("<=", high)))
            case [low, None] if is_number(low):
                demands.append(QueryGives(query, Condition(">=", low)))
            case _:
                raise _NoCounterpartError("a value range is a list of two numbers")
    return tuple(demands)


def _distinct_in_set(arguments: _Arguments) -> _Demands:
    arguments.own_column()
    return (OneOf(arguments.values("value_set")),)


def _distinct_contain_set(arguments: _Arguments) -> _Demands:
    name = sql_name(arguments.own_column())
    due = tuple(dict.fromkeys(arguments.values("value_set")))
    query = aggregate_query(
        f"count(DISTINCT CASE WHEN {name} IN ({literals(due)}) THEN {name} END)"
    )
    return (QueryGives(query, Condition("==", len(due))),)


def _distinct_equal_set(arguments: _Arguments) -> _Demands:
    return (*_distinct_in_set(arguments), *_distinct_contain_set(arguments))


def _most_common(arguments: _Arguments) -> _Demands:
    column, values = arguments.own_column(), arguments.values("value_set")
    arguments.take("ties_okay")
    return (MetricRule("most_common", (column,), _NONE, values=values),)


def _z_scores(arguments: _Arguments) -> _Demands:
    column, threshold = arguments.own_column(), arguments.take("threshold")
    is_double, share = arguments.take("double_sided", True), arguments.mostly()
    if not is_number(threshold):
        raise _NoCounterpartError("its threshold is not a number")
    if is_double and share == 1:
        return (MetricRule("max_z_score", (column,), Condition("<", threshold)),)
    name = sql_name(column)
    if share == 1:
        query = aggregate_query(f"(max({name}) - avg({name})) / stddev_samp({name})")
        return (QueryGives(query, Condition("<", threshold)),)
    distance = f"abs({name} - center)" if is_double else f"({name} - center)"
    near = f"spread > 0 AND {distance} < {threshold} * spread"
    query = " ".join(
        (
            f"SELECT count(CASE WHEN {near} THEN 1 END) / count({name}) FROM",
            f"(SELECT {name}, avg({name}) OVER () AS center,",
            f"stddev_samp({name}) OVER () AS spread FROM {{model}}) AS rows",
        )
    )
    return (QueryGives(query, Condition(">=", share)),)


def _in_order(metric: str) -> Callable[[_Arguments], _Demands]:
    """An expectation about the order of rows, which a table does not have."""

    def demands(arguments: _Arguments) -> _Demands:
        column = arguments.own_column()
        claim = f"{metric}({column}, order_by ...) == 0"
        raise _NoCounterpartError(f"the rows of a table have no order: write {claim} in DQL")

    return demands


# Expectations about several columns, and about the table -------------------------------------


def _compound_unique(arguments: _Arguments) -> _Demands:
    columns = arguments.paths("column_list")
    if arguments.mostly() < 1:
        raise _NoCounterpartError("mostly, a share of rows that are unique, has no counterpart")
    ignored = arguments.take("ignore_row_if", "all_values_are_missing")
    if ignored == "any_value_is_missing":
        return (Unique(columns),)
    # Here a row with some NULL counts, which `Unique` leaves aside.
    names = [sql_name(column) for column in columns]
    query = aggregate_query(f"count(*) - count(DISTINCT struct({', '.join(names)}))")
    if ignored == "all_values_are_missing":
        query += " WHERE " + " OR ".join(f"{name} IS NOT NULL" for name in names)
    return (QueryGives(query, _NONE),)


def _unique_within_record(arguments: _Arguments) -> _Demands:
    names = [sql_name(column) for column in arguments.paths("column_list")]
    arguments.take("ignore_row_if")
    if len(names) < 2:
        raise _NoCounterpartError("its column_list needs two columns")
    predicate = " AND ".join(f"{one} <> {other}" for one, other in combinations(names, 2))
    return (RowsSatisfy(predicate, share=arguments.mostly()),)


def _a_greater_than_b(arguments: _Arguments) -> _Demands:
    return _pair(arguments, ">=" if arguments.take("or_equal", False) is True else ">")


def _pair_equal(arguments: _Arguments) -> _Demands:
    return _pair(arguments, "=")


def _pair(arguments: _Arguments, op: str) -> _Demands:
    one, other = sql_name(arguments.path("column_A")), sql_name(arguments.path("column_B"))
    predicate = f"{one} {op} {other}"
    match arguments.take("ignore_row_if", "both_values_are_missing"):
        case "both_values_are_missing":
            predicate = f"coalesce({predicate}, {one} IS NULL AND {other} IS NULL)"
        case "neither":
            predicate = f"coalesce({predicate}, false)"
    return (RowsSatisfy(predicate, share=arguments.mostly()),)


def _of_type(arguments: _Arguments) -> _Demands:
    return _typed(arguments, [arguments.text("type_")])


def _in_type_list(arguments: _Arguments) -> _Demands:
    return _typed(arguments, arguments.items("type_list"))


def _typed(arguments: _Arguments, names: list[Any]) -> _Demands:
    """That the column has a type of Spark, which other systems give other names."""
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
        raise _NoCounterpartError(f"Spark has no type '{written}'") from None


def _multicolumn_sum(arguments: _Arguments) -> _Demands:
    names = [sql_name(column) for column in arguments.paths("column_list")]
    total = arguments.take("sum_total")
    if not is_number(total):
        raise _NoCounterpartError("its sum_total is not a number")
    predicate = f"{' + '.join(names)} = {total}"
    match arguments.take("ignore_row_if", "all_values_are_missing"):
        case "all_values_are_missing":
            missing = " AND ".join(f"{name} IS NULL" for name in names)
            predicate = f"coalesce({predicate}, {missing})"
        case "never":
            predicate = f"coalesce({predicate}, false)"
    return (RowsSatisfy(predicate, "spark", arguments.mostly()),)


def _row_count_between(arguments: _Arguments) -> _Demands:
    return tuple(MetricRule("num_rows", (), item) for item in _conditions(arguments))


def _row_count_equal(arguments: _Arguments) -> _Demands:
    value = arguments.take("value")
    if not is_number(value):
        raise _NoCounterpartError("its value is not a number")
    return (MetricRule("num_rows", (), Condition("==", value)),)


def _column_count_between(arguments: _Arguments) -> _Demands:
    return tuple(MetricRule("column_count", (), item) for item in _conditions(arguments))


def _column_count_equal(arguments: _Arguments) -> _Demands:
    value = arguments.take("value")
    if not is_number(value):
        raise _NoCounterpartError("its value is not a number")
    return (MetricRule("column_count", (), Condition("==", value)),)


def _unexpected_rows(arguments: _Arguments) -> _Demands:
    rows = arguments.text("unexpected_rows_query").strip().rstrip(";")
    query = " ".join(("SELECT count(*) FROM (", rows.replace("{batch}", "{model}"), ") AS rows"))
    return (QueryGives(query, _NONE, arguments.sql_dialect),)


_KINDS: dict[str, Callable[[_Arguments], _Demands]] = {
    "expect_column_distinct_values_to_be_in_set": _distinct_in_set,
    "expect_column_distinct_values_to_contain_set": _distinct_contain_set,
    "expect_column_distinct_values_to_equal_set": _distinct_equal_set,
    "expect_column_max_to_be_between": _measured("maximum"),
    "expect_column_mean_to_be_between": _measured("average"),
    "expect_column_median_to_be_between": _measured("median"),
    "expect_column_min_to_be_between": _measured("minimum"),
    "expect_column_most_common_value_to_be_in_set": _most_common,
    "expect_column_pair_values_a_to_be_greater_than_b": _a_greater_than_b,
    "expect_column_pair_values_to_be_equal": _pair_equal,
    **dict.fromkeys(
        (
            "expect_column_proportion_of_unique_values_to_be_between",
            "expect_column_unique_value_proportion_to_be_between",
        ),
        _measured("distinctness"),
    ),
    "expect_column_quantile_values_to_be_between": _quantiles,
    "expect_column_stdev_to_be_between": _computed("stddev_samp({})"),
    "expect_column_sum_to_be_between": _measured("sum"),
    "expect_column_to_exist": _exists,
    "expect_column_unique_value_count_to_be_between": _measured("unique_count"),
    "expect_column_value_lengths_to_be_between": _lengths_between,
    "expect_column_value_lengths_to_equal": _lengths_equal,
    "expect_column_value_z_scores_to_be_less_than": _z_scores,
    "expect_column_values_to_be_between": _values_between,
    "expect_column_values_to_be_decreasing": _in_order("increase_count"),
    "expect_column_values_to_be_increasing": _in_order("decrease_count"),
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_be_in_type_list": _in_type_list,
    "expect_column_values_to_be_null": _null,
    "expect_column_values_to_be_of_type": _of_type,
    "expect_column_values_to_be_unique": _unique,
    "expect_column_values_to_match_like_pattern": _like("like_pattern"),
    "expect_column_values_to_match_like_pattern_list": _like("like_pattern_list"),
    "expect_column_values_to_match_regex": _match_regex,
    "expect_column_values_to_match_regex_list": _match_regex_list,
    "expect_column_values_to_not_be_in_set": _not_in_set,
    "expect_column_values_to_not_be_null": _not_null,
    "expect_column_values_to_not_match_like_pattern": _like("like_pattern", "NOT "),
    "expect_column_values_to_not_match_like_pattern_list": _like("like_pattern_list", "NOT "),
    "expect_column_values_to_not_match_regex": _not_match_regex,
    "expect_column_values_to_not_match_regex_list": _not_match_regex_list,
    "expect_compound_columns_to_be_unique": _compound_unique,
    "expect_multicolumn_sum_to_equal": _multicolumn_sum,
    "expect_select_column_values_to_be_unique_within_record": _unique_within_record,
    "expect_table_column_count_to_be_between": _column_count_between,
    "expect_table_column_count_to_equal": _column_count_equal,
    "expect_table_row_count_to_be_between": _row_count_between,
    "expect_table_row_count_to_equal": _row_count_equal,
    "unexpected_rows_expectation": _unexpected_rows,
}
