"""`dql tables publish`: the branch of an Iceberg table that a gate has checked becomes what readers
read."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from dqx_airflow.cli.decisions import DryRunOption, YesOption, may_go_on
from dqx_airflow.cli.exit_codes import EXIT_FAILED
from dqx_airflow.cli.results import find_run
from dqx_airflow.cli.stores import ResultsRootOption, results_of
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.errors import DqxError, RequestError, first_line
from dqx_airflow.limits import LARGEST_ID
from dqx_airflow.lineage.names import location_of, trimmed_location
from dqx_airflow.results.decisions import judged
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Status
from dqx_airflow.values.redact import redact

_SELECTION = re.compile(r"\.(branch|tag|snapshot_id)_\w+$")
"""The last part of the name of a table in Spark that selects a branch, a tag or a snapshot."""


def publish(
    table: Annotated[str, typer.Argument(metavar="TABLE")],
    *,
    branch: str,
    into: str = "main",
    catalog: str | None = None,
    run: str | None = None,
    unjudged: bool = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    snapshot: Annotated[int | None, typer.Option(min=0, max=LARGEST_ID)] = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Publish a branch of an Iceberg table that a gate has checked.

    The branch from which it began gets its snapshots. No data is copied, and Spark is not started.
    Exit code 1 if it is refused: the other branch has moved since this one began, or this one is
    not what --run and --snapshot say.

    :param table: The name of the table in the catalog, such as sales.orders.
    :param branch: The branch that was written and checked.
    :param into: The branch that is read.
    :param catalog: The catalog in the configuration of PyIceberg; default: the one that it names.
    :param run: The run of the gate, which must have passed, and have read the snapshot that the
        branch has: the first characters of its id.
    :param unjudged: Publish without --run, what no gate has checked.
    :param snapshot: The snapshot that the branch must have.
    :param results_root: The root of the results store, for --run; default: results_root in
        dqx.toml, then Airflow's setting.
    """
    if run is None and not unjudged:
        raise RequestError(
            "no run says that a gate has checked the branch",
            "add --run RUN_ID, or --unjudged to publish what no gate has checked",
        )
    if run is not None and unjudged:
        raise RequestError("--run and --unjudged contradict each other", "leave one of them out")
    found = _table(catalog, table)
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table.snapshots import ancestors_of

    report = None
    others: list[GateReport] = []
    if run is not None:
        results = results_of(results_root)
        report = find_run(results, run)
        others = _others_of_attempt(results, report)
    refs = found.refs()
    branches = {name: ref for name, ref in refs.items() if ref.snapshot_ref_type == "branch"}
    for name in {branch, *({into} & refs.keys())} - branches.keys():
        hint = did_you_mean(name, branches) or ""
        raise RequestError(f"{table} has no branch '{name}'", hint)
    head = branches[branch].snapshot_id
    target = branches.get(into)
    if snapshot not in (None, head):
        _refuse(f"branch {branch} has snapshot {head}, not {snapshot}")
    if report is not None and (problem := _objection(report, found, branch, head)):
        _refuse(f"run {report.run_id[:8]} {problem}")
    for part in others:
        if report is not None and _stops(part, found, head):
            _refuse(
                f"run {report.run_id[:8]} is {report.outcome}, and run {part.run_id[:8]} of the "
                f"same attempt, of {part.suite} for {part.run_key.date}, is {part.outcome}"
            )
    before = ancestors_of(found.snapshot_by_id(head), found.metadata)
    if target and target.snapshot_id not in {one.snapshot_id for one in before}:
        _refuse(f"branch {into} has moved since {branch} began: write {branch} again from {into}")
    words = _words_about(report, found, head) if report else "checked by no gate"
    effect = f"move {into} of {table} to snapshot {head} of {branch}, {words}"
    if not may_go_on(effect, dry_run=dry_run, yes=yes):
        return
    # How long snapshots of the branch are kept stays as it is.
    other = {"snapshot_id", "snapshot_ref_type"}
    kept = target.model_dump(exclude=other, by_alias=False) if target else {}
    try:
        found.manage_snapshots().create_branch(head, into, **kept).commit()
    except CommitFailedException:
        _refuse(f"branch {into} moved at the same time: try again")
    except Exception as error:
        raise _failed(error) from error
    typer.echo(f"{into} has snapshot {head} of {branch}" + (f", {words}" if report else ""))


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


def _others_of_attempt(results: StoredResults, report: GateReport) -> list[GateReport]:
    """The reports of the other suites and dates that a gate judged together with a run.

    :raises RequestError: one of them cannot be read.
    """
    wanted = RunsWanted(attempt_ids=[report.attempt.id])
    others = []
    for row in results.run_rows(wanted, ("run_id", "gate", "dataset_date"), last=True):
        if row["run_id"] == report.run_id:
            continue
        other = judged(results, row["gate"], row["dataset_date"], row["run_id"])
        if other is None:
            own, known = row["run_id"][:8], report.run_id[:8]
            raise RequestError(f"run {own}, of the same attempt as {known}, cannot be read")
        others.append(other)
    return others


def _reads(report: GateReport, table: Any) -> list[DatasetSnapshot]:
    """The datasets of a report that are the table."""
    name = ".".join(table.name())
    place = trimmed_location(table.location())
    return [one for one in report.datasets if _is_of(one, name, place)]


def _checked(report: GateReport, table: Any) -> list[DatasetSnapshot]:
    """The datasets of a report that are the table, and that an assertion or a clause is about. The
    others were read to look up values."""
    evaluated = {
        name
        for verdict in report.verdicts
        if verdict.status in (Status.PASSED, Status.FAILED) and verdict.check != IMPLICIT_CHECK
        for name in verdict.datasets
    }
    return [one for one in _reads(report, table) if one.name in evaluated]


def _stops(report: GateReport, table: Any, head: int) -> bool:
    """Whether a report is bad, and about the snapshot `head` of a table, as far as it is known."""
    is_bad = report.outcome in (Outcome.BLOCKED, Outcome.BROKEN)
    return is_bad and any(one.snapshot in (head, None) for one in _reads(report, table))


def _words_about(report: GateReport, table: Any, head: int) -> str:
    """What a run has checked of the snapshot `head`."""
    rows = [one.condition for one in _checked(report, table) if one.snapshot == head]
    words = f"checked by run {report.run_id[:8]}"
    if None in rows:
        return words
    return f"{words}, which has read its rows where {' OR '.join(map(str, rows))}"


def _objection(report: GateReport, table: Any, branch: str, head: int) -> str | None:
    """The reason why a run does not certify a branch of a table with the snapshot `head`; None if
    it does."""
    read = _reads(report, table)
    if not read:
        return f"has not read {'.'.join(table.name())}"
    if report.outcome in (Outcome.BLOCKED, Outcome.BROKEN):
        return f"is {report.outcome}"
    if report.partial:
        return f"is {report.outcome}, and partial"
    left_out = [one.promotion.left_out for one in read if one.promotion is not None]
    if any(left_out):
        return f"is {report.outcome} only without {sum(left_out)} bad rows, which the branch has"
    if any(one.snapshot == head for one in _checked(report, table)):
        return None
    if any(one.snapshot == head for one in read):
        return f"has read {'.'.join(table.name())}, but no assertion about it was evaluated"
    known = [one for one in read if one.snapshot is not None]
    if not known:
        return (
            f"does not say which snapshot of {'.'.join(table.name())} it has read: "
            f'let the gate read options={{"branch": "{branch}"}}, and run it again'
        )
    seen = ", ".join(_read_by(one) for one in known)
    return f"has read {seen}, and branch {branch} has snapshot {head}"


def _is_of(read: DatasetSnapshot, name: str, place: str) -> bool:
    """Whether a dataset is a table, by its name in Spark, which begins with the catalog, or by its
    location."""
    at = location_of(read) or ""
    in_spark = _SELECTION.sub("", at)
    return at == place or f".{in_spark}".endswith(f".{name}")


def _read_by(read: DatasetSnapshot) -> str:
    return f"snapshot {read.snapshot}" + (f" of {read.branch}" if read.branch else "")
