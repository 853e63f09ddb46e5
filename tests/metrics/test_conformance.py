"""The values of expressions over tables, in the reference and on Spark: see the Markdown files.

A case has tables (the first is the dataset of the check, `t` if it has no name; `dates=ds` names
its date column) or csv files, with the declared columns before the lines of the file. Then come
lines `expression => value`: `none` for no value, a text in quotes, whole numbers without a point
and all others with one, or `error: why`. The value of `each row: ...` is the number of rows that
violate it, that of `90% of rows: ...` the share of those that do not.

The reference has all cases. In the default lane, Spark has as many as it takes to touch all that
they touch, and in the second lane the others. In the second lane it has those of the default lane,
and all in which a metric is an error, once more over Connect and once without ANSI mode. In these
two modes, the nightly lane has the rest.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from conformance_cases import CASES, COVERING, WITH_ERRORS, lines_of, tables_of
from markdown_cases import Case
from spark_tables import arrow_of, frame_of

from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.metrics.builtin import METRICS, TABLES
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.resolve import QUIET, check_datasets, resolve
from dqx_airflow.values import DatasetRef, MetricValue, SourceFile, Status
from dqx_airflow.values.exact import exact_text

IN_SPARK = [
    case if case in COVERING else pytest.param(case, marks=pytest.mark.matrix) for case in CASES
]


def in_another_mode(cases: list[Case]) -> list[Any]:
    return [
        case
        if case in COVERING or case in WITH_ERRORS
        else pytest.param(case, marks=pytest.mark.nightly)
        for case in cases
    ]


IN_DELTA = [
    case
    for case in CASES
    if not any(rare in block.text for block in case.blocks for rare in (": void", ": variant"))
]
"""Delta does not store a column of type void, and its writer for Python none of type variant."""

_OWN_CONDITION = re.compile(
    r"each row:|[0-9.]+% of rows:|column |columns of|rows of|distribution\("
    r"|values\(|most_common\(|is_sorted\("
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_has_the_values_of_the_case(case: Case) -> None:
    tables, refs = tables_of(case)
    plan = _plan(case, refs)
    _expect(case, plan, measure(plan, refs, tables))


def test_every_metric_and_function_has_a_line_in_a_case() -> None:
    from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
    from dqx_airflow.metrics.text_formats import TEXT_FORMATS

    text = "\n".join(case.block("values").text for case in CASES)
    plans = [_plan(case, tables_of(case)[1]) for case in CASES]
    asked = {request.metric for plan in plans for request in plan.requests}
    in_spark = {name for name, metric in METRICS.items() if metric.in_python is None}
    missing = sorted(set(METRICS) - in_spark - asked)
    assert not missing, f"add lines to a case in tests/metrics/conformance for {missing}"
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
@pytest.mark.parametrize("case", IN_SPARK, ids=str)
def test_spark_has_the_values_of_the_case(case: Case, spark: Any, tmp_path: Path) -> None:
    _expect_of_spark(case, spark, tmp_path)


@pytest.mark.spark
@pytest.mark.matrix
@pytest.mark.parametrize("case", in_another_mode(IN_DELTA), ids=str)
def test_spark_without_ansi_mode_has_the_values_of_the_case_for_delta_tables(
    case: Case, spark: Any, tmp_path: Path
) -> None:
    from deltalake import write_deltalake

    from dqx_airflow.engine.measure import measure as measure_in_spark

    tables, given = tables_of(case, tmp_path)
    refs = []
    for ref in given:
        if ref.table is None:
            refs.append(ref)
        else:
            path = str(tmp_path / ref.name)
            write_deltalake(path, arrow_of(tables[ref.name]))
            refs.append(replace(ref, table=None, path=path))
    plan = replace(_plan(case, tuple(refs)), ansi=False)
    with _without_ansi(spark):
        _expect(case, plan, measure_in_spark(spark, refs, plan)[1])


@pytest.fixture(scope="module")
def server_session(connect_address: str) -> Iterator[Any]:
    """A session on the Spark Connect server, with the settings of a gate."""
    from pyspark.sql.connect.session import SparkSession

    from dqx_airflow.engine.session.spark_session import SQL_DEFAULTS

    # Not by the builder of both kinds: there may be a classic session in this process.
    session = SparkSession.builder.remote(connect_address).create()
    for key, value in SQL_DEFAULTS.items():
        session.conf.set(key, value)
    yield session
    session.stop()


@pytest.mark.spark
@pytest.mark.matrix
@pytest.mark.parametrize("case", in_another_mode(CASES), ids=str)
def test_spark_connect_has_the_values_of_the_case(
    case: Case, server_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By this PySpark knows which of its two kinds of functions are meant.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    _expect_of_spark(case, server_session, tmp_path)


def _expect_of_spark(case: Case, spark: Any, folder: Path) -> None:
    from dqx_airflow.engine.measure import measure as measure_in_spark

    tables, refs = tables_of(case, folder)
    for ref in refs:
        if ref.table is not None:
            frame_of(spark, tables[ref.name]).createOrReplaceTempView(ref.table)
    plan = _plan(case, refs)
    _expect(case, plan, measure_in_spark(spark, refs, plan)[1])


def _plan(case: Case, refs: tuple[DatasetRef, ...]) -> Plan:
    block = case.block("values")
    claims = [_asserted(claim) for claim, _ in lines_of(case)]
    body = "\n".join(f'assert {claim} name "{n}"' for n, claim in enumerate(claims))
    text = f'suite "S" {{ availability_threshold 0% check "C" on {refs[0].name} {{\n{body}\n}} }}'
    source = SourceFile("suite.dql", text)
    checked = check_source(source)
    assert checked.suite is not None
    assert not checked.errors, draw(checked.errors, {source.name: text})
    assert not check_datasets(checked.suite, refs)
    on = date.fromisoformat(block.option("date", "2024-11-29"))
    return resolve(checked.suite, source, refs, on, QUIET)


def _asserted(claim: str) -> str:
    """The claim with a condition, where it has none, before the filter that it may have."""
    if _OWN_CONDITION.match(claim):
        return claim
    metric, where, predicate = claim.rpartition(") where ")
    return f"{metric}) is not None where {predicate}" if where else f"{claim} is not None"


def _expect(case: Case, plan: Plan, found: Scanned) -> None:
    now = datetime.combine(plan.date + timedelta(days=1), time(), timezone.utc)
    verdicts = {verdict.name: verdict for verdict in evaluate(plan, found, now=now)}
    lines = []
    for number, (claim, due) in enumerate(lines_of(case)):
        verdict = verdicts[str(number)]
        is_error = verdict.status is Status.ERROR
        actual = f"error: {verdict.reason}" if is_error else _shown(verdict.value)
        lines.append(f"{claim} => {due if _is_same(actual, due) else actual}")
    case.expect("\n".join(lines))


def _shown(value: MetricValue) -> str:
    """An exact number that is not whole with the word; a float as JSON has it."""
    if isinstance(value, Fraction):
        return f"exactly {exact_text(value)}"
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _is_same(actual: str, due: str) -> bool:
    """Equal; numbers with a point may differ where Spark adds in another order."""
    try:
        one, other = json.loads(actual), json.loads(due)
    except ValueError:
        return actual == due
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


@contextmanager
def _without_ansi(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
