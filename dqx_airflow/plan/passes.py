"""The reads of a dataset, and their reasons: the passes over its rows, as far as a plan determines
them.

What the transaction log or an earlier run answers needs no pass; that is known only when the gate
runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date

from dqx_airflow.dql import nodes
from dqx_airflow.dql.walk import rewritten
from dqx_airflow.metrics.metric import Aggregate, ArgumentKind, Frequencies, Scan, Statistic
from dqx_airflow.plan.matching import is_about_rows, shared_matches
from dqx_airflow.plan.model import MetricRequest, Plan, row_count
from dqx_airflow.plan.predicates import UNTYPED, aggregates_of, undecided_rows

ROWS = "each row is read once, for all metrics that need single rows"
KEYS = (
    "keys need a shuffle: one pass counts the hashes of all keys, and repeated hashes are "
    "counted exactly"
)
VALUES = "distinct values need a shuffle of their own; with few rows they share the pass"
FREQUENCIES = "values are counted first: one pass for each list of columns and each filter"
STEPS = "rows are sorted, because each is compared with the previous one"
MATCHED = "rows of two datasets are compared: their keys and values are shuffled once"
QUERY = "a query in the suite runs as a separate SELECT"
LATER = "only if the minimum or maximum is outside a range: counts the rows that violate it"

MOST_COMPILED = 250
"""The maximum number of aggregates in a pass over many rows. Spark compiles two fields for each, up
to `spark.sql.codegen.maxFields`; several compiled passes are faster than one that is interpreted.
"""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass over the rows of some dates, or over all rows if there are none.

    `columns` are those that are named, `has_sql` is set if Spark SQL may name others. `unmerged` is
    the SQL whose results over parts of the rows cannot be merged.
    """

    sql: tuple[str, ...]
    columns: tuple[str, ...]
    dates: tuple[date, ...]
    reason: str
    has_sql: bool = False
    unmerged: tuple[str, ...] = ()


def passes_over(plan: Plan, dataset: str) -> Iterator[Pass]:
    """The passes over a dataset, each with its reason."""
    requests = [request for request in plan.requests if request.dataset == dataset]
    for request in requests:
        if request.definition.scan is Scan.QUERY:
            yield _pass([request], request.arguments, QUERY, [request])
    yield from _matches(plan, dataset)
    requested = [
        (request, aggregate)
        for request in requests
        if request.definition.scan is Scan.FLAT
        for aggregate in (*aggregates_of(request), *_of_filter(request))
    ]
    deferral = defer_answerable(dict.fromkeys(aggregate for _, aggregate in requested))
    requested += [
        (request, extra)
        for request, aggregate in requested
        if aggregate in deferral.later and aggregate.shortcut
        for extra in aggregate.shortcut.asks
    ]
    for reason in (ROWS, KEYS, VALUES, FREQUENCIES, STEPS, LATER):
        pairs = [
            (request, aggregate)
            for request, aggregate in requested
            if _reason(aggregate, deferral) is reason
        ]
        # Counting rows reads no column.
        reading = [
            request for request, aggregate in pairs if aggregate.statistic is not Statistic.ROWS
        ]
        if pairs:
            sql = (aggregate.sql for _, aggregate in pairs)
            scan_pass = _pass((request for request, _ in pairs), sql, reason, reading)
            unmerged = dict.fromkeys(
                aggregate.sql for _, aggregate in pairs if aggregate.merge is None
            )
            yield replace(scan_pass, unmerged=tuple(unmerged))


def _of_filter(request: MetricRequest) -> tuple[Aggregate, ...]:
    undecided = undecided_rows(request.where, UNTYPED) if request.where is not None else None
    return () if undecided is None else (undecided,)


def _matches(plan: Plan, dataset: str) -> Iterator[Pass]:
    """The passes over a dataset for comparisons with others."""
    requests = [
        request
        for request in plan.requests
        if is_about_rows(request) and dataset in request.datasets
    ]
    dates = (plan.date,) if row_count(dataset, plan.date) in plan.requests else ()
    for match in shared_matches(requests):
        text = f"rows of {match.dataset} beside rows of {match.reference}"
        columns = ("all",) if match.compared is None else match.compared
        named = tuple(sorted({*match.keys, *columns}))
        yield Pass((text,), named, dates, MATCHED, unmerged=(text,))


def _pass(
    requests: Iterable[MetricRequest],
    sql: Iterable[str],
    reason: str,
    reading: Collection[MetricRequest],
) -> Pass:
    """A pass for some requests, of which those in `reading` read columns."""
    return Pass(
        tuple(dict.fromkeys(sql)),
        tuple(sorted({name for request in reading for name in _columns_of(request)})),
        tuple(sorted({request.date for request in requests if request.date})),
        reason,
        any(
            argument.kind is ArgumentKind.SQL
            for request in reading
            for argument, _ in request.given
        ),
    )


@dataclass(frozen=True, slots=True)
class Deferral:
    """Aggregates that shortcuts may answer come `later`, if at all; `extra` is what these need."""

    later: frozenset[Aggregate]
    extra: tuple[Aggregate, ...]


def defer_answerable(aggregates: Iterable[Aggregate]) -> Deferral:
    """The aggregates that wait for their shortcuts, if less is computed then.

    :param aggregates: those whose values are not known.
    """
    requested = dict.fromkeys(aggregates)
    buffers = {_buffer(aggregate) for aggregate in requested}
    waiting: dict[tuple[Aggregate, ...], list[Aggregate]] = {}
    for aggregate in requested:
        if aggregate.shortcut is not None:
            waiting.setdefault(aggregate.shortcut.asks, []).append(aggregate)
    later: list[Aggregate] = []
    extra: dict[Aggregate, None] = {}
    for asks, items in waiting.items():
        if len(items) > sum(_buffer(aggregate) not in buffers for aggregate in asks):
            later += items
            extra.update(
                dict.fromkeys(aggregate for aggregate in asks if aggregate not in requested)
            )
    return Deferral(frozenset(later), tuple(extra))


def _buffer(aggregate: Aggregate) -> object:
    """What Spark keeps while it reads rows: equal for an extreme and for its string."""
    return (aggregate.statistic, aggregate.column) if aggregate.statistic else aggregate.sql


def _reason(aggregate: Aggregate, deferral: Deferral) -> str:
    if aggregate in deferral.later:
        return LATER
    if aggregate.over is not None:
        return FREQUENCIES if isinstance(aggregate.over, Frequencies) else STEPS
    if not aggregate.distinct:
        return ROWS
    return KEYS if aggregate.is_key else VALUES


def _columns_of(request: MetricRequest) -> Iterator[str]:
    for predicate in request.predicates:
        yield from _columns_in(predicate.node)
    yield from request.columns


def _columns_in(node: nodes.Expression) -> list[str]:
    """The columns of the dataset that a predicate names, except those that a lookup looks into."""
    reasons: list[str] = []

    def note(part: object) -> object:
        match part:
            case nodes.Name(text=text):
                reasons.append(text)
            case nodes.Call(name=nodes.Name(text="values")):
                return part
        return None

    rewritten(node, note)
    return reasons
