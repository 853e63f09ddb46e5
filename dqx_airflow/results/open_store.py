"""A results store that stays open, for repeated queries of a server: reports, runs as a list with
one line each, the gates that enforce a contract.

Opening a table reads its whole log, which takes a third of a second after 100,000 appended runs. An
open store only reads what was appended since the last query.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from dqx_airflow.results import query
from dqx_airflow.results.column import Row, as_utc
from dqx_airflow.results.report_rows import report_from_rows
from dqx_airflow.results.schema import RUNS, RUNS_SCHEMA, SOURCES, SOURCES_SCHEMA
from dqx_airflow.results.tables import locate, open_table
from dqx_airflow.values import (
    EnforcedContract,
    GateReport,
    Outcome,
    PartialRun,
    RunKey,
    Severity,
    SourceFile,
    from_json,
)


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
    root: str, contract_id: str, since: date, *, storage_options: Mapping[str, str] | None = None
) -> tuple[ContractUse, ...]:
    """The gates whose runs since a date enforced a contract, by name and version.

    :raises StoreError: the results store exists and cannot be read.
    """
    location = locate(root, storage_options)
    runs = open_table(location, RUNS)
    if runs is None or all(column.name != "contract_id" for column in runs.schema().fields):
        return ()
    where = [
        query.equals("contract_id", contract_id),
        "arrow_cast(\"finished_at\", 'Timestamp(Microsecond, None)')"
        f" >= TIMESTAMP '{since.isoformat()}T00:00:00'",
    ]
    columns = ("gate", "contract_version", "finished_at", "contract")
    order = 'ORDER BY "gate", "contract_version", "finished_at"'
    uses: dict[tuple[str, str | None], ContractUse] = {}
    for row in query.select_rows(location, runs, columns, where, order):
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
        where = [query.is_in("gate", self.gates), *query.of_dates(self.since, self.until)]
        if self.map_index is not None:
            where.append(query.of_instance(self.map_index))
        return where

    def of_attempt(self, columns: Container[str], *, with_outcome: bool = True) -> str:
        """SQL conditions on the attempt that counts.

        :param columns: those of the table: an older one has no partial runs.
        """
        conditions = []
        if self.outcome and with_outcome:
            conditions.append(query.equals("outcome", self.outcome.value))
        if self.is_partial is not None:
            partial = f'coalesce("{query.PARTIAL}", FALSE)' if query.PARTIAL in columns else "FALSE"
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


_FIRST_LOOK_DAYS, _LAST_LOOK_DAYS = 60, 400
_ENOUGH_RUNS = 8
_MOST_REPORTS = 2_000
"""Reports of some attempts: a gate over a range of dates has one for each."""


@dataclass(slots=True)
class OpenStore(query.StoreTables):
    """The results below a root. Threads may share it; a missing store counts as empty."""

    def reports_of(self, attempt_ids: Collection[str]) -> tuple[GateReport, ...]:
        """The reports of these attempts, with their failing rows, the one started last first.

        :raises StoreError: the store exists and cannot be read.
        """
        if not attempt_ids:
            return ()
        return self._reports([query.is_in("attempt_id", attempt_ids)], _MOST_REPORTS)

    def gates_of(self, attempt_ids: Collection[str]) -> tuple[str, ...]:
        """The names of the gates that these attempts reported on.

        :raises StoreError: the store exists and cannot be read.
        """
        if not attempt_ids:
            return ()
        rows = self.select(
            RUNS, ["gate"], [query.is_in("attempt_id", attempt_ids)], 'ORDER BY "gate"'
        )
        return tuple(dict.fromkeys(row["gate"] for row in rows))

    def runs_of_attempts(self, attempt_ids: Collection[str]) -> tuple[RunLine, ...]:
        """The runs that these attempts reported on, newest data first.

        :raises StoreError: the store exists and cannot be read.
        """
        if not attempt_ids:
            return ()
        return lines_of(self.select(RUNS, COLUMNS, [query.is_in("attempt_id", attempt_ids)], ORDER))

    def runs(self, wanted: RunsWanted, most: int = 50, skip: int = 0) -> tuple[RunLine, ...]:
        """The runs of some gates that no later attempt supersedes, newest data first: `most` of
        them after the first `skip`.

        :raises StoreError: the store exists and cannot be read.
        """
        if not wanted.gates:
            return ()
        order = f"{wanted.of_attempt(self.columns(RUNS))}{ORDER} LIMIT {most} OFFSET {skip}"
        return lines_of(self.select(RUNS, COLUMNS, wanted.conditions, order, last_attempts=True))

    def count_runs(self, wanted: RunsWanted) -> tuple[tuple[str, int], ...]:
        """The number of runs of some gates with each outcome, ignoring a filter on outcomes.

        :raises StoreError: the store exists and cannot be read.
        """
        if not wanted.gates:
            return ()
        order = wanted.of_attempt(self.columns(RUNS), with_outcome=False)
        counts = Counter(
            row["outcome"]
            for row in self.select(RUNS, ["outcome"], wanted.conditions, order, last_attempts=True)
        )
        return tuple(counts.items())

    def past_reports(
        self, gates: Collection[str], until: date, most: int = 60, map_index: int = -1
    ) -> tuple[GateReport, ...]:
        """The reports of some gates up to a date of their data, newest date first.

        Only those that no later attempt supersedes, without failing rows, at most `most` for each
        gate. The last two months are read, or a year if these have too few runs for a trend.

        :param map_index: for an instance of a mapped task only its own; -1 for all.
        :raises StoreError: the store exists and cannot be read.
        """
        if not gates:
            return ()
        reports: tuple[GateReport, ...] = ()
        for days in (_FIRST_LOOK_DAYS, _LAST_LOOK_DAYS):
            where = [
                query.is_in("gate", gates),
                *query.of_dates(_before(until, days - 1), until),
                *([query.of_instance(map_index)] if map_index >= 0 else []),
            ]
            reports = self._reports(where, most * len(gates), last_attempts=True)
            if len(reports) >= _ENOUGH_RUNS * len(gates):
                break
        counts: dict[str, int] = defaultdict(int)
        kept = []
        for report in reports:
            counts[report.run_key.gate] += 1
            if counts[report.run_key.gate] <= most:
                kept.append(report)
        return tuple(kept)

    def sources_of(self, report: GateReport) -> tuple[SourceFile, ...]:
        """The source texts of the gate of a report, as far as they are stored.

        :raises StoreError: the store exists and cannot be read.
        """
        if not report.sources:
            return ()
        digests = [source.digest for source in report.sources]
        rows = self.select(SOURCES, SOURCES_SCHEMA.names, [query.is_in("digest", digests)])
        texts = {row["digest"]: row["text"] for row in rows}
        return tuple(
            SourceFile(source.file, texts[source.digest])
            for source in report.sources
            if source.digest in texts
        )

    def contract_runs(
        self, gates: Collection[str], contract_id: str, until: date, most: int = 1000
    ) -> tuple[ContractRun, ...]:
        """The runs of some gates that enforced a contract, newest date first.

        Only those that no later attempt supersedes, of the year up to `until`.

        :raises StoreError: the store exists and cannot be read.
        """
        if not gates or "contract_id" not in self.columns(RUNS):
            return ()
        where = [
            query.is_in("gate", gates),
            query.equals("contract_id", contract_id),
            *query.of_dates(_before(until, _LAST_LOOK_DAYS - 1), until),
        ]
        order = f'ORDER BY "dataset_date" DESC, "gate" LIMIT {most}'
        columns = ["gate", "dataset_date", "outcome", "contract"]
        runs = []
        for row in self.select(RUNS, columns, where, order, last_attempts=True):
            try:
                contract = from_json(EnforcedContract, row.get("contract") or "")
                outcome = Outcome(row["outcome"])
            except ValueError:
                continue  # of a newer version: a gap in a history, not an error
            runs.append(ContractRun(row["gate"], row["dataset_date"], outcome, contract))
        return tuple(runs)

    def _reports(
        self, where: list[str], limit: int, *, last_attempts: bool = False
    ) -> tuple[GateReport, ...]:
        """The reports of the runs that satisfy `where`, in the order of date and start.

        :param last_attempts: only those that no later attempt supersedes, without failing rows.
        """
        order = f'ORDER BY "dataset_date" DESC, "started_at" DESC, "run_id" LIMIT {limit}'
        runs = self.select(RUNS, RUNS_SCHEMA.names, where, order, last_attempts=last_attempts)
        if not runs:
            return ()
        dates = [run["dataset_date"] for run in runs]
        conditions = [*where[:1], *query.of_dates(min(dates), max(dates))]
        reports = []
        for rows in query.rows_behind(self.select, runs, conditions, only_verdicts=last_attempts):
            try:
                reports.append(report_from_rows(*rows))
            except (ValueError, KeyError, TypeError):
                continue  # partly deleted, or of a newer version: a gap
        return tuple(reports)


def _before(day: date, days: int) -> date:
    """The date n days earlier, or the first possible date if there is none."""
    return day - timedelta(days=min(days, day.toordinal() - 1))
