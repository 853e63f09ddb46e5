"""The table of built-in metrics: ONE entry a metric. Adding one here is all that it takes."""

from __future__ import annotations

from dqx_airflow.metrics.registry import Argument, Arguments, Family, Kind, Metric, Unit
from dqx_airflow.metrics.sql import quote_literal, quote_name

_ANY = Argument("column", Kind.COLUMN)
_NUMBER = Argument("column", Kind.COLUMN, frozenset({Family.NUMBER}))
_TEXT = Argument("column", Kind.COLUMN, frozenset({Family.TEXT}))
_ORDERED = Argument(
    "column", Kind.COLUMN, frozenset({Family.NUMBER, Family.TEXT, Family.TIME, Family.BOOLEAN})
)


def _column(arguments: Arguments) -> str:
    return quote_name(arguments[0])


def _distinct_tuples(arguments: Arguments) -> str:
    # A struct is never NULL, so NULL equals NULL here for one column as for many.
    columns = (arguments[0],) if isinstance(arguments[0], str) else arguments[0]
    return f"count(DISTINCT struct({', '.join(quote_name(column) for column in columns)}))"


_ENTRIES = (
    Metric(
        "num_rows",
        (),
        Unit.ROWS,
        "The number of rows.",
        "assert num_rows() >= 1000",
        lambda _: ("count(1)",),
        empty=0,
    ),
    Metric(
        "count",
        (_ANY,),
        Unit.ROWS,
        "The number of rows in which the column is not NULL.",
        "assert count(departure) > 0",
        lambda arguments: (f"count({_column(arguments)})",),
        empty=0,
    ),
    Metric(
        "null_count",
        (_ANY,),
        Unit.ROWS,
        "The number of rows in which the column is NULL.",
        "assert null_count(email) / num_rows() < 5%",
        lambda arguments: (f"count_if({_column(arguments)} IS NULL)",),
        empty=0,
    ),
    Metric(
        "average",
        (_NUMBER,),
        Unit.COLUMN,
        "The mean of the column, NULL ignored.",
        "assert average(price) > 0",
        lambda arguments: (f"try_avg({_column(arguments)})",),
    ),
    Metric(
        "sum",
        (_NUMBER,),
        Unit.COLUMN,
        "The total of the column, NULL ignored; no value where it overflows.",
        "assert sum(revenue) is positive",
        lambda arguments: (f"try_sum({_column(arguments)})",),
    ),
    Metric(
        "minimum",
        (_ORDERED,),
        Unit.COLUMN,
        "The smallest value of the column, NULL ignored.",
        "assert minimum(quantity) >= 0",
        lambda arguments: (f"min({_column(arguments)})",),
    ),
    Metric(
        "maximum",
        (_ORDERED,),
        Unit.COLUMN,
        "The largest value of the column, NULL ignored.",
        "assert maximum(temperature) < 60",
        lambda arguments: (f"max({_column(arguments)})",),
    ),
    Metric(
        "variance",
        (_NUMBER,),
        Unit.SQUARED,
        "The sample variance of the column; no value below two values.",
        "assert sqrt(variance(score)) < 10",
        lambda arguments: (f"var_samp({_column(arguments)})", f"count({_column(arguments)})"),
        value=lambda results: (
            results[0] if isinstance(results[1], int) and results[1] > 1 else None
        ),
    ),
    Metric(
        "unique_count",
        (_ANY,),
        Unit.VALUES,
        "The number of distinct values of the column, NULL ignored.",
        "assert unique_count(carrier) between 10 and 20",
        lambda arguments: (f"count(DISTINCT {_column(arguments)})",),
        empty=0,
    ),
    Metric(
        "duplicate_count",
        (Argument("columns", Kind.COLUMNS),),
        Unit.ROWS,
        "Rows minus distinct combinations of the columns; NULL equals NULL.",
        "assert duplicate_count([order_id, line]) == 0",
        lambda arguments: ("count(1)", _distinct_tuples(arguments)),
        value=lambda results: int(results[0] or 0) - int(results[1] or 0),
        empty=0,
    ),
    Metric(
        "count_values",
        (_ANY, Argument("value", Kind.LITERAL)),
        Unit.ROWS,
        "The number of rows in which the column equals the value.",
        'assert count_values(status, "pending") < 100',
        lambda arguments: (f"count_if({_column(arguments)} = {quote_literal(arguments[1])})",),
        empty=0,
    ),
    Metric(
        "min_length",
        (_TEXT,),
        Unit.CHARACTERS,
        "The length of the shortest text, NULL ignored.",
        "assert min_length(tax_id) == 64",
        lambda arguments: (f"min(char_length({_column(arguments)}))",),
    ),
    Metric(
        "max_length",
        (_TEXT,),
        Unit.CHARACTERS,
        "The length of the longest text, NULL ignored.",
        "assert max_length(name) <= 80",
        lambda arguments: (f"max(char_length({_column(arguments)}))",),
    ),
    Metric(
        "violating_rows",
        (Argument("predicate", Kind.PREDICATE),),
        Unit.ROWS,
        "The number of rows for which the predicate is false (not NULL).",
        "assert each row: price > 0",
        lambda arguments: (f"count_if(NOT ({arguments[0]}))",),
        empty=0,
        is_internal=True,
    ),
    Metric(
        "satisfying_share",
        (Argument("predicate", Kind.PREDICATE),),
        Unit.SHARE,
        "The share of rows for which the predicate holds, among those where it is not NULL.",
        'assert 95% of rows: email matches "@"',
        lambda arguments: (f"count_if({arguments[0]})", f"count(({arguments[0]}))"),
        value=lambda results: int(results[0] or 0) / int(results[1]) if results[1] else None,
        is_internal=True,
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ENTRIES}
"""All metrics by name."""

CALLABLE: tuple[str, ...] = tuple(m.name for m in _ENTRIES if not m.is_internal)
"""The names that a suite may call."""
