"""The translations of the tests of dbt, dbt-utils and dbt-expectations."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dqx_airflow.contracts.demands import (
    AmongRows,
    Bound,
    Complete,
    Condition,
    Demand,
    Fresh,
    MetricRule,
    OneOf,
    QueryGives,
    Refers,
    Required,
    RowsSatisfy,
    Unique,
)
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.contracts.dialects.foreign.values import aggregate_query, sql_name
from dqx_airflow.contracts.dialects.foreign.values import predicate as value_predicate
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.migration.dbt_arguments import PERIOD_S, Arguments
from dqx_airflow.migration.dbt_elementary import ANOMALIES, elementary_claims, is_anomaly_test
from dqx_airflow.migration.dbt_expectations import MOST_COMMON_VALUE, ORDERS, expectation_of
from dqx_airflow.migration.double_quotes import spark_sql
from dqx_airflow.migration.dql_text import (
    column_text,
    columns_exist,
    columns_in_order,
    columns_text,
    number,
    only_columns,
    value_text,
)
from dqx_airflow.migration.foreign_rule import Claims, Meaning, UntranslatableError

_NONE = Condition("==", 0)
_FAILS_IF = re.compile(r"\s*(?P<op><=|>=|!=|==|=|<|>)\s*(?P<bound>\d+)\s*")
_EMPTY = "an empty table passes in dbt but fails here"
ANY_ROW = "> 0"
"""The default condition under which a test fails."""

_WITHIN_STDEVS = "expect_column_values_to_be_within_n_stdevs"
_OF_TWO_TABLES = (
    "equal_expression",
    "equal_rowcount",
    "equality",
    "expect_table_aggregation_to_equal_other_table",
    "expect_table_row_count_to_equal_other_table",
    "expect_table_row_count_to_equal_other_table_times_factor",
    "fewer_rows_than",
)
_OF_THE_NEWEST = (
    "recency",
    "expect_row_values_to_have_recent_data",
    "expect_grouped_row_values_to_have_recent_data",
)


def groups_of(kind: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    """The columns by which a test groups the rows, taken from its arguments.

    :raises UntranslatableError: it compares groups of two tables.
    """
    named = [arguments.pop(key, None) for key in ("group_by_columns", "group_by")]
    columns = next((value for value in named if value), ())
    if columns and kind.rsplit(".", maxsplit=1)[-1] in _OF_TWO_TABLES:
        raise UntranslatableError("comparing groups of two tables has no counterpart")
    names = columns if isinstance(columns, list | tuple) else [columns]
    return tuple(column_text(name) for name in names)


def difference_of(kind: str, arguments: Collection[str] = (), *, is_grouped: bool) -> str | None:
    """When the verdicts of the two tools differ.

    :param arguments: the names of those that are given.
    """
    bare = kind.rsplit(".", maxsplit=1)[-1]
    differences = [ANOMALIES] if is_anomaly_test(kind) else []
    if bare in ORDERS:
        differences.append(
            "NULL is ignored here, while dbt compares each row with the one before it"
        )
    if bare == MOST_COMMON_VALUE:
        differences.append(
            "NULL is ignored; if several values are equally common, all of them have to be listed"
        )
    if bare == "equality" and "compare_columns" in arguments:
        differences.append("a repeated row must occur the same number of times in both tables")
    if bare == "equality" and "compare_columns" not in arguments:
        differences.append("columns are compared by their position in the tables")
    if bare == _WITHIN_STDEVS:
        differences.append(
            "if all values are equal, the test passes in dbt but has no z-score here"
        )
    is_measured = bare in (*ORDERS, *_OF_THE_NEWEST, MOST_COMMON_VALUE, "sequential_values")
    if is_measured or is_grouped:
        differences.append(_EMPTY)
    return "; ".join(differences) or None


def meaning_of(kind: str, arguments: Arguments, fails_if: str) -> Meaning:
    """The translation of a test that fails at a number of rows, such as `> 0`.

    :raises UntranslatableError: it has no counterpart.
    """
    bare = kind.rsplit(".", maxsplit=1)[-1]
    if (claims := elementary_claims(kind, arguments)) is not None:
        return _untolerant(claims, fails_if)
    if bare in _GENERIC:
        translate, parameters = _GENERIC[bare]
        arguments.only(*parameters)
        demands = translate(arguments)
        if isinstance(demands, Claims):
            return _untolerant(demands, fails_if)
        about = arguments.path if arguments.column or "column_name" in arguments else None
        return Translation(bare, _tolerant(demands, fails_if, about), about)
    if "dbt_expectations." in kind or kind.startswith("expect_"):
        return _untolerant(expectation_of(bare, arguments), fails_if)
    raise UntranslatableError("it has no counterpart")


def _untolerant(meaning: Meaning, fails_if: str) -> Meaning:
    """:raises UntranslatableError: the test tolerates a number of rows."""
    if fails_if != ANY_ROW:
        raise UntranslatableError(f"failing if rows {fails_if} has no counterpart here")
    return meaning


def _tolerant(demands: tuple[Demand, ...], fails_if: str, about: str | None) -> tuple[Demand, ...]:
    """The demands of a test that fails at a number of rows, such as `> 10`."""
    if fails_if == ANY_ROW:
        return demands
    match = _FAILS_IF.fullmatch(fails_if)
    opposite = {">": "<=", ">=": "<"}.get(match["op"]) if match else None
    if match is None or opposite is None:
        raise UntranslatableError(f"failing if rows {fails_if} has no counterpart")
    condition = Condition(opposite, int(match["bound"]))
    match demands:
        case (Unique(columns=columns),):
            return (QueryGives(_repeated_values(columns), condition),)
        case (Required(),) if about is not None:
            return (MetricRule("null_count", (about,), condition),)
        case (RowsSatisfy(predicate, dialect),):
            query = aggregate_query(f"count_if(NOT ({predicate}))")
            return (QueryGives(query, condition, dialect),)
        case (OneOf() | Bound() as demand,) if about is not None:
            query = aggregate_query(f"count_if(NOT ({value_predicate(about, demand)}))")
            return (QueryGives(query, condition),)
    raise UntranslatableError(f"failing if rows {fails_if} has no counterpart here")


def _recent(arguments: Arguments) -> tuple[Demand, ...]:
    part = str(arguments.get("datepart"))
    if part not in PERIOD_S:
        raise UntranslatableError("its interval must be in minutes, hours, days or weeks")
    column = column_text(arguments.get("timestamp_column") or arguments.path)
    return (Fresh(column, number(arguments.get("interval")) * PERIOD_S[part]),)


def _distinct_count(op: str) -> Callable[[Arguments], tuple[Demand, ...]]:
    return lambda arguments: (
        MetricRule(
            "unique_count", (arguments.path,), Condition(op, number(arguments.get("value")))
        ),
    )


def _consistent_casing(arguments: Arguments) -> tuple[Demand, ...]:
    name = arguments.sql
    query = aggregate_query(f"count(DISTINCT {name}) - count(DISTINCT lower({name}))")
    return (QueryGives(query, _NONE),)


def _within_stdevs(arguments: Arguments) -> Claims:
    most = value_text(number(arguments.get("sigma_threshold", 3)))
    column = arguments.path
    return Claims("within_stdevs", (f"max_z_score({column}) <= {most}",), column)


def _aggregation(arguments: Arguments) -> Claims:
    expression = spark_sql(arguments.get("expression"))
    other = column_text(arguments.relation("compare_model"))
    expected = f"sql({value_text(expression)}, dataset {arguments.dataset})"
    compared = value_text(str(arguments.get("compare_expression") or expression))
    return Claims(
        "aggregation", (f"{expected} == sql({compared}, dataset {other})",), others=(other,)
    )


def _about_columns(
    claims: Callable[[list[Any]], tuple[str, ...]],
) -> Callable[[Arguments], Claims]:
    """A test about the columns that a table has."""
    return lambda arguments: Claims("columns", claims(arguments.list_of("column_list")))


def _beside_other(kind: str, metric: str, op: str = "==") -> Callable[[Arguments], Claims]:
    """A test that compares a metric of two tables; the braces stand for the table."""

    def claims(arguments: Arguments) -> Claims:
        dataset, other = arguments.dataset, column_text(arguments.relation("compare_model"))
        factor = number(arguments.get("factor", 1))
        times = f" * {value_text(factor)}" if factor != 1 else ""
        text = f"{metric.format(dataset)} {op} {metric.format(other)}{times}"
        return Claims(kind, (text,), others=(other,))

    return claims


def _accepted_values(arguments: Arguments) -> tuple[Demand, ...]:
    values = arguments.list_of("values")
    if arguments.get("quote") is not False:
        # dbt compares strings unless configured otherwise, and casts the column.
        return (RowsSatisfy(f"{arguments.sql} IN ({_strings(values)})"),)
    return (OneOf(tuple(values)),)


def _not_accepted_values(arguments: Arguments) -> tuple[Demand, ...]:
    return (RowsSatisfy(f"{arguments.sql} NOT IN ({_strings(arguments.list_of('values'))})"),)


def _strings(values: list[Any]) -> str:
    return ", ".join(quote_literal(value) for value in values)


def _reference(arguments: Arguments) -> Refers:
    field = column_text(arguments.get("field"))
    return Refers((arguments.path,), arguments.relation("to"), (field,))


def _relationships_where(arguments: Arguments) -> tuple[Demand, ...] | Claims:
    among = str(arguments.get("to_condition", "1=1"))
    if among.replace(" ", "") != "1=1":
        return _refers_to_some(arguments, spark_sql(among))
    reference, where = _reference(arguments), arguments.get("from_condition")
    return (AmongRows(reference, str(where)) if where else reference,)


def _refers_to_some(arguments: Arguments, among: str) -> Claims:
    """That the values occur in those rows of the other table that meet a condition."""
    other, field = column_text(arguments.relation("to")), column_text(arguments.get("field"))
    name = sql_name(field)
    referenced = " ".join(
        ("SELECT", name, "FROM", sql_name(other), f"WHERE ({among}) AND {name} IS NOT NULL")
    )
    condition = spark_sql(arguments.get("from_condition") or "1=1")
    lost = f"WHERE ({condition}) AND {arguments.sql} NOT IN ({referenced})"
    query = " ".join(("SELECT count(*) FROM", sql_name(arguments.dataset), lost))
    return Claims(
        "relationships", (f"query({value_text(query)}) == 0",), arguments.path, others=(other,)
    )


def _repeated_values(columns: tuple[str, ...]) -> str:
    """The query for the number of values that rows share."""
    names = ", ".join(map(sql_name, columns))
    present = " AND ".join(f"{sql_name(column)} IS NOT NULL" for column in columns)
    rows = ("SELECT 1 FROM {model} WHERE", present, "GROUP BY", names, "HAVING count(*) > 1")
    return " ".join(("SELECT count(*) FROM (", *rows, ") AS repeated"))


def _equality(arguments: Arguments) -> Claims:
    other = column_text(arguments.relation("compare_model"))
    if "compare_columns" not in arguments:
        rows = [
            " ".join(("SELECT * FROM", sql_name(dataset))) for dataset in (arguments.dataset, other)
        ]
        return Claims("equality", (_are_equal(*rows),), others=(other,))
    columns = columns_text(arguments.list_of("compare_columns"))
    text = f"rows of {arguments.dataset} match {other} on ({columns})"
    return Claims("equality", (text,), others=(other,))


def _are_equal(rows: str, other_rows: str) -> str:
    """The claim that two queries give the same rows, however often."""
    differences = f"(({rows} EXCEPT {other_rows}) UNION ALL ({other_rows} EXCEPT {rows}))"
    text = " ".join(("SELECT count(*) FROM", differences, "AS differing"))
    return f"query({value_text(text)}) == 0"


def _cardinality_equality(arguments: Arguments) -> Claims:
    """That each value has as many rows in both tables."""
    other = column_text(arguments.relation("to"))
    counts = [
        " ".join(("SELECT", f"{name}, count(*) FROM {table}", "GROUP BY", name))
        for name, table in (
            (arguments.sql, sql_name(arguments.dataset)),
            (sql_name(column_text(arguments.get("field"))), sql_name(other)),
        )
    ]
    return Claims("cardinality_equality", (_are_equal(*counts),), others=(other,))


_NO_GAPS = {"not_allowed": "=", "allowed": "<=", "required": "<"}
"""How a range ends beside the beginning of the next one, by what is written about gaps."""


def _exclusive_ranges(arguments: Arguments) -> tuple[Demand, ...]:
    """That ranges do not overlap, in the order of their beginnings."""
    lower, upper = (
        sql_name(column_text(arguments.get(f"{end}_bound_column"))) for end in ("lower", "upper")
    )
    beside = _NO_GAPS.get(str(arguments.get("gaps", "allowed")))
    if beside is None:
        raise UntranslatableError(
            f"gaps are allowed, not_allowed or required, not '{arguments['gaps']}'"
        )
    within = "<=" if arguments.get("zero_length_range_allowed") else "<"
    partition = arguments.get("partition_by")
    over = f"PARTITION BY {partition} " if partition else ""
    window = f"({over}ORDER BY {lower}, {upper})"
    ranges = (
        f"SELECT {lower} AS low, {upper} AS high, lead({lower}) OVER {window} AS following,",
        f"lead(true) OVER {window} IS NULL AS is_last FROM {{model}}",
    )
    fits = (
        f"coalesce(low {within} high, false) AND coalesce(high {beside} following, is_last, false)"
    )
    text = " ".join(("SELECT", f"count_if(NOT ({fits}))", "FROM (", *ranges, ") AS ranges"))
    return (QueryGives(text, _NONE),)


def _expression_is_true(arguments: Arguments) -> tuple[Demand, ...]:
    expression = spark_sql(arguments.get("expression"))
    if arguments.column is not None:
        expression = f"{arguments.sql} {expression}"
    return (RowsSatisfy(expression),)


def _not_empty_string(arguments: Arguments) -> tuple[Demand, ...]:
    trimmed = arguments.get("trim_whitespace", True)
    value = f"trim({arguments.sql})" if trimmed else arguments.sql
    return (RowsSatisfy(f"{value} <> ''"),)


def _accepted_range(arguments: Arguments) -> tuple[Demand, ...]:
    ends = "=" if arguments.get("inclusive", True) else ""
    demands: list[Demand] = []
    for key, sign in (("min_value", ">"), ("max_value", "<")):
        if (value := arguments.get(key)) is None:
            continue
        if isinstance(value, str):  # another column, or an expression
            demands.append(RowsSatisfy(f"{arguments.sql} {sign}{ends} {value}"))
        else:
            demands.append(Bound(f"{sign}{ends}", number(value)))
    if not demands:
        raise UntranslatableError("it has neither min_value nor max_value")
    return tuple(demands)


def _not_null_proportion(arguments: Arguments) -> tuple[Demand, ...]:
    demands: list[Demand] = [Complete(arguments.path, float(number(arguments.get("at_least", 0))))]
    if (most := arguments.get("at_most")) is not None and most < 1:
        least_null = Condition(">=", round(100 * (1 - float(number(most))), 9))
        demands.append(MetricRule("null_count", (arguments.path,), least_null, is_percent=True))
    return tuple(demands)


def _combination(arguments: Arguments) -> tuple[Demand, ...]:
    columns = arguments.list_of("combination_of_columns")
    names = ", ".join(sql_name(column_text(column)) for column in columns)
    # NULL counts as a value of a combination.
    query = aggregate_query(f"count(*) - count(DISTINCT struct({names}))")
    return (QueryGives(query, _NONE),)


def _recency(arguments: Arguments) -> tuple[Demand, ...]:
    part = str(arguments.get("datepart"))
    if part not in PERIOD_S or arguments.get("ignore_time_component"):
        raise UntranslatableError(
            "its interval must be in minutes, hours, days or weeks, with their time"
        )
    age = number(arguments.get("interval")) * PERIOD_S[part]
    return (Fresh(column_text(arguments.get("field")), age),)


def _sequential_values(arguments: Arguments) -> Claims:
    interval, part = arguments.get("interval", 1), arguments.get("datepart")
    step = value_text(number(interval))
    if part is not None:
        if part not in PERIOD_S:
            raise UntranslatableError(f"a step of a {part} has no counterpart")
        step = f"{step} {part}{'' if interval == 1 else 's'}"
    column = arguments.path
    gaps = f"gap_count({column}, step {step}) == 0"
    return Claims("sequential_values", (gaps, f"repeated_count({column}) == 0"), column)


_COLUMNS = ("column_list", "transform")
_INTERVAL = ("datepart", "interval")
_GENERIC: Mapping[str, tuple[Callable[[Arguments], tuple[Demand, ...] | Claims], Sequence[str]]] = {
    **dict.fromkeys(
        (
            "expect_row_values_to_have_recent_data",
            "expect_grouped_row_values_to_have_recent_data",
        ),
        (_recent, (*_INTERVAL, "timestamp_column")),
    ),
    **{
        f"expect_column_distinct_count_to_{test}": (_distinct_count(op), ("value", "quote_values"))
        for test, op in (("equal", "=="), ("be_greater_than", ">"), ("be_less_than", "<"))
    },
    "expect_column_values_to_have_consistent_casing": (
        _consistent_casing,
        ("display_inconsistent_columns",),
    ),
    _WITHIN_STDEVS: (_within_stdevs, ("sigma_threshold",)),
    **dict.fromkeys(
        ("equal_expression", "expect_table_aggregation_to_equal_other_table"),
        (_aggregation, ("expression", "compare_expression", "compare_model")),
    ),
    "expect_table_column_count_to_equal_other_table": (
        _beside_other("column_count", "column_count(dataset {})"),
        ("compare_model",),
    ),
    "expect_table_columns_to_contain_set": (_about_columns(columns_exist), _COLUMNS),
    "expect_table_columns_to_match_set": (_about_columns(only_columns), _COLUMNS),
    "expect_table_columns_to_match_ordered_list": (_about_columns(columns_in_order), _COLUMNS),
    **dict.fromkeys(
        (
            "expect_table_row_count_to_equal_other_table",
            "expect_table_row_count_to_equal_other_table_times_factor",
        ),
        (_beside_other("row_count", "num_rows(dataset {})"), ("compare_model", "factor")),
    ),
    "not_null": (lambda arguments: (Required(),), ()),
    "unique": (lambda arguments: (Unique((arguments.path,)),), ()),
    "accepted_values": (_accepted_values, ("values", "quote")),
    "relationships": (lambda arguments: (_reference(arguments),), ("to", "field")),
    "relationships_where": (
        _relationships_where,
        ("to", "field", "from_condition", "to_condition"),
    ),
    "equality": (_equality, ("compare_model", "compare_columns")),
    "cardinality_equality": (_cardinality_equality, ("field", "to")),
    "mutually_exclusive_ranges": (
        _exclusive_ranges,
        (
            *("lower_bound_column", "upper_bound_column", "partition_by", "gaps"),
            "zero_length_range_allowed",
        ),
    ),
    "expression_is_true": (_expression_is_true, ("expression",)),
    "not_empty_string": (_not_empty_string, ("trim_whitespace",)),
    "accepted_range": (_accepted_range, ("min_value", "max_value", "inclusive")),
    "not_null_proportion": (_not_null_proportion, ("at_least", "at_most")),
    "at_least_one": (
        lambda arguments: (MetricRule("count", (arguments.path,), Condition(">", 0)),),
        (),
    ),
    "not_constant": (
        lambda arguments: (MetricRule("unique_count", (arguments.path,), Condition("!=", 1)),),
        (),
    ),
    "not_accepted_values": (_not_accepted_values, ("values", "quote")),
    "unique_combination_of_columns": (
        _combination,
        ("combination_of_columns", "quote_columns"),
    ),
    "recency": (_recency, (*_INTERVAL, "field", "ignore_time_component")),
    "sequential_values": (_sequential_values, _INTERVAL),
    "equal_rowcount": (_beside_other("row_count", "num_rows(dataset {})"), ("compare_model",)),
    "fewer_rows_than": (
        _beside_other("row_count", "num_rows(dataset {})", "<"),
        ("compare_model",),
    ),
}
"""The tests of dbt and its packages with a translation of their own, by the last part of their
names; each with the arguments that it takes besides the column."""
