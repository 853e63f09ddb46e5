"""A table with a column for each row of `database_values.txt`, and what Spark reads from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TABLE = "odd_values"
DOMAINS = """
CREATE DOMAIN exact AS numeric(50,10);
CREATE DOMAIN price AS exact;
CREATE DOMAIN local_time AS timestamp;
CREATE DOMAIN amounts AS exact[];
CREATE TYPE mood AS ENUM ('sad', 'ok');
"""
"""The types of PostgreSQL that are names for others, and one of its own."""


@dataclass(frozen=True)
class Case:
    column: str
    type_there: str
    literal: str
    data_type: str
    read_as: str


def cases(kind: str) -> list[Case]:
    """The rows about a kind of database."""
    found = []
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith(f"{kind} | "):
            _, type_there, literal, data_type, read_as = line.split(" | ")
            found.append(Case(f"c{len(found)}", type_there, literal, data_type, read_as))
    return found


def table(kind: str, name: str = TABLE) -> str:
    """The statements that make the table, with one row."""
    found = cases(kind)
    columns = ", ".join(f"{case.column} {case.type_there}" for case in found)
    values = ", ".join(case.literal for case in found)
    return f"CREATE TABLE {name} ({columns});\nINSERT INTO {name} VALUES ({values});\n"


def chosen_types(kind: str) -> str:
    """The option `customSchema` with the types of the table."""
    return ", ".join(f"{case.column.upper()} {case.data_type}" for case in cases(kind))


def values_are_read(kind: str, frame: Any) -> None:
    """Each value is the one of the database; one that Spark cannot hold is an error."""
    types = dict(frame.dtypes)
    found = cases(kind)
    assert {case.column: types[case.column] for case in found} == {
        case.column: case.data_type for case in found
    }
    sound = [case for case in found if case.read_as != "error"]
    texts = [f"coalesce(CAST({case.column} AS string), 'NULL')" for case in sound]
    (row,) = frame.selectExpr(*texts).collect()
    wrong = [(case, text) for case, text in zip(sound, row, strict=True) if text != case.read_as]
    assert wrong == [], wrong
    for case in found:
        if case.read_as == "error":
            kind = case.data_type.removeprefix("array<")[:4]
            problem = rf"column {case.column} holds (a value that is no {kind}|an array that does)"
            with pytest.raises(Exception, match=problem):
                frame.select(case.column).collect()
