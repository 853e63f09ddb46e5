"""The past of a gate as values: its days with what was measured and labelled on them, and those of
its shadow. Imports no library that reads the store."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TypeAlias

from dqx_airflow.plan.term_values import Measurements
from dqx_airflow.values import MetricValue, Status

AssertionKey: TypeAlias = tuple[str, str]
"""A check, and the name of an assertion in it."""


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
    verdicts: Mapping[AssertionKey, StoredVerdict] = field(default_factory=dict)
    labels: Mapping[AssertionKey, bool] = field(default_factory=dict)
    run_id: str | None = None
    map_index: int = -1

    @property
    def instance(self) -> Hashable:
        """What identifies an instance of a mapped gate on all days: the data that it reads. Its map
        index may belong to other data on another day."""
        if self.map_index < 0:
            return None
        return frozenset(self.measured.reads.items()) or self.map_index


@dataclass(frozen=True, slots=True)
class ShadowDay:
    """A day on which a gate, or an instance of a mapped gate, had a shadow. Statuses and labels are
    by check and name; a label is True if there was a real issue. `problem` says why the shadow was
    not judged."""

    date: date
    shadow: str
    own: Mapping[AssertionKey, Status] = field(default_factory=dict)
    other: Mapping[AssertionKey, Status] = field(default_factory=dict)
    labels: Mapping[AssertionKey, bool] = field(default_factory=dict)
    problem: str | None = None
    map_index: int = -1
