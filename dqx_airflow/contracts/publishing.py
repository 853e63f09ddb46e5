"""The requirements for publishing a version: the policy of bumps, and the consent of owners.

A published version is a promise: it never changes, breaking it takes a major bump, and consumers
are informed in time. The date is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.diff import Diff, diff
from dqx_airflow.contracts.enforcement.lifecycle import end_of, lifecycle_status
from dqx_airflow.contracts.enforcement.pins import is_version, objection_to_version
from dqx_airflow.contracts.mistakes import listed_texts
from dqx_airflow.contracts.model import (
    CADENCES,
    Bump,
    Contract,
    Version,
    bump_between,
    day_of,
    end_of_period,
    next_version,
    version_of,
)
from dqx_airflow.diagnostics.templates import filled

_SHOWN_CHANGES = 5


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """A published version; `digest` identifies its content."""

    contract: Contract
    number: int
    on: date
    digest: str

    @property
    def version(self) -> Version:
        version = version_of(self.contract.version)
        assert version is not None, "only versions that can be ordered are published"
        return version


def newest_of(
    published: Iterable[PublishedVersion], pin: str | None = None
) -> PublishedVersion | None:
    """The newest version that a pin such as `2.3` accepts; None if there is none."""
    accepted = (
        one for one in published if pin is None or objection_to_version(one.contract, pin) is None
    )
    return max(accepted, key=lambda one: one.version, default=None)


@dataclass(frozen=True, slots=True)
class Blocker:
    """A reason why a version must not be published, with advice."""

    problem: str
    hint: str


def _blocker(name: str, /, **named: object) -> Blocker:
    return Blocker(*listed_texts("blockers", name, **named))


def objections(
    contract: Contract, digest: str, published: Sequence[PublishedVersion], on: date
) -> tuple[Blocker, ...]:
    """All objections to publishing a contract on a date; none if it is already published.

    :param published: the published versions with its id, in order.
    """
    if reader_of(contract.dialect).versions_models:
        return (_blocker("manifest"),)
    version = version_of(contract.version)
    if version is None:
        name = "no_version" if contract.version is None else "no_order"
        return (_blocker(name, version=contract.version),)
    mistyped = tuple(_mistyped(contract))
    if not published:
        return mistyped
    same = next((earlier for earlier in published if earlier.version == version), None)
    if same is not None:
        if same.digest == digest:
            return ()
        named = {"version": contract.version, "next": next_version(version, Bump.PATCH)}
        return (_blocker("other_content", on=same.on, **named),)
    if mistyped:
        return mistyped
    newest = max(published, key=lambda earlier: earlier.version)
    if version < newest.version:
        return (_blocker("lower", version=contract.version, newest=newest.contract.version),)
    last = max(earlier.on for earlier in published)
    if on < last:
        return (_blocker("before_last", on=on, last=last),)
    base = _base(published)
    if base is None:
        return ()
    changes = diff(base.contract, contract)
    problems = []
    if changes.shortfall is not None:
        problems.append(Blocker(changes.shortfall, _summary(changes)))
    elif changes.breaking and base.version.major > 0 and version.is_release:
        problems += _too_often(base, published, on)
        problems += _too_soon(base, contract, published, on)
        problems += _overlap_too_short(base, contract, on)
    problems += _ends_too_soon(base, contract, on)
    return tuple(problems)


def _mistyped(contract: Contract) -> Iterator[Blocker]:
    """Words outside of closed sets: an unknown status or cadence would be permanent."""
    for note in contract.notes:
        if note.code == "E422":
            problem = f"{note.clause.path}: {note.reason}"
            yield Blocker(problem, note.help or "`dql contract lint` shows where")


def _base(published: Sequence[PublishedVersion]) -> PublishedVersion | None:
    """The newest version that is relied on; drafts and release candidates promise nothing."""
    return newest_of(
        earlier
        for earlier in published
        if earlier.version.is_release and earlier.contract.lifecycle.status != "draft"
    )


def _summary(changes: Diff) -> str:
    shown = [change.message for change in changes.changes if change.bump is changes.due]
    hidden = len(shown) - _SHOWN_CHANGES
    more = f"; and {hidden} more" if hidden > 0 else ""
    return "; ".join(shown[:_SHOWN_CHANGES]) + more


# Cadence -------------------------------------------------------------------------------------


def period_of(cadence: str, on: date) -> tuple[date, str] | None:
    """The first day of the calendar period of a cadence such as `quarterly_max`, and its name."""
    word = cadence.strip().lower()
    name = next((name for name in CADENCES if word.startswith(name)), None)
    if name is None:
        return None
    if name == "week":
        return on - timedelta(days=on.weekday()), "week"
    months = CADENCES[name]
    first = (on.month - 1) // months * months + 1
    shown = {1: "month", 3: "quarter", 6: "half-year", 12: "year"}[months]
    return date(on.year, first, 1), shown


def _too_often(
    base: PublishedVersion, published: Sequence[PublishedVersion], on: date
) -> Iterator[Blocker]:
    cadence = base.contract.lifecycle.cadence
    if cadence is None or (current := period_of(cadence, on)) is None:
        return
    begin, period = current
    ordered = sorted(published, key=lambda earlier: earlier.version)
    for before, after in pairwise(ordered):
        is_major = bump_between(before.version, after.version) is Bump.MAJOR
        if is_major and before.version.major > 0 and begin <= after.on <= on:
            named = {"period": period, "cadence": cadence, "version": after.contract.version}
            yield _blocker("too_often", id=base.contract.id, on=after.on, **named)
            return


# Notice --------------------------------------------------------------------------------------


def _too_soon(
    base: PublishedVersion, contract: Contract, published: Sequence[PublishedVersion], on: date
) -> Iterator[Blocker]:
    """A breaking version takes effect at least this many days after its announcement."""
    promised = base.contract.lifecycle.breaking_notice_days
    days = (base.contract.lifecycle.notice_days or 0) if promised is None else promised
    begin = max(day_of(contract.lifecycle.effective_date) or on, on)
    announced = _announced(base, published)
    earliest = end_of_period(announced or on, days)
    if days and begin < earliest:
        named = {"version": base.contract.version, "days": days, "announced": announced}
        yield _blocker("too_soon" if announced else "not_deprecated", earliest=earliest, **named)


def _announced(base: PublishedVersion, published: Sequence[PublishedVersion]) -> date | None:
    """The date on which the end of a major version was announced."""
    line = [earlier for earlier in published if earlier.version.major == base.version.major]
    dates = [earlier.on for earlier in line if _is_ending(earlier.contract)]
    return min(dates, default=None) if _is_ending(base.contract) else None


def _is_ending(contract: Contract) -> bool:
    life = contract.lifecycle
    dates = life.deprecation_date, life.sunset_date
    return life.status in ("deprecated", "sunset") or any(map(day_of, dates))


def _overlap_too_short(base: PublishedVersion, contract: Contract, on: date) -> Iterator[Blocker]:
    """The objection if the old version ends before both versions were written for the required
    number of days."""
    old, new = base.contract.lifecycle, contract.lifecycle
    days = max(old.dual_write_days or 0, new.dual_write_days or 0)
    begin = max(day_of(new.effective_date) or on, on)
    end = end_of(old)
    earliest = end_of_period(begin, days)
    if days and end is not None and end < earliest:
        versions = {"version": base.contract.version, "successor": contract.version}
        ends = {"end": end, "begin": begin, "between": max((end - begin).days, 0)}
        named = {"days": days, "earliest": earliest, "major": base.version.major}
        yield _blocker("short_overlap", **versions, **ends, **named)


def _ends_too_soon(base: PublishedVersion, contract: Contract, on: date) -> Iterator[Blocker]:
    """A sunset is announced this many days in advance."""
    life, before = contract.lifecycle, base.contract.lifecycle
    sunset, promised = day_of(life.sunset_date), day_of(before.sunset_date)
    if sunset is None and life.status == "sunset" and before.status != "sunset":
        sunset = on
    days = before.notice_days or 0
    earliest = end_of_period(on, days)
    if sunset is not None and sunset < min(promised or earliest, earliest):
        yield _blocker("ends_too_soon", sunset=sunset, days=days, earliest=earliest)


_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")


def codeowners_line(path: str, contract: Contract, org: str | None = None) -> str:
    """The owners of a contract's file: its owner, then each consumer.

    :param org: the organisation of the teams; `@org/team` instead of `@team`.
    """
    parties = (contract.owner, *(consumer.team for consumer in contract.consumers))
    handles = dict.fromkeys(_handle(party, org) for party in parties if party)
    # In CODEOWNERS a space separates a path from its owners, and # begins a comment.
    escaped = re.sub(r"([ #\\])", r"\\\1", path)
    return " ".join((escaped, *(handle for handle in handles if handle)))


def _handle(party: str, org: str | None) -> str | None:
    """`@bi-reporting` for a team; an email address unchanged."""
    if _EMAIL.fullmatch(party):
        return party
    if re.fullmatch(r"@[\w./-]+", party):
        return party
    slug = re.sub(r"[^a-z0-9]+", "-", party.lower()).strip("-")
    return (f"@{org}/{slug}" if org else f"@{slug}") if slug else None


def rfc_draft(contract: Contract) -> str:
    """The draft as Markdown: the contents of the contract, and open questions."""
    rules = [(type(rule.demand).__name__, rule) for _, _, rule in contract.rules()]
    return filled(__package__, "rfc.md", contract=contract, rules=rules)


@dataclass(frozen=True, slots=True)
class ReleaseRemark:
    """A remark on a contract in a release, other than its changes: the contract is new or deleted,
    or a consumer pins a version that no longer exists.

    `facts` is the machine-readable form. `falls_short`: consumers may still rely on the contract.
    """

    contract: Contract
    message: str
    facts: Mapping[str, object]
    falls_short: bool = False


@dataclass(frozen=True, slots=True)
class ReleasedContracts:
    """The changes of contracts in a release, and remarks on other contracts."""

    diffs: tuple[Diff, ...]
    remarks: tuple[ReleaseRemark, ...]

    @property
    def falls_short(self) -> bool:
        """True if something breaks consumers of a contract without the required bump."""
        remarks = any(remark.falls_short for remark in self.remarks)
        return remarks or any(item.falls_short for item in self.diffs)


def release_of(
    pairs: Iterable[tuple[Contract | None, Contract | None]],
    on: date,
    *,
    semantic: Bump = Bump.MAJOR,
) -> ReleasedContracts:
    """The changes between the old and the new sides of the pairs.

    :param on: the date on which a deleted contract must be past its end.
    :param semantic: the bump for a change of meaning in words.
    """
    versions = list(pairs)
    both = [(old, new) for old, new in versions if old and new]
    after = [new for _, new in versions if new is not None]
    return ReleasedContracts(
        tuple(diff(old, new, semantic=semantic) for old, new in both),
        (
            *(_addition(new) for old, new in versions if new and not old),
            *(_deletion(old, on) for old, new in versions if old and not new),
            *(pin for old, new in both for pin in _stranded(old, new, after)),
        ),
    )


def _addition(contract: Contract) -> ReleaseRemark:
    facts = {"id": contract.id, "new_version": contract.version, "status": "new"}
    return ReleaseRemark(contract, f"{_title(contract)}: a new contract", facts)


def _deletion(contract: Contract, on: date) -> ReleaseRemark:
    state = lifecycle_status(contract, on)
    is_due = contract.lifecycle.status == "draft" or (state is not None and state.is_refused)
    models = ", ".join(model.name for model in contract.models)
    message = "deleted after its sunset"
    if not is_due:
        message = f"deleted while consumers may rely on {models or 'it'}: "
        message += "sunset it first, or put it back"
    facts = {"id": contract.id, "old_version": contract.version, "status": "deleted"}
    text = f"{_title(contract)}: {message}"
    return ReleaseRemark(contract, text, {**facts, "falls_short": not is_due}, not is_due)


def _stranded(old: Contract, new: Contract, after: Sequence[Contract]) -> Iterator[ReleaseRemark]:
    """The pins that the old version satisfied, and no version of the contract satisfies any
    longer."""
    versions = [contract for contract in after if contract.id == new.id]
    for consumer in new.consumers:
        pin = consumer.pin
        if pin is None or not is_version(pin) or objection_to_version(old, pin) is not None:
            continue
        if all(objection_to_version(contract, pin) is not None for contract in versions):
            message = (
                f"{_title(new)}: {consumer.team} pins {pin}, and no contract has this version "
                "any longer: keep it beside the new one, or update the pin"
            )
            facts = {"id": new.id, "new_version": new.version, "status": "pinned"}
            of_pin = {"team": consumer.team, "pin": pin, "falls_short": True}
            yield ReleaseRemark(new, message, {**facts, **of_pin}, falls_short=True)


def _title(contract: Contract) -> str:
    return f"{contract.id} {contract.version or 'no version'}"
