"""Queries of the results below a root: which rows of which table, which runs, which attempts count.
All readers query through this module; reports, runs and gates are read here too. Only runs with a
row in `runs` exist.

Queries are in SQL, for the query engine inside deltalake. It skips files by the statistics of the
log, and needs neither pyarrow nor pandas, whose import takes longer than the query.

Opening a table reads its whole log, which takes a third of a second after 100,000 appended runs. An
open table only reads what was appended since the last query.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from importlib.resources import files
from threading import Lock
from typing import Any

from arro3.core import DataType, Table
from deltalake import DeltaTable, QueryBuilder

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results import schema
from dqx_airflow.results.report_rows import RunRow, report_from_rows, run_from_row
from dqx_airflow.results.tables import ResultsRoot, locate, open_table, store_errors
from dqx_airflow.values import EnforcedContract, GateReport, Outcome, RunKey, SourceFile, from_json
from dqx_airflow.values.request import days_before

PARTIAL = "partial"
"""The column that marks runs that judged only some assertions."""
SHADOW = "shadow"
"""The column with the name of the shadow suite of a verdict: such rows count for nothing."""
OF_A_RUN = tuple(name for name in schema.RUNS_SCHEMA.names if name != "datasets")
"""The columns of a `RunRow`."""
NEWEST_DATA_FIRST = 'ORDER BY "dataset_date" DESC, "started_at" DESC, "run_id"'

_FIRST_LOOK_DAYS, _LAST_LOOK_DAYS = 60, 400
_ENOUGH_RUNS = 8
_MOST_REPORTS = 2_000
"""Reports of some attempts: a gate over a range of dates has one for each."""


def literal(value: str | date) -> str:
    """A string or a date as an SQL literal; the string may contain anything."""
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'"


def equals(column: str, value: str | date) -> str:
    """The column has this value."""
    return f'"{column}" = {literal(value)}'


def is_in(column: str, values: Iterable[str]) -> str:
    """The SQL condition that a column has one of these values."""
    return f'"{column}" IN ({", ".join(sorted(set(map(literal, values))))})'


def of_dates(since: date | None, until: date | None) -> list[str]:
    """The data is of these days, the first and the last included; None is no limit."""
    return [
        *([f'"dataset_date" >= {literal(since)}'] if since else []),
        *([f'"dataset_date" <= {literal(until)}'] if until else []),
    ]


# A date has ten characters, so that no two pairs have the same text. A count may be missing.
_FAILED_ON_DATE = """concat("gate", "dataset_date") IN (
    SELECT concat("gate", "dataset_date") FROM stored WHERE coalesce("failed", 1) <> 0 AND {}
)"""


def of_instance(map_index: int) -> str:
    """The runs of an instance of a mapped gate."""
    ending = f"[{map_index}]"
    return f'right("scheduler_run", {len(ending)}) = {literal(ending)}'


@dataclass(frozen=True, slots=True)
class RunsWanted:
    """A filter of runs: by gates, attempts or a suite; by days of data; by an instance of a mapped
    task; by a contract that they enforced. `failing` selects data on which any attempt had
    failures. Of the selected attempts, `outcome` and `is_partial` keep a subset. None means no
    restriction."""

    gates: Collection[str] | None = None
    outcome: Outcome | None = None
    since: date | None = None
    until: date | None = None
    map_index: int | None = None
    is_partial: bool | None = None
    suite: str | None = None
    attempt_ids: Collection[str] | None = None
    contract_id: str | None = None
    failing: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether no run can match, so that nothing has to be read."""
        return any(names is not None and not names for names in (self.gates, self.attempt_ids))

    @property
    def conditions(self) -> list[str]:
        """SQL conditions on all attempts of the wanted runs, without the outcome."""
        one_of = {"gate": self.gates, "attempt_id": self.attempt_ids}
        exactly = {"suite": self.suite, "contract_id": self.contract_id}
        wanted = [
            *(is_in(column, values) for column, values in one_of.items() if values is not None),
            *(equals(column, value) for column, value in exactly.items() if value is not None),
            *of_dates(self.since, self.until),
            *([] if self.map_index is None else [of_instance(self.map_index)]),
        ]
        failed = _FAILED_ON_DATE.format(" AND ".join(wanted or ["TRUE"]))
        return [*wanted, *([failed] if self.failing else [])]

    def of_attempt(self, columns: Container[str], *, with_outcome: bool = True) -> str:
        """SQL conditions on the attempt that counts.

        :param columns: the columns of the table: an older table has no partial runs.
        """
        conditions = []
        if self.outcome and with_outcome:
            conditions.append(equals("outcome", self.outcome.value))
        if self.is_partial is not None:
            partial = f'coalesce("{PARTIAL}", FALSE)' if PARTIAL in columns else "FALSE"
            conditions.append(partial if self.is_partial else f"NOT {partial}")
        return f"WHERE {' AND '.join(conditions)} " if conditions else ""


@dataclass(frozen=True, slots=True)
class ContractRun:
    """A run of a gate, on data of a date, that enforced a contract."""

    gate: str
    date: date
    outcome: Outcome
    contract: EnforcedContract


@dataclass(slots=True)
class StoredResults:
    """The results below a root, their tables opened once and then updated with what was appended.

    Threads may share it; a missing store or table counts as empty. Every method raises StoreError
    if the store exists and cannot be read. The `last` attempt of a run is the attempt that no later
    attempt supersedes.
    """

    root: str
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)  # may hold secrets
    _tables: dict[str, DeltaTable] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def location(self) -> ResultsRoot:
        """The resolved root."""
        return locate(self.root, self.storage_options)

    def table(self, name: str) -> DeltaTable | None:
        """The newest state of the table; None if there is no table yet."""
        with self._lock:
            table = self._tables.get(name)
            if table is not None:
                try:
                    with store_errors(self.location, "read"):
                        table.update_incremental()
                    return table
                except StoreError:
                    self._tables.clear()
            table = open_table(self.location, name)
            if table is not None:
                self._tables[name] = table
            return table

    def columns(self, name: str) -> frozenset[str]:
        """The columns of a table; empty if there is none."""
        return _columns_of(self.table(name))

    def require_some(
        self, hint: str = "check the path; the first gate that finishes creates the store"
    ) -> None:
        """:raises StoreError: there is no store."""
        if self.table(schema.RUNS) is None:
            raise StoreError(f"no results under {self.location.root}", hint)

    def select(
        self,
        name: str,
        columns: Iterable[str],
        where: Sequence[str],
        order: str = "",
        *,
        last_attempts: bool = False,
        shadows: bool = False,
    ) -> list[dict[str, Any]]:
        """The rows of a table that satisfy conditions in SQL, without the columns that the table
        does not have (an older writer).

        :param last_attempts: only the runs that no later attempt supersedes.
        :param shadows: only verdicts of shadow suites; by default none of them.
        """
        for is_last_try in (False, True):
            table = self.table(name)
            present = _columns_of(table)
            if table is None or (shadows and SHADOW not in present):
                return []
            conditions = [*where]
            if SHADOW in present:
                conditions.append(f'"{SHADOW}" IS {"NOT " if shadows else ""}NULL')
            selected = ", ".join(_selected(column) for column in columns if column in present)
            # Every string in `where` was escaped by `literal`.
            rows = f"SELECT * FROM stored WHERE {' AND '.join(conditions or ['TRUE'])}"  # noqa: S608
            if last_attempts:
                answered = '"answered" DESC NULLS LAST, ' if "answered" in present else ""
                last = last_first(present)
                rows = _LAST_ATTEMPTS.format(rows=rows, last=last, answered=answered)
            try:
                return self.rows(f"SELECT {selected} FROM ({rows}) {order}", stored=table)  # noqa: S608
            except StoreError:
                # Files of a store that was compacted, or removed and created again, are gone.
                with self._lock:
                    self._tables.clear()
                if is_last_try:
                    raise
        return []

    def rows(self, sql: str, **tables: DeltaTable) -> list[dict[str, Any]]:
        """The rows of a SELECT over some tables.

        :param tables: the tables by their names in the SELECT."""
        with store_errors(self.location, "read"):
            builder = QueryBuilder()
            for name, table in tables.items():
                builder.register(name, table)
            return rows_of(builder.execute(sql).read_all())

    def write(self, table: str, rows: Mapping[str, schema.Row]) -> None:
        """Appends rows that people write, such as labels, by keys that are never appended twice.

        :raises StoreError: the store cannot be written.
        """
        from dqx_airflow.results.store import ResultsStore  # pyarrow, which readers do not need

        store = ResultsStore(self.root, self.storage_options)
        store.append_rows({table: {key: [row] for key, row in rows.items()}})

    def whole_rows(
        self, table: str, where: Sequence[str] = (), order: str = ""
    ) -> list[dict[str, Any]]:
        """The rows of a table that satisfy conditions in SQL, with all columns."""
        return self.select(table, schema.TABLES[table].schema.names, where, order)

    def run_rows(
        self, wanted: RunsWanted, columns: Iterable[str], order: str = "", *, last: bool = False
    ) -> list[dict[str, Any]]:
        """Some columns of the wanted runs; with `last`, only of last attempts with the outcome."""
        if wanted.is_nothing:
            return []
        of_attempt = wanted.of_attempt(self.columns(schema.RUNS)) if last else ""
        where = wanted.conditions
        return self.select(schema.RUNS, columns, where, of_attempt + order, last_attempts=last)

    def gates_of(self, attempt_ids: Collection[str]) -> tuple[str, ...]:
        """The names of the gates that these attempts reported on."""
        rows = self.run_rows(RunsWanted(attempt_ids=attempt_ids), ["gate"], 'ORDER BY "gate"')
        return tuple(dict.fromkeys(row["gate"] for row in rows))

    def places_of(self, attempt_ids: Collection[str]) -> tuple[tuple[str, str], ...]:
        """The location of the first dataset that each of these attempts reported on."""
        wanted = RunsWanted(attempt_ids=attempt_ids)
        rows = self.run_rows(wanted, ("attempt_id", "datasets"), NEWEST_DATA_FIRST)
        datasets = ((row["attempt_id"], json.loads(row.get("datasets") or "[]")) for row in rows)
        return tuple((attempt, found[0]["location"]) for attempt, found in datasets if found)

    def runs(self, wanted: RunsWanted, most: int = 50, skip: int = 0) -> tuple[RunRow, ...]:
        """The last runs, newest data first: `most` of them after the first `skip`. A run of an
        incompatible newer version is left out."""
        order = f"{NEWEST_DATA_FIRST} LIMIT {most} OFFSET {skip}"
        runs = []
        for row in self.run_rows(wanted, OF_A_RUN, order, last=True):
            try:
                runs.append(run_from_row(row))
            except (ValueError, KeyError, TypeError):
                continue
        return tuple(runs)

    def count_runs(self, wanted: RunsWanted) -> tuple[tuple[str, int], ...]:
        """The number of last runs with each outcome, ignoring a filter on outcomes."""
        rows = self.run_rows(replace(wanted, outcome=None), ["outcome"], last=True)
        return tuple(Counter(row["outcome"] for row in rows).items())

    def newest_date(self, wanted: RunsWanted) -> date | None:
        """The newest date of the data of these runs; None if there are none."""
        order = 'ORDER BY "dataset_date" DESC LIMIT 1'
        rows = self.run_rows(wanted, ["dataset_date"], order)
        return rows[0]["dataset_date"] if rows else None

    def reports_of(self, attempt_ids: Collection[str]) -> tuple[GateReport, ...]:
        """The reports of these attempts, with their failing rows, the one started last first."""
        return self._reports(RunsWanted(attempt_ids=attempt_ids), _MOST_REPORTS)

    def past_reports(
        self, gates: Collection[str], until: date, most: int = 60, map_index: int = -1
    ) -> tuple[GateReport, ...]:
        """The last reports of some gates up to a date of their data, newest date first, without
        failing rows, at most `most` for each gate.

        The last two months are read, or a year if these have too few runs for a trend.

        :param map_index: for an instance of a mapped task only its own; -1 for all.
        """
        wanted = RunsWanted(gates, until=until, map_index=map_index if map_index >= 0 else None)
        reports: tuple[GateReport, ...] = ()
        for days in (_FIRST_LOOK_DAYS, _LAST_LOOK_DAYS):
            recent = replace(wanted, since=days_before(until, days - 1))
            reports = self._reports(recent, most * len(gates), last=True)
            if len(reports) >= _ENOUGH_RUNS * len(gates):
                break
        counts: dict[str, int] = defaultdict(int)
        kept = []
        for report in reports:
            counts[report.run_key.gate] += 1
            if counts[report.run_key.gate] <= most:
                kept.append(report)
        return tuple(kept)

    def newest_reports(self, gates: Collection[str], most: int = 60) -> tuple[GateReport, ...]:
        """As `past_reports`, up to the newest date of the data of these gates."""
        newest = self.newest_date(RunsWanted(gates))
        return self.past_reports(gates, newest, most) if newest else ()

    def _reports(
        self, wanted: RunsWanted, most: int, *, last: bool = False
    ) -> tuple[GateReport, ...]:
        """The reports of runs, newest data first. A report is missing if its rows were partly
        deleted, or are of a newer version. With `last`, the reports have no failing rows."""
        order = f"{NEWEST_DATA_FIRST} LIMIT {most}"
        runs = self.run_rows(wanted, schema.RUNS_SCHEMA.names, order, last=last)
        if not runs:
            return ()
        dates = [run["dataset_date"] for run in runs]
        of_rows = replace(wanted, since=min(dates), until=max(dates), map_index=None).conditions
        reports = self.reports_behind(runs, of_rows, only_verdicts=last)
        return tuple(report for report in reports if isinstance(report, GateReport))

    def reports_behind(
        self, runs: Sequence[schema.Row], where: Sequence[str], *, only_verdicts: bool = False
    ) -> list[GateReport | Exception]:
        """The report of each run, or the error if its rows form no report. One query per table.

        :param where: conditions that all rows of the runs satisfy, to skip files.
        :param only_verdicts: without failing rows and shadows.
        """

        def by_run(
            table: str, columns: Sequence[str], marks: str, *, shadows: bool = False
        ) -> dict[str, list[schema.Row]]:
            rows: dict[str, list[schema.Row]] = {}
            if any(run.get(marks) for run in runs):
                for row in self.select(table, columns, of_runs, shadows=shadows):
                    rows.setdefault(row["run_id"], []).append(row)
            return rows

        of_runs = [is_in("run_id", [run["run_id"] for run in runs]), *where]
        results = by_run(schema.RESULTS, schema.RESULTS_SCHEMA.names, "assertions")
        shadows: dict[str, list[schema.Row]] = {}
        failing: dict[str, list[schema.Row]] = {}
        if only_verdicts:
            runs = [{**run, "failing_rows": 0} for run in runs]
        else:
            shadows = by_run(
                schema.RESULTS, schema.RESULTS_SCHEMA.names, "shadow_run", shadows=True
            )
            failing = by_run(schema.FAILING_ROWS, schema.FAILING_ROWS_SCHEMA.names, "failing_rows")
        reports: list[GateReport | Exception] = []
        for run in runs:
            parts = (rows.get(run["run_id"], ()) for rows in (results, failing, shadows))
            try:
                reports.append(report_from_rows(run, *parts))
            except (ValueError, KeyError, TypeError) as error:
                reports.append(error)
        return reports

    def sources_of(self, report: GateReport) -> tuple[SourceFile, ...]:
        """The source texts of the gate of a report, as far as they are stored."""
        if not report.sources:
            return ()
        where = [is_in("digest", [source.digest for source in report.sources])]
        rows = self.select(schema.SOURCES, schema.SOURCES_SCHEMA.names, where)
        texts = {row["digest"]: row["text"] for row in rows}
        return tuple(
            SourceFile(source.file, texts[source.digest])
            for source in report.sources
            if source.digest in texts
        )

    def contract_runs(
        self, gates: Collection[str], contract_id: str, until: date, most: int = 1000
    ) -> tuple[ContractRun, ...]:
        """The last runs of some gates that enforced a contract, of the year up to `until`, newest
        date first."""
        if "contract_id" not in self.columns(schema.RUNS):
            return ()
        since = days_before(until, _LAST_LOOK_DAYS - 1)
        wanted = RunsWanted(gates, since=since, until=until, contract_id=contract_id)
        order = f'ORDER BY "dataset_date" DESC, "gate" LIMIT {most}'
        runs = []
        columns = ["gate", "dataset_date", "outcome", "contract"]
        for row in self.run_rows(wanted, columns, order, last=True):
            try:
                contract = from_json(EnforcedContract, row.get("contract") or "")
                outcome = Outcome(row["outcome"])
            except ValueError:
                continue  # of a newer version: a gap in a history, not an error
            runs.append(ContractRun(row["gate"], row["dataset_date"], outcome, contract))
        return tuple(runs)


def opened(results: StoredResults | str) -> StoredResults:
    """Opens the results below a root, without storage options; returns open results unchanged."""
    return StoredResults(results) if isinstance(results, str) else results


def rows_of(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, each as a dictionary."""
    names, columns = table.column_names, [column.to_pylist() for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


_LAST_ATTEMPTS = files(__package__).joinpath("last_attempts.sql").read_text(encoding="utf-8")


def last_first(columns: Container[str]) -> str:
    """The order in which the run that counts comes first: the last one that was started, but after
    all others a partial run that stopped nothing.

    :param columns: the columns of the table: an older table has no partial runs.
    """
    last = '"started_at" DESC'
    if PARTIAL not in columns:
        return last
    is_weak = f"coalesce(\"{PARTIAL}\", FALSE) AND \"outcome\" NOT IN ('blocked', 'broken')"
    return f"CASE WHEN {is_weak} THEN 1 ELSE 0 END, {last}"


def map_index_of(row: schema.Row) -> int:
    """The map index of a run, -1 if its gate was not mapped."""
    return RunKey(row["gate"], row["dataset_date"], row["scheduler_run"]).map_index


def _columns_of(table: DeltaTable | None) -> frozenset[str]:
    fields = () if table is None else table.schema().fields
    return frozenset(column.name for column in fields)


def _selected(name: str) -> str:
    # Timestamps come without their time zone, which is UTC: a zoned one needs the zones of the
    # machine.
    if name in {"started_at", "finished_at", "stored_at", "labelled_at", "event_at"}:
        return f'arrow_cast("{name}", \'Timestamp(Microsecond, None)\') AS "{name}"'
    return f'"{name}"'


_LAST_CHARACTER = "\U0010ffff"
_SHOWN_MATCHES = 5
_SHOWN_RUNS = 20
_WITHOUT_ZONE = DataType.timestamp("us")
_NEWEST_FIRST = 'ORDER BY "finished_at" DESC, "run_id"'
_MOST_LOOKED_AT = 5_000


def read_report(
    results: StoredResults | str, run_key: RunKey, attempt_id: str
) -> GateReport | None:
    """The complete report of exactly this attempt; None if there is none (yet), or no store yet.

    If two jobs have reported for one attempt, the one that finished first counts.

    :param attempt_id: the id of the scheduler's attempt.
    :raises StoreError: the store exists and cannot be read.
    """
    reports = read_reports(results, [run_key], attempt_id)
    return None if reports is None else reports[0]


def read_reports(
    results: StoredResults | str,
    run_keys: Sequence[RunKey],
    attempt_id: str,
    answered: str | None = None,
) -> tuple[GateReport, ...] | None:
    """The complete reports of exactly this attempt, one for each run key; None if one of them does
    not exist (yet). Reports that followed an answer replace the earlier ones.

    :param answered: only reports that followed this answer.
    :raises StoreError: the store exists and cannot be read.
    """
    results, dates = opened(results), [key.date for key in run_keys]
    of_gates = [is_in("gate", [key.gate for key in run_keys]), *of_dates(min(dates), max(dates))]
    where = [*of_gates, equals("attempt_id", attempt_id)]
    rows: dict[RunKey, schema.Row] = {}
    found = results.select(
        schema.RUNS, schema.RUNS_SCHEMA.names, where, 'ORDER BY "finished_at", "run_id"'
    )
    for row in sorted(found, key=lambda row: row.get("answered") or "", reverse=True):
        if answered not in (None, row.get("answered")):
            continue
        key = RunKey(row["gate"], row["dataset_date"], row["scheduler_run"])
        rows.setdefault(key, row)
    if not rows.keys() >= set(run_keys):
        return None
    return _reports(results, [rows[key] for key in run_keys], of_gates)


def find_report(results: StoredResults | str, run_id_prefix: str) -> GateReport | None:
    """The report of the run whose id starts with `run_id_prefix`; None if there is none.

    :raises RequestError: several runs match, or the prefix is empty.
    :raises StoreError: there is no store, or it cannot be read.
    """
    if not run_id_prefix:
        raise RequestError("the run id is empty", "give the first characters of a run id")
    results = opened(results)
    results.require_some()
    # A range, not LIKE: it skips files, and nothing in the prefix has to be escaped.
    where = [
        f'"run_id" >= {literal(run_id_prefix)}',
        f'"run_id" <= {literal(run_id_prefix + _LAST_CHARACTER)}',
    ]
    # First only a few columns, because this reads every run.
    keys = ["run_id", "gate", "dataset_date"]
    by_id = {
        row["run_id"]: row for row in results.select(schema.RUNS, keys, where, 'ORDER BY "run_id"')
    }
    if len(by_id) > 1 and run_id_prefix not in by_id:
        matches = [*by_id][:_SHOWN_MATCHES]
        if len(by_id) > _SHOWN_MATCHES:
            matches.append("...")
        raise RequestError(
            f"{len(by_id)} runs have an id that starts with {run_id_prefix}",
            f"give more characters: {', '.join(matches)}",
        )
    match = by_id.get(run_id_prefix) or next(iter(by_id.values()), None)
    if match is None:
        return None
    where = [equals(key, match[key]) for key in keys]
    rows = results.select(schema.RUNS, schema.RUNS_SCHEMA.names, where, "LIMIT 1")
    reports = _reports(results, rows, where[1:])
    return reports[0] if reports else None


def list_runs(
    results: StoredResults | str,
    *,
    gate: str | None = None,
    dataset_date: date | None = None,
    limit: int = 20,
    all_attempts: bool = False,
) -> tuple[RunRow, ...]:
    """Runs, the one that finished last first.

        for run in list_runs("s3://lake/dqx", gate="flights.bronze_gate", limit=5):
            print(run.dataset_date, run.outcome)

    For each run key only the last attempt counts, unless `all_attempts` is set. The last attempt is
    the one that was started last, since attempt numbers may begin again at 1. Of two reports for
    one attempt, the first to finish counts, as in `read_report`.

    :param gate: only runs of this gate.
    :param dataset_date: only runs for data of this date.
    :param limit: the maximum number of runs.
    :raises StoreError: there is no store, or it cannot be read.
    """
    results = opened(results)
    results.require_some()
    gates = None if gate is None else [gate]
    where = RunsWanted(gates, since=dataset_date, until=dataset_date).conditions
    if all_attempts:
        rows = _newest(results, OF_A_RUN, where, limit)
    else:
        rows = _not_superseded(results, where, limit)
    with store_errors(results.location, "read"):
        return tuple(run_from_row(row) for row in rows)


def _not_superseded(
    results: StoredResults, where: list[str], limit: int
) -> Sequence[dict[str, Any]]:
    """The newest runs that no later attempt supersedes.

    Whether a run is superseded depends only on the runs with its key. So the newest few runs are
    read first, some of which may be superseded, and then all runs with their keys, rather than all
    runs in the store.
    """
    looked_at = 2 * limit + _SHOWN_RUNS
    while looked_at <= _MOST_LOOKED_AT:
        keys = ["run_id", "dataset_date", "scheduler_run", "finished_at"]
        newest = _newest(results, keys, where, looked_at)
        if not newest:
            return ()
        dates = [row["dataset_date"] for row in newest]
        of_keys = [
            *where,
            *of_dates(min(dates), max(dates)),
            is_in("scheduler_run", [row["scheduler_run"] for row in newest]),
        ]
        rows = results.select(schema.RUNS, OF_A_RUN, of_keys, _NEWEST_FIRST, last_attempts=True)
        ids = {row["run_id"] for row in newest}
        rows = [row for row in rows if row["run_id"] in ids]
        if len(rows) >= limit or len(newest) < looked_at:
            return rows[:limit]
        looked_at *= 4
    order = f"{_NEWEST_FIRST} LIMIT {limit}"
    return results.select(schema.RUNS, OF_A_RUN, where, order, last_attempts=True)


def _newest(
    results: StoredResults, columns: Iterable[str], where: list[str], limit: int
) -> Sequence[dict[str, Any]]:
    """The newest runs, from the newest files that contain enough of them, or else from all
    files."""
    order = f"{_NEWEST_FIRST} LIMIT {limit}"
    since = _timestamp_before(results, limit)
    if since is not None:
        recent = f"\"finished_at\" >= TIMESTAMP '{since:%Y-%m-%dT%H:%M:%SZ}'"
        rows = results.select(schema.RUNS, columns, [*where, recent], order)
        if len(rows) == limit:
            return rows
    return results.select(schema.RUNS, columns, where, order)


def _timestamp_before(results: StoredResults, limit: int) -> datetime | None:
    """A timestamp since which at least this many runs finished; None without statistics of it."""
    runs = results.table(schema.RUNS)
    if runs is None:
        return None
    actions = runs.get_add_actions(flatten=True)
    columns = ("max.finished_at", "min.finished_at", "num_records")
    if not {*columns} <= {*actions.schema.names}:
        return None
    *bounds, counts = (actions.column(name) for name in columns)
    moments = [bound.cast(_WITHOUT_ZONE).to_pylist() for bound in bounds]
    files = [file for file in zip(*moments, counts.to_pylist(), strict=True) if None not in file]
    rows = 0
    since: datetime = datetime.max
    for _, oldest, count in sorted(files, reverse=True):
        rows, since = rows + count, min(since, oldest)
        if rows >= limit:
            # Statistics are in whole milliseconds, and rounded down.
            return since - timedelta(seconds=1)
    return None


def _reports(
    results: StoredResults, runs: Sequence[schema.Row], where: list[str]
) -> tuple[GateReport, ...]:
    """The reports of some runs.

    :param where: conditions that all rows of the runs satisfy, to skip files.
    :raises StoreError: the rows of a run do not form a report.
    """
    reports = []
    for run, report in zip(runs, results.reports_behind(runs, where), strict=True):
        if isinstance(report, Exception):
            root = results.location.root
            raise StoreError(
                f"cannot read run {run['run_id']} in the results store {root}: {report}",
                "rows were deleted or changed, or a newer version of this package wrote them",
            ) from report
        reports.append(report)
    return tuple(reports)


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
