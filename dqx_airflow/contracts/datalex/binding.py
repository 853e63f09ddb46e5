"""Checks a block against the contract that it names: the five rules of seed 000, as diagnostics.

Only a certified block can have errors. For a draft they are warnings, so that no one is blocked,
but they are always reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dqx_airflow.contracts.datalex.manifest import Manifest, ManifestContract
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.dql.syntax.datalex_blocks import Block, Value
from dqx_airflow.values import Span

if TYPE_CHECKING:
    from dqx_airflow.contracts.datalex.outputs import Outputs

CERTIFIED = "certified"
STATUSES = ("draft", "review", CERTIFIED, "deprecated")

_REFERENCE = re.compile(
    r"([a-zA-Z][a-zA-Z0-9_]*\.[A-Z][A-Za-z0-9]*\.[a-z][a-z0-9_]*)(?:@([1-9][0-9]*))?\Z"
)
_FORM = "write domain.Entity.contract_name@1"


def check_block(block: Block, manifest: Manifest | None) -> tuple[Diagnostic, ...]:
    """The diagnostics of a block and its contract; none if it names no contract.

    :param manifest: None if none was found.
    """
    diagnostics = [*_status(block)]
    is_certified = block.text("status") == CERTIFIED
    if "datalex_contract" in block.settings:
        named = _bound(block, manifest)
        diagnostics += named if is_certified else map(_as_mild, named)
    return tuple(diagnostics)


def reference_of(block: Block) -> tuple[str, int | None] | None:
    """The id and the pinned version of the contract that a block names, if they are valid."""
    written = block.text("datalex_contract")
    return parsed_reference(written) if written is not None else None


def parsed_reference(written: str) -> tuple[str, int | None] | None:
    """The id and the pinned version of a reference such as `commerce.Customer.active@1`."""
    match = _REFERENCE.match(written)
    return (match[1], int(match[2]) if match[2] else None) if match else None


def promise_of(block: Block, manifest: Manifest) -> ManifestContract | None:
    """The contract that a block names: the pinned version, or else the newest; None if it does not
    exist."""
    reference = reference_of(block)
    if reference is None:
        return None
    contract_id, pin = reference
    for promise in manifest.versions_of(contract_id):
        if pin is None or promise.version == pin:
            return promise
    return None


def _status(block: Block) -> Iterator[Diagnostic]:
    status = block.settings.get("status")
    if status is None or status.value in STATUSES:
        return
    message = f"'{status.value}' is not a valid status, so this block is treated as a draft"
    help_line = did_you_mean(str(status.value), STATUSES)
    yield Diagnostic(message, status.span, "W043", help=help_line)


def _bound(block: Block, manifest: Manifest | None) -> Iterator[Diagnostic]:
    """The violations of its contract by a block, as if it were certified."""
    place = block.span_of("datalex_contract")
    written = block.text("datalex_contract")
    reference = reference_of(block)
    if reference is None:
        shown = written if written is not None else _shown(block.settings["datalex_contract"].value)
        hint = _nearest_id(shown, manifest) or _FORM
        yield Diagnostic(f"'{shown}' is not a contract id", place, "E503", help=hint)
        return
    contract_id, pin = reference
    if manifest is None:
        message = f"no manifest found to look {contract_id} up in"
        help_line = "add --datalex datalex-manifest.json"
        yield Diagnostic(message, place, "E509", help=help_line)
        return
    if manifest.errors:
        first = manifest.errors[0]
        related = (Related(first.span, first.message),)
        message = f"the manifest is not valid, so {contract_id} cannot be looked up"
        yield Diagnostic(message, place, "E509", related=related, help="see its errors")
        return
    versions = manifest.versions_of(contract_id)
    if not versions:
        ids = sorted({promise.id for promise in manifest.promises})
        message = f"no contract {contract_id} in {manifest.source.name}"
        yield Diagnostic(message, place, "E502", help=did_you_mean(contract_id, ids))
        return
    promise = promise_of(block, manifest)
    if promise is None:
        existing = ", ".join(str(version.version) for version in versions)
        message = f"{contract_id} has no version {pin}"
        related = (Related(versions[0].span, f"its versions: {existing}"),)
        help_line = f"write {contract_id}@{versions[0].version}"
        yield Diagnostic(message, place, "E504", related=related, help=help_line)
        return
    if pin is None:
        yield _unpinned(contract_id, versions, manifest, place)
    yield from _outputs(block, promise, manifest)


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return "[...]"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


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


def _unpinned(
    contract_id: str, versions: tuple[ManifestContract, ...], manifest: Manifest, place: Span
) -> Diagnostic:
    help_line = f"write {contract_id}@{versions[0].version}"
    if manifest.needs_pins:
        message = f"{contract_id} is not pinned to a version, which DataLex 2 requires"
        return Diagnostic(message, place, "E505", help=help_line)
    message = (
        f"{contract_id} is not pinned, so the block uses each new version "
        "as soon as it is published"
    )
    return Diagnostic(message, place, "W040", help=help_line)


def _outputs(block: Block, promise: ManifestContract, manifest: Manifest) -> Iterator[Diagnostic]:
    """Whether every output of the contract is a column of the query."""
    from dqx_airflow.contracts.datalex.outputs import outputs_of  # imports sqlglot

    wanted = [output.name for output in promise.outputs]
    query = block.text("query")
    place = block.span_of("query")
    if query is None:
        if wanted:
            message = f"the block has no query, but its contract promises {', '.join(wanted)}"
            yield Diagnostic(message, place, "E507", help='write query = """ SELECT ... """')
        return
    outputs = outputs_of(query, manifest.dialect, manifest.tables)
    if outputs.problem is not None:
        help_line = "write one SELECT"
        yield Diagnostic(f"{outputs.problem}", place, "E507", help=help_line)
        return
    for output in promise.outputs:
        if not outputs.has(output.name):
            yield _missing(output.name, outputs, promise, place)
    if outputs.unknown is None:
        declared = {item.name.lower() for item in (*promise.outputs, *promise.inputs)}
        extra = [name for name in outputs.names if name and name.lower() not in declared]
        if extra and wanted:
            message = f"the query returns columns that are not in the contract: {', '.join(extra)}"
            yield Diagnostic(
                message, place, "W041", help="remove them, or add them to the contract"
            )


def _missing(name: str, outputs: Outputs, promise: ManifestContract, place: Span) -> Diagnostic:
    declared = next(output for output in promise.outputs if output.name == name)
    related = (Related(declared.span, "promised here"),)
    if outputs.unknown is not None:
        message = f"cannot prove that the query returns '{name}': {outputs.unknown}"
        help_line = "list the columns instead of using a star or a template"
        return Diagnostic(message, place, "E507", related=related, help=help_line)
    names = [column for column in outputs.names if column is not None]
    message = f"the query does not return '{name}', which {promise.id} promises"
    hint = did_you_mean(name, names)
    return Diagnostic(message, place, "E506", related=related, help=hint)


def _as_mild(diagnostic: Diagnostic) -> Diagnostic:
    return replace(diagnostic, is_mild=True)
