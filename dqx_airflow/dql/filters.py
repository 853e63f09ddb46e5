"""Filters: predicates that select the rows of a check, an assertion or a metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dqx_airflow.dql import nodes
from dqx_airflow.dql.walk import parts_of


def joined(*filters: nodes.Expression | None) -> nodes.Expression | None:
    """The conjunction of some filters; None if there is none."""
    whole: nodes.Expression | None = None
    for part in filters:
        if part is not None:
            whole = part if whole is None else nodes.Junction("and", whole, part, part.span)
    return whole


def simple_claims(claim: nodes.Claim) -> Iterator[nodes.Claim]:
    """The claim itself, or the claims that it is composed of."""
    if isinstance(claim, nodes.Composite):
        for part in claim.parts:
            yield from simple_claims(part.claim)
    else:
        yield claim


def calls_in(claim: nodes.Claim) -> Iterator[nodes.Call]:
    """The calls that a claim compares, including nested ones, except for those in filters."""
    if not isinstance(claim, nodes.Measure):
        return
    calls = [part for part in parts_of(claim) if isinstance(part, nodes.Call)]
    filters = (call.where for call in calls if call.where is not None)
    inner = {id(part) for where in filters for part in parts_of(where)}
    yield from (call for call in calls if id(call) not in inner)


def filters_over(check: nodes.Check, assertion: nodes.Assertion) -> tuple[nodes.Expression, ...]:
    """The filters on the rows of an assertion, one for each metric with a filter of its own."""
    around = joined(check.where, assertion.where)
    if isinstance(assertion.claim, nodes.Composite):
        inner = replace(check, where=around)
        of_parts = (filters_over(inner, part) for part in assertion.claim.parts)
        return tuple(dict.fromkeys(where for filters in of_parts for where in filters))
    of_calls = [call.where for call in calls_in(assertion.claim)]
    filters = (joined(around, where) for where in of_calls or [None])
    return tuple(dict.fromkeys(where for where in filters if where is not None))
