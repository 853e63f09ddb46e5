"""`dql contract impact`: the DataLex blocks that a new manifest breaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command import TextFormatOption, TextOrJson
from dqx_airflow.cli.exit_codes import EXIT_FAILED, EXIT_WRONG
from dqx_airflow.cli.json_objects import impact_object
from dqx_airflow.cli.suites import emit_block_events, files_at
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.renderers import draw
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql.syntax.datalex_blocks import read_blocks
from dqx_airflow.dql.syntax.source_file import Unreadable, is_block_file, read_source

if TYPE_CHECKING:
    from dqx_airflow.contracts.dialects.datalex import Manifest
    from dqx_airflow.contracts.manifest_impact import Impact


def impact(
    old: Annotated[Path, typer.Argument(metavar="OLD")],
    new: Annotated[Path, typer.Argument(metavar="NEW")],
    blocks: Annotated[list[Path], typer.Argument(metavar="PATH...")],
    *,
    emit: bool = False,
    format: TextFormatOption = "text",
) -> None:
    """List the blocks that a new DataLex manifest breaks.

    Events are sent as OpenLineage's own configuration says. Exit code 0 if no block breaks, 1 if
    one does, 2 if a file cannot be read.

    :param old: The old manifest.
    :param new: The new manifest.
    :param blocks: Block files, or folders with them.
    :param emit: Send an OpenLineage FAIL event for each block that breaks.
    """
    from dqx_airflow.contracts.manifest_impact import impact as impact_of

    before, after = _manifest(old), _manifest(new)
    files, missing = files_at(blocks)
    if missing or before is None or after is None:
        raise typer.Exit(EXIT_WRONG)
    impacts: list[Impact] = []
    for file in files:
        source = read_source(file, str(file))
        if not isinstance(source, Unreadable) and is_block_file(source.text):
            impacts += impact_of(before, after, read_blocks(source).blocks)
    broken = [affected for affected in impacts if affected.is_breaking]
    typer.echo(_written(impacts, format))
    if emit:
        emit_block_events(
            (item.block, item.contract, f"{item.contract} changed: {'; '.join(item.reasons)}")
            for item in broken
        )
    if broken:
        raise typer.Exit(EXIT_FAILED)


def _manifest(path: Path) -> Manifest | None:
    """The manifest in a file; None, with a message, if it is invalid."""
    from dqx_airflow.contracts.dialects.datalex import read_manifest

    source = read_source(path, str(path))
    if isinstance(source, Unreadable):
        typer.echo(draw([source.diagnostic], {str(path): source.text}), err=True)
        return None
    manifest = read_manifest(source)
    if manifest.errors:
        typer.echo(draw(manifest.errors, {source.name: source.text}), err=True)
        return None
    return manifest


def _written(impacts: list[Impact], format: TextOrJson) -> str:
    if format == "json":
        return json_text([impact_object(affected) for affected in impacts])
    broken = sum(affected.is_breaking for affected in impacts)
    return filled(__package__, "impact.txt", impacts=impacts, broken=broken).rstrip("\n")
