"""The effects of verdicts on their gates: whoever reviews a change has to know which failures stop
the pipeline, and which only warn."""

from __future__ import annotations

from enum import Enum

from dqx_airflow.plan.model import PlannedAssertion
from dqx_airflow.values import Severity, Status


class Effect(str, Enum):
    """The outcome of a gate that one verdict causes by itself. `absent`: the suite does not have
    the assertion."""

    PASSED = "passed"
    SKIPPED = "skipped"
    ABSENT = "absent"
    WARNED = "warned"
    BLOCKED = "blocked"
    BROKEN = "broken"

    @property
    def is_noticed(self) -> bool:
        """True if it is noticed: the gate is warned, blocked or broken."""
        return self in (Effect.WARNED, Effect.BLOCKED, Effect.BROKEN)


def effect_of(status: Status, planned: PlannedAssertion, fail_on: Severity) -> Effect:
    """The effect of a status of an assertion, planned for its day, in a gate with this `fail_on`.

    Decisions of people about one date, such as waivers, do not count.
    """
    can_block = planned.severity.at_least(fail_on) and not planned.is_experimental
    match status:
        case Status.PASSED:
            return Effect.PASSED
        case Status.SKIPPED:
            return Effect.SKIPPED
        case Status.FAILED:
            return Effect.BLOCKED if can_block else Effect.WARNED
        case Status.ERROR:
            return Effect.BROKEN if can_block else Effect.WARNED


def is_changed(before: Effect | None, after: Effect | None) -> bool:
    """True if the day would have been noticed in another way; None is unknown."""
    if before is after:
        return False
    return any(effect is not None and effect.is_noticed for effect in (before, after))
