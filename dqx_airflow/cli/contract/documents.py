"""`dql contract test`, `to-suite`, `export` and `evolve`: judge data by a contract, or write
something from it.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from dqx_airflow.cli import command, exit_codes
from dqx_airflow.cli.arguments import Options, with_shared_options
from dqx_airflow.cli.contract.versions import model_of, read_versions
from dqx_airflow.cli.reports import printable
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import RequestError


@with_shared_options
def against_data(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    *,
    server: str | None = None,
    expect_version: str | None = None,
    model: list[str] | None = None,
    no_extra_columns: bool = False,
    shared: Options,
) -> None:
    """Test contracts against data, with one Spark session.

    Data that --dataset does not give is looked up in the servers of the contract. Exit code
    0 passed or warned, 1 blocked, 2 an error in a contract or on the command line, 3 broken, 4
    Spark or the results store failed; the worst one of several contracts.

    :param paths: Contracts.
    :param server: The server of the contract to read the data from.
    :param expect_version: The expected version: 2, 2.3 or 2.3.0.
    :param model: Only this model of the contract.
    :param no_extra_columns: Fail on columns that are not in the contract.
    """
    from dqx_airflow.cli.run import run_call

    options = replace(
        shared,
        paths=tuple(paths),
        server=server,
        expect_version=expect_version,
        models=tuple(model or ()),
        is_strict=no_extra_columns,
    )
    raise typer.Exit(run_call(options))


ExportFormat: TypeAlias = Literal[
    "great-expectations", "great-expectations-0", "odcs", "json-schema", "spark", "html"
]


def export(
    file: Annotated[str, typer.Argument(metavar="FILE")],
    *,
    format: Annotated[ExportFormat, command.FORMAT],
    model: str | None = None,
    output: command.OutputOption = None,
    force: command.ForceOption = False,
) -> None:
    """Write a contract for another tool.

    Standard error lists, clause by clause, what the format cannot express: an export checks less
    than the contract. Exit code 2 if the contract has errors.

    :param file: A contract: a file, or REVISION:FILE in git.
    :param format: The format of the other tool.
    :param model: The model, if the contract has several.
    """
    from dqx_airflow.contracts.export import FORMATS

    path = command.writable(output, force=force)
    (contract,) = read_versions([file])
    target = FORMATS[format]
    if model is not None or target.is_of_one_model:
        contract = replace(contract, models=(model_of(contract, file, model),))
    exported = target.write(contract)
    command.print_or_write(exported.text, path)
    for loss in exported.losses:
        typer.echo(f"not exported: {printable(str(loss))}", err=True)


def evolve(
    old: Annotated[str, typer.Argument(metavar="OLD")],
    new: Annotated[str, typer.Argument(metavar="NEW")],
    *,
    table: str,
    model: str | None = None,
    versioned: bool = False,
) -> None:
    """Print the Spark SQL statements that a change requires.

    Compatible changes are made at once. Breaking changes take three releases: the successor is
    added, it is filled while the old column is deprecated, and the major version drops the old
    column.

    :param old: The old version: a file, or REV:FILE.
    :param new: The new version.
    :param table: The table in the catalog: `lakehouse.orders`.
    :param model: The model, if the contract has several.
    :param versioned: Use one table per major version, with a view onto one of them.
    """
    from dqx_airflow.contracts.diff import diff
    from dqx_airflow.contracts.evolve import evolution, versioned_evolution

    before, after = read_versions((old, new))
    chosen = model_of(after, new, model)
    if not all(part.strip() for part in table.split(".")):
        raise RequestError(f"'{table}' is not a table name", "write schema.table")
    plan = versioned_evolution if versioned else evolution
    typer.echo(plan(diff(before, after), chosen, table).as_sql(), nl=False)


def to_suite(
    file: Annotated[str, typer.Argument(metavar="FILE")],
    *,
    compare: Annotated[Path | None, typer.Option(metavar="SUITE.dql")] = None,
    output: command.OutputOption = None,
    force: command.ForceOption = False,
) -> None:
    """Print the suite that a contract is compiled to.

    The same contract always gives the same suite. With --compare, compare with a suite that is kept
    next to its contract: exit code 1 and the difference if they have drifted apart. Exit code 2 if
    the contract has errors.

    :param file: A contract: a file, or REVISION:FILE in git.
    :param compare: Compare with this suite instead of printing; exit 1 if they differ.
    """
    path = command.writable(output, force=force)
    (contract,) = read_versions([file])
    text = compile_contract(contract).text
    if compare is not None:
        _compare(compare, text)
    else:
        command.print_or_write(text, path)


def _compare(path: Path, compiled: str) -> None:
    committed = read_source(path, str(path))
    if isinstance(committed, Unreadable):
        raise RequestError(f"{path}: {committed.reason}")
    if committed.text == compiled:
        typer.echo(f"{path} matches the contract")
        return
    before, after = (text.splitlines(keepends=True) for text in (committed.text, compiled))
    difference = unified_diff(before, after, str(path), "compiled from the contract now")
    typer.echo("".join(difference), nl=False)
    raise typer.Exit(exit_codes.EXIT_FAILED)
