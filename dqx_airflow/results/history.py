"""A results store that stays open, for repeated queries of a server.

Opening a table reads its whole log, which takes a third of a second after 100,000 appended runs. An
open store only reads what was appended since the last query.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from threading import Lock

from deltalake import DeltaTable

from dqx_airflow.errors import StoreError
from dqx_airflow.results.column import Row
from dqx_airflow.results.conditions import equals, is_in, of_dates, of_instance
from dqx_airflow.results.contract_uses import ContractRun
from dqx_airflow.results.query import rows_behind, select_rows
from dqx_airflow.results.report_rows import report_from_rows
from dqx_airflow.results.run_lines import (
    COLUMNS,
    ORDER,
    RunLine,
    RunsWanted,
    lines_of,
)
from dqx_airflow.results.schema import RUNS, RUNS_SCHEMA, SOURCES, SOURCES_SCHEMA
from dqx_airflow.results.tables import ResultsRoot, locate, open_table, store_errors
from dqx_airflow.values import EnforcedContract, GateReport, Outcome, SourceFile, from_json

_FIRST_LOOK_DAYS, _LAST_LOOK_DAYS = 60, 400
_ENOUGH_RUNS = 8
_MOST_REPORTS = 2_000
"""Reports of some attempts: a gate over a range of dates has one for each."""


@dataclass(slots=True)
class OpenStore:
    """The results below a root. Threads may share it; a missing store counts as empty."""

    root: str
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)  # may hold secrets
    _tables: dict[str, DeltaTable] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def reports_of(self, attempt_ids: Collection[str]) -> tuple[GateReport, ...]:
        """The reports of these attempts, with their failing rows, the one started last first.

        :raises StoreError: the store exists and cannot be read.
        """
        if not attempt_ids:
            return ()
        return self._reports([is_in("attempt_id", attempt_ids)], _MOST_REPORTS)

    def gates_of(self, attempt_ids: Collection[str]) -> tuple[str, ...]:
        """The names of the gates that these attempts reported on.

        :raises StoreError: the store exists and cannot be read.
        """
        if not attempt_ids:
            return ()
        rows = self.select(RUNS, ["gate"], [is_in("attempt_id", attempt_ids)], 'ORDER BY "gate"')
        return tuple(dict.fromkeys(row["gate"] for row in rows))

    def runs_of_attempts(self, attempt_ids: Collection[str]) -> tuple[RunLine, ...]:
        """The runs that these attempts reported on, newest data first.

        :raises StoreError: the store exists and cannot be read.
        """
        if not attempt_ids:
            return ()
        return lines_of(self.select(RUNS, COLUMNS, [is_in("attempt_id", attempt_ids)], ORDER))

    def runs(self, wanted: RunsWanted, most: int = 50, skip: int = 0) -> tuple[RunLine, ...]:
        """The runs of some gates that no later attempt supersedes, newest data first: `most` of
        them after the first `skip`.

        :raises StoreError: the store exists and cannot be read.
        """
        if not wanted.gates:
            return ()
        order = f"{wanted.of_attempt(self._columns())}{ORDER} LIMIT {most} OFFSET {skip}"
        return lines_of(self.select(RUNS, COLUMNS, wanted.conditions, order, last_attempts=True))

    def count_runs(self, wanted: RunsWanted) -> tuple[tuple[str, int], ...]:
        """The number of runs of some gates with each outcome, ignoring a filter on outcomes.

        :raises StoreError: the store exists and cannot be read.
        """
        if not wanted.gates:
            return ()
        order = wanted.of_attempt(self._columns(), with_outcome=False)
        counts = Counter(
            row["outcome"]
            for row in self.select(RUNS, ["outcome"], wanted.conditions, order, last_attempts=True)
        )
        return tuple(counts.items())

    def past_reports(
        self,
        gates: Collection[str],
        until: date,
        most: int = 60,
        map_index: int = -1,
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
                is_in("gate", gates),
                *of_dates(_before(until, days - 1), until),
                *([of_instance(map_index)] if map_index >= 0 else []),
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
        rows = self.select(SOURCES, SOURCES_SCHEMA.names, [is_in("digest", digests)])
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
        table = self._table(locate(self.root, self.storage_options), RUNS)
        if not gates or table is None:
            return ()
        if all(column.name != "contract_id" for column in table.schema().fields):
            return ()
        where = [
            is_in("gate", gates),
            equals("contract_id", contract_id),
            *of_dates(_before(until, _LAST_LOOK_DAYS - 1), until),
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

    def select(
        self,
        name: str,
        columns: Sequence[str],
        where: list[str],
        order: str = "",
        *,
        last_attempts: bool = False,
        shadows: bool = False,
    ) -> Sequence[Row]:
        """The rows of a table that satisfy conditions in SQL.

        :param last_attempts: only the runs that no later attempt supersedes.
        :param shadows: only verdicts of shadow suites; by default none of them.
        :raises StoreError: the store exists and cannot be read.
        """
        location = locate(self.root, self.storage_options)
        for is_last_try in (False, True):
            table = self._table(location, name)
            if table is None:
                return []
            try:
                return select_rows(
                    location,
                    table,
                    columns,
                    where,
                    order,
                    last_attempts=last_attempts,
                    shadows=shadows,
                )
            except StoreError:
                # Files of a store that was compacted, or removed and created again, are gone.
                with self._lock:
                    self._tables.clear()
                if is_last_try:
                    raise
        return []

    def _columns(self) -> frozenset[str]:
        """The columns of the table of runs; empty if there is none."""
        table = self._table(locate(self.root, self.storage_options), RUNS)
        fields = table.schema().fields if table is not None else ()
        return frozenset(field.name for field in fields)

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
        conditions = [*where[:1], *of_dates(min(dates), max(dates))]
        reports = []
        for rows in rows_behind(self.select, runs, conditions, only_verdicts=last_attempts):
            try:
                reports.append(report_from_rows(*rows))
            except (ValueError, KeyError, TypeError):
                continue  # partly deleted, or of a newer version: a gap
        return tuple(reports)

    def _table(self, location: ResultsRoot, name: str) -> DeltaTable | None:
        """The newest state of the table; None if there is no table yet."""
        with self._lock:
            table = self._tables.get(name)
            if table is not None:
                try:
                    with store_errors(location, "read"):
                        table.update_incremental()
                    return table
                except StoreError:
                    self._tables.clear()
            table = open_table(location, name)
            if table is not None:
                self._tables[name] = table
            return table


def _before(day: date, days: int) -> date:
    """The date n days earlier, or the first possible date if there is none."""
    return day - timedelta(days=min(days, day.toordinal() - 1))
