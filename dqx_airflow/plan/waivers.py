"""Applies to verdicts what people decided: waivers of assertions, and acceptances of data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from dqx_airflow.values import Severity, Status, Verdict
from dqx_airflow.values.report import Acceptance, AcceptedData, Decisions, Waiver, is_composed


def with_waivers(
    verdicts: Iterable[Verdict], waivers: Sequence[Waiver], now: datetime
) -> tuple[Verdict, ...]:
    """Marks verdicts as waived that failed within the limits of a waiver, and adds a note where a
    waiver does not apply. It never applies to P0 and `@required`."""
    active = {(waiver.check, waiver.name): waiver for waiver in waivers if waiver.is_active(now)}
    marked = []
    for verdict in verdicts:
        waiver = active.get((verdict.check, verdict.name))
        marked.append(verdict if waiver is None else _waived(verdict, waiver))
    return tuple(marked)


def _waived(verdict: Verdict, waiver: Waiver) -> Verdict:
    if verdict.status is not Status.FAILED or verdict.waived_by is not None:
        return verdict
    if waiver.rule not in (None, verdict.rule):
        return noted(verdict, f"the waiver is for another rule, `{waiver.rule}`: {waiver}")
    if not verdict.is_protected and _covers(waiver, verdict):
        return replace(verdict, waived_by=str(waiver))
    protected = "P0" if verdict.severity is Severity.P0 else "@required"
    why = f"never applies to {protected}" if verdict.is_protected else "does not go so far"
    return noted(verdict, f"the waiver {why}: {waiver}")


def _covers(waiver: Waiver, verdict: Verdict) -> bool:
    """Whether the value of a failure is within the limits of a waiver; of groups, all of them."""
    if is_composed(verdict):
        return waiver.below is None and waiver.above is None
    return all(map(waiver.covers, (verdict.scaled_value, *verdict.failed_values)))


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
    for accepted in decisions.accepted:
        objection = _objection(accepted, blocking, fingerprints(), accept_required=accept_required)
        acceptance = accepted.acceptance
        if not objection:
            break
    keys = {(verdict.check, verdict.name) for verdict in blocking}
    marked = []
    for verdict in verdicts:
        if (verdict.check, verdict.name) not in keys:
            marked.append(verdict)
        elif objection:
            marked.append(noted(verdict, f"no longer {acceptance} ({objection})"))
        else:
            marked.append(replace(verdict, accepted_by=str(acceptance)))
    return tuple(marked), (None if objection else acceptance)


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
