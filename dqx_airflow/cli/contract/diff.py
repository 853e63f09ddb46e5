"""`dql contract diff`: the changes between two versions of a contract, and the required bump."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED
from dqx_airflow.errors import RequestError


class DiffFormat(str, Enum):
    """The output format of changes."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    GITHUB = "github"


class Weight(str, Enum):
    """The bump that a change of meaning requires."""

    MAJOR = "major"
    MINOR = "minor"
    PATCH = "patch"


def diff(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="OLD NEW",
            help="Two files, or files at git revisions: REV:FILE. With --git: PATH...",
        ),
    ],
    *,
    git: Annotated[
        str | None,
        typer.Option(
            metavar="REV", help="Compare files and folders with their content at this revision."
        ),
    ] = None,
    format: Annotated[
        DiffFormat, typer.Option(help="Output format: table, json, markdown or github.")
    ] = DiffFormat.TEXT,
    semantic: Annotated[
        Weight, typer.Option(help="The version bump for a change of meaning in descriptions.")
    ] = Weight.MAJOR,
) -> None:
    """Compare two versions of a contract: every change, who is affected, and the required version
    bump.

    With --git, folders are searched, and new, deleted and moved contracts are found.

    Exit code 0 if the declared version is high enough; 1 if it is too low, if a contract in force
    is deleted, or if a consumer pins a version that no longer exists; 2 if a contract has errors.
    """
    from datetime import datetime, timezone

    from dqx_airflow.cli.contract.diff_outputs import print_diff, print_diffs
    from dqx_airflow.cli.contract.versions import contract_pairs, read_versions
    from dqx_airflow.contracts.diff import diff as compare
    from dqx_airflow.contracts.publishing import release_of
    from dqx_airflow.contracts.versions import Bump

    weight = Bump[semantic.name]
    if git:
        pairs = [(pair.old, pair.new) for pair in contract_pairs(git, places)]
        release = release_of(pairs, datetime.now(timezone.utc).date(), semantic=weight)
        print_diffs(release, format.value)
        if release.falls_short:
            raise typer.Exit(EXIT_FAILED)
        return
    if len(places) != 2:
        raise RequestError(
            f"expected 2 files, got {len(places)}", "write OLD NEW, or --git REV PATH..."
        )
    old, new = read_versions(places)
    changes = compare(old, new, semantic=weight)
    print_diff(changes, format.value)
    if changes.falls_short:
        raise typer.Exit(EXIT_FAILED)
