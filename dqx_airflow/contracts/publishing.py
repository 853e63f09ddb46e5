"""The requirements for publishing a version: the order of versions, and promises of earlier ones.

A published version is a promise: it never changes, breaking it takes a major bump, and consumers
are informed in time. The date is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.diff import Diff, diff
from dqx_airflow.contracts.enforcement.lifecycle import end_of
from dqx_airflow.contracts.enforcement.pins import objection_to_version
from dqx_airflow.contracts.model import CADENCES, Contract, day_of, end_of_period
from dqx_airflow.contracts.versions import Bump, Version, bump_between, next_version, version_of
from dqx_airflow.values.files import table_rows

_SHOWN_CHANGES = 5
_TABLE = "blockers.txt"


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
    """The blocker of a name in `blockers.txt`, with the values that its texts name."""
    texts = {row_name: texts for row_name, *texts in table_rows(__package__, _TABLE, "blockers")}
    problem, hint = texts[name]
    return Blocker(problem.format(**named), hint.format(**named))


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
    for earlier in published:
        if earlier.version == version:
            return () if earlier.digest == digest else (_other_content(earlier, contract, version),)
    if mistyped:
        return mistyped
    disorder = _disorder(contract, version, published, on)
    if disorder is not None:
        return (disorder,)
    base = _base(published)
    if base is None:
        return ()
    return tuple(_broken_promises(base, contract, version, published, on))


def _other_content(same: PublishedVersion, contract: Contract, version: Version) -> Blocker:
    """The objection that the version is published with another content."""
    next_patch = next_version(version, Bump.PATCH)
    return _blocker("other_content", on=same.on, version=contract.version, next=next_patch)


def _disorder(
    contract: Contract, version: Version, published: Sequence[PublishedVersion], on: date
) -> Blocker | None:
    """The objection that a later version is published, or that a version was published later."""
    newest = max(published, key=lambda earlier: earlier.version)
    if version < newest.version:
        return _blocker("lower", version=contract.version, newest=newest.contract.version)
    last = max(earlier.on for earlier in published)
    if on < last:
        return _blocker("before_last", on=on, last=last)
    return None


def _broken_promises(
    base: PublishedVersion,
    contract: Contract,
    version: Version,
    published: Sequence[PublishedVersion],
    on: date,
) -> Iterator[Blocker]:
    """The promises of a published version that the contract breaks."""
    changes = diff(base.contract, contract)
    if changes.shortfall is not None:
        yield Blocker(changes.shortfall, _summary(changes))
    elif changes.breaking and base.version.major > 0 and version.is_release:
        yield from _too_often(base, published, on)
        yield from _too_soon(base, contract, published, on)
        yield from _overlap_too_short(base, contract, on)
    yield from _ends_too_soon(base, contract, on)


def _mistyped(contract: Contract) -> Iterator[Blocker]:
    """The objections to words outside of closed sets: an unknown status would be permanent."""
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
    """The objection if a breaking version takes effect too few days after its announcement."""
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
    """The objection if a sunset is announced too few days in advance."""
    life = contract.lifecycle
    before = base.contract.lifecycle
    sunset = day_of(life.sunset_date)
    promised = day_of(before.sunset_date)
    if sunset is None and life.status == "sunset" and before.status != "sunset":
        sunset = on
    days = before.notice_days or 0
    earliest = end_of_period(on, days)
    if sunset is not None and sunset < min(promised or earliest, earliest):
        yield _blocker("ends_too_soon", sunset=sunset, days=days, earliest=earliest)
