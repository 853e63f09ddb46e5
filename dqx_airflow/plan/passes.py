"""The reads of a dataset, and their reasons: the passes over its rows, as far as a plan determines
them.

What the transaction log or an earlier run answers needs no pass; that is known only when the gate
runs.

And a plan in readable form: what is measured where and when, and the conditions on it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import rewritten
from dqx_airflow.metrics.metric import Aggregate, ArgumentKind, Frequencies, Scan, Statistic
from dqx_airflow.plan import model
from dqx_airflow.plan.predicates import UNTYPED, aggregates_of, undecided_rows
from dqx_airflow.plan.schema_check import is_about_rows, shared_matches
from dqx_airflow.values.exact import exact_text

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


def passes_over(plan: model.Plan, dataset: str) -> Iterator[Pass]:
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
        pairs = [pair for pair in requested if _reason(pair[1], deferral) is reason]
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


def _of_filter(request: model.MetricRequest) -> tuple[Aggregate, ...]:
    undecided = undecided_rows(request.where, UNTYPED) if request.where is not None else None
    return () if undecided is None else (undecided,)


def _matches(plan: model.Plan, dataset: str) -> Iterator[Pass]:
    """The passes over a dataset for comparisons with others."""
    about_rows = filter(is_about_rows, plan.requests)
    requests = [request for request in about_rows if dataset in request.datasets]
    dates = (plan.date,) if model.row_count(dataset, plan.date) in plan.requests else ()
    for match in shared_matches(requests):
        text = f"rows of {match.dataset} beside rows of {match.reference}"
        columns = ("all",) if match.compared is None else match.compared
        named = tuple(sorted({*match.keys, *columns}))
        yield Pass((text,), named, dates, MATCHED, unmerged=(text,))


def _pass(
    requests: Iterable[model.MetricRequest],
    sql: Iterable[str],
    reason: str,
    reading: Collection[model.MetricRequest],
) -> Pass:
    """A pass for some requests, of which those in `reading` read columns."""
    kinds = {argument.kind for request in reading for argument, _ in request.given}
    return Pass(
        tuple(dict.fromkeys(sql)),
        tuple(sorted({name for request in reading for name in _columns_of(request)})),
        tuple(sorted({request.date for request in requests if request.date})),
        reason,
        ArgumentKind.SQL in kinds,
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
            extra |= dict.fromkeys(asked for asked in asks if asked not in requested)
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


def _columns_of(request: model.MetricRequest) -> Iterator[str]:
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


_INFIX = ("+", "-", "*", "/")


def describe_plans(plans: Sequence[model.Plan]) -> str:
    """The passes over the datasets for the plans of some dates, then the assertions in order."""
    together = model.joined(plans)
    lines = [f"suite {together.suite}", f"date  {_stretches([plan.date for plan in plans])}", ""]
    for dataset in dict.fromkeys(request.dataset for request in together.requests):
        lines += _passes(together, dataset)
    if together.watched:
        names = ", ".join(together.watched)
        lines.append(f"watched: {names}; what is claimed of columns follows from the data\n")
    for plan in plans:
        lines.append("assertions" + (f" of {plan.date.isoformat()}" if len(plans) > 1 else ""))
        for assertion in plan.assertions:
            lines += _assertion(assertion)
    return "\n".join(lines)


def describe_request(request: model.MetricRequest) -> str:
    """`null_count(email) of orders on 2024-11-29`"""
    parts = [_argument(argument) for argument in request.arguments if argument is not None]
    if request.where is not None:
        parts.append(f"where {_argument(request.where)}")
    text = f"{request.metric}({', '.join(parts)}) of {request.dataset}"
    return text + (f" on {request.date.isoformat()}" if request.date else "")


def _argument(item: object) -> str:
    match item:
        case tuple():
            return f"[{', '.join(map(_argument, item))}]"
        case model.RowPredicate(node=node):
            return show(node)
        case _:
            return str(item)


def describe_term(term: model.Term) -> str:
    """The term with its requests written out."""
    match term:
        case model.ConstantTerm(value=value):
            return repr(value)
        case model.Now():
            return "now"
        case model.KnownDay(dataset=dataset):
            return f"the labels of {dataset}"
        case model.Measured(request=request):
            return describe_request(request)
        case model.Claimed(junctor=junctor, parts=parts):
            claims = (f"{describe_term(claim.term)} {claim.condition.text}" for claim in parts)
            return f"{junctor.value}({'; '.join(claims)})"
        case model.Applied(function=function, terms=(left, right)) if function in _INFIX:
            return f"({describe_term(left)} {function} {describe_term(right)})"
        case model.Applied(function=function, terms=terms):
            return f"{function}({', '.join(map(describe_term, terms))})"


def _passes(plan: model.Plan, dataset: str) -> Iterator[str]:
    for scan_pass in passes_over(plan, dataset):
        if scan_pass.reason is QUERY:
            yield f"one query: {scan_pass.sql[0]}"
            continue
        begin = "if needed, one pass" if scan_pass.reason is LATER else "one pass"
        yield f"{begin} over {dataset}: {_stretches(scan_pass.dates) or 'all rows'}"
        yield f"    why: {scan_pass.reason}"
        if scan_pass.reason is ROWS and len(scan_pass.sql) > MOST_COMPILED:
            parts = math.ceil(len(scan_pass.sql) / MOST_COMPILED)
            yield f"    {parts} passes over many rows: Spark compiles this many aggregates in parts"
        asking = list(_asking_for_earlier_days(plan, dataset, scan_pass))
        if asking:
            asked = f"days before {plan.date.isoformat()}: for {listed(asking)}"
            yield f"    {asked}; in a separate pass if they need far fewer rows"
        yield f"    after an append: {_read_after_an_append(scan_pass)}"
        named = [*scan_pass.columns, *(["those in the Spark SQL"] if scan_pass.has_sql else [])]
        yield f"    columns: {', '.join(named) or 'none'}"
        yield from (f"        {sql}" for sql in scan_pass.sql)
        if scan_pass.reason is ROWS:
            yield from _lookups(plan, dataset)
    yield ""


def _read_after_an_append(scan_pass: Pass) -> str:
    """The reads after files were added to those that an earlier run has measured."""
    everything, unmerged = len(scan_pass.sql), len(scan_pass.unmerged)
    if unmerged == everything:
        return "all files"
    return "only the new files" + (f", but all files for {unmerged} of these" if unmerged else "")


def _asking_for_earlier_days(plan: model.Plan, dataset: str, scan_pass: Pass) -> Iterator[str]:
    """The assertions that need values of days before the date of the plan."""
    for assertion in plan.assertions:
        requests = (request for request in assertion.requests if request.dataset == dataset)
        earlier = (
            request for request in requests if request.date is not None and request.date < plan.date
        )
        if any(part.sql in scan_pass.sql for request in earlier for part in aggregates_of(request)):
            yield assertion.name


def _lookups(plan: model.Plan, dataset: str) -> Iterator[str]:
    for lookup in plan.lookups:
        if lookup.dataset == dataset:
            source = f"{lookup.reference}.{lookup.reference_column}"
            yield f"    with {lookup.column} looked up in {source}"


def _stretches(days: Iterable[date]) -> str:
    """The days, with consecutive ones as `2024-11-01 to 2024-11-29 (29 days)`."""
    runs: list[list[date]] = []
    for day in days:
        if runs and runs[-1][-1] + timedelta(days=1) == day:
            runs[-1].append(day)
        else:
            runs.append([day])
    return ", ".join(
        f"{run[0]} to {run[-1]} ({len(run)} days)" if len(run) > 1 else str(run[0]) for run in runs
    )


def _assertion(assertion: model.PlannedAssertion) -> Iterator[str]:
    yield f"    {assertion.severity.value} {assertion.name}"
    yield f"       {describe_term(assertion.term)} {assertion.condition.text}"
    if assertion.disabled_by:
        yield f"       disabled by profile '{assertion.disabled_by}'"
    elif assertion.multiplier != 1.0:
        times = exact_text(assertion.multiplier)
        yield f"       times {times}: profiles {', '.join(assertion.profiles)}"
