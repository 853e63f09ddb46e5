"""A results store with the runs of many days, made in memory."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.tunables import with_values
from dqx_airflow.values import Attempt, GateReport, RunKey, Severity, Verdict

FIRST = date(2024, 12, 1)

SUITE = """\
suite "Orders" {
    const MAX_NULLS = 5% tunable [0%, 50%]
    const LEAST = 10 tunable [1, 100]

    check "Completeness" on orders {
        assert null_count(email) / num_rows() < MAX_NULLS
            name "orders.completeness.email_null"
    }
    check "Volume" on orders {
        @cost(false_positive=5, false_negative=200)
        assert num_rows() >= LEAST
            name "orders.volume.min_rows"
            tags [volume]
        assert day_over_day(num_rows()) < 0.5
            name "orders.volume.stable"
            severity P2
    }

    profile "Holiday" {
        from 2024-12-05
        to   2024-12-06
        scale tag "volume" by 2.0x
    }
}
"""


def verdict_of(
    backtest: Backtest, row: int, index: int, values: Mapping[str, float] | None = None
) -> Verdict | None:
    """That on an assertion on a day, planned for the day alone; None if it is unknown."""
    on = backtest.days[index]
    plan = backtest._plan(with_values(backtest.suite, values or {}), on.date)
    return backtest._past_judge.verdict(row, plan.assertions[row], plan, on)


def day(number: int) -> date:
    """The days of the store count from 0."""
    return FIRST + timedelta(days=number)


def orders(counts: Mapping[int, tuple[int, int]]) -> MemoryDatabase:
    """The number of rows a day, and of those without an email."""
    rows = [
        {"email": None if row < nulls else "a@x.org", "ds": day(number)}
        for number, (count, nulls) in counts.items()
        for row in range(count)
    ]
    return MemoryDatabase({"orders": rows}, date_columns={"orders": "ds"})


def stored(report: GateReport, gate: str, **changes: Any) -> GateReport:
    """A report as a gate of that name would leave it."""
    key = RunKey(gate, report.run_key.date, f"scheduled {report.run_key.date}")
    fresh = str(uuid.uuid4())
    return replace(report, run_id=fresh, run_key=key, attempt=Attempt(1, fresh), **changes)


def store_days(
    root: str,
    db: MemoryDatabase,
    days: range,
    *,
    gate: str = "orders_gate",
    suite: str = SUITE,
    fail_on: Severity = Severity.P1,
    reading: str | None = None,
) -> None:
    """Runs the suite for each day, and writes the reports.

    :param reading: the reading of all datasets, as of a gate with data at another place.
    """
    store, loaded = ResultsStore(root), Suite.from_string(suite)
    for number in days:
        report = stored(loaded.run(db, day(number)).report, gate, fail_on=fail_on)
        if reading is not None:
            verdicts = tuple(_read_as(reading, verdict) for verdict in report.verdicts)
            report = replace(report, verdicts=verdicts)
        store.write(report)


def _read_as(reading: str, verdict: Verdict) -> Verdict:
    measured = json.loads(verdict.measured or "{}")
    measured["reads"] = dict.fromkeys(measured.get("reads", {}), reading)
    return replace(verdict, measured=json.dumps(measured))
