"""The page of coverage: which tables and columns that jobs read or write no gate and no assertion
sees."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import Depends

from dqx_airflow.lineage.coverage import Flow, TableCoverage, event_files, jobs_of
from dqx_airflow.ui import airflow_dags, airflow_settings, airflow_users
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import gate_rows, recent_attempts
from dqx_airflow.ui.responses import Filters, Page, PageNumber, Paging, store_client
from dqx_airflow.ui.stored_summaries import reported_runs

log = logging.getLogger(__name__)
router = PageRouter()

_MOST_BYTES = 32 * 1024 * 1024
_NO_EVENTS = (
    "These are the tables of gates only: to see all that jobs read and write, set lineage_events "
    "in section [dqx] of this server's configuration to a file or folder with OpenLineage events."
)
_UNREADABLE = (
    "Some events are left out: the log of the API server says which, and why. It reads them where "
    "lineage_events in section [dqx] of its configuration says."
)
_Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CoverageFilters(Filters):
    """The filters of the page. `show` is `unchecked` or empty, which means all tables."""

    search: str = ""
    show: str = ""


class CoveragePage(NamedTuple):
    """A page of tables. `notes` say what is missing."""

    tables: tuple[TableCoverage, ...]
    paging: Paging
    notes: list[str]


@router.get("/coverage")
def coverage(
    visitor: airflow_users.VisitorDep,
    tasks: airflow_dags.TasksDep,
    filters: Annotated[CoverageFilters, Depends()],
    page: PageNumber,
) -> Page[CoveragePage]:
    """The tables of the gates and jobs of those DAGs that the user may read, as `dql lineage
    coverage` lists them."""
    client = store_client()
    rows = [*gate_rows(reported_runs(visitor.session, client, tasks.tasks), tasks.dags)]
    dags = airflow_dags.dag_ids(visitor.session)
    visitor.session.close()
    gates = client.ask(lambda store: store.gates_of(recent_attempts(rows)))
    # About 600 reports in all: the store answers in half a second, however many gates there are.
    most = min(max(600 // max(len(gates.found), 1), 5), 60)
    reports = client.ask(lambda store: store.newest_reports(gates.found, most))
    flow = Flow()
    for report in reports.found:
        flow.add_report(report)
    reads = cache(visitor.may_read)
    problem = gates.problem or reports.problem
    notes = [problem, _add_events(flow, _readable(dags, reads))]
    tables = flow.coverage()
    words = filters.search.lower().split()
    matching = [
        table
        for table in tables
        if not (filters.show == "unchecked" and table.checked_by)
        and all(word in f"{table.location} {table.checked_by}".lower() for word in words)
    ]
    paging = Paging.of(page, len(matching))
    locations = {dataset.location for row in rows for dataset in row.datasets}
    return Page(
        "coverage.html",
        CoveragePage(paging.shown(matching), paging, [note for note in notes if note]),
        problem=problem,
        all_tables=tables,
        linked=locations.union(*(row.promotions for row in rows)),
        filters=filters,
    )


def _readable(dags: frozenset[str], reads: Callable[[str], bool]) -> Callable[[_Event], bool]:
    """Returns a test whether a user may see an event: events of a DAG require permission to read
    the DAG, events of a job outside Airflow require permission to read all DAGs."""
    reads_all = cache(lambda: bool(dags) and all(map(reads, dags)))

    def is_readable(event: _Event) -> bool:
        # Both parts of a name may contain points: `a.b.c` may be of the DAG `a` or `a.b`.
        parts = (accumulate(job.split("."), "{}.{}".format) for job in jobs_of(event))
        found = dags.intersection(chain.from_iterable(parts))
        return all(map(reads, found)) if found else reads_all()

    return is_readable


def _add_events(flow: Flow, is_wanted: Callable[[_Event], bool]) -> str | None:
    """Adds the configured events of this server, newest files first; returns a note, or None."""
    configured = airflow_settings.lineage_events()
    if configured is None:
        return _NO_EVENTS
    wrong = []
    left = _MOST_BYTES
    try:
        files = [(file.stat(), file) for file in event_files(Path(configured))]
        for found, file in sorted(files, key=lambda one: one[0].st_mtime, reverse=True):
            lines = flow.add_file(file, is_wanted, left) if left > 0 else ()
            wrong += [f"{file}: no event in line {line}" for line in lines]
            left -= found.st_size
        if not files:
            wrong = [f"{configured}: no such file, or none with events in it"]
        elif left < 0:
            wrong.append(f"{configured}: only the newest {_MOST_BYTES >> 20} MiB are read")
    except OSError as error:
        wrong = [str(error)]
    for text in wrong[:20]:
        log.warning("lineage_events: %s", text)
    return _UNREADABLE if wrong else None
