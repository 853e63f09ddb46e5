"""How often the gates of a lake would call someone, and which claims may block.

The rate of a claim is the rate of its own past days, drawn towards the rate of its kind in all
tables: ten days without a failure are no proof that there is none in a year.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dqx_airflow.tuning.lake.past_claims import PastClaim, kind_of

MONTH_DAYS = 30
_DAYS_OF_KIND = 20
"""The number of days for which the rate of its kind counts in the rate of a claim."""

_WEIGHTY = ("key", "filled", "values", "form", "watch.rows")
"""The kinds of claims that may block first, the weightiest first."""

_BEFORE_ANY = 0.5
"""Failures that are assumed of a kind before any day is known."""


@dataclass(frozen=True, slots=True)
class ExpectedClaim:
    """A claim with the calls that are expected if it blocks.

    :param judged: the past days on which it was judged, of which it failed on `failed`.
    :param calls_per_month: the days of a month on which it fails.
    :param blocks: whether it may block within the number of calls that is wanted.
    """

    table: str
    assertion: str
    judged: int
    failed: int
    calls_per_month: float
    blocks: bool = False


def expected_claims(
    claims: Mapping[str, Sequence[PastClaim]],
    calls_per_month: float | None,
    enforced: Collection[str] = (),
) -> list[ExpectedClaim]:
    """The claims of all tables, by the weight of their kinds and the calls that they make.

    Claims that could not be evaluated do not block, and neither does the usual share of NULL in a
    column without NULL: one cause calls once.

    :param claims: the claims by table.
    :param calls_per_month: the calls that all that block may make together; None if nothing is to
        block.
    :param enforced: the names of claims that block already, whose calls count first.
    """
    judged: dict[str, int] = defaultdict(int)
    failed: dict[str, float] = defaultdict(lambda: _BEFORE_ANY)
    for own in claims.values():
        for claim in own:
            judged[claim.kind] += claim.judged
            failed[claim.kind] += claim.failed
    expected = []
    for table, own in claims.items():
        for claim in own:
            of_kind = min(1.0, failed[claim.kind] / (judged[claim.kind] + 1))
            days = claim.judged + _DAYS_OF_KIND
            rate = (claim.failed + _DAYS_OF_KIND * of_kind) / days
            expected.append(
                ExpectedClaim(table, claim.name, claim.judged, claim.failed, MONTH_DAYS * rate)
            )
    expected.sort(key=_rank)
    return _chosen(expected, calls_per_month, enforced)


def _rank(claim: ExpectedClaim) -> tuple[int, float, str, str]:
    kind = kind_of(claim.assertion, claim.table)
    weight = _WEIGHTY.index(kind) if kind in _WEIGHTY else len(_WEIGHTY)
    return weight, claim.calls_per_month, claim.table, claim.assertion


def _chosen(
    expected: Sequence[ExpectedClaim], most: float | None, enforced: Collection[str]
) -> list[ExpectedClaim]:
    """The claims, of which those block that call little enough together, and do not block yet."""
    total = sum(claim.calls_per_month for claim in expected if claim.assertion in enforced)
    chosen = []
    names = {claim.assertion for claim in expected}
    for claim in expected:
        is_judged = claim.judged > 0 and claim.assertion not in enforced
        is_possible = most is not None and is_judged and not _is_second(claim, names)
        blocks = is_possible and total + claim.calls_per_month <= (most or 0)
        if blocks:
            total += claim.calls_per_month
        chosen.append(replace(claim, blocks=blocks))
    return chosen


def _is_second(claim: ExpectedClaim, names: Collection[str]) -> bool:
    """True for the usual share of NULL in a column of which another claim allows none."""
    mark = f"{claim.table}.watch.nulls."
    column = claim.assertion.removeprefix(mark)
    return claim.assertion.startswith(mark) and f"{claim.table}.{column}.filled" in names
