"""The tables of the results store: their columns, and how their rows are laid out in files.

A table may have fewer columns than these (an older writer) or more (a newer one): what is
missing reads as absent, what is unknown is ignored. Every column is therefore nullable. The keys
come first, since Delta keeps statistics for the first 32 columns, and readers skip files by them.

They are said in the Arrow that deltalake brings: whoever reads a report, as the process of a task
does, need not load pyarrow, which is 40 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from arro3.core import DataType, Field, Schema

_Column: TypeAlias = tuple[str, DataType]

MONTH = "month"
"""The column by which every table is partitioned: the month of its clock, as in 2024-02. Writers
of older versions leave it NULL, so no reader relies on it: files are skipped by statistics."""

RESULTS = "results"
FAILING_ROWS = "failing_rows"
RUNS = "runs"
SOURCES = "sources"

_TEXT = DataType.string()
_TEXTS = DataType.list(Field("item", _TEXT))
_WHOLE = DataType.int64()
_NUMBER = DataType.float64()
_DATE = DataType.date32()
_MOMENT = DataType.timestamp("us", tz="UTC")

_KEYS = [
    ("run_id", _TEXT),
    ("gate", _TEXT),
    ("dataset_date", _DATE),
    ("scheduler_run", _TEXT),
    ("attempt", _WHOLE),
    ("attempt_id", _TEXT),
    ("finished_at", _MOMENT),
    ("suite", _TEXT),
]


def _schema(columns: Iterable[_Column]) -> Schema:
    return Schema([Field(name, kind) for name, kind in [*columns, (MONTH, _TEXT)]])


def _value_fields(name: str) -> list[_Column]:
    # A double alone would lose the difference between 1 and 1.0, integers above 2**53, and dates.
    # So the double is there to be charted, and the text is the exact value, read by its kind.
    return [(name, _NUMBER), (f"{name}_text", _TEXT), (f"{name}_kind", _TEXT)]


RESULTS_SCHEMA = _schema(
    [
        *_KEYS,
        ("position", _WHOLE),
        ("name", _TEXT),
        ("check", _TEXT),
        ("status", _TEXT),
        ("severity", _TEXT),
        ("datasets", _TEXTS),
        ("expression", _TEXT),
        ("expected", _TEXT),
        *_value_fields("value"),
        ("multiplier", _NUMBER),
        *_value_fields("scaled_value"),
        *_value_fields("threshold"),
        ("reason", _TEXT),
        ("tags", _TEXTS),
        ("profiles", _TEXTS),
        ("metric", _TEXT),
        ("column", _TEXT),
        ("span_file", _TEXT),
        ("span_line", _WHOLE),
        ("span_column", _WHOLE),
        ("span_end_line", _WHOLE),
        ("span_end_column", _WHOLE),
        ("source_line", _TEXT),
        ("origin", _TEXT),
        ("note", _TEXT),
        ("contract_id", _TEXT),
        ("contract_version", _TEXT),
        ("clause", _TEXT),
        ("disabled_by", _TEXT),
    ]
)
"""One row for each assertion of each attempt. `position` is its place in the suite, from 0.

`value`, `scaled_value` and `threshold` take three columns each: the number as a double (null for
text and for no value), `_text` the exact value as text, `_kind` one of integer, decimal, fraction
(`1/3`: what no decimal holds), number (a float) and text (null where there is no value). `clause`
is the path of what it enforces in the contract, if the suite was compiled from one.
"""

FAILING_ROWS_SCHEMA = _schema(
    [
        *_KEYS,
        ("position", _WHOLE),
        ("number", _WHOLE),
        ("name", _TEXT),
        ("check", _TEXT),
        ("dataset", _TEXT),
        ("reason", _TEXT),
        ("row", _TEXT),
    ]
)
"""One row for each sampled row of a failed assertion. `position` and `name` are those of the
assertion in `results`, `number` counts its rows from 0, `row` is a JSON object."""

RUNS_SCHEMA = _schema(
    [
        *_KEYS,
        ("outcome", _TEXT),
        ("fail_on", _TEXT),
        ("started_at", _MOMENT),
        ("assertions", _WHOLE),
        ("passed", _WHOLE),
        ("failed", _WHOLE),
        ("skipped", _WHOLE),
        ("errors", _WHOLE),
        ("worst", _TEXT),
        ("worst_severity", _TEXT),
        ("datasets", _TEXT),
        ("failing_rows", _WHOLE),
        ("contract_id", _TEXT),
        ("contract_version", _TEXT),
        ("contract", _TEXT),
        ("sources", _TEXT),
    ]
)
"""One row for each attempt, written last. `datasets` is the JSON form of the snapshots, `worst`
the assertion that the headline names, `failing_rows` the number of its rows in that table,
`contract` the JSON form of the contract that was enforced, if one was, `sources` that of the
digests of all texts that the gate went by."""

SOURCES_SCHEMA = _schema(
    [
        ("run_id", _TEXT),
        ("digest", _TEXT),
        ("text", _TEXT),
        ("stored_at", _MOMENT),
    ]
)
"""One row for each text of a suite, a library or a contract, however many runs went by it: the run
that brought it, and its SHA-256 in hexadecimal digits."""

STATES = "states"

STATES_SCHEMA = _schema(
    [
        ("run_id", _TEXT),
        ("scope", _TEXT),
        ("dataset_date", _DATE),
        ("aggregate", _TEXT),
        ("result", _TEXT),
        ("fingerprint", _TEXT),
        ("stored_at", _MOMENT),
    ]
)
"""One row for each aggregate of each date that was computed. `scope` is the dataset and how it was
read, `result` the JSON form of the value, null where the date had no rows."""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table of the store, and how its rows lie in files.

    `clock` is the column with the moment of a row: it decides the month that the row belongs to,
    and when it is old. The rows of a file are sorted by `order`. `keys` are the columns with
    statistics, by which readers skip files. Of the rows that are equal in `newest_of`, only the
    newest counts, so the others may be dropped; where it is empty, every row counts.
    """

    name: str
    schema: Schema
    clock: str
    order: tuple[str, ...]
    keys: tuple[str, ...]
    newest_of: tuple[str, ...] = ()

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the Delta table."""
        return {
            "delta.checkpointInterval": "50",
            # Opening a table lists its log. Nobody travels back in time here.
            "delta.logRetentionDuration": "interval 1 days",
            "delta.deletedFileRetentionDuration": "interval 7 days",
            # Every run leaves a transaction identifier; nobody writes a run again after a month.
            "delta.setTransactionRetentionDuration": "interval 30 days",
            "delta.dataSkippingStatsColumns": ",".join(self.keys),
        }


_RUN_KEYS = ("run_id", "gate", "dataset_date", "scheduler_run", "attempt_id", "finished_at")
_BY_GATE = ("gate", "finished_at", "run_id")

TABLES: Mapping[str, TableDefinition] = {
    table.name: table
    for table in (
        TableDefinition(RUNS, RUNS_SCHEMA, "finished_at", _BY_GATE, _RUN_KEYS),
        TableDefinition(RESULTS, RESULTS_SCHEMA, "finished_at", (*_BY_GATE, "position"), _RUN_KEYS),
        TableDefinition(
            FAILING_ROWS,
            FAILING_ROWS_SCHEMA,
            "finished_at",
            (*_BY_GATE, "position", "number"),
            _RUN_KEYS,
        ),
        TableDefinition(
            SOURCES, SOURCES_SCHEMA, "stored_at", ("digest",), ("digest", "stored_at"), ("digest",)
        ),
        TableDefinition(
            STATES,
            STATES_SCHEMA,
            "stored_at",
            ("scope", "dataset_date", "aggregate", "stored_at"),
            ("scope", "dataset_date", "stored_at"),
            ("scope", "dataset_date", "aggregate"),
        ),
    )
}
"""All tables, by name. `runs` comes first: whoever deletes rows begins with those that say that a
run is complete."""
