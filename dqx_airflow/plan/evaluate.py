"""From metric values to verdicts, and from verdicts to the outcome of a gate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from dqx_airflow.diagnostics.verdicts import format_duration, format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.dql.printer import show
from dqx_airflow.limits import DEFAULT_SAMPLE_ROWS
from dqx_airflow.metrics.metric import ArgumentKind, Scan
from dqx_airflow.plan import condition, measurements, model, term_values
from dqx_airflow.plan.group_values import GroupView
from dqx_airflow.plan.group_verdict import GroupsJudgement
from dqx_airflow.plan.groupings import misfit
from dqx_airflow.plan.masks import masked_verdict, without_quotes
from dqx_airflow.plan.schema_check import INFINITE
from dqx_airflow.values import MetricValue, Origin, Outcome, Severity, Status, Verdict


def not_promoted(
    dataset: str, target: str, reason: str, severity: Severity, *, is_blocked: bool
) -> Verdict:
    """The verdict on rows that may be promoted, but that the target does not accept.

    :param severity: one that fails the gate, which must not be green.
    """
    judged = "did not pass, and" if is_blocked else "passed, but"
    return Verdict(
        name=f"{dataset}.promoted",
        check=IMPLICIT_CHECK,
        datasets=(dataset,),
        expression=f"promotion to {target}",
        expected="the target accepts the rows",
        severity=severity,
        status=Status.ERROR,
        reason=f"the rows {judged} cannot be promoted to {target}: {reason}",
    )


def evaluate(
    plan: model.Plan,
    scanned: model.Scanned,
    skip_dates: Collection[date] = (),
    *,
    now: datetime | None = None,
    sample_rows: int = DEFAULT_SAMPLE_ROWS,
) -> tuple[Verdict, ...]:
    """The verdict of every assertion, in the order of the plan, without masked values.

    :param scanned: the value of each request, or the reason why it has none.
    :param now: when the gate runs, with a time zone; without it nothing has an age.
    :param sample_rows: the maximum number of failing groups to keep for an assertion.
    """
    scanned = without_quotes(scanned, plan)
    measured = term_values.KnownValues(scanned.values, now, plan, frozenset(skip_dates))
    judge = Judge(measured, scanned, sample_rows)
    return tuple(
        replace(
            judge.verdict(assertion),
            measured=measurements.measured_json(assertion, plan, scanned, skip_dates),
        )
        for assertion in plan.assertions
    )


def decide(
    verdicts: Iterable[Verdict], fail_on: Severity, *, require_history: bool = False
) -> Outcome:
    """The outcome of a gate: a violation outweighs what could not be evaluated.

    An assertion of `fail_on` or worse that was not evaluated has not passed: the gate is warned at
    best, and broken if the assertion requires history. A gate that checked no part of its suite is
    broken, unless all of it is experimental and waits for history. An experimental assertion never
    makes the outcome worse than warned, and neither does an accepted clause of a contract that
    cannot be enforced.

    :param require_history: whether assertions that lack data of other dates break the gate.
    """
    judged = list(verdicts)
    statuses = {verdict.status for verdict in judged}
    deciding = {verdict.status for verdict in judged if verdict.can_block(fail_on)}
    if Status.FAILED in deciding:
        return Outcome.BLOCKED
    stated = [verdict for verdict in judged if verdict.check != IMPLICIT_CHECK]
    is_checked = any(verdict.status in (Status.PASSED, Status.FAILED) for verdict in stated)
    # Such as the claims of a watch on its first days.
    is_waiting = all(one.is_experimental and one.is_not_evaluated for one in stated)
    is_void = not stated or not (is_checked or is_waiting)
    if Status.ERROR in deciding or is_void:
        return Outcome.BROKEN
    has_open_questions = any(
        verdict.is_not_evaluated and verdict.can_block(fail_on) for verdict in judged
    )
    if has_open_questions and require_history:
        return Outcome.BROKEN
    is_open = has_open_questions or not is_checked or statuses & {Status.FAILED, Status.ERROR}
    return Outcome.WARNED if is_open else Outcome.PASSED


_AHEAD = "the newest timestamp is in the future"
_VerdictOf: TypeAlias = "Callable[[Status, str | None], Verdict]"


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges assertions from the results of a scan and the options of a run.

    `sample_rows` is the maximum number of failing groups to keep for an assertion.
    """

    measured: term_values.KnownValues
    scanned: model.Scanned
    sample_rows: int = DEFAULT_SAMPLE_ROWS

    def verdict(self, assertion: model.PlannedAssertion) -> Verdict:
        """The verdict of one assertion, as from `evaluate`, without its measurements."""
        return masked_verdict(self._verdict(assertion), assertion, self.measured.plan)

    def _verdict(self, assertion: model.PlannedAssertion) -> Verdict:
        requests = assertion.requests
        scanned = self.scanned
        origins = (scanned.origins[one] for one in requests if one in scanned.origins)
        origin = Origin.most_expensive(origins)
        verdict = partial(_verdict_without_values, assertion, origin)
        if assertion.disabled_by is not None:
            reason = f"disabled by profile '{assertion.disabled_by}'"
            return replace(verdict(Status.SKIPPED, reason), disabled_by=assertion.disabled_by)
        if isinstance(assertion.term, model.Claimed):
            return replace(self, sample_rows=0)._on_claims(assertion.term, verdict)
        broken = [scanned.failures[request] for request in requests if request in scanned.failures]
        if broken:
            return verdict(Status.ERROR, "; ".join(dict.fromkeys(broken)))
        if assertion.groups is not None:
            return self._for_groups(assertion, assertion.groups, verdict)
        judged = self._judged(assertion)
        if judged.status is Status.SKIPPED:
            return verdict(Status.SKIPPED, judged.reason)
        return _with_values(verdict(judged.status, judged.reason), assertion, judged)

    def _for_groups(
        self, assertion: model.PlannedAssertion, groups: model.JudgedGroups, verdict: _VerdictOf
    ) -> Verdict:
        """The verdict on an assertion that is judged for each group."""
        measured = self.measured
        view = GroupView(assertion, self.scanned)
        if (reason := misfit(groups, view.column_types)) is not None:
            return verdict(Status.ERROR, reason)
        clear = view.clear_passes(measured.plan.date, measured.skip_dates)
        judged: dict[model.Group, condition.EvaluatedCondition] = {}
        # Groups with the same values, such as zero NULLs, are judged once.
        by_values: dict[tuple[object, ...], condition.EvaluatedCondition] = {}
        for group in view.groups:
            if (passed := clear.get(group)) is not None:
                judged[group] = passed
                continue
            values = view.key(group)
            if values not in by_values:
                seen = view.of(group)
                of_group = Judge(replace(measured, values=seen.values), seen)
                by_values[values] = of_group._judged(assertion)
            judged[group] = by_values[values]
        of_groups = GroupsJudgement(assertion, measured.plan, groups, judged)
        on_groups = of_groups.verdict(self.sample_rows)
        without_values = verdict(on_groups.status, on_groups.reason)
        of_worst = _with_values(without_values, assertion, on_groups.worst)
        notes = (on_groups.note, *self._notes_on_filters(assertion.requests))
        return replace(
            of_worst,
            expected=f"{of_worst.expected} {groups.text}",
            note="; ".join(filter(None, notes)) or None,
            failing_rows=on_groups.rows,
            groups=on_groups.groups,
            failed_groups=on_groups.failed_groups,
            worst_group=on_groups.worst_group,
            failed_values=on_groups.failed_values,
        )

    def _judged(self, assertion: model.PlannedAssertion) -> condition.EvaluatedCondition:
        """The judgement on an assertion: for all rows, or for one group."""
        measured = self.measured
        answered = measured.with_answers(assertion)
        gap = measured.gap(answered.requests)
        if gap is not None and (gap.is_requested or not assertion.condition.is_about_none):
            return condition.EvaluatedCondition(Status.SKIPPED, gap.reason)
        usual = measured.usual_behind_bounds(answered)
        if usual is not None and usual.limits is None:
            return condition.EvaluatedCondition(Status.SKIPPED, usual.gap)
        return self._compared(assertion, answered, gap, usual)

    def _compared(
        self,
        assertion: model.PlannedAssertion,
        answered: model.PlannedAssertion,
        gap: term_values.DataGap | None,
        usual: term_values.UsualBehind | None,
    ) -> condition.EvaluatedCondition:
        """The judgement on an assertion that is not skipped.

        :param answered: the assertion without `coalesce`.
        :param gap: the dates without data, for a condition that is about missing values.
        :param usual: the usual limits in its bounds, which are known.
        """
        value = self.measured.value_of(answered.term)
        scaled, bounds = self.measured.scaled_sides(answered, value)
        ahead = self._hours_ahead(assertion)
        void = self._void_reason(assertion, ahead)
        if void is not None and not assertion.condition.is_about_none:
            # Neither `coalesce` nor a window hides NaN or an overflow.
            value = None
            scaled = None
        compared = condition.compare_value(assertion, scaled, bounds, void)
        status = compared.status
        reason = compared.reason
        if status is Status.FAILED and gap is not None:
            reason = gap.reason
        if status is Status.PASSED and usual is not None and usual.repeats(scaled):
            status = Status.FAILED
            reason = term_values.REPEATED
        if status is Status.FAILED:
            reason = self._failure_reason(assertion, value, reason)
        is_ahead = void is None and ahead > 0
        notes = (
            compared.note,
            _AHEAD if is_ahead else None,
            *self._notes_on_steps(answered),
            *self._notes_on_filters(assertion.requests),
        )
        return condition.EvaluatedCondition(
            status,
            reason,
            value,
            scaled,
            bounds,
            note=_joined(notes),
            factors=usual.limits.text if usual is not None and usual.limits is not None else "",
        )

    def _hours_ahead(self, assertion: model.PlannedAssertion) -> float:
        """By how many hours a newest timestamp of an assertion is in the future; 0 if none is."""
        return max(map(self.measured.hours_ahead, _sides(assertion)))

    def _void_reason(self, assertion: model.PlannedAssertion, ahead: float) -> str | None:
        """The reason why the values of an assertion do not count; None if they do.

        :param ahead: by how many hours a newest timestamp is in the future.
        """
        allowed = self.measured.plan.max_clock_skew_hours
        if ahead > allowed:
            limit = format_duration(Fraction(allowed) * 3600)
            return f"{_AHEAD} by more than {limit}, so that it does not count: leave out such rows"
        details = self.scanned.details
        reasons = _joined(details[request] for request in self.void_requests(assertion.requests))
        if reasons is None and any(map(self.measured.hides_overflow, _sides(assertion))):
            return INFINITE
        return reasons

    def _failure_reason(
        self, assertion: model.PlannedAssertion, value: MetricValue, reason: str | None
    ) -> str | None:
        """The reason for a failure, with the details of the scan.

        :param reason: the reason from the comparison, if it has one.
        """
        is_age = isinstance(assertion.term, model.Applied) and assertion.term.function == "age"
        if is_age and reason is None:
            # Seconds are hard to read for periods of days.
            reason = f"that is {format_duration(value)}"
        details = self.scanned.details
        known = [details[request] for request in assertion.requests if request in details]
        more = (text for text in known if text not in (reason or ""))
        return _joined((reason, *more))

    def _notes_on_steps(self, assertion: model.PlannedAssertion) -> Iterator[str]:
        """Notes on values that are approximate."""
        for term in _sides(assertion):
            yield from self.measured.notes_on_steps(term)

    def _notes_on_filters(self, requests: Iterable[model.MetricRequest]) -> Iterator[str]:
        """Notes on filters that no row satisfies: a metric of no rows seldom fails."""
        counts = dict.fromkeys(
            model.row_count(request.dataset, request.date, request.where)
            for request in requests
            if request.where and request.date in (None, self.measured.plan.date)
        )
        for count in counts:
            if count.where and self.scanned.values.get(count) == 0:
                yield f"no row of {count.dataset} meets the filter `{show(count.where.node)}`"

    def void_requests(
        self, requests: Iterable[model.MetricRequest]
    ) -> Iterator[model.MetricRequest]:
        """The requests on the date of the plan that have no value because of NaN or infinity."""
        for request in requests:
            is_read = request.definition.scan is not Scan.SCHEMA
            is_void = is_read and self.scanned.values.get(request) is None
            is_on_date = request.date in (None, self.measured.plan.date)
            if is_void and is_on_date and request in self.scanned.details:
                yield request

    def _on_claims(self, claimed: model.Claimed, verdict: _VerdictOf) -> Verdict:
        """One verdict for several claims. Claims that were not evaluated are undecided: the others
        decide, or nothing does."""
        parts = claimed.parts
        judged = [*map(self.verdict, parts)]
        statuses = [claim_verdict.status for claim_verdict in judged]
        holding = statuses.count(Status.PASSED)
        is_if = claimed.junctor is nodes.Junctor.IF
        if is_if:
            # Equivalent to `any` with the negated first claim.
            statuses[0] = self._negated_status(parts[0])
            holding = int(Status.PASSED in statuses)
        status = _combined_status(claimed.junctor, statuses)
        if status is Status.PASSED:
            note = None
            if is_if and statuses[0] is Status.PASSED:
                first = _claim_in_words(parts[0], judged[0])
                note = f"the condition is false, so nothing is required: {first}"
            return replace(verdict(status, None), value=holding, scaled_value=holding, note=note)
        # Of `all` claims, those that hold do not explain a failure.
        is_all = claimed.junctor is nodes.Junctor.ALL
        words = [
            _claim_in_words(part, claim_verdict)
            for part, claim_verdict in zip(parts, judged, strict=True)
            if claim_verdict.status is status or not is_all
        ]
        if is_if and statuses[0] is judged[0].status is Status.FAILED:
            words[0] = _claim_in_words(parts[0], judged[0], "is neither true nor false")
        counted = holding if status is Status.FAILED else None
        return replace(verdict(status, "; ".join(words)), value=counted, scaled_value=counted)

    def _negated_status(self, part: model.PlannedAssertion) -> Status:
        """The status of the negated claim. If a metric has no value, neither claim holds."""
        if isinstance(part.term, model.Claimed):
            junctor = part.term.junctor
            parts = part.term.parts
            if junctor is nodes.Junctor.IF:
                statuses = [self._verdict(parts[0]).status, self._negated_status(parts[1])]
                return _combined_status(nodes.Junctor.ALL, statuses)
            other = nodes.Junctor.ANY if junctor is nodes.Junctor.ALL else nodes.Junctor.ALL
            return _combined_status(other, [*map(self._negated_status, parts)])
        status = self._verdict(part).status
        is_read = any(request.definition.scan is not Scan.SCHEMA for request in part.requests)
        if is_read and status is Status.FAILED and not part.condition.is_about_none:
            compared = self._judged(part)
            if None in (compared.scaled, *compared.bounds):
                return Status.FAILED
        return _OPPOSITES.get(status, status)


def _sides(assertion: model.PlannedAssertion) -> tuple[model.Term, ...]:
    """The term of an assertion, and the bounds of its condition."""
    return (assertion.term, *assertion.condition.bounds)


def _joined(texts: Iterable[str | None]) -> str | None:
    """The texts in one line, each once; None if there are none."""
    return "; ".join(dict.fromkeys(text for text in texts if text)) or None


def _with_values(
    verdict: Verdict, assertion: model.PlannedAssertion, judged: condition.EvaluatedCondition
) -> Verdict:
    """The verdict with the compared values."""
    return replace(
        verdict,
        value=judged.value,
        multiplier=1.0 if isinstance(judged.value, str) else float(assertion.multiplier),
        scaled_value=judged.scaled,
        threshold=judged.bounds[0] if judged.bounds else None,
        expected=condition.expected_text(assertion.condition, judged.bounds, factors=judged.factors)
        if judged.status is not Status.SKIPPED
        else assertion.condition.text,
        note=judged.note,
    )


def _combined_status(junctor: nodes.Junctor, statuses: Collection[Status]) -> Status:
    """The combined status of several claims, with the negated first claim for `if`."""
    deciding = Status.FAILED
    otherwise = Status.PASSED
    if junctor is not nodes.Junctor.ALL:
        deciding, otherwise = otherwise, deciding
    present = (status for status in (deciding, Status.ERROR, Status.SKIPPED) if status in statuses)
    return next(present, otherwise)


_OPPOSITES = {Status.PASSED: Status.FAILED, Status.FAILED: Status.PASSED}
_HOLDS = {
    Status.PASSED: "holds",
    Status.FAILED: "does not hold",
    Status.ERROR: "could not be evaluated",
    Status.SKIPPED: "was not evaluated",
}


_WHOLE_CLAIMS = ("each row:", "rows of ", "columns of ", "column ")
"""A claim with such a prefix contains its condition."""


def _claim_in_words(
    part: model.PlannedAssertion, verdict: Verdict, holds: str | None = None
) -> str:
    """The result of a claim in words: `null_count(x) == 0 does not hold (3)`.

    :param holds: replaces `does not hold` and the like.
    """
    reason = verdict.reason
    is_composed = isinstance(part.term, model.Claimed)
    if verdict.value is not None and not is_composed:
        reason = format_value(verdict.value) + (f"; {reason}" if reason else "")
    claim = part.expression
    if not is_composed and not claim.startswith(_WHOLE_CLAIMS):
        claim = f"{claim} {verdict.expected}"
    return f"`{claim}` {holds or _HOLDS[verdict.status]}" + (f" ({reason})" if reason else "")


def _verdict_without_values(
    assertion: model.PlannedAssertion, origin: Origin | None, status: Status, reason: str | None
) -> Verdict:
    """The verdict on an assertion, without the values that were compared."""
    columns = {
        value
        for request in assertion.requests
        for argument, value in zip(request.definition.arguments, request.arguments, strict=False)
        if argument.kind in (ArgumentKind.COLUMN, ArgumentKind.COLUMNS) and isinstance(value, str)
    }
    term = assertion.term
    groups = (assertion.groups.text,) if assertion.groups else ()
    as_written = " ".join((assertion.condition.text, *groups))
    return Verdict(
        name=assertion.name,
        check=assertion.check,
        datasets=assertion.datasets,
        expression=assertion.expression,
        expected=as_written,
        condition=as_written,
        severity=assertion.severity,
        status=status,
        multiplier=float(assertion.multiplier),
        reason=reason,
        tags=assertion.tags,
        profiles=assertion.profiles,
        metric=term.request.metric if isinstance(term, model.Measured) else None,
        column=columns.pop() if len(columns) == 1 else None,
        span=assertion.span,
        source_line=assertion.source_line,
        origin=origin,
        is_experimental=assertion.is_experimental,
        is_required=assertion.is_protected,
    )
