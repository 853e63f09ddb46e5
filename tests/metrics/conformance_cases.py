"""The conformance cases: their tables, their claims, and the subset that covers everything."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from markdown_cases import Case, cases
from readable_tables import read_table, read_types

from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.values import DatasetRef

CASES = list(cases(*Path(__file__).parent.glob("conformance/*.md")))


def tables_of(
    case: Case, folder: Path | None = None
) -> tuple[dict[str, Table], tuple[DatasetRef, ...]]:
    """The tables of a case, and the datasets that hold them; files are written into the folder."""
    tables, refs = {}, []
    for block in case.blocks:
        name = next((option for option in block.options if "=" not in option), "t")
        ref = DatasetRef(name, table=name, date_column=block.option("dates") or None)
        if block.kind == "table":
            tables[name] = read_table(block.text)
            refs.append(ref)
        elif block.kind == "csv":
            declared, text = block.text.split("\n", 1)
            types = read_types(declared)
            tables[name] = _cast(types, text)
            path = Path(folder or "nowhere") / f"{name}.csv"
            if folder is not None:
                path.write_text(text, encoding="utf-8")
            schema = ", ".join(f"`{column}` {kind}" for column, kind in types.items())
            refs.append(replace(ref, table=None, path=str(path), format="csv", schema=schema))
    return tables, tuple(refs)


def _cast(types: dict[str, str], text: str) -> Table:
    """What a csv file holds, by the types that are declared."""
    header, *rows = csv.reader(io.StringIO(text))
    columns = {column: types.get(column, "string") for column in header}
    return Table.cast(columns, [[cell or None for cell in row] for row in rows if row])


def lines_of(case: Case) -> Iterator[tuple[str, str]]:
    for line in case.block("values").text.splitlines():
        claim, _, due = line.rpartition(" => ")
        yield claim, due


def _touched(case: Case) -> set[str]:
    """The calls, words and signs of its claims, its types, kinds of values, blocks and options."""
    fields = [field for table in tables_of(case)[0].values() for field in table.fields]
    claims = re.sub(r'"[^"]*"|`[^`]*`', "", " ".join(claim for claim, _ in lines_of(case)))
    words = {*re.findall(r"[^\W\d]\w*\(?|[<>=!+*/%-]+", claims)} - {field.name for field in fields}
    types = {f"type {re.split(r'[(<]', field.type)[0]}" for field in fields}
    values = {f"value {re.split(r'[^a-z]', due)[0]}" for _, due in lines_of(case)}
    blocks = {
        f"{block.kind} {option.partition('=')[0] if '=' in option else ''}"
        for block in case.blocks
        for option in ("", *block.options)
    }
    return words | types | values | blocks


def _covering() -> list[Case]:
    """Few cases that together touch all that is touched by any."""
    left = {case: _touched(case) for case in CASES}
    chosen = []
    while any(left.values()):
        chosen.append(richest := max(left, key=lambda case: len(left[case])))
        left = {case: touched - left[richest] for case, touched in left.items()}
    return sorted(chosen, key=CASES.index)


COVERING = _covering()
"""Those that Spark has in the default lane; the second one has the others."""

WITH_ERRORS = [case for case in CASES if "value error" in _touched(case)]
"""Those in which ANSI mode makes a difference: an overflow, a cast or a division is an error."""
