"""A plan in readable form: what is measured where and when, and the conditions on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta

from dqx_airflow.diagnostics.listing import listed
from dqx_airflow.dql.printer import show
from dqx_airflow.plan.model import (
    Applied,
    Claimed,
    ConstantTerm,
    Measured,
    MetricRequest,
    Now,
    Plan,
    PlannedAssertion,
    RowPredicate,
    Term,
    joined,
)
from dqx_airflow.plan.passes import LATER, MOST_COMPILED, QUERY, ROWS, Pass, passes_over
from dqx_airflow.plan.predicates import aggregates_of
from dqx_airflow.values.exact import exact_text

_INFIX = ("+", "-", "*", "/")


def describe_plans(plans: Sequence[Plan]) -> str:
    """The passes over the datasets for the plans of some dates, then the assertions in order."""
    together = joined(plans)
    lines = [f"suite {together.suite}", f"date  {_stretches([plan.date for plan in plans])}", ""]
    for dataset in dict.fromkeys(request.dataset for request in together.requests):
        lines += _passes(together, dataset)
    for plan in plans:
        lines.append("assertions" + (f" of {plan.date.isoformat()}" if len(plans) > 1 else ""))
        for assertion in plan.assertions:
            lines += _assertion(assertion)
    return "\n".join(lines)


def describe_request(request: MetricRequest) -> str:
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
        case RowPredicate(node=node):
            return show(node)
        case _:
            return str(item)


def describe_term(term: Term) -> str:
    """The term with its requests written out."""
    match term:
        case ConstantTerm(value=value):
            return repr(value)
        case Now():
            return "now"
        case Measured(request=request):
            return describe_request(request)
        case Claimed(junctor=junctor, parts=parts):
            claims = (f"{describe_term(claim.term)} {claim.condition.text}" for claim in parts)
            return f"{junctor.value}({'; '.join(claims)})"
        case Applied(function=function, terms=(left, right)) if function in _INFIX:
            return f"({describe_term(left)} {function} {describe_term(right)})"
        case Applied(function=function, terms=terms):
            return f"{function}({', '.join(map(describe_term, terms))})"


def _passes(plan: Plan, dataset: str) -> Iterator[str]:
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
            day, names = plan.date.isoformat(), listed(asking)
            yield (
                f"    days before {day}: for {names}; in a separate pass if they need far "
                f"fewer rows"
            )
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


def _asking_for_earlier_days(plan: Plan, dataset: str, scan_pass: Pass) -> Iterator[str]:
    """The assertions that need values of days before the date of the plan."""
    for assertion in plan.assertions:
        requests = (request for request in assertion.requests if request.dataset == dataset)
        earlier = (
            request for request in requests if request.date is not None and request.date < plan.date
        )
        if any(part.sql in scan_pass.sql for request in earlier for part in aggregates_of(request)):
            yield assertion.name


def _lookups(plan: Plan, dataset: str) -> Iterator[str]:
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


def _assertion(assertion: PlannedAssertion) -> Iterator[str]:
    yield f"    {assertion.severity.value} {assertion.name}"
    yield f"       {describe_term(assertion.term)} {assertion.condition.text}"
    if assertion.disabled_by:
        yield f"       disabled by profile '{assertion.disabled_by}'"
    elif assertion.multiplier != 1.0:
        times = exact_text(assertion.multiplier)
        yield f"       times {times}: profiles {', '.join(assertion.profiles)}"
