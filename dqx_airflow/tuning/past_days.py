"""The facts about past days: metric values, verdicts, labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from dqx_airflow.plan.measured import Measurements
from dqx_airflow.values import MetricValue, Status


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A gate's verdict on an assertion on a day. `expression` is what it measured, and `value` the
    result, before profiles."""

    status: Status
    expression: str
    value: MetricValue


@dataclass(frozen=True, slots=True)
class PastDay:
    """The facts about one day, or about an instance of a mapped gate on it, by its map index. `now`
    is when the gate ran. Verdicts and labels are by check and name; a label is True if there was a
    real issue."""

    date: date
    measured: Measurements
    now: datetime | None = None
    verdicts: Mapping[tuple[str, str], StoredVerdict] = field(default_factory=dict)
    labels: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    run_id: str | None = None
    map_index: int = -1

    @property
    def instance(self) -> Hashable:
        """What identifies an instance of a mapped gate on all days: the data that it reads. Its map
        index may belong to other data on another day."""
        if self.map_index < 0:
            return None
        return frozenset(self.measured.reads.items()) or self.map_index
