"""The statements that migrate a table to the next contract version: cases in `evolutions`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import expressions as sql

from dqx_airflow.contracts.diff import diff
from dqx_airflow.contracts.evolve import Evolution, evolution, versioned_evolution
from tests.contracts.contract_edits import base_of, contract_of, edited
from tests.markdown_cases import Case, cases

HERE = Path(__file__).parent
ALL = list(cases(HERE / "evolutions" / "wagers.md"))
CHANGES = list(cases(*(HERE / "diffs").glob("*_changes.md")))
TABLE = "lh.wagers"


@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_change_becomes_statements_release_by_release(case: Case) -> None:
    case.expect(evolution_of(case).as_sql())


@pytest.mark.parametrize("case", ALL + CHANGES, ids=str)
def test_every_statement_is_valid_sql(case: Case) -> None:
    for statement in statements_of(case):
        (tree,) = sqlglot.parse(statement, read="databricks")
        known = (sql.Alter, sql.Create, sql.Drop, sql.Update, sql.Comment, sql.Command)
        assert isinstance(tree, known), statement


def test_a_table_keeps_items_that_are_replaced_or_that_one_version_does_not_describe() -> None:
    about_items = [case for case in CHANGES if "items" in case.title.lower()]
    assert len(about_items) >= 5
    replaced = {"Widen the items of an array": 2}
    found = {case.title: len(statements_of(case)) for case in about_items}
    assert found == {case.title: replaced.get(case.title, 0) for case in about_items}


@pytest.mark.slow
@pytest.mark.spark
def test_spark_reads_every_statement(spark: Any) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    # Spark itself has no UPDATE of rows, but reads it for those tables that have.
    for statement in {text for case in ALL + CHANGES for text in statements_of(case)}:
        parser.parsePlan(statement)


def evolution_of(case: Case) -> Evolution:
    old = base_of(case.path)
    for block in case.blocks[:-2]:
        old = edited(old, block.text)
    changes = diff(contract_of(old), contract_of(edited(old, case.blocks[-2].text)))
    plan = versioned_evolution if case.title.startswith("Versioned tables") else evolution
    return plan(changes, changes.new.models[0], TABLE)


def statements_of(case: Case) -> list[str]:
    return [
        statement
        for release in evolution_of(case).releases
        for step in release.steps
        for statement in step.statements
    ]
