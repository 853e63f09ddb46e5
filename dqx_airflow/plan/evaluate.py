"""From metric values to verdicts, and from verdicts to the outcome of the gate."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from functools import partial
from typing import Any, NamedTuple

from dqx_airflow.diagnostics.listing import listed
from dqx_airflow.diagnostics.verdicts import format_duration, format_value, show_in_full
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import IMPLICIT_CHECK
from dqx_airflow.dql.printer import show
from dqx_airflow.limits import DEFAULT_SAMPLE_ROWS
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.metrics.registry import ArgumentKind
from dqx_airflow.metrics.type_compatibility import misfits
from dqx_airflow.plan.comparing import NEARLY_EQUAL, Compared, Side, compare, is_within
from dqx_airflow.plan.group_verdicts import (
    GroupView,
    Judged,
    expected_text,
    groups_of,
    seen_in,
    verdict_on_groups,
)
from dqx_airflow.plan.groupings import misfit
from dqx_airflow.plan.masks import hidden
from dqx_airflow.plan.measured import measured_json
from dqx_airflow.plan.model import (
    Applied,
    Claimed,
    Constant,
    Group,
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

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PART_OF_SECOND = re.compile(r"(?<=:[0-9]{2})[.,]([0-9]+)")
_NOT_A_DATE = (
    "a date or timestamp cannot be compared with any other string: write dates as 2024-03-02, "
    'timestamps as "2024-03-02T06:00:00"'
)


def evaluate(
    plan: Plan,
    found: Scanned,
    skip_dates: Collection[date] = (),
    *,
    now: datetime | None = None,
    sample_rows: int = DEFAULT_SAMPLE_ROWS,
) -> tuple[Verdict, ...]:
    """The verdict of every assertion, in the order of the plan, without masked values.

    :param found: the value of each request, or why it has none.
    :param now: when the gate runs, with a zone; without it nothing has an age.
    :param sample_rows: how many failing groups of an assertion are kept at most.
    """
    measured = _Measured(found.values, now, plan, frozenset(skip_dates))
    return tuple(
        replace(
            hidden(_judge(assertion, measured, found, sample_rows), assertion, plan),
            measured=measured_json(assertion, plan, found, skip_dates),
        )
        for assertion in plan.assertions
    )


def judge_one(
    assertion: PlannedAssertion,
    plan: Plan,
    found: Scanned,
    skip_dates: Collection[date] = (),
    *,
    now: datetime | None = None,
) -> Verdict:
    """The verdict of one assertion, as `evaluate` finds it, without what is behind it."""
    measured = _Measured(found.values, now, plan, frozenset(skip_dates))
    return hidden(_judge(assertion, measured, found, DEFAULT_SAMPLE_ROWS), assertion, plan)


@dataclass(frozen=True, slots=True)
class _Gap:
    """Too few of the dates that a value needs have data. `is_asked_for` where the request skips
    one of them."""

    reason: str
    is_asked_for: bool


@dataclass(frozen=True, slots=True)
class _Measured:
    """What terms are evaluated with."""

    values: Mapping[MetricRequest, MetricValue]
    now: datetime | None
    plan: Plan
    skip_dates: frozenset[date]

    def has_data(self, request: MetricRequest) -> bool:
        """False where the date of a request is unavailable.

        A target date without data is not unavailable: it is a failure.
        """
        on = request.date
        if on is None:
            return True
        if on in self.skip_dates:
            return False
        return on == self.plan.date or bool(self.values.get(row_count(request.dataset, on)))

    def value(self, request: MetricRequest) -> MetricValue:
        """The value of a request. What is asked of another date without data has none, counts
        neither: a zero there would widen a band, or be the base of a change."""
        if request.date in (None, self.plan.date) or self.has_data(request):
            return self.values.get(request)
        return None

    def gap(self, requests: Iterable[MetricRequest]) -> _Gap | None:
        """What is missing where data is available for too few of the dates that the requests
        need; None where there is enough."""
        least = self.plan.availability_threshold
        needed = {(request.dataset, request.date): request for request in requests}
        missing = [key for key, request in needed.items() if not self.has_data(request)]
        if not missing:
            return None
        share = (len(needed) - len(missing)) / len(needed)
        if share >= least:
            return None
        dataset, first = min(missing, key=lambda key: (key[1], key[0]))
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return _Gap(
            f"data is available for {share:.0%} of the dates it needs, at least {least:.0%} are "
            f"required: no data of {dataset} on {first}{more}",
            any(on in self.skip_dates for _, on in missing),
        )


def decide(
    verdicts: Iterable[Verdict], fail_on: Severity, *, require_history: bool = False
) -> Outcome:
    """The outcome of a gate: a violation counts more than what could not be evaluated.

    An assertion of `fail_on` or worse that was not evaluated has not passed: the gate is warned at
    best, and broken where it must not do without. A gate that checked nothing of its suite is
    broken. An experimental assertion never makes it worse than warned, and neither does a clause of
    a contract that cannot be enforced and is let through.

    :param require_history: whether assertions that lack data of other dates break the gate.
    """
    judged = list(verdicts)
    failed = [verdict for verdict in judged if verdict.status is Status.FAILED]
    errors = [verdict for verdict in judged if verdict.status is Status.ERROR]
    if any(verdict.can_block(fail_on) for verdict in failed):
        return Outcome.BLOCKED
    checked = [
        verdict
        for verdict in judged
        if verdict.check != IMPLICIT_CHECK and verdict.status in (Status.PASSED, Status.FAILED)
    ]
    if any(verdict.can_block(fail_on) for verdict in errors) or not checked:
        return Outcome.BROKEN
    open_questions = [
        verdict for verdict in judged if verdict.is_not_evaluated and verdict.can_block(fail_on)
    ]
    if open_questions and require_history:
        return Outcome.BROKEN
    return Outcome.WARNED if failed or errors or open_questions else Outcome.PASSED


def _value_of(term: Term, measured: _Measured) -> MetricValue:
    """The value of a term; None where it has none."""
    match term:
        case Constant(value=value):
            return plain(value)
        case Now():
            return measured.now.isoformat(sep=" ", timespec="seconds") if measured.now else None
        case Measured(request=request):
            return measured.value(request)
        case Applied(function=function, terms=terms):
            return apply(function, tuple(_value_of(inner, measured) for inner in terms))
        case Claimed():
            return None  # `_judge_parts` counts those that hold


def _answered(term: Term, measured: _Measured) -> Term:
    """The term with the operand that answers it in place of each `coalesce`.

    It is the first one that has enough dates with data, and a value; else the last one.
    """
    if not isinstance(term, Applied):
        return term
    operands = tuple(_answered(inner, measured) for inner in term.terms)
    if term.function != "coalesce":
        return Applied(term.function, operands)
    for operand in operands[:-1]:
        if not measured.gap(requests_of(operand)) and _value_of(operand, measured) is not None:
            return operand
    return operands[-1]


def _has_default(term: Term) -> bool:
    if not isinstance(term, Applied):
        return False
    return term.function == "coalesce" or any(map(_has_default, term.terms))


def _judge(
    assertion: PlannedAssertion, measured: _Measured, found: Scanned, sample_rows: int
) -> Verdict:
    requests = assertion.requests
    verdict = partial(_verdict, assertion, requests, _origin(requests, found))
    if assertion.disabled_by is not None:
        reason = f"disabled by profile '{assertion.disabled_by}'"
        return replace(verdict(Status.SKIPPED, reason), disabled_by=assertion.disabled_by)
    if isinstance(assertion.term, Claimed):
        return _judge_parts(assertion.term, verdict, measured, found)
    broken = [found.failures[request] for request in requests if request in found.failures]
    if broken:
        return verdict(Status.ERROR, "; ".join(dict.fromkeys(broken)))
    if assertion.groups is not None:
        return _judge_groups(assertion, measured, found, sample_rows)
    judged = _judged(assertion, measured, found)
    if judged.status is Status.SKIPPED:
        return verdict(Status.SKIPPED, judged.reason)
    return _of_judged(verdict(judged.status, judged.reason), assertion, judged)


def _judge_groups(
    assertion: PlannedAssertion, measured: _Measured, found: Scanned, sample_rows: int
) -> Verdict:
    """The verdict on an assertion that is judged for each group."""
    view = GroupView(assertion, found)
    origin = _origin(assertion.requests, found)
    assert assertion.groups is not None
    seen_groups = seen_in(assertion, found)
    if (reason := misfit(assertion.groups, seen_groups)) is not None:
        return _verdict(assertion, assertion.requests, origin, Status.ERROR, reason)
    judged: dict[Group, Judged] = {}
    # Groups with the same values, such as no NULL, are judged once.
    by_values: dict[tuple[object, ...], Judged] = {}
    for group in groups_of(assertion, seen_groups):
        seen = view.of(group)
        values = (*((type(value), value) for value in seen.values.values()), *seen.details.items())
        if values not in by_values:
            by_values[values] = _judged(assertion, replace(measured, values=seen.values), seen)
        judged[group] = by_values[values]
    told = verdict_on_groups(assertion, measured.plan, judged, sample_rows)
    filters = _notes_on_filters(assertion.requests, measured.plan, found)
    verdict = _verdict(assertion, assertion.requests, origin, told.status, told.reason)
    verdict = _of_judged(verdict, assertion, told.worst)
    return replace(
        verdict,
        expected=f"{verdict.expected} {assertion.groups.text}",
        note="; ".join(filter(None, (told.note, *filters))) or None,
        failing_rows=told.rows,
        groups=told.groups,
        failed_groups=told.failed_groups,
        worst_group=told.worst_group,
    )


def _condition_text(assertion: PlannedAssertion) -> str:
    groups = assertion.groups
    return f"{assertion.condition.text} {groups.text}" if groups else assertion.condition.text


def _of_judged(verdict: Verdict, assertion: PlannedAssertion, judged: Judged) -> Verdict:
    """The verdict with what was compared."""
    return replace(
        verdict,
        value=judged.value,
        multiplier=1.0 if isinstance(judged.value, str) else float(assertion.multiplier),
        scaled_value=judged.scaled,
        threshold=judged.bounds[0] if judged.bounds else None,
        expected=expected_text(assertion.condition, judged.bounds)
        if judged.status is not Status.SKIPPED
        else assertion.condition.text,
        note=judged.note,
    )


def _judged(assertion: PlannedAssertion, measured: _Measured, found: Scanned) -> Judged:
    """What became of the values of an assertion: of all rows, or of one group."""
    requests = assertion.requests
    asked = _with_answers(assertion, measured)
    gap = measured.gap(asked.requests)
    if gap is not None and (gap.is_asked_for or not assertion.condition.is_about_none):
        return Judged(Status.SKIPPED, gap.reason)
    value = _value_of(asked.term, measured)
    scaled, bounds = _sides(asked, value, measured)
    voids = _voids(requests, measured.plan, found)
    if voids is not None and not assertion.condition.is_about_none:
        value = scaled = None  # neither `coalesce` nor a window hides what NaN has done
    status, why, note = _compare(assertion, scaled, bounds, voids)
    if status is Status.FAILED and gap is not None:
        why = gap.reason
    if status is Status.FAILED and why is None and _is_age(assertion.term):
        why = f"that is {format_duration(value)}"  # seconds say little where it is about days
    if status is Status.FAILED:
        details = [found.details[item] for item in requests if item in found.details]
        more = [text for text in dict.fromkeys(details) if text not in (why or "")]
        why = "; ".join(filter(None, (why, *more))) or None
    notes = [*([note] if note else []), *_notes_on_filters(requests, measured.plan, found)]
    return Judged(status, why, value, scaled, bounds, "; ".join(notes) or None)


def _notes_on_filters(
    requests: Iterable[MetricRequest], plan: Plan, found: Scanned
) -> Iterator[str]:
    """Which filters no row meets: what is asked of no rows seldom fails."""
    filters = dict.fromkeys(
        (item.dataset, item.date, item.where)
        for item in requests
        if item.where is not None and item.date in (None, plan.date)
    )
    for dataset, on, where in filters:
        if where is not None and found.values.get(row_count(dataset, on, where)) == 0:
            yield f"no row of {dataset} meets the filter `{show(where.node)}`"


def _judge_parts(
    claimed: Claimed,
    verdict: Callable[[Status, str | None], Verdict],
    measured: _Measured,
    found: Scanned,
) -> Verdict:
    """One verdict of several claims. Of those that were not evaluated nobody knows whether they
    hold: then the others decide, or nothing does."""
    parts = claimed.parts
    plan = measured.plan
    judged = [hidden(_judge(part, measured, found, 0), part, plan) for part in parts]
    statuses = [one.status for one in judged]
    holding = statuses.count(Status.PASSED)
    deciding, otherwise = Status.FAILED, Status.PASSED
    if claimed.junctor is not nodes.Junctor.ALL:
        deciding, otherwise = otherwise, deciding
    if claimed.junctor is nodes.Junctor.IF:
        # The same as `any` with the opposite of the first claim.
        statuses[0] = _OPPOSITES.get(statuses[0], statuses[0])
        holding = int(deciding in statuses)
    known = (one for one in (deciding, Status.ERROR, Status.SKIPPED) if one in statuses)
    status = next(known, otherwise)
    if status is Status.PASSED:
        is_unasked = claimed.junctor is nodes.Junctor.IF and statuses[0] is Status.PASSED
        note = f"nothing is asked for: {_part_words(parts[0], judged[0])}" if is_unasked else None
        return replace(verdict(status, None), value=holding, scaled_value=holding, note=note)
    # Of `all` claims, those that hold say nothing about a failure.
    is_all = claimed.junctor is nodes.Junctor.ALL
    told = [
        _part_words(part, one)
        for part, one in zip(parts, judged, strict=True)
        if one.status is status or not is_all
    ]
    counted = holding if status is Status.FAILED else None
    reason = "; ".join(told)
    return replace(verdict(status, reason), value=counted, scaled_value=counted)


_OPPOSITES = {Status.PASSED: Status.FAILED, Status.FAILED: Status.PASSED}
_HOLDS = {
    Status.PASSED: "holds",
    Status.FAILED: "does not hold",
    Status.ERROR: "could not be evaluated",
    Status.SKIPPED: "was not evaluated",
}


_WHOLE_CLAIMS = ("each row:", "rows of ", "columns of ", "column ")
"""What begins so says its condition itself."""


def _part_words(part: PlannedAssertion, verdict: Verdict) -> str:
    """What became of a claim: `null_count(x) == 0 does not hold (3)`."""
    why = verdict.reason
    is_composed = isinstance(part.term, Claimed)
    if verdict.value is not None and not is_composed:
        why = format_value(verdict.value) + (f"; {why}" if why else "")
    claim = part.expression
    if not is_composed and not claim.startswith(_WHOLE_CLAIMS):
        claim = f"{claim} {verdict.expected}"
    return f"`{claim}` {_HOLDS[verdict.status]}" + (f" ({why})" if why else "")


def _with_answers(assertion: PlannedAssertion, measured: _Measured) -> PlannedAssertion:
    """The assertion without `coalesce`, on both sides: what is left is what it needs."""
    term, condition = assertion.term, assertion.condition
    if not any(map(_has_default, (term, *condition.bounds))):
        return assertion
    bounds = tuple(_answered(bound, measured) for bound in condition.bounds)
    return replace(
        assertion, term=_answered(term, measured), condition=replace(condition, bounds=bounds)
    )


def sides_of(
    assertion: PlannedAssertion,
    plan: Plan,
    found: Scanned,
    skip_dates: Collection[date],
    now: datetime | None,
) -> tuple[MetricValue, tuple[MetricValue, ...]]:
    """What is compared: the scaled value, and the bounds."""
    measured = _Measured(found.values, now, plan, frozenset(skip_dates))
    asked = _with_answers(assertion, measured)
    return _sides(asked, _value_of(asked.term, measured), measured)


def _sides(
    assertion: PlannedAssertion, value: MetricValue, measured: _Measured
) -> tuple[MetricValue, tuple[MetricValue, ...]]:
    bounds = tuple(_value_of(bound, measured) for bound in assertion.condition.bounds)
    if assertion.multiplier == 1 or isinstance(value, str):  # a date has no multiple
        return value, bounds
    return apply("*", (value, assertion.multiplier)), bounds


def _origin(requests: Iterable[MetricRequest], found: Scanned) -> Origin | None:
    """The way that took most of those by which the values were found."""
    ways = {found.origins[request] for request in requests if request in found.origins}
    return next((way for way in Origin if way in ways), None)


def _verdict(
    assertion: PlannedAssertion,
    requests: Iterable[MetricRequest],
    origin: Origin | None,
    status: Status,
    reason: str | None,
) -> Verdict:
    columns = {
        given
        for request in requests
        for argument, given in zip(request.definition.arguments, request.arguments, strict=False)
        if argument.kind in (ArgumentKind.COLUMN, ArgumentKind.COLUMNS) and isinstance(given, str)
    }
    term = assertion.term
    return Verdict(
        name=assertion.name,
        check=assertion.check,
        datasets=assertion.datasets,
        expression=assertion.expression,
        expected=_condition_text(assertion),
        severity=assertion.severity,
        status=status,
        multiplier=float(assertion.multiplier),
        reason=reason,
        tags=assertion.tags,
        profiles=assertion.profiles,
        metric=term.request.metric if isinstance(term, Measured) else None,
        column=columns.pop() if len(columns) == 1 else None,
        span=assertion.span,
        source_line=assertion.source_line,
        origin=origin,
        is_experimental=assertion.is_experimental,
    )


def void_requests(
    requests: Iterable[MetricRequest], plan: Plan, found: Scanned
) -> Iterator[MetricRequest]:
    """Those of the date of the plan from which NaN took the value."""
    for request in requests:
        is_void = request.definition.is_void_with_nan and found.values.get(request) is None
        if is_void and request in found.details and request.date in (None, plan.date):
            yield request


def _voids(requests: Iterable[MetricRequest], plan: Plan, found: Scanned) -> str | None:
    """What took the values from metrics that have none, as far as it is known."""
    voids = (found.details[request] for request in void_requests(requests, plan, found))
    return "; ".join(dict.fromkeys(voids)) or None


class _Finding(NamedTuple):
    """Whether a condition holds, why not, and what else there is to say."""

    status: Status
    reason: str | None = None
    note: str | None = None


def _compare(
    assertion: PlannedAssertion,
    value: MetricValue,
    bounds: tuple[MetricValue, ...],
    voids: str | None,
) -> _Finding:
    """:param voids: why metrics have no value, where more is known than that they have none."""
    condition = assertion.condition
    if condition.kind == "is None":
        return _passed(value is None)
    if condition.kind == "is not None":
        return _passed(True) if value is not None else _failed(voids or _no_value(assertion.term))
    if value is None:
        return _failed(f"the metric has no value ({voids or _no_value(assertion.term)})")
    if any(bound is None for bound in bounds):
        return _failed("the right-hand side has no value")
    if condition.kind == "fits":
        column = next(requests_of(assertion.term)).arguments[0]
        differences = tuple(misfits(str(value), str(bounds[0]), column))
        return _failed(listed(differences, "; ")) if differences else _passed(True)
    if any(isinstance(bound, str) != isinstance(value, str) for bound in bounds):
        return _Finding(Status.ERROR, "a string or date cannot be compared with a number")
    if isinstance(value, str) and any(_has_no_order(value, str(bound)) for bound in bounds):
        return _Finding(Status.ERROR, _NOT_A_DATE)
    tests = ((">=", 0), ("<=", 1)) if condition.kind == "between" else ((condition.kind, 0),)
    return _all_hold(assertion, value, [(op, number, bounds[number]) for op, number in tests])


def _all_hold(
    assertion: PlannedAssertion, value: MetricValue, tests: Iterable[tuple[str, int, MetricValue]]
) -> _Finding:
    """Whether `value op bound` for each test, each with the index of its bound."""
    tolerance, decided = assertion.condition.tolerance, None
    for op, number, bound in tests:
        if isinstance(value, str) or isinstance(bound, str):
            left, right = _comparable(str(value), str(bound))
            order = (left > right) - (left < right)
            holds = Compared(order, order).holds(op)
        elif tolerance is not None:
            assert value is not None
            assert bound is not None
            holds = is_within(value, bound, tolerance) == (op == "==")
        else:
            assert value is not None
            assert bound is not None
            is_scaled = assertion.multiplier != 1
            subject = Side.of(assertion.term, value, is_scaled=is_scaled)
            comparison = compare(subject, Side.of(assertion.condition.bounds[number], bound))
            holds = comparison.holds(op)
            if comparison.is_decided_by_tolerance(op):
                decided = f"the two are {NEARLY_EQUAL}"
        if not holds:
            return _failed(decided or _in_full(value, bound))
    return _passed(True, decided)


def _in_full(value: MetricValue, bound: MetricValue) -> str | None:
    """All digits of two numbers that look alike in a few; None where they do not."""
    if value == bound or format_value(value) != format_value(bound):
        return None
    return f"in full, the value is {show_in_full(value)} and the limit {show_in_full(bound)}"


def _is_age(term: Term) -> bool:
    return isinstance(term, Applied) and term.function == "age"


def _no_value(term: Term) -> str:
    if isinstance(term, Measured):
        return term.request.definition.no_value
    return "no rows, only NULL, or a division by zero"


def _comparable(*values: str) -> tuple[Any, ...]:
    """Texts as moments where all of them are dates or timestamps, else the values as they are."""
    moments = tuple(map(_moment, values))
    return values if None in moments else moments


def _has_no_order(*values: str) -> bool:
    """True for a date, or timestamp, beside a text that is none: `2024-11-29` and `2024-3-2`.

    As texts, the day in November would be the earlier one.
    """
    return None in map(_moment, values) and any(
        _DAY.match(value) and _moment(value) for value in values
    )


def _moment(text: str) -> tuple[datetime, str] | None:
    """The second and what is behind its point, which Python would cut off; None for other texts.

    So `2024-11-29`, `2024-11-29 00:00` and `2024-11-29T01:00:00+01:00` are equal: a moment without
    a zone is one of UTC.
    """
    part = _PART_OF_SECOND.search(text)
    try:
        second = datetime.fromisoformat(_PART_OF_SECOND.sub("", text).removesuffix("Z"))
    except ValueError:
        return None
    zoned = second if second.tzinfo else second.replace(tzinfo=timezone.utc)
    return zoned, part[1].rstrip("0") if part else ""


def _passed(holds: bool, note: str | None = None) -> _Finding:
    return _Finding(Status.PASSED, note=note) if holds else _failed(None)


def _failed(reason: str | None) -> _Finding:
    return _Finding(Status.FAILED, reason)
