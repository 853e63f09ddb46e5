"""The results of assertions and gates, in one word each."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Severity(str, Enum):
    """The severity of a failure, from P0, the worst, to P3."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"

    __str__ = str.__str__  # prints as its value, on every Python

    def at_least(self, other: Severity) -> bool:
        """True if this severity is as bad as `other`, or worse."""
        return self.value <= other.value


class Status(str, Enum):
    """The result of one assertion. `ERROR`: it could not be evaluated."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"

    __str__ = str.__str__  # prints as its value, on every Python


class Outcome(str, Enum):
    """The result of a gate as a whole."""

    PASSED = "passed"
    WARNED = "warned"
    BLOCKED = "blocked"
    BROKEN = "broken"

    __str__ = str.__str__  # prints as its value, on every Python


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of at least one outcome."""
    ranked = tuple(Outcome)
    return max(outcomes, key=ranked.index)
