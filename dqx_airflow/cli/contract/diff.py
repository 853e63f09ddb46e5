"""`dql contract diff`: what changes between two versions of a contract, and the bump it needs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

EXIT_FALLS_SHORT, EXIT_WRONG_CALL = 1, 2


class Format(str, Enum):
    """How the changes are written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    GITHUB = "github"


class Weight(str, Enum):
    """The bump that a change of meaning needs."""

    MAJOR = "major"
    MINOR = "minor"
    PATCH = "patch"


def diff(
    places: Annotated[
        list[str],
        typer.Argument(metavar="OLD NEW", help="Two files, or files at revisions: REV:FILE."),
    ],
    *,
    git: Annotated[
        str | None,
        typer.Option(metavar="REV", help="Compare one file with what it was at this revision."),
    ] = None,
    format: Annotated[
        Format, typer.Option(help="For people, for scripts, for pull requests, for GitHub.")
    ] = Format.TEXT,
    semantic: Annotated[
        Weight, typer.Option(help="The bump that a change of meaning in words needs.")
    ] = Weight.MAJOR,
) -> None:
    """Compare two versions of a contract: every change, whom it breaks, and the bump that is due.

    Exit 0 where the declared version is high enough, 1 where it falls short, 2 where a contract has
    errors.
    """
    from dqx_airflow.cli.contract.diff_outputs import print_diff
    from dqx_airflow.cli.contract.versions import GitFile, read_versions
    from dqx_airflow.contracts.diff import diff as compare
    from dqx_airflow.contracts.versions import Bump

    wanted = 1 if git else 2
    if len(places) != wanted:
        hint = "FILE, with --git REV" if git else "OLD NEW, or --git REV FILE"
        typer.echo(f"error: {len(places)} places are named\n  help: write {hint}", err=True)
        raise typer.Exit(EXIT_WRONG_CALL)
    both = (GitFile(git, places[0]), places[0]) if git else tuple(places)
    old, new = read_versions(both)
    found = compare(old, new, semantic=Bump[semantic.name])
    print_diff(found, format.value)
    if found.falls_short:
        raise typer.Exit(EXIT_FALLS_SHORT)
