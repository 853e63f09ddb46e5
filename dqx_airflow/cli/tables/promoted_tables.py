"""`dql tables adopt` and `dql tables verify`: the tables that gates promote rows to."""

from __future__ import annotations

import re
import time
from typing import Annotated

import typer

from dqx_airflow.cli import command, exit_codes
from dqx_airflow.cli.decisions import (
    AuthorOption,
    DryRunOption,
    ReasonOption,
    YesOption,
    author_of,
    may_go_on,
)
from dqx_airflow.cli.stores import ResultsRootOption, results_of
from dqx_airflow.errors import RequestError, first_line


def adopt(
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    *,
    gate: str,
    owner: Annotated[str | None, typer.Option("--from-gate", metavar="GATE")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
    author: AuthorOption = None,
) -> None:
    """Let a gate replace the rows that a gate has promoted into a table.

    The rows are its own, or the rows of another gate: for example after a change of `time_zone`,
    `date_column`, `date_format` or `promote_slice`, or of the name of a gate.

    :param target: The path of a Delta table, or its name.
    :param gate: The gate that may replace the rows.
    :param owner: The gate that promoted them; default: the same.
    """
    from deltalake import CommitProperties, DeltaTable
    from deltalake.exceptions import DeltaError

    from dqx_airflow.datasets.delta_log import transactions
    from dqx_airflow.datasets.locations import is_table
    from dqx_airflow.engine.outputs import promoted_slices
    from dqx_airflow.engine.sources.listing import absolute

    owner = owner or gate
    now = str(int(time.time() * 1000))
    properties = {promoted_slices.adoption(gate, owner): now}
    ((key, value),) = properties.items()
    name = target if is_table(target) else f"delta.`{absolute(target)}`"
    advice = f"run in Spark: ALTER TABLE {name} SET TBLPROPERTIES ('{key}' = '{value}')"
    if is_table(target):
        raise RequestError(f"{target} is a table of a catalog, which only Spark can change", advice)
    try:
        table = DeltaTable(absolute(target))
        numbers = promoted_slices.with_claims(transactions(absolute(target), int(table.version())))
    except (DeltaError, OSError, ValueError) as error:
        raise RequestError(f"{target}: {first_line(error)}") from error
    if not promoted_slices.has_promoted(owner, numbers):
        known = ", ".join(promoted_slices.gates_in(numbers)) or "none by name"
        raise RequestError(
            f"gate '{owner}' has promoted nothing to {target}", f"gates there: {known}"
        )
    effect = f"let gate {gate} replace what gate {owner} has promoted to {target}"
    if not may_go_on(effect, dry_run=dry_run, yes=yes):
        return
    decided = {"dqx_author": author_of(author), "dqx_reason": reason or ""}
    try:
        table.alter.set_table_properties(
            properties,
            raise_if_not_exists=False,
            commit_properties=CommitProperties(custom_metadata=decided),
        )
    except DeltaError as error:
        raise RequestError(f"{target}: {first_line(error)}", advice) from error
    typer.echo(f"gate {gate} may replace what gate {owner} has promoted to {target}")


def verify(
    table: Annotated[str, typer.Argument(metavar="TABLE[@VERSION]")],
    *,
    results_root: ResultsRootOption = None,
    public_key: str | None = None,
    format: command.TextFormatOption = "text",
) -> None:
    """Verify that a version of a table is what gates passed.

    Reads the receipts of promotions, the log of the table and the results store, without Spark.
    Exit code 0 it is, 1 something differs, 2 an error on the command line.

    :param table: The path of a Delta table; default: its newest version.
    :param public_key: A PEM file with the Ed25519 key that must have signed all receipts.
    """
    from dqx_airflow.results.verify import verify_table

    named = re.fullmatch(r"(.+)@(\d{1,4000})", table, re.ASCII)
    path, number = (named[1], int(named[2])) if named else (table, None)
    found = verify_table(results_of(results_root), path, number, public_key)
    typer.echo(command.json_if(format, found) or str(found))
    if found.differences:
        raise typer.Exit(exit_codes.EXIT_FAILED)
