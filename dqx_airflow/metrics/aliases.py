"""Names that SQL, Python and other data quality tools use, and their equivalents in DQL."""

from __future__ import annotations

import re

MEASURES = {
    "num_rows()": "row_count count_rows n_rows nrow size rows record_count num_records has_size "
    "expect_table_row_count_to_be_between expect_table_row_count_to_equal",
    "null_count({})": "missing nulls num_nulls n_nulls count_nulls count_missing",
    "null_count({}) / num_rows()": "null_percent null_percentage null_ratio null_rate "
    "null_fraction percent_null missing_percent missing_percentage missing_ratio missing_rate",
    "count({}) / num_rows()": "completeness has_completeness fill_rate",
    "average({})": "mean expect_column_mean_to_be_between has_mean",
    "minimum({})": "min expect_column_min_to_be_between has_min",
    "maximum({})": "max expect_column_max_to_be_between has_max",
    "sum({})": "expect_column_sum_to_be_between has_sum",
    "sqrt(variance({}))": "stddev std stddev_samp standard_deviation has_standard_deviation",
    "percentile({}, 50%)": "quantile percentile_cont percentile_approx approx_percentile "
    "approx_quantile",
    "median({})": "expect_column_median_to_be_between",
    "unique_count({})": "distinct_count count_distinct n_unique n_distinct num_distinct "
    "distinct cardinality approx_count_distinct approx_distinct "
    "expect_column_unique_value_count_to_be_between",
    "uniqueness({})": "unique_ratio unique_percent has_uniqueness",
    "distinctness({})": "distinct_ratio has_distinctness "
    "expect_column_proportion_of_unique_values_to_be_between",
    "unique_value_ratio({})": "has_unique_value_ratio",
    "entropy({})": "shannon_entropy has_entropy",
    "mode({})": "most_frequent most_common_value",
    "max_z_score({})": "z_score expect_column_value_z_scores_to_be_less_than",
    "column_count()": "num_columns n_columns ncol expect_table_column_count_to_equal "
    "expect_table_column_count_to_be_between",
    "gap_count({})": "missing_values sequential_values",
    "duplicate_count({})": "duplicates num_duplicates",
    "duplicate_count({}) / num_rows()": "duplicate_percent duplicate_ratio duplicate_rate",
    'sql("avg(length({}))")': "avg_length average_length mean_length",
}
"""Other names of a value computed from the data, by their DQL equivalent."""

ASSERTIONS = {
    "not_null({})": "is_not_null is_complete no_missing expect_column_values_to_not_be_null",
    "unique({})": "is_unique is_primary_key expect_column_values_to_be_unique",
    "positive({})": "is_positive",
    "non_negative({})": "is_non_negative",
    "is_sorted({}, order_by other)": "is_increasing is_monotonic is_ordered sorted "
    "expect_column_values_to_be_increasing",
    'most_common({}, 1) in ["A", "B"]': "top_values expect_column_most_common_value_to_be_in_set",
    'in_set({}, ["A", "B"])': "accepted_values valid_values is_in is_in_list is_contained_in "
    "in_list expect_column_values_to_be_in_set",
    "each row: {} between 0 and 100": "is_in_range in_range is_not_less_than is_not_greater_than "
    "expect_column_values_to_be_between",
    'each row: {} matches "[A-Z]+"': "regex regex_match matches_regex has_pattern "
    "expect_column_values_to_match_regex",
    "values({}, dataset orders) in values(id, dataset customers)": "relationships foreign_key "
    "references referential_integrity",
}
"""Other names of a whole assertion, by their DQL equivalent."""

FUNCTIONS = {
    "every({}, item > 0)": "all forall",
    "some({}, item > 0)": "any exists",
    "{} is null": "is_null is_na",
    "{} is not null": "is_not_null not_null notna",
    '{} in ["A", "B"]': "is_in in_set",
    '{} matches "[A-Z]+"': "regexp_like rlike regexp regexp_matches matches fullmatch",
    '{} like "%part%"': "contains instr",
    '{} like "start%"': "startswith",
    '{} like "%end"': "endswith",
    "coalesce({}, 0)": "nvl ifnull",
    "length({})": "char_length character_length len strlen",
    "lower({})": "lcase to_lower casefold",
    "upper({})": "ucase to_upper",
    "size({})": "array_length array_size cardinality",
    "date({})": "to_date",
    "weekday({})": "day_of_week isodow",
}
"""Other names of a row function or row condition, by their DQL equivalent."""


def measure_elsewhere(name: str, column: str = "column") -> str | None:
    """The DQL equivalent of a value, or of a whole assertion, that has this name elsewhere.

    :param column: its column.
    """
    return _written_as(_MEASURES | _ASSERTIONS, name, column)


def assertion_elsewhere(name: str, column: str = "column") -> str | None:
    """The same for whole assertions only."""
    return _written_as(_ASSERTIONS, name, column)


def function_elsewhere(name: str, column: str = "column") -> str | None:
    """The same for row functions and conditions."""
    return _written_as(_FUNCTIONS, name, column)


def name_alone(written: str, arguments: int) -> str | None:
    """The name in a DQL equivalent with this many arguments, if only the name differs."""
    call = re.fullmatch(r"(\w+)\(([^()]*)\)", written)
    if call is None:
        return None
    takes = 0 if not call[2] else 2 if "," in call[2] else 1
    return call[1] if takes == arguments else None


def _written_as(names: dict[str, str], name: str, column: str) -> str | None:
    form = names.get(_key(name))
    return form.format(column) if form else None


def _key(name: str) -> str:
    return name.replace("_", "").casefold()


def _by_name(table: dict[str, str]) -> dict[str, str]:
    return {_key(name): written for written, names in table.items() for name in names.split()}


_MEASURES, _ASSERTIONS, _FUNCTIONS = map(_by_name, (MEASURES, ASSERTIONS, FUNCTIONS))
