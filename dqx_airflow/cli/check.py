"""`dql check`: what is wrong with suites, without running them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dqx_airflow.diagnostics.diagnostic import Diagnostic

EXIT_ERRORS = 2


class Format(str, Enum):
    """How the diagnostics are written."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def check(
    paths: Annotated[list[Path], typer.Argument(help="Suite files, or folders with .dql files.")],
    format: Annotated[
        Format, typer.Option(help="For people, for scripts, for GitHub, for code hosts.")
    ] = Format.TEXT,
) -> None:
    """Check suites: every mistake of every file at once. Exit 0 without errors, else 2."""
    from dqx_airflow.diagnostics.diagnostic import Level
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.dql.imports import FileReader, search_path
    from dqx_airflow.values import SourceFile

    files, missing = _files(paths)
    for path in missing:
        typer.echo(f"error: there is no .dql file at {path}", err=True)
    unreadable = len(missing)
    found: list[Diagnostic] = []
    sources: dict[str, str] = {}
    count = 0
    for file in files:
        try:
            # utf-8-sig would hide the byte order mark from the columns.
            source = SourceFile(str(file), file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            typer.echo(f"error: {file} cannot be read: {error}", err=True)
            unreadable += 1
            continue
        # A path of this file is read as one from where the user stands, and from DQL_PATH.
        reader = FileReader(source.name, file, Path.cwd(), search_path(os.environ))
        checked = check_source(source, reader)
        found += [item for item in checked.diagnostics if item not in found]
        sources |= checked.sources
        count += 1
    written = _written(found, sources, format)
    if written:
        typer.echo(written)
    errors = unreadable + sum(diagnostic.level is Level.ERROR for diagnostic in found)
    if format is Format.TEXT:
        typer.echo(f"{_count(count, 'file')} checked, {_count(errors, 'error')}")
    if errors:
        raise typer.Exit(EXIT_ERRORS)


def _written(found: Sequence[Diagnostic], sources: Mapping[str, str], format: Format) -> str:
    match format:
        case Format.JSON:
            from dqx_airflow.diagnostics.as_json import json_list

            return json_list(found)
        case Format.GITHUB:
            from dqx_airflow.diagnostics.github import github_annotations

            return github_annotations(found)
        case Format.SARIF:
            from dqx_airflow.diagnostics.sarif import sarif_log

            return sarif_log(found)
        case Format.TEXT:
            from dqx_airflow.diagnostics.text import draw

            drawn = draw(found, sources, colour=sys.stdout.isatty())
            return drawn + "\n" if drawn else ""


def _count(number: int, thing: str) -> str:
    return f"{number or 'no'} {thing}{'' if number == 1 else 's'}"


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
