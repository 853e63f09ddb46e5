"""The index of datasets: all locations that gates read or fill, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import Depends

from dqx_airflow.ui import responses
from dqx_airflow.ui.airflow_dags import TasksDep
from dqx_airflow.ui.airflow_users import SessionDep
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import STATES_WORST_FIRST, GateRow, gate_rows, with_closed_dates
from dqx_airflow.ui.index_rows import IndexFilters, last_run_of, outcomes_of
from dqx_airflow.ui.open_slices import slices_of
from dqx_airflow.ui.responses import PageNumber, Paging
from dqx_airflow.ui.stored_summaries import reported_runs

router = PageRouter()


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """A location. `names` are its names in gates, `gates` those that read it, worst first, and
    `promoted_by` those that promote rows into it."""

    location: str
    names: tuple[str, ...]
    gates: tuple[GateRow, ...]
    promoted_by: tuple[GateRow, ...]

    @property
    def label(self) -> str:
        """Its name in gates, or its location."""
        return ", ".join(self.names) or self.location

    @property
    def state(self) -> str:
        """The worst status of its gates; empty if no gate reads it."""
        return self.gates[0].state if self.gates else ""

    @property
    def ran(self) -> datetime | None:
        """When a gate last read it."""
        return last_run_of(self.gates)

    @property
    def contracts(self) -> tuple[str, ...]:
        """The ids of the contracts that gates enforce on it."""
        return tuple(dict.fromkeys(contract.id for row in self.gates for contract in row.contracts))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that are searched: its location, its names, its contracts and its gates."""
        gates = (row.gate for row in (*self.gates, *self.promoted_by))
        return (self.location, *self.names, *self.contracts, *gates)


def dataset_rows(gates: Sequence[GateRow]) -> tuple[DatasetRow, ...]:
    """A row for each location, worst first.

    :param gates: worst first.
    """
    readers: dict[str, list[GateRow]] = {}
    writers: dict[str, list[GateRow]] = {}
    names: dict[str, list[str]] = {}
    for row in gates:
        for location in dict.fromkeys(dataset.location for dataset in row.datasets):
            readers.setdefault(location, []).append(row)
        for location in row.promotions:
            writers.setdefault(location, []).append(row)
        for dataset in row.datasets:
            names.setdefault(dataset.location, []).append(dataset.name)
    rows = [
        DatasetRow(
            location,
            tuple(dict.fromkeys(names.get(location, ()))),
            tuple(readers.get(location, ())),
            tuple(writers.get(location, ())),
        )
        for location in dict.fromkeys((*readers, *writers))
    ]
    ranks = {state: place for place, state in enumerate((*STATES_WORST_FIRST, ""))}
    return tuple(sorted(rows, key=lambda row: (ranks[row.state], row.location)))


class DatasetsPage(NamedTuple):
    """A page of the datasets that gates read or fill."""

    rows: tuple[DatasetRow, ...]
    paging: Paging


@router.get("/datasets")
def datasets(
    session: SessionDep,
    tasks: TasksDep,
    filters: Annotated[IndexFilters, Depends()],
    page: PageNumber,
) -> responses.Page[DatasetsPage]:
    """The datasets of the gates of all DAGs that the user may read."""
    client = responses.store_client()
    recent = reported_runs(session, client, tasks.tasks)
    slices = slices_of(session, client, tasks, recent)
    rows = dataset_rows(with_closed_dates(gate_rows(recent, tasks.dags), slices))
    session.close()
    matching = filters.matching(rows)
    paging = Paging.of(page, len(matching))
    return responses.Page(
        "datasets.html",
        DatasetsPage(paging.shown(matching), paging),
        known=len(rows),
        outcomes=outcomes_of(rows),
        filters=filters,
    )
