"""Expectations about a column as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dqx_airflow.contracts.demands import Condition, Demand, MetricRule, OneOf, Presence, QueryGives
from dqx_airflow.contracts.demands.measured import NONE
from dqx_airflow.contracts.dialects.foreign.expectations.arguments import (
    Demands,
    ExpectationArguments,
    Expectations,
    NoCounterpartError,
    conditions_in,
)
from dqx_airflow.contracts.dialects.foreign.values import aggregate_query, literals, sql_name
from dqx_airflow.exact import is_finite_number


def _exists(arguments: ExpectationArguments) -> Demands:
    arguments.own_column()
    return (Presence(),)


def _measured(metric: str) -> Callable[[ExpectationArguments], Demands]:
    """An expectation about a metric of DQL."""

    def demands(arguments: ExpectationArguments) -> Demands:
        column = arguments.own_column()
        return tuple(
            MetricRule(metric, (column,), condition) for condition in conditions_in(arguments)
        )

    return demands


def _non_null_share(arguments: ExpectationArguments) -> Demands:
    column = arguments.own_column()
    percentages = (
        replace(
            condition,
            bound=round(100 * condition.bound, 9),
            high=None if condition.high is None else round(100 * condition.high, 9),
        )
        for condition in conditions_in(arguments)
    )
    return tuple(
        MetricRule("count", (column,), percentage, is_percent=True) for percentage in percentages
    )


def _computed(expression: str) -> Callable[[ExpectationArguments], Demands]:
    """An expectation about an aggregate of Spark; the braces stand for the column."""

    def demands(arguments: ExpectationArguments) -> Demands:
        name = sql_name(arguments.own_column())
        query = aggregate_query(expression.format(name))
        return tuple(QueryGives(query, condition) for condition in conditions_in(arguments))

    return demands


def _quantiles(arguments: ExpectationArguments) -> Demands:
    name = sql_name(arguments.own_column())
    match arguments.take("quantile_ranges"):
        case {"quantiles": [*shares], "value_ranges": [*ranges]} if len(shares) == len(ranges):
            pass
        case _:
            raise NoCounterpartError("quantile_ranges needs one value range for each quantile")
    demands: list[Demand] = []
    for share, bounds in zip(shares, ranges, strict=True):
        if not is_finite_number(share) or not 0 <= share <= 1:
            raise NoCounterpartError("a quantile is a number between 0 and 1")
        query = aggregate_query(f"percentile({name}, {share})")
        match bounds:
            case [low, high] if is_finite_number(low) and is_finite_number(high):
                demands.append(QueryGives(query, Condition("between", low, high)))
            case [None, high] if is_finite_number(high):
                demands.append(QueryGives(query, Condition("<=", high)))
            case [low, None] if is_finite_number(low):
                demands.append(QueryGives(query, Condition(">=", low)))
            case _:
                raise NoCounterpartError("a value range is a list of two numbers")
    return tuple(demands)


def _distinct_in_set(arguments: ExpectationArguments) -> Demands:
    arguments.own_column()
    return (OneOf(arguments.values("value_set")),)


def _distinct_contain_set(arguments: ExpectationArguments) -> Demands:
    name = sql_name(arguments.own_column())
    values = tuple(dict.fromkeys(arguments.values("value_set")))
    query = aggregate_query(
        f"count(DISTINCT CASE WHEN {name} IN ({literals(values)}) THEN {name} END)"
    )
    return (QueryGives(query, Condition("==", len(values))),)


def _distinct_equal_set(arguments: ExpectationArguments) -> Demands:
    return (*_distinct_in_set(arguments), *_distinct_contain_set(arguments))


def _most_common(arguments: ExpectationArguments) -> Demands:
    column, values = arguments.own_column(), arguments.values("value_set")
    arguments.take("ties_okay")
    return (MetricRule("most_common", (column,), NONE, values=values),)


def _z_scores(arguments: ExpectationArguments) -> Demands:
    column, threshold = arguments.own_column(), arguments.take("threshold")
    is_double, share = arguments.take("double_sided", True), arguments.mostly()
    if not is_finite_number(threshold):
        raise NoCounterpartError("its threshold is not a number")
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


def _in_order(metric: str) -> Callable[[ExpectationArguments], Demands]:
    """An expectation about the order of rows, which a table does not have."""

    def demands(arguments: ExpectationArguments) -> Demands:
        column = arguments.own_column()
        claim = f"{metric}({column}, order_by ...) == 0"
        raise NoCounterpartError(f"the rows of a table have no order: write {claim} in DQL")

    return demands


OF_COLUMNS: Expectations = {
    "expect_column_distinct_values_to_be_in_set": _distinct_in_set,
    "expect_column_distinct_values_to_contain_set": _distinct_contain_set,
    "expect_column_distinct_values_to_equal_set": _distinct_equal_set,
    "expect_column_max_to_be_between": _measured("maximum"),
    "expect_column_mean_to_be_between": _measured("average"),
    "expect_column_median_to_be_between": _measured("median"),
    "expect_column_min_to_be_between": _measured("minimum"),
    "expect_column_most_common_value_to_be_in_set": _most_common,
    "expect_column_proportion_of_non_null_values_to_be_between": _non_null_share,
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
    "expect_column_value_z_scores_to_be_less_than": _z_scores,
    "expect_column_values_to_be_decreasing": _in_order("increase_count"),
    "expect_column_values_to_be_increasing": _in_order("decrease_count"),
}
