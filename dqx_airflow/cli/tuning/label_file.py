"""The CSV file of `dql label --from-csv`."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from dqx_airflow.errors import RequestError
from dqx_airflow.results.alerts import LabelKind, NewLabel

_COLUMNS = ("date", "assertion", "label")
_KINDS = {kind.value: kind for kind in LabelKind}


def read_new_labels(path: Path) -> list[NewLabel]:
    """The labels in a file; rows with an empty label are left out.

    :raises RequestError: the file cannot be read, or has mistakes: all of them at once.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise RequestError(
                    f"{path} has no column {', '.join(missing)}",
                    "write a header line: date,assertion,label,reason",
                )
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"cannot read {path}: {error}") from error
    new_labels, problems = [], []
    for line, row in rows:
        try:
            new = _new_label(row)
        except ValueError as error:
            problems.append(f"line {line}: {error}")
        else:
            new_labels += [new] if new else []
    if problems:
        raise RequestError(f"{path} has errors:\n  " + "\n  ".join(problems))
    return new_labels


def _new_label(row: Mapping[str, str | None]) -> NewLabel | None:
    """The label of a row; None if it has none.

    :raises ValueError: a cell of the row is wrong.
    """

    def cell(column: str) -> str:
        return (row.get(column) or "").strip()

    label = cell("label").lower().replace("_", " ").replace("-", " ")
    if not label:
        return None
    if label not in _KINDS:
        listed = ", ".join(kind.replace(" ", "_") for kind in _KINDS)
        raise ValueError(f"'{row['label']}' is not a label: write {listed}")
    try:
        on = date.fromisoformat(cell("date"))
    except ValueError:
        raise ValueError(f"'{row['date']}' is not a date: write 2024-12-20") from None
    index = cell("map_index")
    if index and not (index.isascii() and index.isdigit()):
        raise ValueError(f"'{index}' is not a map index: write 0, 1, 2 or more")
    return NewLabel(
        on,
        cell("assertion"),
        _KINDS[label],
        cell("reason") or None,
        cell("check") or None,
        int(index) if index else None,
    )
