"""What a backtest judges, and its verdicts for some values of the tunables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dqx_airflow.plan.model import (
    Cost,
)
from dqx_airflow.values import Severity, Status


@dataclass(frozen=True, slots=True)
class TunedAssertion:
    """An assertion of the suite. `tunables` are the names of those that its verdict depends on."""

    check: str
    name: str
    severity: Severity
    cost: Cost
    is_required: bool
    is_experimental: bool
    tunables: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        return self.check, self.name


@dataclass(frozen=True, slots=True)
class JudgedDays:
    """The verdicts of all days for some values of the tunables.

    `statuses` has a row for each assertion of the backtest, with one status for each day; None if
    it is unknown.
    """

    values: Mapping[str, float]
    statuses: tuple[tuple[Status | None, ...], ...]

    def count(self, status: Status | None) -> int:
        return sum(row.count(status) for row in self.statuses)
