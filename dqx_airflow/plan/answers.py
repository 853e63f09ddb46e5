"""The values of requests, computed from the results of their aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from dqx_airflow.metrics.spark_values import is_finite
from dqx_airflow.metrics.sql import OVERFLOW, has_overflown
from dqx_airflow.plan import predicates, schema_check
from dqx_airflow.plan.model import MetricRequest, Scanned
from dqx_airflow.plan.passes import AggregateResults, Needed
from dqx_airflow.values import MetricValue


def answer(needed: Needed, results: AggregateResults, scanned: Scanned) -> None:
    """Adds the value of each request without a grouping, or the reason why it has none."""
    for request in needed.parts:
        _answer(request, needed, results, scanned)


def _answer(
    request: MetricRequest, needed: Needed, results: AggregateResults, scanned: Scanned
) -> None:
    """Adds the value of a request, from the results of its aggregates, or why it has none."""
    aggregates = needed.parts[request]
    undecided = needed.filters.get(request, ())
    texts = [aggregate.sql for aggregate in (*aggregates, *undecided)]
    reasons = [results.broken[sql] for sql in texts if sql in results.broken]
    if reasons:
        scanned.failures[request] = reasons[0]
        return
    scanned.origins[request] = results.origin(request.date, texts)
    if request.date in results.absent:
        scanned.values[request] = request.definition.empty
        return
    found = tuple(results.values[request.date, aggregate.sql] for aggregate in aggregates)
    open_rows = sum(int(results.values[request.date, one.sql] or 0) for one in undecided)
    if open_rows:
        predicates.fail_undecided(request, open_rows, needed.types, scanned)
        return
    if has_overflown(aggregates, found, needed.types.of_column):
        scanned.failures[request] = OVERFLOW
        return
    voids = tuple(predicates.voids_of(request, needed.types))
    scanned.values[request], detail = value_of(request, found, voids)
    if detail is not None:
        scanned.details[request] = detail


def value_of(
    request: MetricRequest, results: Sequence[MetricValue], voids: Sequence[str]
) -> tuple[MetricValue, str | None]:
    """The value of a request; if NaN or infinity leaves it without one, the reason.

    :param results: the results of its aggregates, and the counts of NaN in the columns `voids`.
    """
    width = len(results) - len(voids)
    pairs = zip(voids, results[width:], strict=True)
    nan_counts = {column: int(count or 0) for column, count in pairs}
    if any(nan_counts.values()):
        return None, schema_check.nan_detail(nan_counts)
    own = tuple(results[:width])
    if not all(map(is_finite, own)):
        return None, schema_check.INFINITE
    return request.definition.value(request.arguments, own), None
