"""Queries of the results below a root: which rows of which table, which runs, which attempts count.
All readers query through this module. Only runs with a row in `runs` exist.

Queries are in SQL, for the query engine inside deltalake. It skips files by the statistics of the
log, and needs neither pyarrow nor pandas, whose import takes longer than the query.

Opening a table reads its whole log, which takes a third of a second after 100,000 appended runs. An
open table only reads what was appended since the last query.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.resources import files
from threading import Lock
from typing import Any

from arro3.core import Table
from deltalake import DeltaTable, QueryBuilder

from dqx_airflow.errors import NoStoreError, StoreError
from dqx_airflow.results import schema
from dqx_airflow.results.report_rows import RunRow, report_from_rows, run_from_row
from dqx_airflow.results.tables import ResultsRoot, locate, open_table, store_errors
from dqx_airflow.values import EnforcedContract, GateReport, Outcome, RunKey, SourceFile, from_json
from dqx_airflow.values.typed_values import days_before

PARTIAL = "partial"
"""The column that marks runs that judged only some assertions."""
SHADOW = "shadow"
"""The column with the name of the shadow suite of a verdict: such rows count for nothing."""
OF_A_RUN = tuple(name for name in schema.RUNS_SCHEMA.names if name != "datasets")
"""The columns of a `RunRow`."""
NEWEST_DATA_FIRST = 'ORDER BY "dataset_date" DESC, "started_at" DESC, "run_id"'

_FIRST_LOOK_DAYS, _LAST_LOOK_DAYS = 60, 400
_ENOUGH_RUNS = 8
_LONGEST_LIST = 100
"""The longest list of values that is faster than a query of them."""
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
    """The SQL condition that a column has one of these values.

    Many values are a query of their own: the query engine joins it, where it would compare each
    row with a list, which takes twice as long for some hundred gates."""
    literals = sorted(set(map(literal, values)))
    listed = ", ".join(literals)
    if len(literals) <= _LONGEST_LIST:
        return f'"{column}" IN ({listed})'
    return f'"{column}" IN (SELECT unnest([{listed}]))'


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
        """:raises NoStoreError: there is no store."""
        if self.table(schema.RUNS) is None:
            raise NoStoreError(f"no results under {self.location.root}", hint)

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
    names = table.column_names
    columns = [column.to_pylist() for column in table.columns]
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
