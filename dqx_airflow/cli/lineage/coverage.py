"""`dql lineage coverage`: which tables and columns of a flow no gate and no assertion sees."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dqx_airflow.cli import command, exit_codes
from dqx_airflow.cli.arguments import ConfigOption, DatasetOption, Options
from dqx_airflow.cli.days import MinShareOption
from dqx_airflow.cli.lineage.marquez import events_of_marquez
from dqx_airflow.cli.reports import print_table
from dqx_airflow.cli.stores import ResultsRootOption, optional_results
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.errors import RequestError
from dqx_airflow.lineage.coverage import Flow, TableCoverage, event_files
from dqx_airflow.values import GateRequest
from dqx_airflow.values.output_form import output_form
from dqx_airflow.values.redact import redact

if TYPE_CHECKING:
    from dqx_airflow.results.query import StoredResults

EventsOption: TypeAlias = Annotated[list[str] | None, typer.Option(metavar="PATH|URL")]

_EVENTS = frozenset({".json", ".jsonl"})
_HEAD = ("place", "read by", "checked by", "last run", "columns seen", "not seen")
_HINT = "give files with OpenLineage events: one as JSON, or one in each line"


def coverage(
    suites: Annotated[list[Path] | None, typer.Argument(metavar="SUITE...")] = None,
    *,
    events: EventsOption = None,
    contract: list[Path] | None = None,
    results_root: ResultsRootOption = None,
    dataset: DatasetOption = None,
    config: ConfigOption = None,
    least: MinShareOption = 0.0,
    format: command.TextFormatOption = "text",
) -> None:
    """List the tables and columns of a data flow that nothing checks.

    For each table: how many jobs read it, or what is derived from it, without a gate in between;
    the gates and suites that check it; and the columns that no assertion reads. Tables without a
    check come first, ordered by these jobs. No data is read, and Spark is not started.

    This is about tables. `dql contract clauses` is about the clauses of a contract: which of them
    are enforced.

    Exit code 1 if fewer tables than --min are checked.

    :param suites: Suites or contracts that gates enforce, or folders with .dql files. Their
        datasets come from dqx.toml and --dataset.
    :param events: OpenLineage events of any producer: a file with one event, or one in each line, a
        folder with .json and .jsonl files, or the address of a Marquez. Repeatable.
    :param contract: A contract, whose tables and columns count as known, not as checked.
        Repeatable.
    :param results_root: The root of the results store, whose gates count, with their last runs;
        default: results_root in dqx.toml, then Airflow's setting.
    :param least: The share of the tables that must be checked, such as 80%.
    """
    from dqx_airflow.cli.calls import read_call

    stored = optional_results(results_root, config=config)
    if not (suites or events or contract or stored):
        raise RequestError("no flow given", "give suites, --events, --contract or --results-root")
    flow = Flow()
    add_events(flow, events or ())
    for paths, is_enforced in ((contract, False), (suites, True)):
        options = Options(tuple(paths or ()), datasets=dataset, config=config)
        for request in read_call(options, date.today()).valid_requests:
            _add_suite(flow, request, is_enforced=is_enforced)
    if stored is not None:
        _add_results(flow, stored)
    tables = flow.coverage()
    checked = sum(bool(table.checked_by) for table in tables)
    columns = sum(table.columns for table in tables)
    seen = columns - sum(len(table.unseen) for table in tables)
    if format == "json":
        totals = {"tables": len(tables), "checked": checked, "columns": columns, "seen": seen}
        typer.echo(json_text({"totals": totals, "tables": output_form(tables)}))
    else:
        print_table(_HEAD, map(_row, tables))
        typer.echo(f"\n{checked} of {len(tables)} tables checked, {seen} of {columns} columns seen")
    if checked < least * max(len(tables), 1):
        raise typer.Exit(exit_codes.EXIT_FAILED)


def _row(table: TableCoverage) -> tuple[str, ...]:
    readers = "1 job" if table.readers == 1 else f"{table.readers} jobs"
    if table.readers and not table.checked_by:
        readers += ", no gate"
    unseen = (f"{name} (read)" if name in table.unseen_but_read else name for name in table.unseen)
    return (
        table.location,
        readers,
        ", ".join(table.checked_by) or "nothing",
        table.last_run,
        f"{table.columns - len(table.unseen)} of {table.columns}",
        ", ".join(unseen),
    )


def add_events(flow: Flow, places: Iterable[str]) -> None:
    """Adds the events in files, or of a Marquez.

    :raises RequestError: there is no file at a path, or something there is not an event.
    """
    wrong = []
    for place in places:
        if place.startswith(("http://", "https://")):
            wrong += _events_of_marquez(flow, place)
            continue
        path = Path(place)
        files = event_files(path)
        if not files:
            raise RequestError(f"no events found at {path}", command.what_to_give(path, _EVENTS))
        wrong += [f"{file}:{line}" for file in files for line in flow.add_file(file)]
    if wrong:
        raise RequestError(f"no OpenLineage event at {', '.join(wrong[:20])}", _HINT)


def _events_of_marquez(flow: Flow, address: str) -> list[str]:
    """Adds the events of a Marquez; those that are none, as they are reported.

    :raises RequestError: it cannot be read.
    """
    wrong = []
    for number, event in enumerate(events_of_marquez(address), start=1):
        try:
            flow.add_event(event)
        except (AttributeError, KeyError, TypeError):
            wrong.append(f"{redact(address)}, number {number}")
    return wrong


def _add_suite(flow: Flow, request: GateRequest, *, is_enforced: bool) -> None:
    """Adds the tables and the columns that a suite names, and that it checks them."""
    from dqx_airflow.plan.description import columns_read, has_sql
    from dqx_airflow.plan.passes import UnknownDataset, reads_of
    from dqx_airflow.plan.selection import checked_suite, plan_of

    plan = plan_of(request, checked_suite(request))
    for ref in request.datasets:
        if ref.query is not None:
            continue
        table = flow.at(ref.lineage_name or ref.location)
        requested = (one.columns for one in plan.requests if one.dataset == ref.name)
        names = set(chain.from_iterable(requested))
        table.columns.update(names)
        if is_enforced:
            for scan_pass in reads_of(plan.requests, UnknownDataset(ref), plan.date).passes:
                columns = columns_read(scan_pass)
                names.update(table.columns if "all" in columns else columns)
                if has_sql(scan_pass):
                    # SQL may name any column: words of it that are columns count.
                    names.update(re.findall(r"\w+", " ".join(scan_pass.texts)))
            table.add_check(plan.suite, "", names)


def _add_results(flow: Flow, stored: StoredResults) -> None:
    """Adds the datasets of the last runs of all gates.

    :raises StoreError: the store cannot be read.
    """
    from dqx_airflow.results.query import RunsWanted

    gates = {row["gate"] for row in stored.run_rows(RunsWanted(), ["gate"])}
    for report in stored.newest_reports(gates):
        flow.add_report(report)
