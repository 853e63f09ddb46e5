"""Users' notes on incidents: acknowledgements, and comments. Append-only."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone

from dqx_airflow.results.column import Row, as_utc
from dqx_airflow.results.conditions import is_in, of_dates
from dqx_airflow.results.query import Select
from dqx_airflow.results.schema import INCIDENT_NOTES, INCIDENT_NOTES_SCHEMA

ACKNOWLEDGED, COMMENT = "acknowledged", "comment"


@dataclass(frozen=True, slots=True)
class IncidentNote:
    """A note on a gate that is blocked or broken, on a date of its data.

    `kind` is `acknowledged` (the author takes care of it) or `comment`. `map_index` is that of an
    instance of a mapped gate, -1 for others. `at` is in UTC.
    """

    gate: str
    date: date
    kind: str
    author: str
    text: str = ""
    map_index: int = -1
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


def write_note(
    root: str, note: IncidentNote, *, storage_options: Mapping[str, str] | None = None
) -> None:
    """Appends a note.

    :raises StoreError: the store cannot be written.
    """
    from dqx_airflow.results.store import ResultsStore  # pyarrow, which readers do not need

    ResultsStore(root, storage_options).append_rows({INCIDENT_NOTES: {note.id: [_row(note)]}})


def notes_from(
    select: Select, gates: Collection[str], since: date, until: date, map_index: int = -1
) -> tuple[IncidentNote, ...]:
    """The notes on a gate, of several suites on each, and the data of some days, oldest first.

    :raises StoreError: the store exists and cannot be read.
    """
    where = [
        is_in("gate", gates),
        *of_dates(since, until),
        f'"map_index" = {int(map_index)}',
    ]
    order = 'ORDER BY "event_at", "event_id"'
    rows = select(INCIDENT_NOTES, INCIDENT_NOTES_SCHEMA.names, where, order)
    return tuple({note.id: note for note in map(_note, rows)}.values())


def _row(note: IncidentNote) -> Row:
    return {
        "event_id": note.id,
        "gate": note.gate,
        "dataset_date": note.date,
        "map_index": note.map_index,
        "kind": note.kind,
        "text": note.text,
        "author": note.author,
        "event_at": note.at,
    }


def _note(row: Row) -> IncidentNote:
    return IncidentNote(
        row["gate"],
        row["dataset_date"],
        row["kind"],
        row["author"],
        row.get("text") or "",
        row["map_index"],
        as_utc(row["event_at"]),
        row["event_id"],
    )
