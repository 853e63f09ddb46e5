"""From metric values to verdicts, also on the clauses of a contract; applies waivers and
acceptances to them; and from verdicts to the outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from dqx_airflow.plan import condition, model, term_values
from dqx_airflow.plan.masks import masked_verdict, without_quotes
from dqx_airflow.plan.predicates import misfit
from dqx_airflow.plan.schema_check import INFINITE
from dqx_airflow.values import (
    EnforcedContract,
    Origin,
    Outcome,
    Severity,
    Status,
    UnenforcedClause,
    Verdict,
)
from dqx_airflow.values.report import Acceptance, AcceptedData, Decisions, Waiver


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
            measured=term_values.measured_json(assertion, plan, scanned, skip_dates),
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
        requests, scanned = assertion.requests, self.scanned
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
        view = condition.GroupView(assertion, self.scanned)
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
        of_groups = condition.GroupsJudgement(assertion, measured.plan, groups, judged)
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
        )

    def _judged(self, assertion: model.PlannedAssertion) -> condition.EvaluatedCondition:
        """The judgement on an assertion: for all rows, or for one group."""
        measured, requests = self.measured, assertion.requests
        answered = measured.with_answers(assertion)
        gap = measured.gap(answered.requests)
        if gap is not None and (gap.is_requested or not assertion.condition.is_about_none):
            return condition.EvaluatedCondition(Status.SKIPPED, gap.reason)
        usual = measured.usual_behind_bounds(answered)
        if usual is not None and usual.limits is None:
            return condition.EvaluatedCondition(Status.SKIPPED, usual.gap)
        value = measured.value_of(answered.term)
        scaled, bounds = measured.scaled_sides(answered, value)
        details = self.scanned.details
        reasons = (details[request] for request in self.void_requests(requests))
        voids = "; ".join(dict.fromkeys(reasons)) or None
        sides = (assertion.term, *assertion.condition.bounds)
        if voids is None and any(map(measured.hides_overflow, sides)):
            voids = INFINITE
        ahead = max(map(measured.hours_ahead, sides))
        most_ahead = measured.plan.max_clock_skew_hours
        if ahead > most_ahead:
            limit = format_duration(Fraction(most_ahead) * 3600)
            voids = f"{_AHEAD} by more than {limit}, so that it does not count: leave out such rows"
        if voids is not None and not assertion.condition.is_about_none:
            # Neither `coalesce` nor a window hides NaN or an overflow.
            value = scaled = None
        compared = condition.compare_value(assertion, scaled, bounds, voids)
        status, reason, note = compared.status, compared.reason, compared.note
        if status is Status.FAILED and gap is not None:
            reason = gap.reason
        if status is Status.PASSED and usual is not None and usual.repeats(scaled):
            status, reason = Status.FAILED, term_values.REPEATED
        if status is Status.FAILED:
            match assertion.term:
                case model.Applied(function="age") if reason is None:
                    # Seconds are hard to read for periods of days.
                    reason = f"that is {format_duration(value)}"
            known = dict.fromkeys(details[request] for request in requests if request in details)
            more = [text for text in known if text not in (reason or "")]
            reason = "; ".join(filter(None, (reason, *more))) or None
        remark = _AHEAD if voids is None and ahead else None
        notes = "; ".join(filter(None, (note, remark, *self._notes_on_filters(requests)))) or None
        factors = usual.limits.text if usual is not None and usual.limits is not None else ""
        return condition.EvaluatedCondition(status, reason, value, scaled, bounds, notes, factors)

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
            junctor, parts = part.term.junctor, part.term.parts
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
    deciding, otherwise = Status.FAILED, Status.PASSED
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
    columns = {
        value
        for request in assertion.requests
        for argument, value in zip(request.definition.arguments, request.arguments, strict=False)
        if argument.kind in (ArgumentKind.COLUMN, ArgumentKind.COLUMNS) and isinstance(value, str)
    }
    term = assertion.term
    return Verdict(
        name=assertion.name,
        check=assertion.check,
        datasets=assertion.datasets,
        expression=assertion.expression,
        expected=" ".join(
            (assertion.condition.text, *([assertion.groups.text] if assertion.groups else ()))
        ),
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


def with_clauses(verdicts: Iterable[Verdict], contract: EnforcedContract) -> tuple[Verdict, ...]:
    """The verdicts, with the paths and positions of their clauses in a contract; then the verdicts
    on clauses that no assertion checks."""
    clauses = {clause.assertion: clause for clause in contract.clauses}
    on_clauses = (
        replace(verdict, clause=clause.path, span=clause.span, source_line=clause.line)
        if (clause := clauses.get(verdict.name)) is not None
        else verdict
        for verdict in verdicts
    )
    return (*on_clauses, *unenforced_verdicts(contract))


def verdicts_on_tables(
    contract: EnforcedContract, published: Mapping[str, tuple[str, str | None]]
) -> tuple[Verdict, ...]:
    """The verdicts on tables whose properties refer to this contract: is it the same version?

    A table that refers to another version was written under another promise. That is a warning,
    since its data may satisfy the contract all the same.

    :param published: the id and version in the properties of tables, by dataset.
    """
    return tuple(
        Verdict(
            name=f"{dataset}.contract_version",
            check=IMPLICIT_CHECK,
            datasets=(dataset,),
            expression="the contract version of the table",
            expected=f"== {contract.version}",
            severity=Severity.P2,
            status=Status.PASSED if version == contract.version else Status.FAILED,
            value=version,
            scaled_value=version,
            threshold=contract.version,
            reason=None
            if version == contract.version
            else f"the table declares version {version} of {contract_id}",
        )
        for dataset, (contract_id, version) in published.items()
        if contract_id == contract.id
    )


def unenforced_verdicts(contract: EnforcedContract) -> tuple[Verdict, ...]:
    """The verdicts on clauses that state a check and cannot be enforced: errors, or skipped if the
    contract accepts that. A promise that is not checked is not kept."""
    return tuple(
        Verdict(
            name=clause.assertion,
            check=clause.dataset,
            datasets=(clause.dataset,),
            expression=clause.path,
            expected="an enforceable clause",
            severity=clause.severity,
            status=Status.SKIPPED if clause.is_accepted else Status.ERROR,
            reason=_reason(clause),
            span=clause.span,
            source_line=clause.line,
            clause=clause.path,
            let_by=clause.let_by,
        )
        for clause in contract.unenforced
    )


def unenforced_line(clause: UnenforcedClause) -> str:
    """One line about a clause that is not enforced: its path, its severity, and the reason."""
    treatment = "accepted" if clause.is_accepted else "not checked"
    return f"{treatment}: {clause.path} ({clause.severity.value}): {_reason(clause)}"


def _reason(clause: UnenforcedClause) -> str:
    if clause.let_by is None:
        return clause.reason
    verb = "accepted" if clause.is_accepted else "let through"
    return f"{clause.reason} ({verb} by {clause.let_by})"


def with_waivers(
    verdicts: Iterable[Verdict], waivers: Sequence[Waiver], now: datetime
) -> tuple[Verdict, ...]:
    """Marks verdicts as waived that failed within the limits of a waiver, and adds a note where a
    waiver does not apply. It never applies to P0 and `@required`."""
    active = {(waiver.check, waiver.name): waiver for waiver in waivers if waiver.is_active(now)}
    return tuple(
        _waived(verdict, active[verdict.check, verdict.name])
        if (verdict.check, verdict.name) in active
        else verdict
        for verdict in verdicts
    )


def _waived(verdict: Verdict, waiver: Waiver) -> Verdict:
    if verdict.status is not Status.FAILED or verdict.waived_by is not None:
        return verdict
    if waiver.rule not in (None, verdict.rule):
        return noted(verdict, f"the waiver is for another rule, `{waiver.rule}`: {waiver}")
    if not verdict.is_protected and waiver.covers(verdict.scaled_value):
        return replace(verdict, waived_by=str(waiver))
    protected = "P0" if verdict.severity is Severity.P0 else "@required"
    why = f"never applies to {protected}" if verdict.is_protected else "does not go so far"
    return noted(verdict, f"the waiver {why}: {waiver}")


def noted(verdict: Verdict, note: str) -> Verdict:
    """The verdict with one more note."""
    if verdict.note and note in verdict.note:
        return verdict
    return replace(verdict, note="; ".join(filter(None, (verdict.note, note))))


def with_acceptance(
    verdicts: Sequence[Verdict],
    decisions: Decisions,
    fail_on: Severity,
    fingerprints: Callable[[], Mapping[str, str | None]],
    *,
    accept_required: bool,
) -> tuple[tuple[Verdict, ...], Acceptance | None]:
    """Marks blocking verdicts as accepted if a person has accepted exactly this data, otherwise
    notes why not; also returns the acceptance, None if it does not apply.

    An acceptance is void if a fingerprint differs or is unknown, and if another assertion, or
    another rule of its name, blocks.

    :param fingerprints: returns the fingerprint of each dataset.
    """
    # More verdicts may have come since the first time.
    verdicts = [replace(verdict, accepted_by=None) for verdict in verdicts]
    blocking = [
        verdict
        for verdict in verdicts
        if verdict.status is Status.FAILED and verdict.can_block(fail_on)
    ]
    if not blocking or not decisions.accepted:
        return tuple(verdicts), None
    found, objection = None, ""
    for accepted in decisions.accepted:
        objection = _objection(accepted, blocking, fingerprints(), accept_required=accept_required)
        found = accepted.acceptance
        if not objection:
            break
    by = str(found)
    keys = {(verdict.check, verdict.name) for verdict in blocking}
    return tuple(
        verdict
        if (verdict.check, verdict.name) not in keys
        else noted(verdict, f"no longer {by} ({objection})")
        if objection
        else replace(verdict, accepted_by=by)
        for verdict in verdicts
    ), (None if objection else found)


def _objection(
    accepted: AcceptedData,
    blocking: Sequence[Verdict],
    fingerprints: Mapping[str, str | None],
    *,
    accept_required: bool,
) -> str:
    """The reason why an acceptance does not apply; empty if it does."""
    before = dict(accepted.fingerprints)
    changed = [name for name, own in fingerprints.items() if own is None or before.get(name) != own]
    if changed:
        return f"the data of {', '.join(changed)} has changed since, or cannot be identified"
    names = {(check, name) for check, name, _ in accepted.failed}
    new = [verdict.name for verdict in blocking if (verdict.check, verdict.name) not in names]
    if new:
        return f"{', '.join(new)} had not failed"
    others = [
        verdict.name
        for verdict in blocking
        if (verdict.check, verdict.name, verdict.rule) not in accepted.failed
    ]
    if others:
        return f"{', '.join(others)} was another rule"
    protected = [verdict.name for verdict in blocking if verdict.is_protected]
    if protected and not accept_required:
        return f"{', '.join(protected)} is P0 or @required, and accept_required is not set"
    return ""
