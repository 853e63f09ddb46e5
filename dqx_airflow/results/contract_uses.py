"""The gates that enforced a contract, by version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from dqx_airflow.results import schema
from dqx_airflow.results.query import StoredResults, equals, opened
from dqx_airflow.values import EnforcedContract, from_json


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


def contract_uses(
    results: StoredResults | str, contract_id: str, since: date
) -> tuple[ContractUse, ...]:
    """The gates whose runs since a date enforced a contract, by name and version.

    :raises StoreError: the results store exists and cannot be read.
    """
    results = opened(results)
    if "contract_id" not in results.columns(schema.RUNS):
        return ()
    where = [
        equals("contract_id", contract_id),
        "arrow_cast(\"finished_at\", 'Timestamp(Microsecond, None)')"
        f" >= TIMESTAMP '{since.isoformat()}T00:00:00'",
    ]
    columns = ("gate", "contract_version", "finished_at", "contract")
    order = 'ORDER BY "gate", "contract_version", "finished_at"'
    uses: dict[tuple[str, str | None], ContractUse] = {}
    for row in results.select(schema.RUNS, columns, where, order):
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
