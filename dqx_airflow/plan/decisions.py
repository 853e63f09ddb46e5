"""What people have decided about assertions that fail: the verdicts of a gate with their waivers,
and with the acceptance of its data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from dqx_airflow.values import Severity, Status, Verdict
from dqx_airflow.values.decisions import Acceptance, AcceptedData, Decisions, Waiver


def with_waivers(
    verdicts: Iterable[Verdict], waivers: Sequence[Waiver], now: datetime
) -> tuple[Verdict, ...]:
    """The verdicts, those waived that failed within the limits of a waiver; a waiver that does not
    apply is noted. It never applies to P0 and `@required`."""
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
    """The verdicts, with those accepted that block, if a person has accepted exactly this data; and
    the acceptance.

    An acceptance is void if a fingerprint differs or is unknown, and if another assertion blocks.

    :param fingerprints: returns those of the datasets.
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
    """Why an acceptance does not apply; empty if it does."""
    before = dict(accepted.fingerprints)
    changed = [name for name, own in fingerprints.items() if own is None or before.get(name) != own]
    if changed:
        return f"the data of {', '.join(changed)} has changed since, or cannot be identified"
    new = [
        verdict.name for verdict in blocking if (verdict.check, verdict.name) not in accepted.failed
    ]
    if new:
        return f"{', '.join(new)} had not failed"
    protected = [verdict.name for verdict in blocking if verdict.is_protected]
    if protected and not accept_required:
        return f"{', '.join(protected)} is P0 or @required, and accept_required is not set"
    return ""
