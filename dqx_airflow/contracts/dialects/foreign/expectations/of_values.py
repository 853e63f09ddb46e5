"""Expectations about each value of a column."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dqx_airflow.contracts.demands import (
    Bound,
    Complete,
    Condition,
    Length,
    MetricRule,
    OneOf,
    Pattern,
    Required,
    RowsSatisfy,
    Unique,
)
from dqx_airflow.contracts.demands.measured import NONE
from dqx_airflow.contracts.dialects.foreign.expectations.arguments import (
    Demands,
    ExpectationArguments,
    Expectations,
    NoCounterpartError,
    bounds_in,
    each_value,
)
from dqx_airflow.contracts.dialects.foreign.values import literals, rlike, sql_name
from dqx_airflow.metrics.sql import quote_literal


def _not_null(arguments: ExpectationArguments) -> Demands:
    column, share = arguments.own_column(), arguments.mostly()
    return (Required(),) if share == 1 else (Complete(column, share),)


def _null(arguments: ExpectationArguments) -> Demands:
    column, share = arguments.own_column(), arguments.mostly()
    if share == 1:
        return (MetricRule("count", (column,), NONE),)
    most = Condition("<=", round(100 * (1 - share), 9))
    return (MetricRule("count", (column,), most, is_percent=True),)


def _unique(arguments: ExpectationArguments) -> Demands:
    column, share = arguments.own_column(), arguments.mostly()
    if share < 1:
        return (MetricRule("uniqueness", (column,), Condition(">=", share)),)
    return (Unique((column,)),)


def _in_set(arguments: ExpectationArguments) -> Demands:
    arguments.own_column()
    return each_value(arguments, (OneOf(arguments.values("value_set")),))


def _not_in_set(arguments: ExpectationArguments) -> Demands:
    name = sql_name(arguments.own_column())
    predicate = f"{name} NOT IN ({literals(arguments.values('value_set'))})"
    return (RowsSatisfy(predicate, share=arguments.mostly()),)


def _values_between(arguments: ExpectationArguments) -> Demands:
    arguments.own_column()
    return each_value(arguments, tuple(Bound(op, value) for op, value in bounds_in(arguments)))


def _lengths_between(arguments: ExpectationArguments) -> Demands:
    arguments.own_column()
    lengths = []
    for op, value in bounds_in(arguments):
        if not isinstance(value, int):
            raise NoCounterpartError("its bounds are not whole numbers")
        strict = {">": 1, "<": -1}.get(op, 0)
        lengths.append(Length(f"{op[0]}=", value + strict))
    return each_value(arguments, tuple(lengths))


def _lengths_equal(arguments: ExpectationArguments) -> Demands:
    arguments.own_column()
    value = arguments.take("value")
    if not isinstance(value, int):
        raise NoCounterpartError("its value is not a whole number")
    return each_value(arguments, (Length(">=", value), Length("<=", value)))


def _regex(text: object) -> str:
    if not isinstance(text, str) or not text:
        raise NoCounterpartError("its regular expression is not a string")
    if "(?P" in text:
        raise NoCounterpartError("(?P...) works only in Python: write (?:...) for a group")
    return text


def _match_regex(arguments: ExpectationArguments) -> Demands:
    arguments.own_column()
    return each_value(arguments, (Pattern(_regex(arguments.take("regex"))),))


def _not_match_regex(arguments: ExpectationArguments) -> Demands:
    return _none_match(arguments, [arguments.take("regex")])


def _match_regex_list(arguments: ExpectationArguments) -> Demands:
    name = sql_name(arguments.own_column())
    expressions = [_regex(item) for item in arguments.items("regex_list")]
    if arguments.take("match_on", "any") == "all":
        return each_value(arguments, tuple(Pattern(expression) for expression in expressions))
    predicate = " OR ".join(rlike(name, item) for item in expressions)
    return (RowsSatisfy(predicate, share=arguments.mostly()),)


def _not_match_regex_list(arguments: ExpectationArguments) -> Demands:
    return _none_match(arguments, arguments.items("regex_list"))


def _none_match(arguments: ExpectationArguments, expressions: list[Any]) -> Demands:
    name = sql_name(arguments.own_column())
    predicate = " AND ".join(f"NOT ({rlike(name, _regex(item))})" for item in expressions)
    return (RowsSatisfy(predicate, share=arguments.mostly()),)


def _like(key: str, negation: str = "") -> Callable[[ExpectationArguments], Demands]:
    """An expectation with one or several LIKE patterns."""

    def demands(arguments: ExpectationArguments) -> Demands:
        name = sql_name(arguments.own_column())
        written = arguments.items(key) if key.endswith("_list") else [arguments.text(key)]
        is_any = not negation and arguments.take("match_on", "any") != "all"
        link = " OR " if is_any else " AND "
        patterns = (quote_literal(str(item)) for item in written)
        predicate = link.join(f"{name} {negation}LIKE {pattern}" for pattern in patterns)
        return (RowsSatisfy(predicate, share=arguments.mostly()),)

    return demands


_DIRECTIVES = {"Y": "yyyy", "y": "yy", "m": "M", "d": "d", "H": "H", "M": "m", "S": "s", "b": "MMM"}
_PART_OF_FORM = re.compile(r"%(?P<directive>.)|(?P<word>[A-Za-z']+)|(?P<sign>[^%A-Za-z']+)")


def _strftime(arguments: ExpectationArguments) -> Demands:
    name, share = sql_name(arguments.own_column()), arguments.mostly()
    form = quote_literal(_form_of_spark(arguments.text("strftime_format")))
    parsed = f"try_to_timestamp({name}, {form}) IS NOT NULL"
    return (RowsSatisfy(f"if({name} IS NULL, NULL, {parsed})", share=share),)


def _form_of_spark(written: str) -> str:
    """A Python date format for Spark. A single letter parses 5 and 05, as in Python; if another
    number follows directly, two digits are meant."""
    parts = list(_PART_OF_FORM.finditer(written))
    form = []
    for index, part in enumerate(parts):
        if part["directive"] is None:
            word = (part["word"] or "").replace("'", "''")
            form.append(f"'{word}'" if word else part["sign"])
            continue
        letters = _DIRECTIVES.get(part["directive"])
        if letters is None:
            raise NoCounterpartError(f"%{part['directive']} has no counterpart in Spark")
        around = (parts[near] for near in (index - 1, index + 1) if 0 <= near < len(parts))
        is_adjacent = any(near["directive"] is not None for near in around)
        form.append(letters * 2 if is_adjacent and len(letters) == 1 else letters)
    return "".join(form)


OF_VALUES: Expectations = {
    "expect_column_value_lengths_to_be_between": _lengths_between,
    "expect_column_value_lengths_to_equal": _lengths_equal,
    "expect_column_values_to_be_between": _values_between,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_be_null": _null,
    "expect_column_values_to_be_unique": _unique,
    "expect_column_values_to_match_like_pattern": _like("like_pattern"),
    "expect_column_values_to_match_like_pattern_list": _like("like_pattern_list"),
    "expect_column_values_to_match_regex": _match_regex,
    "expect_column_values_to_match_strftime_format": _strftime,
    "expect_column_values_to_match_regex_list": _match_regex_list,
    "expect_column_values_to_not_be_in_set": _not_in_set,
    "expect_column_values_to_not_be_null": _not_null,
    "expect_column_values_to_not_match_like_pattern": _like("like_pattern", "NOT "),
    "expect_column_values_to_not_match_like_pattern_list": _like("like_pattern_list", "NOT "),
    "expect_column_values_to_not_match_regex": _not_match_regex,
    "expect_column_values_to_not_match_regex_list": _not_match_regex_list,
}
