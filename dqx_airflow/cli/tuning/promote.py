"""`dql promote`: an experimental assertion becomes one that can block."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from dqx_airflow.cli.tuning.call import SuiteArgument, failing_well, suite_file


def promote(
    suite: SuiteArgument,
    *,
    assertion: Annotated[str, typer.Option("--assertion", help="The name of the assertion.")],
    check: Annotated[
        str | None, typer.Option("--check", help="Its check, where several have the name.")
    ] = None,
    author: Annotated[
        str | None, typer.Option("--author", help="Who promotes it; default: the user.")
    ] = None,
) -> None:
    """Drop @experimental from an assertion: from now on it can block. The history gets an entry."""
    with failing_well():
        from dqx_airflow.tuning.review import promote as drop_experimental

        file = suite_file(suite)
        owner, name = drop_experimental(file, assertion, author or getpass.getuser(), check=check)
    typer.echo(f"promoted: '{name}' of check '{owner}' can block from now on")
