"""The block files of a command line, each held against the manifest that counts for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dqx_airflow.contracts.datalex.check import (
    CheckedBlocks,
    check_blocks,
    find_manifest,
    manifest_findings,
)
from dqx_airflow.contracts.datalex.manifest import Manifest, read_manifest
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.values import SourceFile


def check_block_files(
    files: Iterable[tuple[Path, SourceFile]], given: Path | None
) -> tuple[tuple[Diagnostic, ...], dict[str, str]]:
    """What there is to say about block files and their manifests; and the texts of the latter.

    :param given: the manifest that counts for all; by default the nearest to each file.
    """
    found: list[Diagnostic] = []
    sources: dict[str, str] = {}
    manifests: dict[Path | None, Manifest | None] = {None: None}
    checked: dict[Path | None, list[CheckedBlocks]] = {}
    for file, source in files:
        place = given or find_manifest(file.absolute().parent)
        if place not in manifests and place is not None:
            read = read_source(place, _shown(place))
            if isinstance(read, Unreadable):
                found.append(read.diagnostic)
                manifests[place] = None
            else:
                manifests[place] = read_manifest(read)
                sources[read.name] = read.text
        blocks = check_blocks(source, manifests[place])
        checked.setdefault(place, []).append(blocks)
        found += blocks.diagnostics
    for place, blocks_of in checked.items():
        manifest = manifests[place]
        if manifest is not None:
            found += manifest_findings(manifest, blocks_of)
    return tuple(found), sources


def _shown(path: Path) -> str:
    """A path from where the user stands, if it lies below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
