"""`dql contract to-suite`, `export` and `evolve`: what is written from a contract."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED, print_or_write
from dqx_airflow.errors import RequestError


class To(str, Enum):
    """The formats. The Great Expectations suite before version 1 has a separate name."""

    GREAT_EXPECTATIONS = "great-expectations"
    GREAT_EXPECTATIONS_0 = "great-expectations-0"
    ODCS = "odcs"
    JSON_SCHEMA = "json-schema"
    SPARK = "spark"
    HTML = "html"


def export(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A contract: a file, or REVISION:FILE in git.")
    ],
    *,
    to: Annotated[To, typer.Option(help="The format.")],
    model: Annotated[
        str | None, typer.Option(help="The model, if the contract has several.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to a file instead of printing.")
    ] = None,
) -> None:
    """Write a contract for another tool.

    Standard error lists, clause by clause, what the format cannot express: an export checks less
    than the contract. Exit code 2 if the contract has errors.
    """
    from dqx_airflow.cli.contract.versions import model_of, read_versions
    from dqx_airflow.cli.reports import printable
    from dqx_airflow.contracts.export import FORMATS

    (contract,) = read_versions([file])
    target = FORMATS[to.value]
    if model is not None or target.is_of_one_model:
        contract = replace(contract, models=(model_of(contract, file, model),))
    exported = target.write(contract)
    print_or_write(exported.text, output)
    for loss in exported.losses:
        typer.echo(f"not exported: {printable(str(loss))}", err=True)


def evolve(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="The old version: a file, or REV:FILE.")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new version.")],
    *,
    table: Annotated[str, typer.Option(help="The table in the catalog: `lakehouse.orders`.")],
    model: Annotated[
        str | None, typer.Option(help="The model, if the contract has several.")
    ] = None,
    versioned: Annotated[
        bool,
        typer.Option(
            "--versioned", help="Use one table per major version, with a view onto one of them."
        ),
    ] = False,
) -> None:
    """Print the Spark SQL statements that a change requires.

    Compatible changes are made at once. Breaking changes take three releases: the successor is
    added, it is filled while the old column is deprecated, and the major version drops the old
    column.
    """
    from dqx_airflow.cli.contract.versions import model_of, read_versions
    from dqx_airflow.contracts.diff import diff
    from dqx_airflow.contracts.evolve import evolution, versioned_evolution

    before, after = read_versions((old, new))
    chosen = model_of(after, new, model)
    if not all(part.strip() for part in table.split(".")):
        raise RequestError(f"'{table}' is not a table name", "write schema.table")
    plan = versioned_evolution if versioned else evolution
    typer.echo(plan(diff(before, after), chosen, table).as_sql(), nl=False)


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
