"""What becomes of assertions and gates, in one word each."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Severity(str, Enum):
    """How bad a failure is: P0 is the worst, P3 the mildest."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"

    __str__ = str.__str__  # prints as its value, on every Python

    def at_least(self, other: Severity) -> bool:
        """True where this severity is as bad as `other`, or worse."""
        return self.value <= other.value


class Status(str, Enum):
    """What became of one assertion. `ERROR`: it could not be evaluated."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"

    __str__ = str.__str__  # prints as its value, on every Python


class Outcome(str, Enum):
    """What became of a gate as a whole."""

    PASSED = "passed"
    WARNED = "warned"
    BLOCKED = "blocked"
    BROKEN = "broken"

    __str__ = str.__str__  # prints as its value, on every Python


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of some outcomes, of which there is one at least."""
    ranked = tuple(Outcome)
    return max(outcomes, key=ranked.index)
