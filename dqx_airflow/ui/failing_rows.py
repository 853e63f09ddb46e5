"""Failing rows as tables, and as a file for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dqx_airflow.values import FailingRow

_SHOWN_ROWS = 20
_SHOWN_COLUMNS = 12
# The beginnings of strings that spreadsheets read as a formula.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Sample:
    """Failing rows as a table, as many as fit. A cell is None for NULL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    reasons: tuple[str, ...]
    more_rows: int
    more_columns: int


def samples_of(rows: Sequence[FailingRow]) -> tuple[Sample, ...]:
    """Failing rows as a table for each dataset."""
    by_dataset: dict[str, list[FailingRow]] = {}
    for row in rows:
        by_dataset.setdefault(row.dataset, []).append(row)
    return tuple(map(sample_of, by_dataset.values()))


def sample_of(rows: Sequence[FailingRow]) -> Sample:
    """Failing rows as one table, as stored: masked values are masked here."""
    cells = [_cells(failing.row) for failing in rows[:_SHOWN_ROWS]]
    names = tuple(dict.fromkeys(name for row in cells for name in row))
    columns = names[:_SHOWN_COLUMNS]
    return Sample(
        columns=columns,
        rows=tuple(tuple(row.get(column, "") for column in columns) for row in cells),
        reasons=tuple(failing.reason for failing in rows[:_SHOWN_ROWS]),
        more_rows=max(len(rows) - _SHOWN_ROWS, 0),
        more_columns=len(names) - len(columns),
    )


def csv_of(rows: Sequence[FailingRow]) -> str:
    """Failing rows as CSV with a header. NULL is empty; a value that a spreadsheet would read as a
    formula gets an apostrophe before it."""
    cells = [_cells(failing.row) for failing in rows]
    names = tuple(dict.fromkeys(name for row in cells for name in row))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["dataset", "why", *map(_harmless, names)])
    for failing, row in zip(rows, cells, strict=True):
        own = [row.get(name) for name in names]
        writer.writerow(map(_harmless, [failing.dataset, failing.reason, *own]))
    return text.getvalue().encode("utf-8", "replace").decode("utf-8")


def _harmless(cell: str | None) -> str:
    if cell is None:
        return ""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def _cells(row: str) -> dict[str, str | None]:
    """The cells of a row, with numbers as written."""
    try:
        cells = json.loads(row, parse_int=str, parse_float=str)
    except ValueError:
        return {"row": row}
    if not isinstance(cells, dict):
        return {"row": row}
    return {name: _cell(value) for name, value in cells.items()}


def _cell(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
