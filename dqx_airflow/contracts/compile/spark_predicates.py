"""Predicates of DQL as Spark SQL."""

from __future__ import annotations

from dqx_airflow.dql import nodes
from dqx_airflow.errors import NoCounterpartError
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
            form = TEXT_FORMATS[kind.text]
            text = quote_name(name)
            return form.sql(text, f"({text} RLIKE {quote_literal(ended(whole(form.pattern)))})")
        case _:
            return predicate_sql(node)


def matches_sql(value: str, pattern: str) -> str:
    """Spark SQL that is true if a value, given as Spark SQL, matches a regular expression.

    A string that is too long to be decided does not match, so it counts as a violation.
    """
    decided = bounded(pattern)
    short = "" if decided.longest is None else f"length({value}) <= {decided.longest} AND "
    return f"({short}{value} RLIKE {quote_literal(decided.text)})"
