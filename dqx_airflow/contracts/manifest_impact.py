"""The impact of a new DataLex manifest on the blocks that rely on its contracts (seed 000)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dqx_airflow.contracts.datalex_binding import has_to_satisfy, promise_of, reference_of
from dqx_airflow.contracts.dialects.datalex import ContractPort, Manifest, ManifestContract
from dqx_airflow.dql.syntax.datalex_blocks import Block
from dqx_airflow.values import Span

_Ports: TypeAlias = Mapping[str, ContractPort]


@dataclass(frozen=True, slots=True)
class Impact:
    """A block whose contract changed. `reasons` are the reasons why it breaks; without any,
    `advice` describes the changes. Only an `is_certified` block is broken: others are drafts.

    `contract` is the id with the version that the block relied on: `commerce.Customer.active@1`.
    """

    block: str
    contract: str
    reasons: tuple[str, ...]
    advice: str | None
    span: Span = field(compare=False)
    is_certified: bool = True

    @property
    def is_breaking(self) -> bool:
        return bool(self.reasons) and self.is_certified


def impact(old: Manifest, new: Manifest, blocks: Iterable[Block]) -> tuple[Impact, ...]:
    """The blocks affected by the new manifest, in order.

    A pinned block is affected only by its version, a block without a pin by the newest version.
    """
    return tuple(effect for block in blocks if (effect := _impact_on(block, old, new)) is not None)


def _impact_on(block: Block, old: Manifest, new: Manifest) -> Impact | None:
    reference = reference_of(block)
    before = promise_of(block, old)
    if reference is None or before is None:
        return None  # `dql check` reports what is wrong with the block alone
    contract_id, pin = reference
    name = f"{before.id}@{before.version}"
    span = block.span_of("datalex_contract")
    is_certified = has_to_satisfy(block)
    after = promise_of(block, new)
    versions = new.versions_of(contract_id)
    if after is None:
        available = ", ".join(str(version.version) for version in versions)
        reason = (
            f"version {before.version} no longer exists; available: {available}"
            if available
            else "it no longer exists"
        )
        return Impact(block.name, name, (reason,), None, span, is_certified)
    reasons = tuple(breaking_changes(before, after))
    if reasons and after.version == before.version:
        reasons = (*reasons, "and its version is unchanged")
    advice = None
    if pin is not None and versions[0].version > after.version:
        advice = f"version {versions[0].version} is available"
    if not reasons and advice is None:
        return None
    return Impact(block.name, name, reasons, advice, span, is_certified)


def breaking_changes(old: ManifestContract, new: ManifestContract) -> Iterator[str]:
    """Breaking changes of a signature: something is removed or changed, or more is required."""
    sides = {"output": (old.outputs, new.outputs), "input": (old.inputs, new.inputs)}
    named = {
        side: [{port.name: port for port in ports} for ports in both]
        for side, both in sides.items()
    }
    for side, (before, after) in named.items():
        yield from _changes(side, before, after)
    # A block must provide every output, so a new one is missing.
    for side, more in (("output", ", and the block must return it"), ("input", "")):
        for added in sorted(named[side][1].keys() - named[side][0].keys()):
            yield f"the {side} '{added}' is new{more}"


def _changes(side: str, old: _Ports, new: _Ports) -> Iterator[str]:
    for name, before in old.items():
        after = new.get(name)
        if after is None:
            yield f"the {side} '{name}' no longer exists"
        elif after.type != before.type:
            yield f"the {side} '{name}' changed from {before.type} to {after.type}"
        elif added := [one for one in after.constraints if one not in before.constraints]:
            yield f"the {side} '{name}' must now be {', '.join(added)}"
