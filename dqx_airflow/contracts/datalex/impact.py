"""The impact of a new DataLex manifest on the blocks that name its contracts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dqx_airflow.contracts.datalex.binding import CERTIFIED, promise_of, reference_of
from dqx_airflow.contracts.datalex.manifest import ContractPort, Manifest, ManifestContract
from dqx_airflow.dql.syntax.datalex_blocks import Block
from dqx_airflow.values import Span


@dataclass(frozen=True, slots=True)
class Impact:
    """A block whose contract changed. `reasons` are why it breaks; without any, `advice` says what
    is new. Only an `is_certified` block is broken: others are drafts.

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

    A pinned block is affected by its version only, any other one by the newest version.
    """
    return tuple(effect for block in blocks if (effect := _impact_on(block, old, new)) is not None)


def _impact_on(block: Block, old: Manifest, new: Manifest) -> Impact | None:
    reference = reference_of(block)
    before = promise_of(block, old)
    if reference is None or before is None:
        return None  # `dql check` reports what is wrong with the block alone
    contract_id, pin = reference
    name, span = f"{before.id}@{before.version}", block.span_of("datalex_contract")
    is_certified = block.text("status") == CERTIFIED
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
    yield from _changes("output", old.outputs, new.outputs)
    yield from _changes("input", old.inputs, new.inputs)
    for added in sorted(_named(new.outputs).keys() - _named(old.outputs).keys()):
        # A block must provide every output, so a new one is missing.
        yield f"the output '{added}' is new, and the block must return it"
    for added in sorted(_named(new.inputs).keys() - _named(old.inputs).keys()):
        yield f"the input '{added}' is new"


def _changes(
    side: str, old: tuple[ContractPort, ...], new: tuple[ContractPort, ...]
) -> Iterator[str]:
    new_ports = _named(new)
    for name, before in _named(old).items():
        after = new_ports.get(name)
        if after is None:
            yield f"the {side} '{name}' no longer exists"
        elif after.type != before.type:
            yield f"the {side} '{name}' changed from {before.type} to {after.type}"
        elif added := [
            constraint for constraint in after.constraints if constraint not in before.constraints
        ]:
            yield f"the {side} '{name}' must now be {', '.join(added)}"


def _named(parameters: tuple[ContractPort, ...]) -> dict[str, ContractPort]:
    return {parameter.name: parameter for parameter in parameters}
