"""What the reference engine leaves to Spark, and its messages for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table, columns_of
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, SourceFile, Status
from tests.sound_suites import sound_suite

TABLE = Table.of_columns(columns_of([{"name": "ab", "n": 1}]))
ORDERS = DatasetRef("orders", path="there")


def _reason(claim: str, tables: dict[str, Table], *refs: DatasetRef) -> str | None:
    """Why the claim has no verdict; None where it passed."""
    text = f'suite "S" {{ check "C" on orders {{ assert {claim} name "x" }} }}'
    source = SourceFile("suite.dql", text)
    suite = sound_suite(source)
    plan = resolve(suite, source, refs, date(2024, 1, 1), QUIET)
    (verdict,) = evaluate(plan, measure(plan, refs, tables))
    assert verdict.status is (Status.ERROR if verdict.reason else Status.PASSED)
    return verdict.reason


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ('sql("sum(n)") > 0', "`sql` needs Spark"),
        ('query("SELECT count(*) FROM orders") > 0', "`query` needs Spark"),
        (
            'each row: name matches "a\\\\X"',
            'a regular expression needs Spark: "a\\X": Python does not support \\G and \\X',
        ),
        ('each row: name matches "^ab$"', None),
    ],
)
def test_claims_that_need_spark_are_errors_with_a_reason(claim: str, reason: str | None) -> None:
    assert _reason(claim, {"orders": TABLE}, ORDERS) == reason


def test_a_dataset_without_a_table_fails_its_assertions() -> None:
    assert _reason("num_rows() > 0", {}, ORDERS) == "missing table for dataset 'orders'"


def test_a_lookup_into_a_dataset_without_a_table_fails() -> None:
    claim = "values(n) in values(n, dataset known)"
    refs = (ORDERS, DatasetRef("known", path="there"))
    assert _reason(claim, {"orders": TABLE}, *refs) == "dataset 'known' could not be read"
    assert _reason(claim, {"orders": TABLE, "known": TABLE}, *refs) is None


def test_a_filter_in_spark_sql_needs_spark() -> None:
    filtered = replace(ORDERS, filter="n > 0")
    reason = "the filter of dataset 'orders' needs Spark"
    assert _reason("num_rows() > 0", {"orders": TABLE}, filtered) == reason
