"""The gates that have recently enforced a contract, with its version and their outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from dqx_airflow.results.conditions import equals
from dqx_airflow.results.query import select_rows
from dqx_airflow.results.schema import RUNS
from dqx_airflow.results.tables import locate, open_table
from dqx_airflow.values import EnforcedContract, Outcome, from_json


@dataclass(frozen=True, slots=True)
class ContractUse:
    """The runs of a gate that enforced a version of a contract; None for a run without a version.

    `pin` is the version that the gate pinned in the last of them, if any.
    """

    gate: str
    version: str | None
    runs: int
    last: date
    pin: str | None = None


@dataclass(frozen=True, slots=True)
class ContractRun:
    """A run of a gate, on data of a date, that enforced a contract."""

    gate: str
    date: date
    outcome: Outcome
    contract: EnforcedContract


def contract_uses(
    root: str,
    contract_id: str,
    since: date,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[ContractUse, ...]:
    """The gates whose runs since a date enforced a contract, by name and version.

    :raises StoreError: the results store exists and cannot be read.
    """
    location = locate(root, storage_options)
    runs = open_table(location, RUNS)
    if runs is None or all(column.name != "contract_id" for column in runs.schema().fields):
        return ()
    where = [
        equals("contract_id", contract_id),
        "arrow_cast(\"finished_at\", 'Timestamp(Microsecond, None)')"
        f" >= TIMESTAMP '{since.isoformat()}T00:00:00'",
    ]
    columns = ("gate", "contract_version", "finished_at", "contract")
    order = 'ORDER BY "gate", "contract_version", "finished_at"'
    uses: dict[tuple[str, str | None], ContractUse] = {}
    for row in select_rows(location, runs, columns, where, order):
        key = gate, version = row["gate"], row["contract_version"]
        before = uses[key].runs if key in uses else 0
        last = row["finished_at"].date()
        uses[key] = ContractUse(gate, version, before + 1, last, _pin(row["contract"]))
    return tuple(uses.values())


def _pin(contract: str | None) -> str | None:
    try:
        return from_json(EnforcedContract, contract or "").pin
    except ValueError:
        return None  # of a newer version
