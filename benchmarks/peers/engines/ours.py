"""A suite, from its text to the verdicts."""

from __future__ import annotations

from typing import Any

from workload import DAY, SUITE

from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.measure import measure
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile, Status


def judge(spark: Any, table: str) -> dict[str, bool]:
    source = SourceFile("suite.dql", SUITE)
    ref = DatasetRef("events", table, format="parquet", date_column="event_date")
    checked = check_source(source)
    assert checked.suite is not None
    plan = resolve(checked.suite, source, [ref], DAY)
    verdicts = evaluate(plan, measure(spark, [ref], plan)[1])
    return {verdict.name: verdict.status is Status.PASSED for verdict in verdicts}
