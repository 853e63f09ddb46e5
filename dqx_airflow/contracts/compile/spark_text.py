"""Predicates as Spark SQL that people can read, for what DQL has no words for.

The engine writes its own, with patterns made quick; here they stay as the contract has them.
"""

from __future__ import annotations

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.predicates import predicate_sql


def spark_text(node: nodes.Expression) -> str:
    """A predicate as Spark SQL."""
    match node:
        case nodes.Junction(op=op, left=left, right=right):
            return f"({spark_text(left)} {op.upper()} {spark_text(right)})"
        case nodes.Not(operand=operand):
            return f"(NOT {spark_text(operand)})"
        case nodes.Matches(operand=nodes.Name(text=name), pattern=pattern):
            return like_pattern(quote_name(name), pattern.value)
        case nodes.HasFormat(operand=nodes.Name(text=name), format=kind):
            return like_pattern(quote_name(name), whole(TEXT_FORMATS[kind.text].pattern))
        case _:
            return predicate_sql(node)


def like_pattern(value: str, pattern: str) -> str:
    """That a value, given as Spark SQL, matches a regular expression."""
    return f"({value} RLIKE {quote_literal(pattern)})"
