"""Queries to the tables of a results store, in SQL for the query engine inside deltalake.

It skips files by the statistics of the log, and needs neither pyarrow nor pandas, whose import
takes longer than the query, and more memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from threading import Lock
from typing import Any, Protocol

from arro3.core import Table
from deltalake import DeltaTable, QueryBuilder

from dqx_airflow.errors import StoreError
from dqx_airflow.results.column import Row
from dqx_airflow.results.schema import FAILING_ROWS, FAILING_ROWS_SCHEMA, RESULTS, RESULTS_SCHEMA
from dqx_airflow.results.tables import ResultsRoot, locate, open_table, store_errors
from dqx_airflow.values import RunKey


def equals(column: str, value: str | date) -> str:
    """The column has this value."""
    return f'"{column}" = {literal(value)}'


def is_in(column: str, values: Iterable[str]) -> str:
    """The column has one of these values."""
    return f'"{column}" IN ({", ".join(sorted(set(map(literal, values))))})'


def of_dates(since: date | None, until: date | None) -> list[str]:
    """The data is of these days, the first and the last included; None is no limit."""
    return [
        *([f'"dataset_date" >= {literal(since)}'] if since else []),
        *([f'"dataset_date" <= {literal(until)}'] if until else []),
    ]


def of_instance(map_index: int) -> str:
    """The runs of an instance of a mapped gate."""
    ending = f"[{map_index}]"
    return f'right("scheduler_run", {len(ending)}) = {literal(ending)}'


def of_suite(name: str, gate: str | None, map_index: int | None = None) -> list[str]:
    """The runs of a suite, in any gate or in one, or in an instance of it."""
    return [
        equals("suite", name),
        *([equals("gate", gate)] if gate is not None else []),
        *([of_instance(map_index)] if map_index is not None else []),
    ]


def literal(value: str | date) -> str:
    """A string, whatever it contains, or a date."""
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'"


PARTIAL = "partial"
"""The column that marks runs that judged only some assertions."""
SHADOW = "shadow"
"""The column with the name of the shadow suite of a verdict: such rows count for nothing."""


class Select(Protocol):
    """Reads rows of a table of the store, by its name: none if the table does not exist."""

    def __call__(
        self,
        name: str,
        columns: Sequence[str],
        where: list[str],
        order: str = "",
        *,
        last_attempts: bool = False,
        shadows: bool = False,
    ) -> Sequence[Row]: ...


@dataclass(slots=True)
class StoreTables:
    """The tables below a root, opened once and then updated with what was appended. Threads may
    share them; a missing table counts as empty."""

    root: str
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)  # may hold secrets
    _tables: dict[str, DeltaTable] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

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
            table = self.table(name)
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

    def columns(self, name: str) -> frozenset[str]:
        """The columns of a table; empty if there is none."""
        table = self.table(name)
        fields = table.schema().fields if table is not None else ()
        return frozenset(field.name for field in fields)

    def table(self, name: str) -> DeltaTable | None:
        """The newest state of the table; None if there is no table yet."""
        location = locate(self.root, self.storage_options)
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


def selecting(root: str, storage_options: Mapping[str, str] | None = None) -> Select:
    """Reads the tables below a root, each in its state at the time of the query.

    :raises StoreError: the store exists and cannot be read.
    """
    return StoreTables(root, storage_options).select


def select_rows(
    location: ResultsRoot,
    table: DeltaTable,
    columns: Iterable[str],
    where: Sequence[str],
    order: str = "",
    *,
    last_attempts: bool = False,
    shadows: bool = False,
) -> list[dict[str, Any]]:
    """The rows, without the columns that the table does not have (an older writer).

    :param last_attempts: only the runs that no later attempt supersedes.
    :param shadows: only verdicts of shadow suites; by default none of them.
    """
    present = {column.name for column in table.schema().fields}
    if SHADOW in present:
        where = [*where, f'"{SHADOW}" IS {"NOT " if shadows else ""}NULL']
    elif shadows:
        return []
    selected = ", ".join(_column(name) for name in columns if name in present)
    # Every string in `where` was escaped by `literal`.
    rows = f"SELECT * FROM stored WHERE {' AND '.join(where or ['TRUE'])}"  # noqa: S608
    if last_attempts:
        rows = _LAST_ATTEMPTS.format(rows=rows, last=last_first(present))
    sql = f"SELECT {selected} FROM ({rows}) {order}"  # noqa: S608
    with store_errors(location, "read"):
        answer = QueryBuilder().register("stored", table).execute(sql).read_all()
        return rows_of(answer)


def rows_behind(
    select: Select, runs: Sequence[Row], where: list[str], *, only_verdicts: bool = False
) -> Iterator[tuple[Row, Sequence[Row], Sequence[Row], Sequence[Row]]]:
    """Each run with the rows of its verdicts, of its failing rows, and of the verdicts of its
    shadow: the arguments of `report_from_rows`. One query for each table.

    :param where: conditions that all rows of the runs satisfy, to skip files.
    :param only_verdicts: without failing rows and shadows.
    """

    def by_run(
        table: str, columns: Sequence[str], *, shadows: bool = False
    ) -> dict[str, list[Row]]:
        rows: dict[str, list[Row]] = {}
        for row in select(table, columns, of_runs, shadows=shadows):
            rows.setdefault(row["run_id"], []).append(row)
        return rows

    def have(column: str) -> bool:
        return not only_verdicts and any(run.get(column) for run in runs)

    of_runs = [is_in("run_id", [run["run_id"] for run in runs]), *where]
    columns = RESULTS_SCHEMA.names
    results = by_run(RESULTS, columns) if any(run.get("assertions") for run in runs) else {}
    shadows = by_run(RESULTS, columns, shadows=True) if have("shadow_run") else {}
    failing: dict[str, list[Row]] = {}
    if have("failing_rows"):
        failing = by_run(FAILING_ROWS, FAILING_ROWS_SCHEMA.names)
    for run in runs:
        key = run["run_id"]
        yield (
            {**run, "failing_rows": 0} if only_verdicts else run,
            results.get(key, ()),
            failing.get(key, ()),
            shadows.get(key, ()),
        )


def rows_of(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, each as a dictionary."""
    columns = [column.to_pylist() for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


_LAST_ATTEMPTS = """
SELECT * FROM (
    SELECT *, row_number() OVER (
        PARTITION BY "gate", "dataset_date", "scheduler_run"
        ORDER BY {last}, "attempt" DESC, "run_id"
    ) AS later_attempts FROM (
        SELECT *, row_number() OVER (
            PARTITION BY "gate", "dataset_date", "scheduler_run", "attempt_id"
            ORDER BY "finished_at", "run_id"
        ) AS earlier_reports FROM ({rows})
    ) WHERE earlier_reports = 1
) WHERE later_attempts = 1"""


def last_first(columns: Container[str]) -> str:
    """The order in which the run that counts comes first: the last one that was started, but after
    all others a partial run that stopped nothing.

    :param columns: those of the table: an older one has no partial runs.
    """
    last = '"started_at" DESC'
    if PARTIAL not in columns:
        return last
    is_weak = f"coalesce(\"{PARTIAL}\", FALSE) AND \"outcome\" NOT IN ('blocked', 'broken')"
    return f"CASE WHEN {is_weak} THEN 1 ELSE 0 END, {last}"


def _column(name: str) -> str:
    # Timestamps come without their time zone, which is UTC: a zoned one needs the zones of the
    # machine.
    if name in {"started_at", "finished_at", "stored_at", "labelled_at", "event_at"}:
        return f'arrow_cast("{name}", \'Timestamp(Microsecond, None)\') AS "{name}"'
    return f'"{name}"'


def map_index_of(row: Row) -> int:
    """The map index of a run, -1 if its gate was not mapped."""
    return RunKey(row["gate"], row["dataset_date"], row["scheduler_run"]).map_index
