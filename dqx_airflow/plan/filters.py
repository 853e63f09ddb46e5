"""The rows selected by the filter of a request, as Spark SQL and in words.

A row is selected if its filter is true, and excluded if it is false, or NULL because of a NULL in
the row. If it is neither, because a value was lost (overflow, division by zero) or is NaN, it is
unknown where the row belongs: with a single such row, a request has no value.
"""

from __future__ import annotations

from dqx_airflow.dql.printer import show
from dqx_airflow.metrics.builtin.aggregates import rows_where
from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.plan.model import MetricRequest, RowPredicate, Scanned
from dqx_airflow.plan.predicates import causes_of, predicate_sql
from dqx_airflow.plan.row_types import RowTypes


def undecided_rows(where: RowPredicate, types: RowTypes) -> Aggregate | None:
    """The number of rows that a filter cannot decide; None if it can decide all."""
    if not causes_of(where.node, types):
        return None
    chosen, left_out = (
        predicate_sql(where.node, types, is_opposite=is_opposite) for is_opposite in (False, True)
    )
    return rows_where(f"NOT {left_out} AND NOT coalesce({chosen}, false)")


def fail_undecided(request: MetricRequest, count: int, types: RowTypes, scanned: Scanned) -> None:
    """Leaves a request without a value, because its filter cannot decide this many rows."""
    assert request.where is not None
    causes = dict.fromkeys(cause.words for cause in causes_of(request.where.node, types))
    rows = "1 row" if count == 1 else f"{count} rows"
    scanned.failures[request] = (
        f"the filter `{show(request.where.node)}` cannot be decided for {rows}: "
        f"{' or '.join(causes)}"
    )
