"""`dql contract impact`: the blocks that a new DataLex manifest breaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED, EXIT_WRONG, TextFormatOption, TextOrJson
from dqx_airflow.diagnostics.renderers import json_text

if TYPE_CHECKING:
    from dqx_airflow.contracts.datalex.binding import Impact
    from dqx_airflow.contracts.dialects.datalex import Manifest


def impact(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The old manifest.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The new manifest.")],
    blocks: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Block files, or folders with them.")
    ],
    *,
    emit: Annotated[
        bool,
        typer.Option("--emit", help="Send an OpenLineage FAIL event for each block that breaks."),
    ] = False,
    format: TextFormatOption = TextOrJson.TEXT,
) -> None:
    """List the blocks that a new DataLex manifest breaks.

    Events are sent as OpenLineage's own configuration says. Exit code 0 if no block breaks, 1 if
    one does, 2 if a file cannot be read.
    """
    from dqx_airflow.cli.project import suite_files, what_to_give
    from dqx_airflow.contracts.datalex.binding import impact as impact_of
    from dqx_airflow.dql.syntax.datalex_blocks import is_block_file, read_blocks
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

    manifests = _manifest(old), _manifest(new)
    files, missing = suite_files(blocks)
    for path in missing:
        typer.echo(f"error: no .dql file found at {path}\n  help: {what_to_give(path)}", err=True)
    if missing or None in manifests:
        raise typer.Exit(EXIT_WRONG)
    before, after = manifests
    assert before is not None
    assert after is not None
    impacts: list[Impact] = []
    for file in files:
        source = read_source(file, str(file))
        if not isinstance(source, Unreadable) and is_block_file(source.text):
            impacts += impact_of(before, after, read_blocks(source).blocks)
    broken = [affected for affected in impacts if affected.is_breaking]
    typer.echo(_written(impacts, format))
    if emit:
        from dqx_airflow.cli.blocks import emit_block_events

        emit_block_events(
            (
                affected.block,
                affected.contract,
                f"{affected.contract} changed: {'; '.join(affected.reasons)}",
            )
            for affected in broken
        )
    if broken:
        raise typer.Exit(EXIT_FAILED)


def _manifest(path: Path) -> Manifest | None:
    """The manifest in a file; None, with a message, if it is invalid."""
    from dqx_airflow.contracts.dialects.datalex import read_manifest
    from dqx_airflow.diagnostics.renderers import draw
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

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
    if format is TextOrJson.JSON:
        return json_text(
            [
                {
                    "block": affected.block,
                    "contract": affected.contract,
                    "breaking": affected.is_breaking,
                    "certified": affected.is_certified,
                    "reasons": affected.reasons,
                    "advice": affected.advice,
                    "file": affected.span.file,
                    "line": affected.span.line,
                }
                for affected in impacts
            ]
        )
    lines = []
    for affected in impacts:
        reasons = "; ".join(affected.reasons) or affected.advice or ""
        kind = "breaks" if affected.is_breaking else "can be updated"
        if affected.reasons and not affected.is_certified:
            kind = "would break, but is not certified"
        lines.append(f"{affected.span.file}:{affected.span.line}: '{affected.block}' {kind}: ")
        lines[-1] += f"{affected.contract}: {reasons}"
    broken = sum(affected.is_breaking for affected in impacts)
    blocks = "block" if broken == 1 else "blocks"
    return "\n".join([*lines, f"{broken or 'no'} {blocks} broken"])
