"""The values of expressions over tables, in the reference and on Spark: see the Markdown files in
`dqx_airflow/engine/proof/cases`, which `dqx_airflow/engine/proof/cases.py` explains.

The reference has all cases. In the default lane, Spark has as many as it takes to touch the
language; in the second lane, over Connect, where expressions are compiled, as many as touch all
that they touch, and those in which a metric is an error without ANSI mode. The nightly lane has all
in all modes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.engine.proof.cases import ProofCase, arrow_of, frame_of
from dqx_airflow.metrics.builtin import METRICS, TABLES
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.model import Plan, Scanned
from tests.markdown_cases import REWRITE, rewrite_case
from tests.metrics.conformance_cases import CASES, COVERING, FOLDER, OF_THE_LANGUAGE, WITH_ERRORS
from tests.other_sparks import skip_before


def at_once(few: Container[ProofCase], cases: list[ProofCase]) -> list[Any]:
    """The cases, of which all but a few wait for the nightly lane."""
    return [
        case if case in few else pytest.param(case, marks=pytest.mark.nightly) for case in cases
    ]


IN_DELTA = [
    case
    for case in CASES
    if not any(rare in block.text for block in case.blocks for rare in (": void", ": variant"))
]
"""Delta does not store a column of type void, and its writer for Python none of type variant."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_has_the_values_of_the_case(case: ProofCase) -> None:
    tables, refs = case.tables()
    plan = case.plan(refs)
    _expect(case, plan, measure(plan, refs, tables))


def test_every_metric_and_function_has_a_line_in_a_case() -> None:
    from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
    from dqx_airflow.metrics.text_formats import TEXT_FORMATS

    text = "\n".join(case.blocks[-1].text for case in CASES)
    plans = [case.plan(case.tables()[1]) for case in CASES]
    asked = {request.metric for plan in plans for request in plan.requests}
    in_spark = {name for name, metric in METRICS.items() if metric.in_python is None}
    missing = sorted(set(METRICS) - in_spark - asked)
    assert not missing, f"add lines to a case in engine/proof/cases for {missing}"
    of_schema = {name for name, metric in METRICS.items() if metric.scan is Scan.SCHEMA}
    # A table in memory has no commits: tests/engine/test_commit_age.py asks a Delta table.
    of_two = {name for name, metric in METRICS.items() if metric.scan is Scan.MATCH}
    assert of_two <= asked
    assert in_spark == {"sql", "query", "commit_age", *of_schema, *of_two}
    called = (*ROW_FUNCTIONS, *QUANTIFIERS)
    assert not [name for name in called if f"{name}(" not in text]
    assert not [name for name in TEXT_FORMATS if f" is {name} " not in text]


def test_no_two_metrics_have_one_name() -> None:
    names = [metric.name for table in TABLES for metric in table]
    assert sorted(names) == sorted(METRICS)


def test_titles_of_conformance_cases_are_unique() -> None:
    titles = [str(case) for case in CASES]
    assert len(titles) == len(set(titles))


@pytest.mark.spark
@pytest.mark.parametrize("case", at_once(OF_THE_LANGUAGE, CASES), ids=str)
def test_spark_has_the_values_of_the_case(case: ProofCase, spark: Any, tmp_path: Path) -> None:
    _expect_of_spark(case, spark, tmp_path)


@pytest.mark.spark
@pytest.mark.matrix
@pytest.mark.parametrize("case", at_once(WITH_ERRORS, IN_DELTA), ids=str)
def test_spark_without_ansi_mode_has_the_values_of_the_case_for_delta_tables(
    case: ProofCase, spark: Any, tmp_path: Path
) -> None:
    from deltalake import write_deltalake

    from dqx_airflow.engine.measure import measure as measure_in_spark

    tables, given = case.tables(tmp_path)
    refs = []
    for ref in given:
        if ref.table is None:
            refs.append(ref)
        else:
            path = str(tmp_path / ref.name)
            write_deltalake(path, arrow_of(tables[ref.name]))
            refs.append(replace(ref, table=None, path=path))
    plan = replace(case.plan(tuple(refs)), ansi=False)
    with _without_ansi(spark):
        _expect(case, plan, measure_in_spark(spark, refs, plan)[1])


@pytest.mark.spark
@pytest.mark.matrix
@pytest.mark.parametrize("case", at_once(COVERING, CASES), ids=str)
def test_spark_connect_has_the_values_of_the_case(
    case: ProofCase, server_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By this PySpark knows which of its two kinds of functions are meant.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    _expect_of_spark(case, server_session, tmp_path)


def _expect_of_spark(case: ProofCase, spark: Any, folder: Path) -> None:
    if case.since is not None:
        skip_before(case.since, "have these types")
    from dqx_airflow.engine.measure import measure as measure_in_spark

    tables, refs = case.tables(folder)
    for ref in refs:
        if ref.table is not None:
            frame_of(spark, tables[ref.name]).createOrReplaceTempView(ref.table)
    plan = case.plan(refs)
    _expect(case, plan, measure_in_spark(spark, refs, plan)[1])


def _expect(case: ProofCase, plan: Plan, scanned: Scanned) -> None:
    found = zip(case.lines, case.found(plan, scanned), strict=True)
    actual = "".join(f"{claim} => {value}\n" for (claim, _), value in found)
    if REWRITE:
        rewrite_case(FOLDER / case.file, case.title, actual)
    else:
        assert actual == case.blocks[-1].text


@contextmanager
def _without_ansi(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
