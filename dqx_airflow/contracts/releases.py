"""Changes of contracts in a release: new, changed and deleted contracts, and their pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from dqx_airflow.contracts.diff import Diff, diff
from dqx_airflow.contracts.enforcement.lifecycle import lifecycle_status
from dqx_airflow.contracts.enforcement.pins import is_version, objection_to_version
from dqx_airflow.contracts.model import Consumer, Contract
from dqx_airflow.contracts.versions import Bump
from dqx_airflow.values import WordEnum


class RemarkKind(WordEnum):
    """The subject of a remark: a new contract, a deleted one, or a pin without a version."""

    NEW = "new"
    DELETED = "deleted"
    PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class ReleaseRemark:
    """A remark on a contract in a release, other than its changes: the contract is new or deleted,
    or a consumer pins a version that no longer exists.

    `falls_short`: consumers may still rely on the contract. `consumer` has the pin.
    """

    kind: RemarkKind
    contract: Contract
    message: str
    falls_short: bool = False
    consumer: Consumer | None = None


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
    return ReleaseRemark(RemarkKind.NEW, contract, f"{_title(contract)}: a new contract")


def _deletion(contract: Contract, on: date) -> ReleaseRemark:
    state = lifecycle_status(contract, on)
    is_due = contract.lifecycle.status == "draft" or (state is not None and state.is_refused)
    models = ", ".join(model.name for model in contract.models)
    message = "deleted after its sunset"
    if not is_due:
        message = f"deleted while consumers may rely on {models or 'it'}: "
        message += "sunset it first, or put it back"
    text = f"{_title(contract)}: {message}"
    return ReleaseRemark(RemarkKind.DELETED, contract, text, falls_short=not is_due)


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
                "any longer: keep it next to the new one, or update the pin"
            )
            yield ReleaseRemark(
                RemarkKind.PINNED, new, message, falls_short=True, consumer=consumer
            )


def _title(contract: Contract) -> str:
    return f"{contract.id} {contract.version or 'no version'}"
