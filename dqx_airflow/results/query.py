"""Queries to the tables of a results store, in SQL for the query engine inside deltalake.

It skips files by the statistics of the log, and needs neither pyarrow nor pandas, whose import
takes longer than the query, and more memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from arro3.core import Table
from deltalake import DeltaTable, QueryBuilder

from dqx_airflow.results.column import Row
from dqx_airflow.results.conditions import is_in
from dqx_airflow.results.schema import FAILING_ROWS, FAILING_ROWS_SCHEMA, RESULTS, RESULTS_SCHEMA
from dqx_airflow.results.tables import ResultsRoot, locate, open_table, store_errors

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


def selecting(root: str, storage_options: Mapping[str, str] | None = None) -> Select:
    """Reads the tables below a root, each in its state at the time of the query.

    :raises StoreError: the store exists and cannot be read.
    """
    location = locate(root, storage_options)

    def select(
        name: str,
        columns: Sequence[str],
        where: list[str],
        order: str = "",
        *,
        last_attempts: bool = False,
        shadows: bool = False,
    ) -> Sequence[Row]:
        table = open_table(location, name)
        if table is None:
            return ()
        return select_rows(
            location, table, columns, where, order, last_attempts=last_attempts, shadows=shadows
        )

    return select


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
    # Every string in `where` was escaped by results.conditions.
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
