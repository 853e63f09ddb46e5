"""`dql fmt`: suites and libraries in their canonical layout."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED, EXIT_WRONG
from dqx_airflow.errors import SourceError

_STDIN = Path("-")


def fmt(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="Suite files, or folders with .dql files; - for standard input."
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if a file would change.")
    ] = False,
    diff: Annotated[
        bool,
        typer.Option(
            "--diff", help="Print the changes and write nothing; exit 1 if a file would change."
        ),
    ] = False,
) -> None:
    """Format suites and libraries in place. Comments and the order of statements are kept.

    A file with syntax errors is left unchanged, and the others are formatted: exit code 2.
    """
    from dqx_airflow.cli.project import suite_files, what_to_give

    files, missing = suite_files(path for path in paths if path != _STDIN)
    if _STDIN in paths:
        files.append(_STDIN)
    for path in missing:
        typer.echo(f"error: no .dql file found at {path}\n  help: {what_to_give(path)}", err=True)
    counts = Counter[str]()
    is_dry = check or diff
    done = "would be reformatted" if is_dry else "reformatted"
    # A diff, or formatted standard input, has standard output to itself.
    aside = diff or _STDIN in paths
    for path in files:
        outcome = "not formatted"
        try:
            outcome = done if _format(path, is_dry=is_dry, shows_diff=diff) else "left unchanged"
        except SourceError as error:
            typer.echo(f"{error}\n", err=True)
        except OSError as error:
            typer.echo(f"error: {_name(path)} cannot be formatted: {error}\n", err=True)
        counts[outcome] += 1
        if outcome == done:
            typer.echo(f"{outcome}: {_name(path)}", err=aside)
    if counts:
        typer.echo(_summary(counts, (done, "left unchanged", "not formatted")), err=aside)
    if missing or counts["not formatted"]:
        raise typer.Exit(EXIT_WRONG)
    if is_dry and counts[done]:
        raise typer.Exit(EXIT_FAILED)


def _format(path: Path, *, is_dry: bool, shows_diff: bool) -> bool:
    """Formats one file; True if that changes it."""
    from dqx_airflow.diagnostics.renderers import draw
    from dqx_airflow.dql.formatter import format_source
    from dqx_airflow.dql.syntax.source_file import Unreadable, source_of

    before = sys.stdin.buffer.read() if path == _STDIN else path.read_bytes()
    source = source_of(before, _name(path))
    if isinstance(source, Unreadable):
        drawn = draw([source.diagnostic], {_name(path): source.text})
        raise SourceError(drawn, diagnostics=(source.diagnostic,))
    after = format_source(source).encode()
    if shows_diff:
        typer.echo(_difference(_name(path), before.decode(), after.decode()).encode(), nl=False)
    elif path == _STDIN and not is_dry:
        typer.echo(after, nl=False)
    elif after != before and not is_dry:
        _replace(path.resolve(), after)
    return after != before


def _replace(path: Path, content: bytes) -> None:
    """Replaces a file atomically, keeping its mode."""
    if not os.access(path, os.W_OK):
        raise PermissionError("it is write-protected")
    descriptor, temporary = tempfile.mkstemp(
        prefix=f".{path.name}.", suffix=".tmp", dir=path.parent
    )
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _difference(name: str, before: str, after: str) -> str:
    """A unified diff in the format of `patch`."""
    lines = unified_diff(_lines(before), _lines(after), name, f"{name} (formatted)")
    without_end = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + without_end for line in lines)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _name(path: Path) -> str:
    return "<stdin>" if path == _STDIN else str(path)


def _summary(counts: Counter[str], outcomes: tuple[str, ...]) -> str:
    """`2 files reformatted, 3 left unchanged`: only the first names what is counted."""
    (first, *others) = [outcome for outcome in outcomes if counts[outcome]]
    files = "file" if counts[first] == 1 else "files"
    more = "".join(f", {counts[outcome]} {outcome}" for outcome in others)
    return f"{counts[first]} {files} {first}{more}"
