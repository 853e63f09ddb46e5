"""A plan as people read it: what is measured where and when, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.plan.model import (
    Applied,
    Constant,
    Measured,
    MetricRequest,
    Plan,
    PlannedAssertion,
    Term,
)

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
    arguments = ", ".join(
        f"[{', '.join(item)}]" if isinstance(item, tuple) else str(item)
        for item in request.arguments
    )
    text = f"{request.metric}({arguments}) of {request.dataset}"
    return text + (f" on {request.date.isoformat()}" if request.date else "")


def describe_term(term: Term) -> str:
    """The term with its requests written out."""
    match term:
        case Constant(value=value):
            return repr(value)
        case Measured(request=request):
            return describe_request(request)
        case Applied(function=function, terms=(left, right)) if function in _INFIX:
            return f"({describe_term(left)} {function} {describe_term(right)})"
        case Applied(function=function, terms=terms):
            return f"{function}({', '.join(map(describe_term, terms))})"


def _pass(plan: Plan, dataset: str) -> Iterator[str]:
    requests = [request for request in plan.requests if request.dataset == dataset]
    days = sorted({request.date for request in requests if request.date})
    when = ", ".join(day.isoformat() for day in days) or "all rows"
    yield f"one pass over {dataset}: {when}"
    aggregates = {
        text: None
        for request in requests
        for text in METRICS[request.metric].aggregates(request.arguments)
    }
    yield from (f"    {text}" for text in aggregates)
    for lookup in plan.lookups:
        if lookup.dataset == dataset:
            yield (
                f"    with {lookup.column} looked up in "
                f"{lookup.reference}.{lookup.reference_column}"
            )
    yield ""


def _assertion(assertion: PlannedAssertion) -> Iterator[str]:
    yield f"    {assertion.severity.value} {assertion.name}"
    yield f"       {describe_term(assertion.term)} {assertion.condition.text}"
    if assertion.disabled_by:
        yield f"       disabled by profile '{assertion.disabled_by}'"
    elif assertion.multiplier != 1.0:
        yield f"       times {assertion.multiplier:g}: profiles {', '.join(assertion.profiles)}"
