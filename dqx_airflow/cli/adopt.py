"""`dql adopt`: lets a gate replace rows that it may not replace otherwise."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from dqx_airflow.datasets.settings import is_table
from dqx_airflow.errors import RequestError, first_line


def adopt(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The path of a Delta table, or its name.")
    ],
    *,
    gate: Annotated[str, typer.Option("--gate", help="The gate that may replace the rows.")],
    owner: Annotated[
        str | None, typer.Option("--from", help="The gate that promoted them; default: the same.")
    ] = None,
) -> None:
    """Let a gate replace what it, or another gate, has promoted into a table until now.

    For example after a change of `time_zone`, `date_column`, `date_format` or `promote_slice`, or
    of the name of a gate.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    from dqx_airflow.datasets.delta_log import transactions
    from dqx_airflow.engine.outputs.promoted_slices import (
        adoption,
        gates_in,
        has_promoted,
        with_claims,
    )
    from dqx_airflow.engine.sources.listing import absolute

    owner, now = owner or gate, str(int(time.time() * 1000))
    properties = {adoption(gate, owner): now}
    ((key, value),) = properties.items()
    name = target if is_table(target) else f"delta.`{absolute(target)}`"
    advice = f"run in Spark: ALTER TABLE {name} SET TBLPROPERTIES ('{key}' = '{value}')"
    if is_table(target):
        raise RequestError(f"{target} is a table of a catalog, which only Spark can change", advice)
    try:
        table = DeltaTable(absolute(target))
        numbers = with_claims(transactions(absolute(target), int(table.version())))
    except (DeltaError, OSError, ValueError) as error:
        raise RequestError(f"{target}: {first_line(error)}") from error
    if not has_promoted(owner, numbers):
        known = ", ".join(gates_in(numbers)) or "none by name"
        raise RequestError(
            f"gate '{owner}' has promoted nothing to {target}", f"gates there: {known}"
        )
    try:
        table.alter.set_table_properties(properties, raise_if_not_exists=False)
    except DeltaError as error:
        raise RequestError(f"{target}: {first_line(error)}", advice) from error
    typer.echo(f"gate {gate} may replace what gate {owner} has promoted to {target}")
