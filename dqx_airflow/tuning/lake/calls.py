"""How often the gates of a lake would call someone, and which claims may block.

A call is a day on which a gate blocks: claims of one kind in one table often fail together, and are
judged together. Their rate is that of their own past days, drawn towards the rate of their kind in
all tables: ten days without a failure are no proof that there is none in a year.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from dqx_airflow.tuning.lake.past_claims import PastClaim

MONTH_DAYS = 30
_DAYS_OF_KIND = 20
"""The number of days for which the rate of its kind counts in the rate of a claim."""

_WEIGHTY = ("key", "filled", "values", "form", "watch.rows")
"""The kinds of claims that may block first, the weightiest first."""

_BEFORE_ANY = 1
"""Days with a failure that are assumed of a kind before any day is known."""


@dataclass(frozen=True, slots=True)
class ExpectedClaim:
    """A claim with the calls that are expected if it blocks.

    :param judged: the past days on which it was judged, of which it failed on `failed`.
    :param calls_per_month: its share of the days of a month on which its gate blocks, because
        claims of its kind fail.
    :param blocks: whether it may block within the number of calls that is wanted.
    """

    table: str
    assertion: str
    judged: int
    failed: int
    calls_per_month: float
    blocks: bool = False


@dataclass(frozen=True, slots=True)
class _Group:
    """Claims of one kind in one table that block together, or not at all, since they fail together:
    those without a failure; or one that failed."""

    table: str
    kind: str
    claims: tuple[PastClaim, ...]
    calls_per_month: float

    @property
    def rank(self) -> tuple[int, float, str]:
        """The weightiest kind first, then the fewest calls."""
        weight = _WEIGHTY.index(self.kind) if self.kind in _WEIGHTY else len(_WEIGHTY)
        return weight, self.calls_per_month, self.table


def expected_claims(
    claims: Mapping[str, Sequence[PastClaim]],
    calls_per_month: float | None,
    enforced: Collection[str] = (),
    past: Mapping[str, Sequence[PastClaim]] | None = None,
) -> list[ExpectedClaim]:
    """The claims of all tables, by the weight of their kinds and the calls that they make.

    Claims that could not be evaluated do not block, and neither does the usual share of NULL in a
    column without NULL: one cause calls once.

    :param claims: the claims by table.
    :param calls_per_month: the calls that all that block may make together; None if nothing is to
        block.
    :param enforced: the names of claims that block already, whose calls count first.
    :param past: all claims that were judged on past days, by which kinds are rated: also those that
        failed, and are claimed no longer. By default the claims.
    """
    rates = _rates_of_kinds(claims if past is None else past)
    names = {claim.name for own in claims.values() for claim in own}
    groups = sorted(_groups(claims, rates), key=lambda group: group.rank)
    known = [(group, claim) for group in groups for claim in group.claims]
    total = sum(_share(group) for group, claim in known if claim.name in enforced)
    expected = []
    for group in groups:
        new = [claim for claim in group.claims if claim.name not in enforced]
        possible = [claim for claim in new if claim.judged and not _is_second(claim, group, names)]
        calls = len(possible) * _share(group)
        blocks = calls_per_month is not None and total + calls <= calls_per_month
        if blocks:
            total += calls
        for claim in sorted(group.claims, key=lambda one: one.name):
            expected.append(
                ExpectedClaim(
                    group.table,
                    claim.name,
                    claim.judged,
                    claim.failed,
                    _share(group),
                    blocks=blocks and claim in possible,
                )
            )
    return expected


def _share(group: _Group) -> float:
    """The calls of each of the claims of a group."""
    return group.calls_per_month / len(group.claims)


def _rates_of_kinds(claims: Mapping[str, Sequence[PastClaim]]) -> dict[str, float]:
    """The share of the days of a gate on which a claim of a kind fails, over all tables."""
    judged: dict[str, int] = defaultdict(int)
    failed: dict[str, int] = defaultdict(int)
    for own in claims.values():
        for kind, of_kind in _by_kind(own).items():
            judged[kind] += max(claim.judged for claim in of_kind)
            failed[kind] += _failing_days(of_kind)
    return {kind: min(1, (failed[kind] + _BEFORE_ANY) / (judged[kind] + 1)) for kind in judged}


def _by_kind(claims: Sequence[PastClaim]) -> dict[str, list[PastClaim]]:
    by_kind: dict[str, list[PastClaim]] = defaultdict(list)
    for claim in claims:
        by_kind[claim.kind].append(claim)
    return by_kind


def _failing_days(claims: Sequence[PastClaim]) -> int:
    """The days on which at least one of the claims failed."""
    days: set[date] = {day for claim in claims for day in claim.failed_on}
    return max(len(days), *(claim.failed for claim in claims))


def _groups(
    claims: Mapping[str, Sequence[PastClaim]], rates: Mapping[str, float]
) -> Iterator[_Group]:
    for table, own in claims.items():
        for kind, of_kind in _by_kind(own).items():
            quiet = tuple(claim for claim in of_kind if not claim.failed)
            parts = [quiet] if quiet else []
            parts += [(claim,) for claim in of_kind if claim.failed]
            for part in parts:
                judged = max(claim.judged for claim in part)
                rate = _failing_days(part) + _DAYS_OF_KIND * rates.get(kind, 1)
                yield _Group(table, kind, part, MONTH_DAYS * rate / (judged + _DAYS_OF_KIND))


def _is_second(claim: PastClaim, group: _Group, names: Collection[str]) -> bool:
    """True for the usual share of NULL in a column of which another claim allows none."""
    mark = f"{group.table}.watch.nulls."
    column = claim.name.removeprefix(mark)
    return claim.name.startswith(mark) and f"{group.table}.{column}.filled" in names
