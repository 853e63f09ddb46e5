"""The example contracts on data that satisfies all clauses, and on data that breaks each one.

A case names a contract, has sound tables, and edits: `orders order_id = NULL` changes the first
row, `orders twice` repeats it. What is due tells the clauses that each edit breaks, and at its end
those that no edit has broken without Spark. `elsewhere` are clauses that a few rows cannot keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.api.database import Database, MemoryDatabase, SparkDatabase
from dqx_airflow.api.run import RunSettings, run
from dqx_airflow.contracts.enforcement.enforced_contract import enforce
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.engine.proof.cases import frame_of, read_table
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.values import DatasetField, DatasetRef, RunOptions, SourceFile, Status
from tests.markdown_cases import Case, cases

HERE = Path(__file__).parent
CASES = list(cases(*(HERE / "enforced").glob("*.md"), fewest_blocks=3))
DAY = date(2024, 11, 29)
NOW = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)
OF_SCHEMAS = (".exists", ".type")

Tables = dict[str, Table]


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_edit_breaks_the_clauses_it_should(case: Case) -> None:
    suite, tables = _suite(case), _tables(case)
    unbroken = _all(suite) - _elsewhere(case)
    assert not _failed(suite, MemoryDatabase(tables)) - _elsewhere(case)
    lines = []
    for edit in case.block("edits").text.splitlines():
        failed = _failed(suite, MemoryDatabase(_edited(tables, edit))) - _elsewhere(case)
        unbroken -= failed
        lines.append(f"{edit}: {', '.join(sorted(failed)) or 'nothing'}")
    kept = sorted(name for name in unbroken if not name.endswith(OF_SCHEMAS))
    case.expect("\n".join([*lines, *(f"unbroken: {name}" for name in kept)]))


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_column_that_is_missing_or_of_another_type_breaks_its_clauses(case: Case) -> None:
    suite, tables = _suite(case), _tables(case)
    stated = _all(suite)
    for name, column, place in _columns(tables):
        table = tables[name]
        of_column = {f"{name}.{column}{clause}" for clause in OF_SCHEMAS} & stated
        missing = Table(
            table.fields[:place] + table.fields[place + 1 :],
            tuple(row[:place] + row[place + 1 :] for row in table.rows),
        )
        assert of_column <= _failed(suite, MemoryDatabase(tables | {name: missing})), column
        is_struct = table.fields[place].type.startswith("struct")
        other = DatasetField(column, "map<binary,binary>" if is_struct else "struct<never:binary>")
        changed = Table(
            (*table.fields[:place], other, *table.fields[place + 1 :]),
            tuple((*row[:place], None, *row[place + 1 :]) for row in table.rows),
        )
        of_type = {item for item in of_column if item.endswith(".type")}
        assert of_type <= _failed(suite, MemoryDatabase(tables | {name: changed})), column


@pytest.mark.spark
@pytest.mark.parametrize(
    "case", [CASES[0], *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[1:])], ids=str
)
def test_spark_finds_the_sound_data_sound_and_every_clause_broken(case: Case, spark: Any) -> None:
    suite, tables = _suite(case), _tables(case)
    assert not _failed(suite, _on_spark(tables, spark), "error") - _elsewhere(case)
    broken = dict(tables)
    for name in tables:
        edits = [e for e in case.block("edits").text.splitlines() if e.split()[0] == name]
        if edits:
            rows = (_edited(tables, edit)[name].rows[0] for edit in edits)
            broken[name] = Table(tables[name].fields, tuple(rows))
    failed = _failed(suite, _on_spark(broken, spark))
    kept = _all(suite) - _elsewhere(case) - failed
    assert {item for item in kept if not item.endswith(OF_SCHEMAS)} == set(_never(case))


def _suite(case: Case) -> Checked:
    path = HERE / "examples" / case.block("edits").option("of")
    source = SourceFile(path.name, path.read_text(encoding="utf-8"))
    enforcement = enforce(source, FolderReader(path.parent), on=DAY)
    enforced = enforcement.over([DatasetRef(name, table=name) for name in _tables(case)])
    assert not enforced.objections
    return check_source(enforced.suite, needs_suite=True)


def _all(suite: Checked) -> set[str]:
    assert suite.suite is not None
    assertions = (item for check in suite.suite.checks for item in check.assertions)
    return {item.name.value for item in assertions if item.name is not None}


def _tables(case: Case) -> Tables:
    return {
        block.options[0]: read_table(block.text) for block in case.blocks if block.kind == "table"
    }


def _elsewhere(case: Case) -> set[str]:
    return set(case.block("edits").option("elsewhere").split(","))


def _never(case: Case) -> list[str]:
    """The clauses that no row of a table breaks: those about its columns."""
    return [item for item in case.block("edits").option("never").split(",") if item]


def _columns(tables: Tables) -> Iterator[tuple[str, str, int]]:
    for name, table in tables.items():
        for place, column in enumerate(table.fields):
            yield name, column.name, place


def _edited(tables: Tables, edit: str) -> Tables:
    """The tables, one of them with the change that an edit tells."""
    name, change = edit.split(" ", 1)
    table = tables[name]
    if change == "twice":
        rows = (table.rows[0], *table.rows)
    else:
        column, cell = change.split(" = ", 1)
        place = [item.name for item in table.fields].index(column)
        ((value,),) = read_table(f"c: {table.fields[place].type}\n{cell}").rows
        first = table.rows[0]
        rows = ((*first[:place], value, *first[place + 1 :]), *table.rows[1:])
    return tables | {name: Table(table.fields, rows)}


def _failed(suite: Checked, database: Database, *besides: str) -> set[str]:
    settings = RunSettings(RunOptions(allow_empty=True), NOW)
    verdicts = run(suite, database, DAY, settings).report.verdicts
    return {item.name for item in verdicts if item.status in (Status.FAILED, *besides)}


def _on_spark(tables: Tables, spark: Any) -> SparkDatabase:
    datasets = {}
    for number, (name, table) in enumerate(tables.items()):
        frame_of(spark, table).createOrReplaceTempView(f"enforced_{number}")
        datasets[name] = {"table": f"enforced_{number}"}
    return SparkDatabase(spark, datasets)
