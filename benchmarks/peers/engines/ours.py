"""dqx_airflow: a suite, from its source to the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from simple_checks import Kind, SimpleCheck
from workload import DAY, SUITE

from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.measure import measure
from dqx_airflow.engine.scan.states import StateCache
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile, Status

_ASSERTIONS = {
    Kind.COMPLETE: "null_count({column}) == 0",
    Kind.BETWEEN: "each row: {column} between {least} and {most}",
    Kind.LEAST: "minimum({column}) >= {least}",
    Kind.MOST: "maximum({column}) <= {most}",
    Kind.UNIQUE: "unique({columns})",
}


def judge(spark: Any, table: str) -> dict[str, bool]:
    return verdicts_of(spark, _dataset(table, "event_date"), SUITE)


def verify(
    spark: Any, table: str, dates: Sequence[date], checks: Sequence[SimpleCheck]
) -> dict[str, bool]:
    """Judges the table; with several days, each check is on the mean of a metric over them."""
    suite = suite_of(checks, window=len(dates) if len(dates) > 1 else None)
    return verdicts_of(spark, _dataset(table, "event_date" if dates else None), suite)


def suite_of(checks: Sequence[SimpleCheck], window: int | None = None) -> str:
    """The checks of one date or, with a window, of a metric over this number of days."""

    def assertion(check: SimpleCheck) -> str:
        text = check.said_in(_ASSERTIONS)
        if window is not None:
            metric, bound = text.split(" ", 1)
            text = f"mean({metric}, n {window}) {bound}"
        return f'assert {text} name "{check.name}"'

    return "\n".join(
        ['suite "Sweep" {', 'check "C" on events {', *map(assertion, checks), "}", "}"]
    )


def _dataset(table: str, date_column: str | None) -> DatasetRef:
    return DatasetRef("events", table, format="parquet", date_column=date_column)


def verdicts_of(
    spark: Any, ref: DatasetRef, suite: str, day: date = DAY, memory: StateCache | None = None
) -> dict[str, bool]:
    """Whether each assertion passed, by name, from the source of the suite."""
    source = SourceFile("suite.dql", suite)
    checked = check_source(source)
    assert checked.suite is not None, checked.errors
    plan = resolve(checked.suite, source, [ref], day)
    verdicts = evaluate(plan, measure(spark, [ref], plan, memory)[1])
    return {verdict.name: verdict.status is Status.PASSED for verdict in verdicts}
