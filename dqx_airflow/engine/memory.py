"""What earlier runs found out: states that are reused while the files are the same."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TypeAlias

from pyspark.sql import SparkSession

from dqx_airflow.engine.fingerprints import fingerprint_of, scope_of
from dqx_airflow.engine.frames import References
from dqx_airflow.engine.sources import OpenDataset
from dqx_airflow.errors import StoreError
from dqx_airflow.metrics.registry import Aggregate
from dqx_airflow.results.states import State, StateStore
from dqx_airflow.values import MetricValue, Origin

_log = logging.getLogger("dqx.gate")

Fingerprints: TypeAlias = dict[tuple[str, date | None], str | None]
"""The fingerprints of datasets, by name and date, as they were at one moment."""


@dataclass(frozen=True, slots=True)
class Need:
    """An aggregate over the rows of a date. `looks_into` are the datasets of its lookups.

    Not `is_storable` is what may yield something else the next time, over the same rows, and what
    reveals masked columns.
    """

    date: date | None
    aggregate: Aggregate
    looks_into: tuple[str, ...] = ()
    is_storable: bool = True


@dataclass(slots=True)
class Found:
    """What was found out about needs: values by date and SQL, dates without any rows, and why an
    aggregate could not be computed."""

    values: dict[tuple[date | None, str], MetricValue] = field(default_factory=dict)
    absent: dict[date | None, Origin] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    _origins: dict[tuple[date | None, str], Origin] = field(default_factory=dict)

    def __contains__(self, need: Need) -> bool:
        return need.date in self.absent or (need.date, need.aggregate.sql) in self.values

    def add(self, on: date | None, results: Mapping[str, MetricValue], origin: Origin) -> None:
        for sql, value in results.items():
            self.values[on, sql] = value
            self._origins[on, sql] = origin
        if on is not None and results.get("count(1)") == 0:
            self.absent[on] = origin

    def add_pass(
        self,
        dates: Iterable[date | None],
        texts: Sequence[str],
        by_date: Mapping[date | None, Mapping[str, MetricValue]],
        broken: Mapping[str, str],
    ) -> None:
        """The outcome of a pass over some dates."""
        self.broken.update(broken)
        for on in dates:
            if on in by_date:
                self.add(on, by_date[on], Origin.SCAN)
            elif len(broken) < len(texts):
                self.absent[on] = Origin.SCAN

    def origin(self, on: date | None, texts: Iterable[str]) -> Origin:
        """Where a value comes from that is made of some aggregates: the dearest of their ways."""
        if on in self.absent:
            return self.absent[on]
        ways = {self._origins[on, sql] for sql in texts}
        return next((way for way in (Origin.SCAN, Origin.STATE) if way in ways), Origin.LOG)


@dataclass(slots=True)
class Memory:
    """Recalls and keeps the states of one run."""

    spark: SparkSession
    store: StateStore
    run_id: str
    at: datetime
    _before: Fingerprints = field(default_factory=dict)

    def recall(
        self,
        dataset: OpenDataset,
        references: References,
        needs: Iterable[Need],
        found: Found,
    ) -> None:
        """Adds what is stored for the very files that are there now."""
        wanted = {
            (need.date, need.aggregate.sql): fingerprint
            for need in needs
            if need not in found
            and (fingerprint := self._of(need, dataset, references, self._before))
        }
        if not wanted:
            return
        dates = list(dict.fromkeys(on for on, _ in wanted))
        try:
            states = self.store.recall(scope_of(dataset, self.spark), dates)
        except StoreError as error:
            _log.warning("stored states are not used: %s", error)
            return
        for state in states:
            valid = [
                sql
                for sql, fingerprint in state.fingerprints.items()
                if wanted.get((state.date, sql)) == fingerprint
            ]
            if state.results is not None:
                results = {sql: state.results[sql] for sql in valid}
                found.add(state.date, results, Origin.STATE)
            elif valid:
                found.absent[state.date] = Origin.STATE

    def keep(
        self,
        dataset: OpenDataset,
        references: References,
        needs: Iterable[Need],
        found: Found,
    ) -> None:
        """Stores what a pass found out, unless files changed while it ran."""
        after: Fingerprints = {}
        by_date: dict[date | None, dict[str, str]] = {}
        for need in needs:
            fingerprint = self._of(need, dataset, references, after)
            unchanged = fingerprint == self._of(need, dataset, references, self._before)
            if need in found and fingerprint and unchanged:
                by_date.setdefault(need.date, {})[need.aggregate.sql] = fingerprint
        states = [_state(on, fingerprints, found) for on, fingerprints in by_date.items()]
        try:
            self.store.keep(scope_of(dataset, self.spark), self.run_id, self.at, states)
        except StoreError as error:
            _log.warning("states are not stored: %s", error)

    def _of(
        self,
        need: Need,
        dataset: OpenDataset,
        references: References,
        known: Fingerprints,
    ) -> str | None:
        """The fingerprint of all files that a need depends on; None where it is not known."""
        if not need.is_storable:
            return None
        files = [(dataset, need.date)]
        for name in need.looks_into:
            reference = references.opened[name]
            files.append((reference, references.date if reference.ref.date_column else None))
        parts = []
        for place, on in files:
            key = (place.ref.name, on)
            if key not in known:
                known[key] = fingerprint_of(place, on)
            parts.append(known[key])
        return None if None in parts else " ".join(map(str, parts))


def _state(on: date | None, fingerprints: Mapping[str, str], found: Found) -> State:
    if on in found.absent:
        return State(on, None, fingerprints)
    return State(on, {sql: found.values[on, sql] for sql in fingerprints}, fingerprints)
