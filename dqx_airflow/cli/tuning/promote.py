"""`dql promote`: makes a trial permanent: an experimental assertion, or the values of a shadow."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli.tuning.call import CheckOption, SuiteArgument, suite_file


def promote(
    suite: SuiteArgument,
    *,
    assertion: Annotated[str, typer.Option("--assertion", help="The name of the assertion.")],
    check: CheckOption = None,
    shadow: Annotated[
        Path | None,
        typer.Option(
            "--shadow",
            metavar="SUITE",
            help="Set its tunables to the values in this suite instead.",
        ),
    ] = None,
    author: Annotated[
        str | None,
        typer.Option("--author", help="The person who promotes it; default: the current user."),
    ] = None,
) -> None:
    """Drop @experimental from an assertion, so that it can block.

    With --shadow, set its tunables to the values of that suite instead. The history records the
    change.
    """
    from dqx_airflow.tuning.review import promote as drop_experimental
    from dqx_airflow.tuning.review import promote_values

    file, who = suite_file(suite), author or getpass.getuser()
    if shadow is None:
        owner, name = drop_experimental(file, assertion, who, check=check)
        lines = [f"promoted: '{name}' of check '{owner}' can block from now on"]
    else:
        taken = promote_values(file, suite_file(shadow), assertion, who, check=check)
        lines = [f"promoted: {value}" for value in taken.values]
        if taken.also:
            lines.append(f"this also changes: {', '.join(taken.also)}")
    for line in lines:
        typer.echo(line)
