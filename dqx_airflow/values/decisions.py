"""What people decide about verdicts: waivers until a date, and the acceptance of judged data."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from uuid import uuid4

LONGEST_WAIVER = timedelta(days=30)
"""The longest time of a waiver, unless its author asks for more."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """A failing assertion that does not block until the end of a day, in UTC.

    `below` and `above` are the exact limits of the value, as strings: a value that reaches them is
    not waived. `owner` takes care of the cause, `author` wrote the waiver. `ended_by` is who ended
    it early.
    """

    gate: str
    check: str
    name: str
    until: date
    reason: str
    owner: str
    author: str
    below: str | None = None
    above: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    id: str = field(default_factory=lambda: str(uuid4()))
    ended_by: str | None = None

    def is_active(self, now: datetime) -> bool:
        """Whether it has begun and has not ended."""
        return self.ended_by is None and self.at <= now and now.date() <= self.until

    def covers(self, value: object) -> bool:
        """Whether a value is within its limits."""
        if self.below is None and self.above is None:
            return True
        if not isinstance(value, int | float | Fraction) or isinstance(value, bool):
            return False
        is_below = self.below is None or value < Fraction(self.below)
        return is_below and (self.above is None or value > Fraction(self.above))

    @property
    def terms(self) -> str:
        """How long and how far it goes: `waived until 2026-11-27, below 0.1`."""
        limits = [f"below {self.below}"] if self.below else []
        limits += [f"above {self.above}"] if self.above else []
        return ", ".join([f"waived until {self.until}", *limits])

    def __str__(self) -> str:
        return f"{self.terms}; owner {self.owner}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A person has accepted the data that a run judged. `run_id` is that run."""

    run_id: str
    author: str
    reason: str
    at: datetime

    def __str__(self) -> str:
        return f"accepted by {self.author}: {self.reason}"


@dataclass(frozen=True, slots=True)
class AcceptedData:
    """The data that an acceptance is about: the fingerprint of each dataset, and the assertions, by
    check and name, that did not hold."""

    acceptance: Acceptance
    fingerprints: tuple[tuple[str, str | None], ...]
    failed: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Decisions:
    """All decisions about a gate and a slice."""

    waivers: tuple[Waiver, ...] = ()
    accepted: tuple[AcceptedData, ...] = ()
