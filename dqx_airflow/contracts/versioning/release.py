"""The changes of several contracts at once: changed, added, and deleted ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from dqx_airflow.contracts.diff import Diff, diff
from dqx_airflow.contracts.enforcement.version_pins import (
    is_version,
    lifecycle_status,
    objection_to_version,
)
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.versions import Bump


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deleted contract. `is_due`: consumers may no longer rely on it."""

    contract: Contract
    is_due: bool


@dataclass(frozen=True, slots=True)
class StrandedPin:
    """A consumer of a contract that pins a version which no contract has."""

    contract: Contract
    team: str
    pin: str


@dataclass(frozen=True, slots=True)
class ReleasedContracts:
    """The contracts that change, those that are added and deleted, and the pins without a
    version."""

    diffs: tuple[Diff, ...]
    added: tuple[Contract, ...]
    deleted: tuple[Deletion, ...]
    stranded: tuple[StrandedPin, ...]

    @property
    def falls_short(self) -> bool:
        """True if something breaks consumers of a contract without the required bump."""
        return (
            any(item.falls_short for item in self.diffs)
            or any(not deletion.is_due for deletion in self.deleted)
            or bool(self.stranded)
        )


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
    deleted = [
        Deletion(old, _is_over(old, on)) for old, new in versions if old is not None and new is None
    ]
    after = [new for _, new in versions if new is not None]
    return ReleasedContracts(
        tuple(diff(old, new, semantic=semantic) for old, new in versions if old and new),
        tuple(new for old, new in versions if old is None and new is not None),
        tuple(deleted),
        tuple(pin for old, new in versions if old and new for pin in _stranded(old, new, after)),
    )


def _is_over(contract: Contract, on: date) -> bool:
    state = lifecycle_status(contract, on)
    return contract.lifecycle.status == "draft" or (state is not None and state.is_refused)


def _stranded(old: Contract, new: Contract, after: Sequence[Contract]) -> list[StrandedPin]:
    """The pins that the old version satisfied, and no version of the contract satisfies any
    longer."""
    versions = [contract for contract in after if contract.id == new.id]
    return [
        StrandedPin(new, consumer.team, consumer.pin)
        for consumer in new.consumers
        if consumer.pin is not None
        and is_version(consumer.pin)
        and objection_to_version(old, consumer.pin) is None
        and all(objection_to_version(contract, consumer.pin) is not None for contract in versions)
    ]
