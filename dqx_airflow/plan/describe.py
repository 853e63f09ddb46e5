"""A plan as people read it: what is measured where and when, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from dqx_airflow.dql.printer import show
from dqx_airflow.metrics.registry import Scan
from dqx_airflow.plan.model import (
    Applied,
    Constant,
    Measured,
    MetricRequest,
    Now,
    Plan,
    PlannedAssertion,
    RowPredicate,
    Term,
)
from dqx_airflow.plan.predicates import aggregates_of

_INFIX = ("+", "-", "*", "/")


def describe_plan(plan: Plan) -> str:
    """The passes over the datasets first, the assertions in their order after them."""
    lines = [f"suite {plan.suite}", f"date  {plan.date.isoformat()}", ""]
    for dataset in dict.fromkeys(request.dataset for request in plan.requests):
        lines += _pass(plan, dataset)
    lines.append("assertions")
    for assertion in plan.assertions:
        lines += _assertion(assertion)
    return "\n".join(lines)


def describe_request(request: MetricRequest) -> str:
    """`null_count(email) of orders on 2024-11-29`"""
    arguments = ", ".join(_argument(item) for item in request.arguments if item is not None)
    text = f"{request.metric}({arguments}) of {request.dataset}"
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
        case Constant(value=value):
            return repr(value)
        case Now():
            return "now"
        case Measured(request=request):
            return describe_request(request)
        case Applied(function=function, terms=(left, right)) if function in _INFIX:
            return f"({describe_term(left)} {function} {describe_term(right)})"
        case Applied(function=function, terms=terms):
            return f"{function}({', '.join(map(describe_term, terms))})"


def _pass(plan: Plan, dataset: str) -> Iterator[str]:
    requests = [request for request in plan.requests if request.dataset == dataset]
    for request in requests:
        if request.definition.scan is Scan.QUERY:
            yield f"one query: {request.arguments[0]}"
    requests = [item for item in requests if item.definition.scan is Scan.FLAT]
    days = sorted({request.date for request in requests if request.date})
    when = _stretches(days) or "all rows"
    yield f"one pass over {dataset}: {when}"
    aggregates = {item: None for request in requests for item in aggregates_of(request)}
    yield from (f"    {aggregate.sql}" for aggregate in aggregates if not aggregate.distinct)
    distinct = [aggregate.sql for aggregate in aggregates if aggregate.distinct]
    if distinct:
        yield "    counted apart where there are many rows, since each key goes through a shuffle:"
    yield from (f"        {sql}" for sql in distinct)
    for lookup in plan.lookups:
        if lookup.dataset == dataset:
            yield (
                f"    with {lookup.column} looked up in "
                f"{lookup.reference}.{lookup.reference_column}"
            )
    yield ""


def _stretches(days: list[date]) -> str:
    """The days, those that follow each other as `2024-11-01 to 2024-11-29 (29 days)`."""
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
        yield f"       times {assertion.multiplier:g}: profiles {', '.join(assertion.profiles)}"
