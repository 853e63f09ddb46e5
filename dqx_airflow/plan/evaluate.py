"""From metric values to verdicts, and from verdicts to the outcome of the gate."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

from dqx_airflow.diagnostics.listing import listed
from dqx_airflow.diagnostics.verdicts import format_duration, format_value
from dqx_airflow.dql.check import IMPLICIT_CHECK
from dqx_airflow.metrics.derived import EQUALITY_TOLERANCE, apply
from dqx_airflow.metrics.fitting import misfits
from dqx_airflow.metrics.registry import Kind
from dqx_airflow.plan.masks import hidden
from dqx_airflow.plan.model import (
    Applied,
    Condition,
    Constant,
    Measured,
    MetricRequest,
    Now,
    Plan,
    PlannedAssertion,
    Scanned,
    Term,
    requests_of,
    row_count,
)
from dqx_airflow.values import MetricValue, Origin, Outcome, Severity, Status, Verdict

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(
    plan: Plan,
    found: Scanned,
    skip_dates: Collection[date] = (),
    *,
    now: datetime | None = None,
) -> tuple[Verdict, ...]:
    """The verdict of every assertion, in the order of the plan, without masked values.

    :param found: the value of each request, or why it has none.
    :param now: when the gate runs, with a zone; without it nothing has an age.
    """
    measured = _Measured(found.values, now)
    return tuple(
        hidden(_judge(assertion, plan, measured, found, skip_dates), assertion, plan)
        for assertion in plan.assertions
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """What terms are evaluated with."""

    values: Mapping[MetricRequest, MetricValue]
    now: datetime | None


def decide(verdicts: Iterable[Verdict], fail_on: Severity) -> Outcome:
    """The outcome of a gate: a violation counts more than what could not be evaluated.

    A gate that checked nothing of its suite is broken.
    """
    found = list(verdicts)
    failed = [verdict for verdict in found if verdict.status is Status.FAILED]
    errors = [verdict for verdict in found if verdict.status is Status.ERROR]
    if any(verdict.severity.at_least(fail_on) for verdict in failed):
        return Outcome.BLOCKED
    checked = [
        verdict
        for verdict in found
        if verdict.check != IMPLICIT_CHECK and verdict.status in (Status.PASSED, Status.FAILED)
    ]
    if any(verdict.severity.at_least(fail_on) for verdict in errors) or not checked:
        return Outcome.BROKEN
    return Outcome.WARNED if failed or errors else Outcome.PASSED


def _value_of(term: Term, measured: _Measured) -> MetricValue:
    """The value of a term; None where it has none."""
    match term:
        case Constant(value=value):
            return value
        case Now():
            return measured.now.isoformat(sep=" ", timespec="seconds") if measured.now else None
        case Measured(request=request):
            return measured.values.get(request)
        case Applied(function=function, terms=terms):
            return apply(function, tuple(_value_of(inner, measured) for inner in terms))


def _judge(
    assertion: PlannedAssertion,
    plan: Plan,
    measured: _Measured,
    found: Scanned,
    skip_dates: Collection[date],
) -> Verdict:
    requests = assertion.requests
    verdict = partial(_verdict, assertion, requests, _origin(requests, found))
    if assertion.disabled_by is not None:
        return verdict(Status.SKIPPED, f"disabled by profile '{assertion.disabled_by}'")
    broken = [found.failures[request] for request in requests if request in found.failures]
    if broken:
        return verdict(Status.ERROR, "; ".join(dict.fromkeys(broken)))
    unavailable = _unavailable(requests, plan, measured.values, skip_dates)
    if unavailable:
        return verdict(Status.SKIPPED, unavailable)
    value = _value_of(assertion.term, measured)
    scaled, bounds = _sides(assertion, value, measured)
    status, why = _compare(assertion, scaled, bounds)
    threshold = bounds[0] if bounds else None
    if status is Status.FAILED and why is None and _is_age(assertion.term):
        why = f"that is {format_duration(value)}"  # seconds say little where it is about days
    if status is Status.FAILED:
        details = (found.details.get(item) for item in requests)
        why = "; ".join(filter(None, (why, *details))) or None
    expected = _expected(assertion.condition, bounds)
    return verdict(status, why, value, scaled, threshold, expected)


def sides_of(
    assertion: PlannedAssertion, found: Scanned, now: datetime | None
) -> tuple[MetricValue, tuple[MetricValue, ...]]:
    """What is compared: the scaled value, and the bounds."""
    measured = _Measured(found.values, now)
    return _sides(assertion, _value_of(assertion.term, measured), measured)


def _sides(
    assertion: PlannedAssertion, value: MetricValue, measured: _Measured
) -> tuple[MetricValue, tuple[MetricValue, ...]]:
    bounds = tuple(_value_of(bound, measured) for bound in assertion.condition.bounds)
    if assertion.multiplier == 1.0 or isinstance(value, str):  # a date has no multiple
        return value, bounds
    return apply("*", (value, assertion.multiplier)), bounds


def _expected(condition: Condition, bounds: tuple[MetricValue, ...]) -> str:
    """The condition as text, with the values of the metrics in it."""
    if not any(True for bound in condition.bounds for _ in requests_of(bound)):
        return condition.text
    return f"{condition.text} ({' and '.join(format_value(bound) for bound in bounds)})"


def _origin(requests: Iterable[MetricRequest], found: Scanned) -> Origin | None:
    """The way that took most of those by which the values were found."""
    ways = {found.origins[request] for request in requests if request in found.origins}
    return next((way for way in Origin if way in ways), None) if ways else None


def _verdict(
    assertion: PlannedAssertion,
    requests: Iterable[MetricRequest],
    origin: Origin | None,
    status: Status,
    reason: str | None,
    value: MetricValue = None,
    scaled: MetricValue = None,
    threshold: MetricValue = None,
    expected: str | None = None,
) -> Verdict:
    columns = {
        given
        for request in requests
        for argument, given in zip(request.definition.arguments, request.arguments, strict=False)
        if argument.kind in (Kind.COLUMN, Kind.COLUMNS) and isinstance(given, str)
    }
    term = assertion.term
    return Verdict(
        name=assertion.name,
        check=assertion.check,
        datasets=assertion.datasets,
        expression=assertion.expression,
        expected=expected or assertion.condition.text,
        severity=assertion.severity,
        status=status,
        value=value,
        multiplier=1.0 if isinstance(value, str) else assertion.multiplier,
        scaled_value=scaled,
        threshold=threshold,
        reason=reason,
        tags=assertion.tags,
        profiles=assertion.profiles,
        metric=term.request.metric if isinstance(term, Measured) else None,
        column=columns.pop() if len(columns) == 1 else None,
        span=assertion.span,
        source_line=assertion.source_line,
        origin=origin,
    )


def _unavailable(
    requests: Iterable[MetricRequest],
    plan: Plan,
    values: Mapping[MetricRequest, MetricValue],
    skip_dates: Collection[date],
) -> str | None:
    """Why too few of the needed dates have data; None where there are enough.

    A target date without data is not unavailable: it is a failure.
    """
    needed = {(request.dataset, request.date) for request in requests}
    missing = []
    for dataset, on in needed:
        if on is None:
            continue
        is_empty = on != plan.date and not values.get(row_count(dataset, on))
        if is_empty or on in skip_dates:
            missing.append((on, dataset))
    share = (len(needed) - len(missing)) / len(needed) if needed else 1.0
    if not missing or share >= plan.availability_threshold:
        return None
    first = min(missing)
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return (
        f"data is available for {share:.0%} of the dates it needs, at least "
        f"{plan.availability_threshold:.0%} are required: no data of {first[1]} on {first[0]}{more}"
    )


def _compare(
    assertion: PlannedAssertion, value: MetricValue, bounds: tuple[MetricValue, ...]
) -> tuple[Status, str | None]:
    condition = assertion.condition
    if condition.kind == "is None":
        return _passed(value is None)
    if condition.kind == "is not None":
        return _passed(True) if value is not None else (Status.FAILED, _no_value(assertion.term))
    if value is None:
        return Status.FAILED, f"the metric has no value ({_no_value(assertion.term)})"
    if any(bound is None for bound in bounds):
        return Status.FAILED, "the right-hand side has no value"
    if condition.kind == "fits":
        column = next(requests_of(assertion.term)).arguments[0]
        found = tuple(misfits(str(value), str(bounds[0]), column))
        return (Status.FAILED, listed(found, "; ")) if found else _passed(True)
    if any(isinstance(bound, str) != isinstance(value, str) for bound in bounds):
        return Status.ERROR, "a text or date cannot be compared with a number"
    if condition.kind in ("==", "!="):
        equal = _is_equal(value, bounds[0], condition.tolerance)
        return _passed(equal == (condition.kind == "=="))
    subject, *limits = _comparable(value, *bounds)
    if condition.kind == "between":
        return _passed(limits[0] <= subject <= limits[1])
    return _passed(_ORDER[condition.kind](subject, limits[0]))


def _is_age(term: Term) -> bool:
    return isinstance(term, Applied) and term.function == "age"


def _no_value(term: Term) -> str:
    if isinstance(term, Measured):
        return term.request.definition.no_value
    return "no rows, only NULL, or a division by zero"


def _comparable(*values: MetricValue) -> tuple[Any, ...]:
    """Texts as moments where all of them are dates or timestamps, else the values as they are.

    So `2024-11-29`, `2024-11-29 00:00` and `2024-11-29T00:00:00` are equal.
    """
    try:
        moments = tuple(datetime.fromisoformat(value) for value in values)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return values
    zoned = {moment.tzinfo is not None for moment in moments}
    return moments if len(zoned) == 1 else values


def _passed(holds: bool) -> tuple[Status, str | None]:
    return (Status.PASSED, None) if holds else (Status.FAILED, None)


def _is_equal(value: MetricValue, bound: MetricValue, tolerance: float | None) -> bool:
    if isinstance(value, str) or isinstance(bound, str):
        subject, limit = _comparable(value, bound)
        return bool(subject == limit)
    assert value is not None
    assert bound is not None
    if tolerance is None:
        if isinstance(value, int) and isinstance(bound, int):
            return value == bound
        tolerance = EQUALITY_TOLERANCE
    difference = apply("abs", (apply("-", (value, bound)),))
    if not isinstance(difference, int | float):
        return False  # further apart than any number
    # The tolerance is inclusive, also where binary fractions miss it by a hair: |1.05 - 1| <= 0.05.
    return difference <= tolerance or math.isclose(difference, tolerance, rel_tol=1e-9)
