"""The block files of a command line, each checked against its manifest, and their OpenLineage
events."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path

import typer

from dqx_airflow.cli.project import from_here
from dqx_airflow.contracts.datalex.binding import (
    Binding,
    CheckedBlocks,
    check_blocks,
    find_manifest,
    manifest_findings,
)
from dqx_airflow.contracts.dialects.datalex import Manifest, read_manifest
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.values import SourceFile


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """The diagnostics of block files and their manifests, the texts of the latter, and the
    certified blocks with their contracts."""

    diagnostics: tuple[Diagnostic, ...]
    manifests: dict[str, str]
    bindings: tuple[Binding, ...]


def check_block_files(files: Iterable[tuple[Path, SourceFile]], given: Path | None) -> CheckedFiles:
    """Checks block files.

    :param given: the manifest for all of them; by default the nearest to each file.
    """
    diagnostics: list[Diagnostic] = []
    sources: dict[str, str] = {}
    manifests: dict[Path | None, Manifest | None] = {None: None}
    checked: dict[Path | None, list[CheckedBlocks]] = {}
    for file, source in files:
        manifest_path = given or find_manifest(file.absolute().parent)
        if manifest_path not in manifests and manifest_path is not None:
            manifest_source = read_source(manifest_path, from_here(manifest_path))
            if isinstance(manifest_source, Unreadable):
                diagnostics.append(manifest_source.diagnostic)
                manifests[manifest_path] = None
            else:
                manifests[manifest_path] = read_manifest(manifest_source)
                sources[manifest_source.name] = manifest_source.text
        blocks = check_blocks(source, manifests[manifest_path])
        checked.setdefault(manifest_path, []).append(blocks)
        diagnostics += blocks.diagnostics
    for manifest_path, blocks_of in checked.items():
        manifest = manifests[manifest_path]
        if manifest is not None:
            diagnostics += manifest_findings(manifest, blocks_of)
    all_blocks = chain.from_iterable(checked.values())
    bindings = chain.from_iterable(blocks.bindings for blocks in all_blocks)
    return CheckedFiles(tuple(diagnostics), sources, tuple(bindings))


def emit_block_events(bindings: Iterable[tuple[str, str, str | None]]) -> None:
    """Sends the events of blocks: for each a START event, and the final one.

    :param bindings: each block with its contract, and its problem if it has one.
    """
    from dqx_airflow.lineage.emitter import LineageEmitter
    from dqx_airflow.lineage.events import block_events

    with LineageEmitter() as lineage:
        if not lineage.sends:
            hint = "set OPENLINEAGE__TRANSPORT or OPENLINEAGE_URL, or write an openlineage.yml"
            typer.echo(f"warning: no lineage events are sent: {lineage.why_not}", err=True)
            typer.echo(f"  help: {hint}", err=True)
            return
        sent = [
            lineage.emit(event)
            for block, contract, problem in bindings
            for event in block_events(
                block,
                contract,
                problem,
                str(uuid.uuid4()),
                datetime.now(timezone.utc),
                lineage.namespace,
            )
        ]
    if not all(sent):
        typer.echo("warning: not every event was sent, see the log above", err=True)
