"""The columns that a request reads, as far as the suite names them."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.dql import nodes
from dqx_airflow.dql.walk import rewritten
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.schema_check import Match


def columns_of(request: MetricRequest) -> Iterator[str]:
    """The names of the columns that a request reads besides those of its grouping, some more than
    once: `all` for a comparison without a list of columns.

    Spark SQL of the suite may read others.
    """
    for predicate in request.predicates:
        yield from _columns_in(predicate.node)
    yield from request.columns
    if request.definition.scan is Scan.MATCH:
        match = Match.of(request)
        yield from match.keys
        yield from ("all",) if match.compared is None else match.compared


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
