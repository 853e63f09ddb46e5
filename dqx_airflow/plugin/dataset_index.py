"""The index of datasets: every location that gates read or fill, its status, and its gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from dqx_airflow.plugin.board_page import STATES_WORST_FIRST, GateRow
from dqx_airflow.plugin.paging import Paging

_ROWS_OF_A_PAGE = 100


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """A location. `names` are its names in gates, `gates` those that read it, worst first, and
    `promoted_by` those that promote rows into it."""

    location: str
    names: tuple[str, ...]
    gates: tuple[GateRow, ...]
    promoted_by: tuple[GateRow, ...]

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
class IndexFilters:
    """The filters; empty strings mean all."""

    search: str = ""
    outcome: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The filters as parameters of an address."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class DatasetIndex:
    """The matching datasets, worst first. `page` of `pages` is displayed, counted from 1; `total`
    are all matches, and `known` all datasets."""

    rows: tuple[DatasetRow, ...]
    page: int
    pages: int
    total: int
    known: int
    outcomes: tuple[str, ...]
    filters: IndexFilters


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
    return tuple(sorted(rows, key=lambda row: (_rank(row.state), row.location)))


def index_of(rows: Sequence[DatasetRow], filters: IndexFilters, page: int = 1) -> DatasetIndex:
    """A page of the index; the nearest one if the page does not exist."""
    words = filters.search.lower().split()
    shown = [row for row in rows if filters.outcome in ("", row.state) and row.is_found(words)]
    paging = Paging.of(page, len(shown), _ROWS_OF_A_PAGE)
    states = {row.state for row in rows}
    return DatasetIndex(
        rows=paging.shown(shown),
        page=paging.number,
        pages=paging.pages,
        total=len(shown),
        known=len(rows),
        outcomes=tuple(state for state in STATES_WORST_FIRST if state in states),
        filters=filters,
    )


def _rank(state: str) -> int:
    return STATES_WORST_FIRST.index(state) if state else len(STATES_WORST_FIRST)
