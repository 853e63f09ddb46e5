"""Contracts against data: valid data passes, and broken data fails exactly the broken clauses.

A case has rules, tables, and what is due for the `broken` ones: the assertions that do not pass,
with their values. Behind `table` stand `sound` or `broken`, and the dataset, `t` by default; a
table with neither word is there both times. In `broken/sql.md` are the rules that need Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.api.database import MemoryDatabase, SparkDatabase
from dqx_airflow.api.run import RunSettings, run
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.model import Contract
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.proof.cases import frame_of, read_table
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.values import RunOptions, SourceFile, Status, Verdict
from tests.contracts.written_rules import written_contract
from tests.markdown_cases import Case, cases

FOLDER = Path(__file__).parent / "broken"
PLAIN = list(cases(FOLDER / "plain.md", fewest_blocks=3))
IN_SQL = list(cases(FOLDER / "sql.md", fewest_blocks=3))
DAY = date(2024, 11, 29)
NOW = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)


def slow(many: list[Case]) -> list[Any]:
    """Cases for the lane slow: that Spark and memory agree is what the conformance cases show."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in many]


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_sound_data_passes(case: Case) -> None:
    assert not _wrong(_judged(case, _in_memory(case, "sound")))


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_broken_data_fails_the_assertions_of_the_case(case: Case) -> None:
    case.expect(_show(_judged(case, _in_memory(case, "broken"))))


@pytest.mark.few(3)
@pytest.mark.spark
@pytest.mark.parametrize("case", [*slow(PLAIN), *IN_SQL[:6], *slow(IN_SQL[6:])], ids=str)
def test_sound_data_passes_on_spark(case: Case, spark: Any) -> None:
    assert not _wrong(_judged(case, _on_spark(case, "sound", spark)))


@pytest.mark.spark
@pytest.mark.parametrize(
    "case", [*PLAIN[:3], *slow(PLAIN[3:]), *IN_SQL[:6], *slow(IN_SQL[6:])], ids=str
)
def test_broken_data_fails_the_assertions_of_the_case_on_spark(case: Case, spark: Any) -> None:
    case.expect(_show(_judged(case, _on_spark(case, "broken", spark))))


def test_titles_are_unique() -> None:
    titles = [str(case) for case in (*PLAIN, *IN_SQL)]
    assert len(titles) == len(set(titles))


def _judged(case: Case, database: MemoryDatabase | SparkDatabase) -> tuple[Verdict, ...]:
    compiled = compile_contract(_contract(case), database.datasets)
    checked = check_source(SourceFile("suite.dql", compiled.text))
    assert not checked.errors
    settings = RunSettings(RunOptions(allow_empty=True), NOW)
    return run(checked, database, DAY, settings).report.verdicts


def _contract(case: Case) -> Contract:
    contract = written_contract(case.block("rules").text)
    compiled = compile_contract(contract)
    assert not compiled.notes, compiled.notes[0].reason
    return contract


def _tables(case: Case, kind: str) -> dict[str, tuple[Table, str]]:
    """The tables by dataset, each with its date column."""
    found = {}
    for block in case.blocks:
        words = [option for option in block.options if "=" not in option]
        if block.kind == "table" and not {"sound", "broken"} - {kind} & set(words):
            name = next((word for word in words if word != kind), "t")
            found[name] = read_table(block.text), block.option("dates")
    return found


def _in_memory(case: Case, kind: str) -> MemoryDatabase:
    tables = _tables(case, kind)
    dates = {name: column for name, (_, column) in tables.items() if column}
    return MemoryDatabase({name: table for name, (table, _) in tables.items()}, date_columns=dates)


def _on_spark(case: Case, kind: str, spark: Any) -> SparkDatabase:
    datasets: dict[str, Mapping[str, Any]] = {}
    for number, (name, (table, dates)) in enumerate(_tables(case, kind).items()):
        frame_of(spark, table).createOrReplaceTempView(f"given_{number}")
        datasets[name] = {"table": f"given_{number}"} | ({"date_column": dates} if dates else {})
    return SparkDatabase(spark, datasets)


def _wrong(verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.status is not Status.PASSED]


def _show(verdicts: tuple[Verdict, ...]) -> str:
    return "\n".join(
        f"{verdict.status} {verdict.name}: {format_value(verdict.value)} {verdict.expected}"
        + (f" ({verdict.reason})" if verdict.reason else "")
        for verdict in _wrong(verdicts)
    )
