"""The runs of gates as a list, one line each: the source of a page of thousands of runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from dqx_airflow.results.column import Row, as_utc
from dqx_airflow.results.conditions import equals, is_in, of_dates, of_instance
from dqx_airflow.results.query import PARTIAL
from dqx_airflow.values import Outcome, PartialRun, RunKey, Severity, from_json

COLUMNS = (
    "run_id",
    "gate",
    "dataset_date",
    "scheduler_run",
    "attempt",
    "attempt_id",
    "started_at",
    "finished_at",
    "outcome",
    "assertions",
    "failed",
    "errors",
    "worst",
    "worst_severity",
    "datasets",
    "selection",
)
ORDER = 'ORDER BY "dataset_date" DESC, "started_at" DESC, "run_id"'


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run of a gate without its verdicts. `locations` are those of its datasets, times are in
    UTC. `partial` describes the selection, None if nothing was left out."""

    run_id: str
    run_key: RunKey
    attempt: int
    attempt_id: str
    started_at: datetime
    finished_at: datetime
    outcome: Outcome
    assertions: int
    failed: int
    errors: int
    worst: str | None
    worst_severity: Severity | None
    locations: tuple[str, ...]
    partial: PartialRun | None = None


@dataclass(frozen=True, slots=True)
class RunsWanted:
    """A filter on the runs of some gates: by outcome, by days of data, by instances of a mapped
    task, and only partial ones, or none of them. None means all."""

    gates: Collection[str]
    outcome: Outcome | None = None
    since: date | None = None
    until: date | None = None
    map_index: int | None = None
    is_partial: bool | None = None

    @property
    def conditions(self) -> list[str]:
        """SQL conditions on all attempts of such a run: without the outcome."""
        where = [is_in("gate", self.gates), *of_dates(self.since, self.until)]
        if self.map_index is not None:
            where.append(of_instance(self.map_index))
        return where

    def of_attempt(self, columns: Container[str], *, with_outcome: bool = True) -> str:
        """SQL conditions on the attempt that counts.

        :param columns: those of the table: an older one has no partial runs.
        """
        conditions = []
        if self.outcome and with_outcome:
            conditions.append(equals("outcome", self.outcome.value))
        if self.is_partial is not None:
            partial = f'coalesce("{PARTIAL}", FALSE)' if PARTIAL in columns else "FALSE"
            conditions.append(partial if self.is_partial else f"NOT {partial}")
        return f"WHERE {' AND '.join(conditions)} " if conditions else ""


def lines_of(rows: Sequence[Row]) -> tuple[RunLine, ...]:
    """The runs of their rows; one of an incompatible newer version is left out."""
    run_lines = []
    for row in rows:
        try:
            run_lines.append(_line(row))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(run_lines)


def _line(row: Row) -> RunLine:
    severity = row.get("worst_severity")
    return RunLine(
        run_id=row["run_id"],
        run_key=RunKey(row["gate"], row["dataset_date"], row["scheduler_run"]),
        attempt=row["attempt"],
        attempt_id=row["attempt_id"],
        started_at=as_utc(row["started_at"]),
        finished_at=as_utc(row["finished_at"]),
        outcome=Outcome(row["outcome"]),
        assertions=row["assertions"],
        failed=row["failed"],
        errors=row["errors"],
        worst=row.get("worst"),
        worst_severity=Severity(severity) if severity else None,
        locations=tuple(dataset["location"] for dataset in json.loads(row.get("datasets") or "[]")),
        partial=from_json(PartialRun, row["selection"]) if row.get("selection") else None,
    )
