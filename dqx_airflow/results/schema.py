"""The tables of the results store: their columns, and the layout of their rows in files.

A table may have fewer columns than these (an older writer) or more (a newer one): missing ones are
absent, unknown ones are ignored. Every column is therefore nullable. The keys come first, since
Delta keeps statistics for the first 32 columns, which readers use to skip files.

The schemas use the Arrow of deltalake: a reader of a report, such as the process of a task, need
not load pyarrow, which takes 40 MB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arro3.core import Field, Schema

from dqx_airflow.results import columns
from dqx_airflow.results.column import Column

MONTH = columns.MONTH.name

RUNS = "runs"
RESULTS = "results"
FAILING_ROWS = "failing_rows"
SOURCES = "sources"
STATES = "states"
LABELS = "labels"
PROPOSALS = "proposals"
INCIDENT_NOTES = "incident_notes"


def _schema(table: tuple[Column, ...]) -> Schema:
    return Schema([Field(column.name, column.type) for column in table])


RUNS_SCHEMA = _schema(columns.RUNS)
RESULTS_SCHEMA = _schema(columns.RESULTS)
FAILING_ROWS_SCHEMA = _schema(columns.FAILING_ROWS)
SOURCES_SCHEMA = _schema(columns.SOURCES)
LABELS_SCHEMA = _schema(columns.LABELS)
PROPOSALS_SCHEMA = _schema(columns.PROPOSALS)
INCIDENT_NOTES_SCHEMA = _schema(columns.INCIDENT_NOTES)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table of the store, and the layout of its rows in files.

    `clock` is the column with the time of a row: it decides the month of the row, and its age. The
    rows of a file are sorted by `order`. `keys` are the columns with statistics, by which readers
    skip files. Of the rows that are equal in `newest_of`, only the newest counts, so the others may
    be dropped; if it is empty, every row counts. A table that `is_of_people` is never pruned, and
    no gate writes it.
    """

    name: str
    columns: tuple[Column, ...]
    clock: str
    order: tuple[str, ...]
    keys: tuple[str, ...]
    newest_of: tuple[str, ...] = ()
    is_of_people: bool = False

    @property
    def schema(self) -> Schema:
        """The Arrow schema of the table."""
        return _schema(self.columns)

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the Delta table."""
        return {
            "delta.checkpointInterval": "50",
            # Opening a table lists its log, and old versions are not needed.
            "delta.logRetentionDuration": "interval 1 days",
            "delta.deletedFileRetentionDuration": "interval 7 days",
            # Every run leaves a transaction identifier; no run is written again after a month.
            "delta.setTransactionRetentionDuration": "interval 30 days",
            "delta.dataSkippingStatsColumns": ",".join(self.keys),
        }


_RUN_KEYS = ("run_id", "gate", "dataset_date", "scheduler_run", "attempt_id", "finished_at")
_BY_GATE = ("gate", "finished_at", "run_id")

TABLES: Mapping[str, TableDefinition] = {
    table.name: table
    for table in (
        TableDefinition(RUNS, columns.RUNS, "finished_at", _BY_GATE, _RUN_KEYS),
        TableDefinition(
            RESULTS, columns.RESULTS, "finished_at", (*_BY_GATE, "position"), _RUN_KEYS
        ),
        TableDefinition(
            FAILING_ROWS,
            columns.FAILING_ROWS,
            "finished_at",
            (*_BY_GATE, "position", "number"),
            _RUN_KEYS,
        ),
        TableDefinition(
            SOURCES, columns.SOURCES, "stored_at", ("digest",), ("digest", "stored_at"), ("digest",)
        ),
        TableDefinition(
            STATES,
            columns.STATES,
            "stored_at",
            ("scope", "dataset_date", "aggregate", "stored_at"),
            ("scope", "dataset_date", "stored_at"),
            ("scope", "dataset_date", "aggregate"),
        ),
        TableDefinition(
            LABELS,
            columns.LABELS,
            "labelled_at",
            ("gate", "dataset_date", "labelled_at"),
            ("gate", "dataset_date", "suite", "labelled_at"),
            is_of_people=True,
        ),
        TableDefinition(
            PROPOSALS,
            columns.PROPOSALS,
            "event_at",
            ("suite", "event_at"),
            ("suite", "proposal_id", "event_at"),
            is_of_people=True,
        ),
        TableDefinition(
            INCIDENT_NOTES,
            columns.INCIDENT_NOTES,
            "event_at",
            ("gate", "event_at"),
            ("gate", "dataset_date", "event_at"),
            is_of_people=True,
        ),
    )
}
"""All tables, by name. `runs` comes first: a deletion begins with the rows that mark a run as
complete."""
