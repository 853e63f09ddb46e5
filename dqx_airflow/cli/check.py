"""`dql check`: what is wrong with suites, without running them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

EXIT_ERRORS = 2


def check(
    paths: Annotated[list[Path], typer.Argument(help="Suite files, or folders with .dql files.")],
) -> None:
    """Check suites: every mistake of every file at once. Exit 0 without errors, else 2."""
    from dqx_airflow.diagnostics.text import draw
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.values import SourceFile

    files, missing = _files(paths)
    for path in missing:
        typer.echo(f"error: there is no .dql file at {path}", err=True)
    errors = len(missing)
    for file in files:
        try:
            source = SourceFile(str(file), file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            typer.echo(f"error: {file} cannot be read: {error}", err=True)
            errors += 1
            continue
        checked = check_source(source)
        errors += len(checked.errors)
        if checked.diagnostics:
            sources = {source.name: source.text}
            typer.echo(draw(checked.diagnostics, sources, colour=sys.stdout.isatty()) + "\n")
    plural = "" if len(files) == 1 else "s"
    typer.echo(
        f"{len(files)} file{plural} checked, {errors or 'no'} error{'' if errors == 1 else 's'}"
    )
    if errors:
        raise typer.Exit(EXIT_ERRORS)


def _files(paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """The files of the paths, folders searched; and the paths where there is none."""
    files: list[Path] = []
    missing = []
    for path in paths:
        found = sorted(path.rglob("*.dql")) if path.is_dir() else [path] if path.exists() else []
        files += found
        if not found:
            missing.append(path)
    return files, missing
