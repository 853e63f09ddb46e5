"""Hides the values of masked columns, in verdicts and in rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from dqx_airflow.metrics.metric import ArgumentKind
from dqx_airflow.plan.model import MetricRequest, Plan, PlannedAssertion, Term, requests_of
from dqx_airflow.values import MASK, MetricValue, Status, Verdict

Masked: TypeAlias = Mapping[str, tuple[str, ...]]

_CONDITION = re.compile(r"(.*?\[[A-Z][A-Z0-9_.]*\])")


def is_masked(column: str, masked: Iterable[str]) -> bool:
    """True for a masked column, a field of one, and a column with a masked field."""
    name = column.lower()
    return any(
        name == hidden or name.startswith(f"{hidden}.") or hidden.startswith(f"{name}.")
        for hidden in map(str.lower, masked)
    )


def reveals(request: MetricRequest, masked: Masked) -> bool:
    """True if the value of a request derives from values of a masked column.

    Counts, lengths and shares reveal nothing. Spark SQL written by the user does if it mentions a
    masked column, and so do groups by one.

    :param masked: the masked columns of each dataset.
    """
    metric, masked_columns = request.definition, masked.get(request.dataset, ())
    if request.grouping and any(
        is_masked(column, masked_columns) for column in request.grouping.columns
    ):
        return True
    for argument, given in zip(metric.arguments, request.arguments, strict=False):
        if argument.kind is ArgumentKind.SQL:
            # A query sees all datasets.
            columns = {column for hidden in masked.values() for column in hidden}
            return any(column.split(".")[-1].lower() in given.lower() for column in columns)
    if not metric.unit.is_of_column:
        return False
    return is_masked(request.arguments[0], masked_columns)


def reveals_any(term: Term, masked: Masked) -> bool:
    """True if a request of a term reveals values of a masked column."""
    return any(reveals(request, masked) for request in requests_of(term))


def reveals_comparison(assertion: PlannedAssertion, masked: Masked) -> bool:
    """True if a side of an assertion may reveal values of a masked column."""
    if not masked:
        return False
    sides = (assertion.term, *assertion.condition.bounds)
    return _is_sql(assertion) or any(reveals_any(side, masked) for side in sides)


def hidden(verdict: Verdict, assertion: PlannedAssertion, plan: Plan) -> Verdict:
    """The verdict without masked values. It was reached with the real values."""
    if not plan.masked:
        return verdict
    if verdict.status is Status.ERROR and verdict.reason:
        return replace(verdict, reason=without_values(verdict.reason))
    is_text_of_sql = isinstance(verdict.value, str) and _is_sql(assertion)
    if is_text_of_sql or reveals_any(assertion.term, plan.masked):
        value, scaled = _masked(verdict.value), _masked(verdict.scaled_value)
        # If there is a value, the reason repeats it.
        reason = None if verdict.status is Status.FAILED and value else verdict.reason
        verdict = replace(verdict, value=value, scaled_value=scaled, reason=reason)
    if any(reveals_any(bound, plan.masked) for bound in assertion.condition.bounds):
        expected = f"{assertion.condition.text} ({MASK})"
        reason = None if verdict.status is Status.FAILED and verdict.threshold else verdict.reason
        masked = _masked(verdict.threshold)
        verdict = replace(verdict, threshold=masked, expected=expected, reason=reason)
    return verdict


def without_values(reason: str) -> str:
    """Why something failed, without Spark's quotes of the data: only its error condition."""
    condition = _CONDITION.match(reason)
    return f"{condition[1]} (the rest may quote masked columns)" if condition else reason


def _masked(value: MetricValue) -> MetricValue:
    return None if value is None else MASK


def _is_sql(assertion: PlannedAssertion) -> bool:
    kinds = (
        argument.kind for request in assertion.requests for argument in request.definition.arguments
    )
    return ArgumentKind.SQL in kinds
