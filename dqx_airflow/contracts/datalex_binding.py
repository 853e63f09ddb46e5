"""Binds blocks of DataLex to the contracts that they implement: checks the columns of their queries
against the manifest (seed 000).

Only a certified block, or one of an unknown status, can have errors. For a draft they are warnings,
so that no one is blocked, but they are always reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dqx_airflow.contracts.dialects.datalex import Manifest, ManifestContract
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.query_outputs import Outputs, outputs_of
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level, Related, did_you_mean
from dqx_airflow.dql.syntax.datalex_blocks import Block, read_blocks
from dqx_airflow.values import SourceFile, Span

_NOT_BOUND = ("draft", "review", "deprecated")
_STATUSES = ("draft", "review", "certified", "deprecated")
_REFERENCE = re.compile(
    r"([a-zA-Z][a-zA-Z0-9_]*\.[A-Z][A-Za-z0-9]*\.[a-z][a-z0-9_]*)(?:@([1-9][0-9]*))?\Z"
)
_FORM = "write domain.Entity.contract_name@1"


def check_block(block: Block, manifest: Manifest | None) -> tuple[Diagnostic, ...]:
    """The diagnostics of a block and its contract; none for a block without a contract.

    :param manifest: None if no manifest was found.
    """
    diagnostics = [*_status(block)]
    if "datalex_contract" in block.settings:
        named = _bound(block, manifest)
        diagnostics += (
            item if has_to_satisfy(block) else replace(item, is_mild=True) for item in named
        )
    return tuple(diagnostics)


def has_to_satisfy(block: Block) -> bool:
    """Whether a block must satisfy its contract: it is certified, or may be meant to be, as its
    status is unknown."""
    status = block.settings.get("status")
    return status is not None and status.value not in _NOT_BOUND


def reference_of(block: Block) -> tuple[str, int | None] | None:
    """The id and the pinned version of the contract of a block, if they are valid."""
    written = block.text("datalex_contract")
    return parsed_reference(written) if written is not None else None


def parsed_reference(written: str) -> tuple[str, int | None] | None:
    """The id and the pinned version of a reference such as `commerce.Customer.active@1`."""
    match = _REFERENCE.match(written)
    return (match[1], int(match[2]) if match[2] else None) if match else None


def promise_of(block: Block, manifest: Manifest) -> ManifestContract | None:
    """The contract of a block: the pinned version, or else the newest; None if it is missing."""
    reference = reference_of(block)
    if reference is None:
        return None
    contract_id, pin = reference
    versions = manifest.versions_of(contract_id)
    return next((one for one in versions if pin is None or one.version == pin), None)


def _status(block: Block) -> Iterator[Diagnostic]:
    status = block.settings.get("status")
    if status is None or status.value in _STATUSES:
        return
    hint = did_you_mean(str(status.value), _STATUSES)
    yield mistake("block_status", status.span, status=status.value, hint=hint)


def _bound(block: Block, manifest: Manifest | None) -> Iterator[Diagnostic]:
    """The violations of its contract by a block, as if it were certified."""
    place = block.span_of("datalex_contract")
    written = block.text("datalex_contract")
    reference = reference_of(block)
    if reference is None:
        value = block.settings["datalex_contract"].value
        is_word = value is None or isinstance(value, bool)
        shown = str(value).lower() if is_word else str(value)
        shown = written or ("[...]" if isinstance(value, tuple) else shown)
        hint = _nearest_id(shown, manifest) or _FORM
        yield mistake("block_contract", place, written=shown, hint=hint)
        return
    contract_id, pin = reference
    if manifest is None:
        yield mistake("no_manifest_found", place, id=contract_id)
        return
    if manifest.errors:
        first = manifest.errors[0]
        related = Related(first.span, first.message)
        yield mistake("broken_manifest", place, related, id=contract_id)
        return
    versions = manifest.versions_of(contract_id)
    if not versions:
        ids = sorted({promise.id for promise in manifest.promises})
        parts = {"id": contract_id, "manifest": manifest.source.name}
        yield mistake("unknown_promise", place, hint=did_you_mean(contract_id, ids), **parts)
        return
    promise = promise_of(block, manifest)
    newest = versions[0]
    named = {"id": contract_id, "newest": newest.version}
    if promise is None:
        existing = ", ".join(str(version.version) for version in versions)
        related = Related(newest.span, f"its versions: {existing}")
        yield mistake("unknown_pin", place, related, pin=pin, **named)
        return
    if pin is None:
        yield mistake("no_pin_in_2" if manifest.needs_pins else "no_pin", place, **named)
    yield from _outputs(block, promise, manifest)


def _nearest_id(written: str, manifest: Manifest | None) -> str | None:
    """The id in the manifest that differs only in case, with an existing version if one is
    written."""
    if manifest is None:
        return None
    contract_id, _, pin = written.partition("@")
    for promise in manifest.promises:
        if promise.id.lower() == contract_id.lower() and promise.id != contract_id:
            versions = [str(version.version) for version in manifest.versions_of(promise.id)]
            version_or_latest = pin if pin in versions else versions[0]
            return f"did you mean '{promise.id}{f'@{version_or_latest}' if pin else ''}'?"
    return None


def _outputs(block: Block, promise: ManifestContract, manifest: Manifest) -> Iterator[Diagnostic]:
    """Reports outputs of the contract that are not columns of the query."""
    wanted = [output.name for output in promise.outputs]
    query = block.text("query")
    place = block.span_of("query")
    if query is None:
        if wanted:
            yield mistake("no_query", place, wanted=", ".join(wanted))
        return
    outputs = outputs_of(query, manifest.dialect, manifest.tables)
    if outputs.problem is not None:
        yield mistake("no_single_query", place, problem=outputs.problem)
        return
    for output in promise.outputs:
        if not outputs.has(output.name):
            yield _missing(output.name, outputs, promise, place)
    if outputs.unknown is None:
        declared = {item.name.lower() for item in (*promise.outputs, *promise.inputs)}
        extra = [name for name in outputs.names if name and name.lower() not in declared]
        if extra and wanted:
            yield mistake("extra_columns", place, extra=", ".join(extra))


def _missing(name: str, outputs: Outputs, promise: ManifestContract, place: Span) -> Diagnostic:
    declared = next(output for output in promise.outputs if output.name == name)
    related = Related(declared.span, "promised here")
    if outputs.unknown is not None:
        return mistake("unproven_output", place, related, name=name, unknown=outputs.unknown)
    hint = did_you_mean(name, [column for column in outputs.names if column is not None])
    return mistake("missing_output", place, related, name=name, id=promise.id, hint=hint)


# Files of blocks ---------------------------------------------------------------------------------

MANIFEST_NAME = "datalex-manifest.json"
"""The file name of a manifest, if none is given."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A certified block and its contract, `commerce.Customer.active@1`; `problem` is set if the
    block violates the contract."""

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
        """True if a block has to satisfy a contract: an invalid manifest is then an error."""
        return any(
            has_to_satisfy(block) and "datalex_contract" in block.settings for block in self.blocks
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
        if has_to_satisfy(block) and contract is not None:
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
