"""What a request reads: the columns that the suite names, and Spark SQL that may read others."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.dql import nodes
from dqx_airflow.dql.walk import rewritten
from dqx_airflow.metrics.metric import ArgumentKind, Scan
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.schema_check import Match


def columns_of(request: MetricRequest) -> Iterator[str]:
    """The names of the columns that a request reads besides those of its grouping, some more than
    once: `all` for a comparison without a list of columns.

    Spark SQL of the suite may read others: see `spark_sql_of`.
    """
    for predicate in request.predicates:
        yield from _columns_in(predicate.node)
    yield from request.columns
    if request.definition.scan is Scan.MATCH:
        match = Match.of(request)
        yield from match.keys
        yield from ("all",) if match.compared is None else match.compared


def spark_sql_of(request: MetricRequest) -> Iterator[str]:
    """The Spark SQL that a user wrote in a request, which may read any column."""
    for argument, value in request.given:
        if argument.kind is ArgumentKind.SQL:
            yield str(value)


def _columns_in(node: nodes.Expression) -> list[str]:
    """The columns of the dataset in a predicate, without the reference columns of lookups."""
    names: list[str] = []

    def note(part: object) -> object:
        match part:
            case nodes.Name(text=text):
                names.append(text)
            case nodes.Call(name=nodes.Name(text="values")):
                return part
        return None

    rewritten(node, note)
    return names
