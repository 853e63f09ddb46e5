"""Whether a version of a contract may be published, given the published ones and a date.

A published version is a promise: it never changes, breaking it takes a major bump, and consumers
are informed in time. The date is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.dialects.frequencies import CADENCES
from dqx_airflow.contracts.diff import Diff, diff
from dqx_airflow.contracts.model import Contract, Lifecycle, day_of
from dqx_airflow.contracts.notice_periods import end_of_period
from dqx_airflow.contracts.versions import Bump, Version, bump_between, next_version, version_of

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


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a version must not be published, and what to do instead."""

    problem: str
    hint: str


def objections(
    contract: Contract,
    digest: str,
    published: Sequence[PublishedVersion],
    on: date,
    *,
    semantic: Bump = Bump.MAJOR,
) -> tuple[Objection, ...]:
    """All objections to publishing a contract on a date; none for one that is published.

    :param published: the published versions of its id, in order.
    :param semantic: the bump for a change of meaning in words.
    """
    if reader_of(contract.dialect).versions_models:
        problem = "a manifest of DataLex has no version: each of its contracts has one"
        return (Objection(problem, "compare two by `dql contract diff` and `dql contract impact`"),)
    version = version_of(contract.version)
    if version is None:
        shown = f"'{contract.version}' cannot be ordered as a version"
        problem = "the contract has no version" if contract.version is None else shown
        return (Objection(problem, "write it as 1.0.0"),)
    mistyped = tuple(_mistyped(contract))
    if not published:
        return mistyped
    same = next((earlier for earlier in published if earlier.version == version), None)
    if same is not None:
        if same.digest == digest:
            return ()
        problem = f"version {contract.version} was published on {same.on} with another content"
        return (Objection(problem, f"raise it to {next_version(version, Bump.PATCH)} or higher"),)
    if mistyped:
        return mistyped
    newest = max(published, key=lambda earlier: earlier.version)
    if version < newest.version:
        problem = f"version {contract.version} is lower than {newest.contract.version}"
        return (Objection(problem, f"{newest.contract.version} is published: go on from there"),)
    last = max(earlier.on for earlier in published)
    if on < last:
        problem = f"{on} is before {last}, when the last version was published"
        return (Objection(problem, f"publish it on {last} or later"),)
    base = _base(published)
    if base is None:
        return ()
    changes = diff(base.contract, contract, semantic=semantic)
    problems = []
    if changes.shortfall is not None:
        problems.append(Objection(changes.shortfall, _summary(changes)))
    elif _breaks(changes, base.version, version):
        problems += _too_often(base, published, on)
        problems += _too_soon(base, contract, published, on)
        problems += _overlap_too_short(base, contract, on)
    problems += _ends_too_soon(base, contract, on)
    return tuple(problems)


def _mistyped(contract: Contract) -> Iterator[Objection]:
    """Words outside of closed sets: an unknown status or cadence would be permanent."""
    for note in contract.notes:
        if note.code == "E422":
            problem = f"{note.clause.path}: {note.reason}"
            yield Objection(problem, note.help or "`dql contract lint` shows where")


def _base(published: Sequence[PublishedVersion]) -> PublishedVersion | None:
    """The newest version that is relied on; drafts and release candidates promise nothing."""
    promised = [
        earlier
        for earlier in published
        if earlier.version.is_release and earlier.contract.lifecycle.status != "draft"
    ]
    return max(promised, key=lambda earlier: earlier.version, default=None)


def _breaks(changes: Diff, old: Version, new: Version) -> bool:
    return bool(changes.breaking) and old.major > 0 and new.is_release


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
) -> list[Objection]:
    cadence = base.contract.lifecycle.cadence
    current = period_of(cadence, on) if cadence else None
    if current is None:
        return []
    begin, period = current
    ordered = sorted(published, key=lambda earlier: earlier.version)
    for before, after in pairwise(ordered):
        is_major = bump_between(before.version, after.version) is Bump.MAJOR
        if is_major and before.version.major > 0 and begin <= after.on <= on:
            problem = (
                f"{base.contract.id} breaks at most once a {period} ({cadence}), and did so on "
                f"{after.on} with {after.contract.version}"
            )
            return [Objection(problem, f"wait for the next {period}, or keep what there is")]
    return []


# Notice --------------------------------------------------------------------------------------


def _notice(contract: Contract) -> int:
    life = contract.lifecycle
    periods = life.breaking_notice_days, life.notice_days
    return next((days for days in periods if days is not None), 0)


def _too_soon(
    base: PublishedVersion, contract: Contract, published: Sequence[PublishedVersion], on: date
) -> list[Objection]:
    """A breaking version takes effect at least this many days after its announcement."""
    days = _notice(base.contract)
    begin = max(day_of(contract.lifecycle.effective_date) or on, on)
    announced = _announced(base, published)
    if days == 0 or begin >= end_of_period(announced or on, days):
        return []
    since = f"was deprecated on {announced}" if announced else "is not deprecated yet"
    earliest = end_of_period(announced or on, days)
    problem = (
        f"{base.contract.version} promises {days} days of notice before it breaks, and it {since}"
    )
    hint = f"publish a version of it with the status deprecated, then this one {days} days later"
    if announced:
        hint = f"publish it on {earliest} or later"
    return [Objection(problem, hint)]


def _announced(base: PublishedVersion, published: Sequence[PublishedVersion]) -> date | None:
    """The date on which the end of a major version was announced."""
    line = [earlier for earlier in published if earlier.version.major == base.version.major]
    dates = [earlier.on for earlier in line if _is_ending(earlier.contract)]
    return min(dates, default=None) if _is_ending(base.contract) else None


def _is_ending(contract: Contract) -> bool:
    life = contract.lifecycle
    dates = life.deprecation_date, life.sunset_date
    return life.status in ("deprecated", "sunset") or any(map(day_of, dates))


def _overlap_too_short(base: PublishedVersion, contract: Contract, on: date) -> list[Objection]:
    """Both versions are written for at least this many days before the old one ends."""
    old, new = base.contract.lifecycle, contract.lifecycle
    days = max(old.dual_write_days or 0, new.dual_write_days or 0)
    begin = max(day_of(new.effective_date) or on, on)
    end = end_of(old)
    earliest = end_of_period(begin, days)
    if days == 0 or end is None or end >= earliest:
        return []
    problem = (
        f"{base.contract.version} ends on {end}, {max((end - begin).days, 0)} days after "
        f"{contract.version} begins on {begin}: {days} days of dual writes are promised"
    )
    hint = f"first publish {base.version.major}.x with a sunset on {earliest} or later"
    return [Objection(problem, hint)]


def end_of(life: Lifecycle) -> date | None:
    """The date from which a version must not be relied on: its sunset, or the end of its notice."""
    sunset, deprecated = day_of(life.sunset_date), day_of(life.deprecation_date)
    if sunset is not None or deprecated is None or life.notice_days is None:
        return sunset
    return end_of_period(deprecated, life.notice_days)


def _ends_too_soon(base: PublishedVersion, contract: Contract, on: date) -> list[Objection]:
    """A sunset is announced this many days in advance."""
    life, before = contract.lifecycle, base.contract.lifecycle
    sunset = day_of(life.sunset_date)
    ended = life.status == "sunset" and before.status != "sunset"
    if sunset is None and ended:
        sunset = on
    promised = day_of(before.sunset_date)
    days = before.notice_days or 0
    if sunset is None or (promised is not None and promised <= sunset):
        return []
    earliest = end_of_period(on, days)
    if sunset >= earliest:
        return []
    problem = f"the sunset on {sunset} gives less than the {days} days of notice that are promised"
    return [Objection(problem, f"set it to {earliest} or later")]
