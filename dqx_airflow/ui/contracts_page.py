"""The index of contracts: all that gates enforce, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import Depends

from dqx_airflow.ui import responses
from dqx_airflow.ui.airflow_dags import TasksDep
from dqx_airflow.ui.airflow_users import SessionDep
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import GateRow, gate_rows, with_closed_dates
from dqx_airflow.ui.index_rows import IndexFilters, last_run_of, outcomes_of
from dqx_airflow.ui.open_slices import slices_of
from dqx_airflow.ui.responses import PageNumber, Paging
from dqx_airflow.ui.stored_summaries import reported_runs

router = PageRouter()


@dataclass(frozen=True, slots=True)
class ContractRow:
    """A contract that gates enforce. `versions` are those of their last runs, `gates` the gates,
    worst first, and `owner` whoever is responsible by the contract, empty if it does not say."""

    id: str
    name: str
    versions: tuple[str, ...]
    owner: str
    gates: tuple[GateRow, ...]

    @property
    def state(self) -> str:
        """The worst status of its gates."""
        return self.gates[0].state

    @property
    def ran(self) -> datetime | None:
        """When a gate last enforced it."""
        return last_run_of(self.gates)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that are searched: its id, its name, its owner and its gates."""
        return (self.id, self.name, self.owner, *(row.gate for row in self.gates))


def contract_rows(gates: Iterable[GateRow]) -> tuple[ContractRow, ...]:
    """A row for each contract, worst first.

    :param gates: worst first.
    """
    by_id: dict[str, list[GateRow]] = {}
    for row in gates:
        for contract_id in dict.fromkeys(contract.id for contract in row.contracts):
            by_id.setdefault(contract_id, []).append(row)
    return tuple(_row(contract_id, own) for contract_id, own in by_id.items())


def _row(contract_id: str, gates: Sequence[GateRow]) -> ContractRow:
    enforced = [one for row in gates for one in row.contracts if one.id == contract_id]
    owners = (one.responsible.owner for one in enforced if one.responsible is not None)
    return ContractRow(
        id=contract_id,
        name=next((one.name for one in enforced if one.name), ""),
        versions=tuple(dict.fromkeys(one.version for one in enforced if one.version)),
        owner=next((owner for owner in owners if owner), ""),
        gates=tuple(gates),
    )


class ContractsPage(NamedTuple):
    """A page of the contracts that gates enforce."""

    rows: tuple[ContractRow, ...]
    paging: Paging


@router.get("/contracts")
def contracts(
    session: SessionDep,
    tasks: TasksDep,
    filters: Annotated[IndexFilters, Depends()],
    page: PageNumber,
) -> responses.Page[ContractsPage]:
    """The contracts that the gates of all DAGs that the user may read enforce."""
    client = responses.store_client()
    recent = reported_runs(session, client, tasks.tasks)
    slices = slices_of(session, client, tasks, recent)
    rows = contract_rows(with_closed_dates(gate_rows(recent, tasks.dags), slices))
    session.close()
    matching = filters.matching(rows)
    paging = Paging.of(page, len(matching))
    return responses.Page(
        "contracts.html",
        ContractsPage(paging.shown(matching), paging),
        known=len(rows),
        outcomes=outcomes_of(rows),
        filters=filters,
    )
