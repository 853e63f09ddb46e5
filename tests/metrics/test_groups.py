"""Assertions per group, in the reference and on Spark: see the Markdown files.

A case has tables (the first is the dataset of the check; `dates=ds` names its date column), bare
assertions, one a line, and the verdicts due: the status, how many groups failed of how many, the
worst one with its value, why, and the sample of groups behind `-`. The date is 2024-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.engine.proof.cases import frame_of, read_table
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.measurements import measured_json, measurements_from, request_key
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, SourceFile, Verdict
from tests.markdown_cases import Case, cases
from tests.sound_suites import sound_suite

CASES = list(cases(*Path(__file__).parent.glob("groups/*.md"), fewest_blocks=3))
DATE = date(2024, 11, 29)
NOW = datetime(2024, 11, 30, tzinfo=timezone.utc)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_judges_the_groups_of_the_case(case: Case) -> None:
    tables, refs = _tables(case)
    plan = _plan(case, refs)
    _expect(case, plan, measure(plan, refs, tables))


@pytest.mark.parametrize(
    "case", [one for one in CASES if not any(b.option("masked") for b in one.blocks)], ids=str
)
def test_stored_groups_have_the_same_verdicts(case: Case) -> None:
    tables, refs = _tables(case)
    plan = _plan(case, refs)
    found = measure(plan, refs, tables)
    again = Scanned()
    for assertion in plan.assertions:
        stored = measurements_from(measured_json(assertion, plan, found))
        keys = {request: request_key(request, DATE) for request in plan.requests}
        again.add(stored.scanned(keys))
    # That no row meets a filter is a note, for which nothing is stored.
    assert _show(plan, again) == [line.split(" | no row of")[0] for line in _show(plan, found)]


@pytest.mark.few(1)
@pytest.mark.spark
@pytest.mark.compiled
@pytest.mark.parametrize("case", CASES, ids=str)
def test_spark_judges_the_groups_of_the_case(case: Case, spark: Any) -> None:
    from dqx_airflow.engine.measure import measure as measure_in_spark

    tables, refs = _tables(case)
    for name, table in tables.items():
        frame_of(spark, table).createOrReplaceTempView(name)
    plan = _plan(case, refs)
    _expect(case, plan, measure_in_spark(spark, refs, plan)[1])


def _tables(case: Case) -> tuple[Mapping[str, Table], tuple[DatasetRef, ...]]:
    blocks = [block for block in case.blocks if block.kind == "table"]
    named = {next((one for one in b.options if "=" not in one), "orders"): b for b in blocks}
    refs = tuple(
        DatasetRef(
            name,
            table=name,
            date_column=block.option("dates") or None,
            masked=tuple(filter(None, block.option("masked").split(","))),
        )
        for name, block in named.items()
    )
    return {name: read_table(block.text) for name, block in named.items()}, refs


def _plan(case: Case, refs: tuple[DatasetRef, ...]) -> Plan:
    body = "\n".join(
        re.sub(r"^((?:@\S+ )*assert .*)$", rf'\1 name "{number}"', line)
        for number, line in enumerate(case.block("dql").text.splitlines())
    )
    names = ", ".join(ref.name for ref in refs)
    source = SourceFile("suite.dql", f'suite "S" {{ check "C" on {names} {{\n{body}\n}} }}')
    suite = sound_suite(source)
    assert not check_datasets(suite, refs)
    return resolve(suite, source, refs, DATE, QUIET)


def _expect(case: Case, plan: Plan, found: Scanned) -> None:
    case.expect("\n".join(_show(plan, found)))


def _show(plan: Plan, found: Scanned) -> list[str]:
    return [line for verdict in evaluate(plan, found, now=NOW) for line in _lines(verdict)]


def _lines(verdict: Verdict) -> list[str]:
    worst = f"{verdict.worst_group} {format_value(verdict.scaled_value)}"
    summary = f"{verdict.status.value} {verdict.failed_groups}/{verdict.groups} {worst}"
    notes = [text for text in (verdict.reason, verdict.note) if text]
    rows = [f"- {row.row} {row.reason}" for row in verdict.failing_rows]
    return [" | ".join([summary, verdict.expected, *notes]), *rows]
