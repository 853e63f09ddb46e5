"""The tables of the results store, from `columns.md`: the name, the type and the meaning of each
column, and the layout of rows in files.

The schemas and the reference page are generated from these tables. `report_rows` writes and reads
the rows of reports.

A table may have fewer columns than these (an older writer) or more (a newer one): missing ones are
absent, unknown ones are ignored. Every column is therefore nullable. The keys come first, since
Delta keeps statistics for the first 32 columns, which readers use to skip files.

The schemas use the Arrow of deltalake: a reader of a report, such as the process of a task, need
not load pyarrow, which takes 40 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from arro3.core import DataType, Field, Schema

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    type: DataType
    meaning: str


def as_utc(at: datetime) -> datetime:
    """The time with `timezone.utc` itself; a time without a time zone is in UTC."""
    if at.tzinfo is None:
        return at.replace(tzinfo=timezone.utc)
    return at.astimezone(timezone.utc)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table of the store, and the layout of its rows in files.

    `clock` is the column with the time of a row: it decides the month of the row, and its age. The
    rows of a file are sorted by `order`. `keys` are the columns with statistics, by which readers
    skip files. Of the rows that are equal in `newest_of`, only the newest counts, so the others may
    be dropped; if it is empty, every row counts. A table that `is_of_people` is written by no gate;
    it is never pruned, nor is one that `is_kept`.
    """

    name: str
    columns: tuple[Column, ...]
    clock: str
    order: tuple[str, ...]
    keys: tuple[str, ...]
    newest_of: tuple[str, ...] = ()
    is_of_people: bool = False
    is_kept: bool = False

    @property
    def schema(self) -> Schema:
        """The Arrow schema of the table."""
        return Schema([Field(column.name, column.type) for column in self.columns])

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


MONTH = "month"
"""Every table is partitioned by it. Writers of older versions leave it NULL, so no reader depends
on it: files are skipped by statistics."""

RUNS = "runs"
RESULTS = "results"
FAILING_ROWS = "failing_rows"
SOURCES = "sources"
STATES = "states"
LABELS = "labels"
PROPOSALS = "proposals"
INCIDENT_NOTES = "incident_notes"
PROOFS = "proofs"
WAIVERS = "waivers"
RECEIPTS = "receipts"


def _tables() -> Iterator[TableDefinition]:
    """The tables of `columns.md`."""
    page = files(__package__).joinpath("columns.md").read_text("utf-8")
    opening, *texts = page.split("\n## ")
    sections = {text.partition("\n")[0]: _cells(text) for text in texts}
    month = Column(
        MONTH, DataType.string(), "the month in which the row was written, as in `2024-02`"
    )
    for cells in _cells(opening):
        layout = _Layout(*(cell.replace("`", "") for cell in cells))
        yield TableDefinition(
            layout.table,
            (*_columns(sections[layout.table], sections["keys"]), month),
            clock=layout.time,
            order=tuple(layout.order.split()),
            keys=tuple(layout.keys.split()),
            newest_of=tuple(layout.newest_of.split()),
            is_of_people=layout.people == "yes",
            is_kept=layout.people == "kept",
        )


class _Layout(NamedTuple):
    """A row of the first table of `columns.md`, without backquotes."""

    table: str
    time: str
    order: str
    keys: str
    newest_of: str
    people: str


def _cells(section: str) -> list[list[str]]:
    """The cells of each row of the Markdown table in a section."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.split("\n")
        if line.startswith(("| `", "| ("))
    ]


_VALUE_KINDS = "`integer`, `decimal`, `fraction` (such as `1/3`), `number` (a float) or `text`"

_TYPES: Mapping[str, DataType] = {
    "text": DataType.string(),
    "strings": DataType.list(Field("item", DataType.string())),
    "integer": DataType.int64(),
    "number": DataType.float64(),
    "boolean": DataType.bool(),
    "date": DataType.date32(),
    "time": DataType.timestamp("us", tz="UTC"),
}


def _columns(section: list[list[str]], keys: list[list[str]]) -> Iterator[Column]:
    """The columns of a table.

    :param keys: the rows of the section that `(keys)` stands for.
    """
    for cells in section:
        if cells[0] == "(keys)":
            yield from _columns(keys, [])
            continue
        quoted, kind, meaning = cells
        name = quoted.strip("`")
        if kind != "value":
            yield Column(name, _TYPES[kind], meaning)
            continue
        # A double alone would lose the difference between 1 and 1.0, integers above 2**53, and
        # dates.
        yield Column(name, DataType.float64(), meaning)
        yield Column(f"{name}_text", DataType.string(), f"`{name}`: exactly, as a string")
        yield Column(f"{name}_kind", DataType.string(), f"`{name}`: {_VALUE_KINDS}")


TABLES: Mapping[str, TableDefinition] = {table.name: table for table in _tables()}
"""All tables, by name. `runs` comes first: a deletion begins with the rows that mark a run as
complete."""

RUNS_SCHEMA = TABLES[RUNS].schema
RESULTS_SCHEMA = TABLES[RESULTS].schema
FAILING_ROWS_SCHEMA = TABLES[FAILING_ROWS].schema
SOURCES_SCHEMA = TABLES[SOURCES].schema
LABELS_SCHEMA = TABLES[LABELS].schema
PROPOSALS_SCHEMA = TABLES[PROPOSALS].schema
