"""The drafts of the tables of a lake, each kept in a file as soon as it is made: a run that is
interrupted continues, and a table that has not changed is not read again.

The files also say what was drafted before, so that a later run knows what is new. They belong to
the drafted files, and can be committed with them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

import typer

from dqx_airflow.cli import command
from dqx_airflow.errors import RequestError
from dqx_airflow.tuning.lake.found_tables import FoundTable
from dqx_airflow.tuning.lake.reading import ReadTable
from dqx_airflow.tuning.lake.table_draft import TableDraft, table_draft
from dqx_airflow.values.json_form import from_json, to_json

_FOLDER = ".dql_init"


@dataclass(frozen=True, slots=True)
class KeptDraft:
    """The draft of a table with the number of days from which it was made, and the date on which:
    whether the newest day of a table is late, or whole, depends on it."""

    days: int
    on: date
    draft: TableDraft

    def is_valid(self, table: FoundTable, days: int, today: date) -> bool:
        """True if the draft of a table would be the same today."""
        is_unchanged = replace(self.draft.table, masked=table.masked) == table
        is_hiding = {*table.masked} <= {*self.draft.settings.get("masked", ())}
        is_steady = self.draft.days is None and bool(table.stamp)
        is_of_today = is_steady or self.on == today
        return is_unchanged and is_hiding and is_of_today and self.days == days


class KeptDrafts:
    """The drafts in a folder, by the names of their tables."""

    def __init__(self, folder: Path, *, is_dry: bool = False) -> None:
        self._folder = folder / _FOLDER
        self._is_dry = is_dry
        self.known: Mapping[str, KeptDraft] = dict(self._read())

    def _read(self) -> Iterator[tuple[str, KeptDraft]]:
        for file in sorted(self._folder.glob("*.json")):
            try:
                kept = from_json(KeptDraft, file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue  # of another version, or half written: the table is read again
            yield kept.draft.name, kept

    @property
    def names(self) -> list[tuple[str, str]]:
        """The names of the known tables, after their locations."""
        return [(kept.draft.table.location, name) for name, kept in self.known.items()]

    def drafts(
        self, tables: Sequence[FoundTable], days: int, now: datetime, read: ReadTable
    ) -> list[TableDraft]:
        """The drafts of tables, in their order; shows the progress on a terminal.

        :raises RequestError: a draft cannot be kept.
        """
        if not command.can_redraw(sys.stderr):
            return [self._draft(table, days, now, read) for table in tables]
        with typer.progressbar(
            tables, label="reading", file=sys.stderr, item_show_func=_place
        ) as shown:
            return [self._draft(table, days, now, read) for table in shown]

    def _draft(self, table: FoundTable, days: int, now: datetime, read: ReadTable) -> TableDraft:
        kept = self.known.get(table.name)
        if kept is not None and kept.is_valid(table, days, now.date()):
            return replace(kept.draft, table=table)
        draft = table_draft(table, days, now, read)
        if not draft.problem and not self._is_dry:
            self._keep(KeptDraft(days, now.date(), draft))
        return draft

    def _keep(self, kept: KeptDraft) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(f"cannot create {self._folder}: {error.strerror}") from error
        file = self._folder / f"{kept.draft.name}.json"
        new = file.with_suffix(".new")
        command.write_text(new, to_json(kept) + "\n")
        new.replace(file)


def _place(table: FoundTable | None) -> str:
    return "" if table is None else table.place
