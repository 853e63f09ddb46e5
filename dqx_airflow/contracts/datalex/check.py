"""Block files checked against a DataLex manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dqx_airflow.contracts.datalex.binding import CERTIFIED, check_block, promise_of
from dqx_airflow.contracts.datalex.manifest import Manifest
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level
from dqx_airflow.dql.syntax.datalex_blocks import Block, read_blocks
from dqx_airflow.values import SourceFile

MANIFEST_NAME = "datalex-manifest.json"
"""The file name of a manifest, if none is given."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A certified block and the contract that it names, `commerce.Customer.active@1`; a `problem`
    if it violates it."""

    block: str
    contract: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class CheckedBlocks:
    """The blocks of a file, and their diagnostics."""

    blocks: tuple[Block, ...]
    diagnostics: tuple[Diagnostic, ...]
    bindings: tuple[Binding, ...] = ()

    @property
    def is_bound(self) -> bool:
        """True if a certified block names a contract: an invalid manifest is then an error."""
        return any(
            block.text("status") == CERTIFIED and "datalex_contract" in block.settings
            for block in self.blocks
        )


def check_blocks(source: SourceFile, manifest: Manifest | None) -> CheckedBlocks:
    """Reads a block file and checks each block, in the order of the file."""
    file = read_blocks(source)
    diagnostics = [*file.diagnostics]
    bindings = []
    for block in file.blocks:
        of_block = check_block(block, manifest)
        diagnostics += of_block
        contract = block.text("datalex_contract")
        if block.text("status") == CERTIFIED and contract is not None:
            promise = promise_of(block, manifest) if manifest is not None else None
            bound_to = f"{promise.id}@{promise.version}" if promise is not None else contract
            problems = [item.message for item in of_block if item.level is Level.ERROR]
            bindings.append(Binding(block.name, bound_to, "; ".join(problems) or None))
    diagnostics.sort(key=lambda item: (item.span.line, item.span.column))
    return CheckedBlocks(file.blocks, tuple(diagnostics), tuple(bindings))


def manifest_findings(
    manifest: Manifest, checked: Sequence[CheckedBlocks]
) -> tuple[Diagnostic, ...]:
    """The diagnostics of a manifest: only warnings, unless a certified block relies on it."""
    if any(item.is_bound for item in checked):
        return manifest.diagnostics
    return tuple(replace(diagnostic, is_mild=True) for diagnostic in manifest.diagnostics)


def find_manifest(folder: Path) -> Path | None:
    """The manifest nearest to a folder: in it, in its `target`, or in a parent folder."""
    for place in (folder, *folder.parents):
        for candidate in (place / MANIFEST_NAME, place / "target" / MANIFEST_NAME):
            if candidate.is_file():
                return candidate
    return None
