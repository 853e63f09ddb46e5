"""`dql check`: finds mistakes in suites and blocks, without running them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_WRONG

if TYPE_CHECKING:
    from dqx_airflow.contracts.datalex.binding import Binding
    from dqx_airflow.diagnostics.diagnostic import Diagnostic
    from dqx_airflow.values import SourceFile


class DiagnosticFormat(str, Enum):
    """The output format of diagnostics."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def check(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Suite files, or folders with .dql files."),
    ],
    format: Annotated[
        DiagnosticFormat, typer.Option(help="Output format: text, json, github or sarif.")
    ] = DiagnosticFormat.TEXT,
    datalex: Annotated[
        Path | None,
        typer.Option(
            help="The DataLex manifest to check blocks against; default: the nearest "
            "datalex-manifest.json, in a parent folder or its target folder."
        ),
    ] = None,
    emit: Annotated[
        bool,
        typer.Option(
            "--emit",
            help="Send OpenLineage events for each certified block and its contract: COMPLETE if "
            "the block keeps it, else FAIL.",
        ),
    ] = False,
) -> None:
    """Check suites and blocks: find all mistakes in all files at once.

    Exit code 0 without errors, else 2. Text output shows the first 100 findings, errors before
    warnings, and counts the others. The machine formats contain all of them.
    """
    from dqx_airflow.cli.project import suite_files, what_to_give
    from dqx_airflow.diagnostics.diagnostic import errors_of
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.dql.imports import FileReader, search_path
    from dqx_airflow.dql.syntax.datalex_blocks import is_block_file
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

    files, missing = suite_files(paths)
    for path in missing:
        typer.echo(f"error: no .dql file found at {path}\n  help: {what_to_give(path)}", err=True)
    diagnostics: dict[Diagnostic, None] = {}  # a library imported by two suites is checked twice
    sources: dict[str, str] = {}
    block_files: list[tuple[Path, SourceFile]] = []
    bindings: tuple[Binding, ...] = ()
    for file in files:
        source = read_source(file, str(file))
        if isinstance(source, Unreadable):
            diagnostics[source.diagnostic] = None
            sources[str(file)] = source.text
            continue
        if is_block_file(source.text):
            block_files.append((file, source))
            sources[source.name] = source.text
            continue
        # A path in this file is also tried relative to the working directory, and to DQL_PATH.
        reader = FileReader(source.name, file, Path.cwd(), search_path(os.environ))
        checked = check_source(source, reader)
        diagnostics |= dict.fromkeys(checked.diagnostics)
        sources |= checked.sources
    if block_files:
        from dqx_airflow.cli.blocks import check_block_files

        checked_files = check_block_files(block_files, datalex)
        diagnostics |= dict.fromkeys(checked_files.diagnostics)
        sources |= checked_files.manifests
        bindings = checked_files.bindings
    text = written(tuple(diagnostics), sources, format)
    if text:
        typer.echo(text)
    if emit:
        from dqx_airflow.cli.blocks import emit_block_events

        emit_block_events(
            (binding.block, binding.contract, binding.problem) for binding in bindings
        )
    errors = len(missing) + len(errors_of(diagnostics))
    if format is DiagnosticFormat.TEXT:
        # Errors sort before warnings.
        code = min((diagnostic.code for diagnostic in diagnostics if diagnostic.code), default=None)
        more = f"; see `dql explain {code}`" if code else ""
        typer.echo(f"{counted(len(files), 'file')} checked, {counted(errors, 'error')}{more}")
    if errors:
        raise typer.Exit(EXIT_WRONG)


def written(
    diagnostics: Sequence[Diagnostic], sources: Mapping[str, str], format: DiagnosticFormat
) -> str:
    """The findings in a format; empty if there is nothing to display."""
    match format:
        case DiagnosticFormat.JSON:
            from dqx_airflow.diagnostics.renderers import json_list

            return json_list(diagnostics)
        case DiagnosticFormat.GITHUB:
            from dqx_airflow.diagnostics.renderers import github_annotations

            return github_annotations(diagnostics)
        case DiagnosticFormat.SARIF:
            from dqx_airflow.diagnostics.renderers import sarif_log

            return sarif_log(diagnostics)
        case DiagnosticFormat.TEXT:
            from dqx_airflow.diagnostics.renderers import draw

            drawn = draw(diagnostics, sources, colour=sys.stdout.isatty())
            return drawn + "\n" if drawn else ""


def counted(number: int, noun: str) -> str:
    """A number with its noun: `no errors`, `1 error`, `1,500 errors`."""
    return f"{f'{number:,}' if number else 'no'} {noun}{'' if number == 1 else 's'}"
