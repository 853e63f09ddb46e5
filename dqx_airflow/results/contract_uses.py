"""Which gates have enforced a contract lately, which version of it, and with what outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from dqx_airflow.results.query import select_rows, text_literal
from dqx_airflow.results.schema import RUNS
from dqx_airflow.results.tables import locate, open_table
from dqx_airflow.values import EnforcedContract, Outcome


@dataclass(frozen=True, slots=True)
class ContractUse:
    """The runs of a gate that enforced a version of a contract; None where it names no version."""

    gate: str
    version: str | None
    runs: int
    last: date


@dataclass(frozen=True, slots=True)
class ContractRun:
    """A run of a gate, about the data of a date, that enforced a contract."""

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
    """The gates whose runs since a day enforced a contract, by name and version.

    :raises StoreError: the results store is there and cannot be read.
    """
    location = locate(root, storage_options)
    runs = open_table(location, RUNS)
    if runs is None or all(column.name != "contract_id" for column in runs.schema().fields):
        return ()
    where = [
        f'"contract_id" = {text_literal(contract_id)}',
        "arrow_cast(\"finished_at\", 'Timestamp(Microsecond, None)')"
        f" >= TIMESTAMP '{since.isoformat()}T00:00:00'",
    ]
    columns = ("gate", "contract_version", "finished_at")
    found: dict[tuple[str, str | None], list[date]] = {}
    for row in select_rows(location, runs, columns, where, 'ORDER BY "gate", "contract_version"'):
        days = found.setdefault((row["gate"], row["contract_version"]), [])
        days.append(row["finished_at"].date())
    return tuple(
        ContractUse(gate, version, len(days), max(days)) for (gate, version), days in found.items()
    )
