"""Demands on measured values as DQL.

The engine writes its own SQL, with faster patterns; in the text of a suite, patterns stay as in the
contract.
"""

from __future__ import annotations

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.sql_meanings import CountOfRows, SqlAggregate, query_meaning
from dqx_airflow.contracts.compile.sql_predicates import (
    CompiledClaim,
    RuleContext,
    each_row,
    query,
    sql,
)
from dqx_airflow.contracts.compile.values import among, matches
from dqx_airflow.contracts.model import Field
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.builtin import CALLABLE
from dqx_airflow.metrics.derived import MOST_COMMON
from dqx_airflow.metrics.patterns.bounds import bounded, ended
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.predicates import predicate_sql


def spark_text(node: nodes.Expression) -> str:
    """A predicate as Spark SQL.

    :raises NoCounterpartError: a pattern in it cannot decide strings of every length.
    """
    match node:
        case nodes.Junction(op=op, left=left, right=right):
            return f"({spark_text(left)} {op.upper()} {spark_text(right)})"
        case nodes.Not(operand=operand):
            return f"(NOT {spark_text(operand)})"
        case nodes.Matches(operand=nodes.Name(text=name), pattern=pattern):
            decided = bounded(pattern.value)
            if decided.longest is not None:
                raise NoCounterpartError(
                    f"Spark SQL has no bound for the pattern, which can decide strings of "
                    f"{decided.longest:,} characters"
                )
            return f"({quote_name(name)} RLIKE {quote_literal(decided.text)})"
        case nodes.HasFormat(operand=nodes.Name(text=name), format=kind):
            form, text = TEXT_FORMATS[kind.text], quote_name(name)
            return form.sql(text, f"({text} RLIKE {quote_literal(ended(whole(form.pattern)))})")
        case _:
            return predicate_sql(node)


def like_pattern(value: str, pattern: str) -> str:
    """A value, given as Spark SQL, matches a regular expression.

    A string that is too long to be decided does not match: count the rows that do not match.
    """
    decided = bounded(pattern)
    short = "" if decided.longest is None else f"length({value}) <= {decided.longest} AND "
    return f"({short}{value} RLIKE {quote_literal(decided.text)})"


def unique(context: RuleContext, demand: demands.Unique) -> CompiledClaim:
    return CompiledClaim(f"{repeated(demand.columns)} == 0")


def distinct(context: RuleContext, demand: demands.Distinct) -> CompiledClaim:
    if demand.duplicates <= 0:
        return CompiledClaim(f"{repeated(demand.columns)} == 0")
    most = show_number(terms.share(demand.duplicates))
    return CompiledClaim(f"{repeated(demand.columns)} / num_rows() <= {most}")


def complete(context: RuleContext, demand: demands.Complete) -> CompiledClaim:
    column = show(terms.column(demand.column))
    if demand.share >= 1:
        return CompiledClaim(f"null_count({column}) == 0")
    return CompiledClaim(
        f"count({column}) / num_rows() >= {show_number(terms.share(demand.share))}"
    )


def all_complete(context: RuleContext, demand: demands.AllComplete) -> CompiledClaim:
    counts = [f"null_count({show(terms.column(item.path))})" for item in context.model.fields]
    if not counts:
        raise NoCounterpartError("the contract lists no columns")
    if demand.share >= 1:
        return CompiledClaim(f"{' + '.join(counts)} == 0")
    most = show_number(terms.share(round(1 - demand.share, 12)))
    missing = f"({' + '.join(counts)})" if len(counts) > 1 else counts[0]
    return CompiledClaim(f"coalesce({missing} / (num_rows() * {len(counts)}), 0) <= {most}")


def measured(context: RuleContext, demand: demands.MetricRule) -> CompiledClaim:
    """A metric with a condition. A count of rows becomes a demand on each of them if possible: then
    failing rows can be shown."""
    if demand.metric == MOST_COMMON:
        column, item = _subject(context, demand)
        membership = among(column, demand.values, item)
        if isinstance(membership, nodes.Member):
            return CompiledClaim(f"{MOST_COMMON}({show(column)}, 1) in {show(membership.choices)}")
    counted = _COUNTED.get(demand.metric)
    if counted is None:
        expression = _metric(demand)
    else:
        bad = counted(context, demand)
        condition = demand.condition
        if condition == demands.NONE or (condition.op == "<=" and condition.bound == 0):
            return each_row(terms.negation(bad))
        expression = (
            f"num_rows(where {show(bad)})"
            if context.is_filtered
            else sql(f"count_if({spark_text(bad)})")
        )
    if demand.is_percent:
        return CompiledClaim(compared(f"{expression} / num_rows()", demand.condition, "%"))
    return CompiledClaim(compared(expression, demand.condition))


def query_gives(context: RuleContext, demand: demands.QueryGives) -> CompiledClaim:
    rule = query_meaning(context, demand)
    if isinstance(rule, CountOfRows):
        if demand.condition == demands.NONE:
            return each_row(terms.negation(rule.predicate))
        return CompiledClaim(
            compared(sql(f"count_if({spark_text(rule.predicate)})"), demand.condition)
        )
    if isinstance(rule, SqlAggregate):
        return CompiledClaim(compared(sql(rule.sql), demand.condition))
    other_datasets = tuple(name for name in rule.datasets if name != context.model.name)
    return CompiledClaim(compared(query(rule.sql), demand.condition), other_datasets)


def repeated(columns: tuple[str, ...]) -> str:
    """The number of rows that repeat another one, except for those with NULL in the columns."""
    listed = ", ".join(show(terms.column(column)) for column in columns)
    return f"repeated_count({listed if len(columns) == 1 else f'[{listed}]'})"


def compared(expression: str, condition: demands.Condition, unit: str = "") -> str:
    """An expression with its condition; bounds are in the unit."""
    op, low, high = condition.op, condition.bound, condition.high
    if op == "between" and high is not None:
        return f"{expression} between {_bound(low, unit)} and {_bound(high, unit)}"
    if op == "not between" and high is not None:
        # A value outside of both bounds is further from their middle than they are.
        middle, half = (low + high) / 2, (high - low) / 2
        return f"abs({expression} - {_bound(middle, unit)}) > {_bound(half, unit)}"
    return f"{expression} {op} {_bound(low, unit)}"


def _bound(value: int | float, unit: str) -> str:
    return f"{show(terms.number(value))}{unit}"


def _metric(demand: demands.MetricRule) -> str:
    if demand.metric == "duplicate_count":
        return repeated(demand.arguments)
    if demand.metric not in CALLABLE:
        hint = did_you_mean(demand.metric, CALLABLE)
        raise NoCounterpartError(f"unknown metric '{demand.metric}': {hint}")
    arguments = ", ".join(show(terms.column(column)) for column in demand.arguments)
    return f"{demand.metric}({arguments})"


def _invalid(context: RuleContext, demand: demands.MetricRule) -> nodes.Expression:
    """A value is none of the valid ones."""
    column, item = _subject(context, demand)
    valid = _listed(column, demand, item)
    if not valid:
        raise NoCounterpartError("it does not define which values are valid")
    return terms.negated(_joined(valid, "and"))


def _missing(context: RuleContext, demand: demands.MetricRule) -> nodes.Expression:
    """The value is NULL, or one of those that mean a missing value."""
    column, item = _subject(context, demand)
    try:
        listed = _listed(column, demand, item)
    except NoCounterpartError:
        if demand.pattern is not None:
            raise
        listed = []  # No value of a numeric column is such a string.
    return _joined([terms.is_null(column), *listed], "or")


def _equal(context: RuleContext, demand: demands.MetricRule) -> nodes.Expression:
    """A value is one of those that are counted."""
    column, item = _subject(context, demand)
    predicates = _listed(column, demand, item)
    if not predicates:
        raise NoCounterpartError("it does not define which values are counted")
    return _joined(predicates, "or")


_COUNTED = {"invalid_count": _invalid, "missing_count": _missing, "count_values": _equal}
"""Metrics that count the rows for which a predicate is true."""


def _subject(context: RuleContext, demand: demands.MetricRule) -> tuple[nodes.Name, Field | None]:
    if len(demand.arguments) != 1:
        raise NoCounterpartError(f"{demand.metric} takes exactly one column")
    (path,) = demand.arguments
    return terms.column(path), context.field_at(path)


def _listed(
    column: nodes.Name, demand: demands.MetricRule, item: Field | None
) -> list[nodes.Expression]:
    predicates = []
    if demand.values:
        predicates.append(among(column, demand.values, item))
    if demand.pattern is not None:
        predicates.append(matches(column, demands.Pattern(demand.pattern), item))
    return predicates


def _joined(predicates: list[nodes.Expression], op: str) -> nodes.Expression:
    joined = predicates[0]
    for predicate in predicates[1:]:
        joined = nodes.Junction(op, joined, predicate, terms.NOWHERE)
    return joined
