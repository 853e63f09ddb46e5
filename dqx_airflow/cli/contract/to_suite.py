"""`dql contract to-suite`: the compiled DQL suite of a contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED
from dqx_airflow.cli.output import print_or_write
from dqx_airflow.errors import RequestError


def to_suite(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A contract: a file, or REVISION:FILE in git.")
    ],
    *,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="SUITE.dql",
            help="Compare with this suite instead of printing; exit 1 if they differ.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the suite to a file.")
    ] = None,
) -> None:
    """Compile a contract to a DQL suite: the same contract always gives the same suite.

    With --check, compare with a suite that is kept beside its contract: exit code 1 and the
    difference if they have drifted apart. Exit code 2 if the contract has errors.
    """
    from dqx_airflow.cli.contract.versions import read_versions
    from dqx_airflow.contracts.compile import compile_contract

    (contract,) = read_versions([file])
    text = compile_contract(contract).text
    if check is not None:
        _compare(check, text)
    else:
        print_or_write(text, output)


def _compare(path: Path, compiled: str) -> None:
    from difflib import unified_diff

    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

    committed = read_source(path, str(path))
    if isinstance(committed, Unreadable):
        raise RequestError(f"{path}: {committed.reason}")
    if committed.text == compiled:
        typer.echo(f"{path} matches the contract")
        return
    before, after = (text.splitlines(keepends=True) for text in (committed.text, compiled))
    difference = unified_diff(before, after, str(path), "compiled from the contract now")
    typer.echo("".join(difference), nl=False)
    raise typer.Exit(EXIT_FAILED)
