"""`dql publish`: the branch of an Iceberg table that a gate has judged becomes what readers
read."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from dqx_airflow.cli.arguments import results_of
from dqx_airflow.cli.command import EXIT_FAILED, ROOT_VARIABLES
from dqx_airflow.cli.stores import find_run
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.errors import DqxError, RequestError, first_line
from dqx_airflow.lineage.names import location_of, trimmed_location
from dqx_airflow.values import GateReport, Outcome
from dqx_airflow.values.redact import redact


def publish(
    table: Annotated[str, typer.Argument(metavar="TABLE")],
    *,
    branch: str,
    to: str = "main",
    catalog: str | None = None,
    run: str | None = None,
    snapshot: int | None = None,
    results: Annotated[str | None, typer.Option(envvar=ROOT_VARIABLES)] = None,
) -> None:
    """Publish a branch of an Iceberg table: the branch from which it began gets its snapshots.

    No data is copied, and Spark is not started. Exit code 1 if it is refused: the other branch has
    moved since this one began, or this one is not what --run and --snapshot say.

    :param table: The name of the table in the catalog, such as sales.orders.
    :param branch: The branch that was written and judged.
    :param to: The branch that is read.
    :param catalog: The catalog in the configuration of PyIceberg; default: the one that it names.
    :param run: The run of the gate, which must have passed, have read the table, and have begun
        after the last write to the branch: the first characters of its id.
    :param snapshot: The snapshot that the branch must have.
    :param results: The root of the results store, for --run.
    """
    found = _table(catalog, table)
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table.snapshots import ancestors_of

    report = find_run(results_of(Path(), results), run) if run else None
    refs = found.refs()
    branches = {name: ref for name, ref in refs.items() if ref.snapshot_ref_type == "branch"}
    for name in {branch, *({to} & refs.keys())} - branches.keys():
        hint = did_you_mean(name, branches) or ""
        raise RequestError(f"{table} has no branch '{name}'", hint)
    head, target = branches[branch].snapshot_id, branches.get(to)
    if snapshot not in (None, head):
        _refuse(f"branch {branch} has snapshot {head}, not {snapshot}")
    if report is not None and (problem := _objection(report, found, head)):
        _refuse(f"run {report.run_id[:8]} {problem}")
    before = ancestors_of(found.snapshot_by_id(head), found.metadata)
    if target and target.snapshot_id not in {one.snapshot_id for one in before}:
        _refuse(f"branch {to} has moved since {branch} began: write {branch} again from {to}")
    # How long snapshots of the branch are kept stays as it is.
    other = {"snapshot_id", "snapshot_ref_type"}
    kept = target.model_dump(exclude=other, by_alias=False) if target else {}
    try:
        found.manage_snapshots().create_branch(head, to, **kept).commit()
    except CommitFailedException:
        _refuse(f"branch {to} moved at the same time: try again")
    except Exception as error:
        raise _failed(error) from error
    typer.echo(f"{to} has snapshot {head} of {branch}")


def _refuse(problem: str) -> None:
    typer.echo(f"refused: {problem}", err=True)
    raise typer.Exit(EXIT_FAILED)


def _failed(error: Exception) -> DqxError:
    return DqxError(f"the catalog failed: {redact(first_line(error))}")


def _table(catalog: str | None, name: str) -> Any:
    """The table with its newest metadata.

    :raises RequestError: there is none, or PyIceberg is not installed.
    :raises DqxError: the catalog cannot be used.
    """
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
    except ModuleNotFoundError:
        hint = "pip install 'dqx-airflow[iceberg]'"
        raise RequestError("PyIceberg is not installed", hint) from None
    try:
        return load_catalog(catalog).load_table(name)
    except (NoSuchNamespaceError, NoSuchTableError):
        raise RequestError(f"the catalog has no table {name}") from None
    except Exception as error:
        raise _failed(error) from error


def _objection(report: GateReport, table: Any, head: int) -> str | None:
    """Why a run does not vouch for a snapshot of a table; None if it does."""
    name, place = ".".join(table.name()), trimmed_location(table.location())
    read = [location_of(one) or "" for one in report.datasets]
    if not any(at == place or f".{at}".endswith(f".{name}") for at in read):
        return f"has not read {name}"
    if report.outcome in (Outcome.BLOCKED, Outcome.BROKEN) or report.partial:
        return f"is {report.outcome}" + ", and partial" * bool(report.partial)
    written = datetime.fromtimestamp(table.snapshot_by_id(head).timestamp_ms / 1000, timezone.utc)
    began = report.started_at
    return None if began > written else f"began at {began}, before the last write at {written}"
