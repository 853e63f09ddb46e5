"""The block files of a command line, each checked against its manifest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dqx_airflow.contracts.datalex.check import (
    Binding,
    CheckedBlocks,
    check_blocks,
    find_manifest,
    manifest_findings,
)
from dqx_airflow.contracts.datalex.manifest import Manifest, read_manifest
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
        place = given or find_manifest(file.absolute().parent)
        if place not in manifests and place is not None:
            read = read_source(place, _shown(place))
            if isinstance(read, Unreadable):
                diagnostics.append(read.diagnostic)
                manifests[place] = None
            else:
                manifests[place] = read_manifest(read)
                sources[read.name] = read.text
        blocks = check_blocks(source, manifests[place])
        checked.setdefault(place, []).append(blocks)
        diagnostics += blocks.diagnostics
    for place, blocks_of in checked.items():
        manifest = manifests[place]
        if manifest is not None:
            diagnostics += manifest_findings(manifest, blocks_of)
    bindings = (it for blocks_of in checked.values() for it in blocks_of)
    return CheckedFiles(
        tuple(diagnostics), sources, tuple(binding for it in bindings for binding in it.bindings)
    )


def _shown(path: Path) -> str:
    """A path relative to the working directory, if it is below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
