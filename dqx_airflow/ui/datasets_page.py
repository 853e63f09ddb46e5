"""The index of datasets: all locations that gates read or fill, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import Depends

from dqx_airflow.ui import responses
from dqx_airflow.ui.airflow import SessionDep, TasksDep
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import STATES_WORST_FIRST, GateRow, gate_rows
from dqx_airflow.ui.responses import Filters, PageNumber, Paging
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
        return max((row.ran for row in self.gates if row.ran), default=None)

    @property
    def contracts(self) -> tuple[str, ...]:
        """The ids of the contracts that gates enforce on it."""
        return tuple(dict.fromkeys(contract.id for row in self.gates for contract in row.contracts))

    def is_found(self, words: Sequence[str]) -> bool:
        """Whether each of the words, in lower case, is in its location or in one of its names."""
        rows = (*self.gates, *self.promoted_by)
        texts = (self.location, *self.names, *self.contracts, *(row.gate for row in rows))
        text = "\n".join(texts).lower()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class IndexFilters(Filters):
    """The filters of the index."""

    search: str = ""
    outcome: str = ""


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
    rows = dataset_rows(
        gate_rows(reported_runs(session, responses.store_client(), tasks.tasks), tasks.dags)
    )
    session.close()
    words = filters.search.lower().split()
    matching = [row for row in rows if filters.outcome in ("", row.state) and row.is_found(words)]
    paging = Paging.of(page, len(matching))
    states = {row.state for row in rows}
    return responses.Page(
        "datasets.html",
        DatasetsPage(paging.shown(matching), paging),
        known=len(rows),
        outcomes=[state for state in STATES_WORST_FIRST if state in states],
        filters=filters,
    )
