"""Clauses of contracts that depend on the dataset of the gate: judged by what it has, or errors."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest

from dqx_airflow import Contract, MemoryDatabase
from dqx_airflow.values import GateReport, Outcome, Status, Verdict, to_json

DAY = date(2024, 11, 29)
NOW = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)
TEXT = """\
contract:
  id: bronze.slots
  version: 1.0.0
  schema:
    columns:
      - {name: id, type: bigint, semantic: the slot}
      - {name: day, type: date, semantic: the day}
%s
"""
FRESH = "  quality: {freshness: {max_age_minutes: 1440}}"
BAND = "  volume: {baseline_rows_per_day: 2, alert_band: [0.5, 2.0]}"
AT = "      - {name: %s, type: timestamp, semantic: a moment}\n"


def report(rest: str, *, dated: bool, days: int = 7) -> GateReport:
    moments = [datetime(2024, 11, 29 - number, 6) for number in range(days)]
    rows = [
        {"id": 2 * number + more, "day": at.date(), "at": at, "seen": at}
        for number, at in enumerate(moments)
        for more in range(2)
    ]
    columns = ["id", "day", *(name for name in ("at", "seen") if f"name: {name}" in rest)]
    table = [{name: row[name] for name in columns} for row in rows]
    database = MemoryDatabase({"slots": table}, date_columns={"slots": "day"} if dated else {})
    return Contract.from_string(TEXT % rest).run(database, DAY, now=NOW).report


def verdict(found: GateReport, name: str) -> Verdict:
    return next(one for one in found.verdicts if one.name.endswith(name))


def test_freshness_without_a_column_takes_the_only_timestamp() -> None:
    found = verdict(report(AT % "at" + FRESH, dated=False), "freshness")
    assert (found.status, found.expression) == (Status.PASSED, "freshness(at)")


@pytest.mark.parametrize("moments", ["", AT % "at" + AT % "seen"], ids=["none", "two"])
def test_freshness_without_a_column_takes_the_date_column_of_the_gate(moments: str) -> None:
    found = verdict(report(moments + FRESH, dated=True), "freshness")
    assert (found.status, found.expression) == (Status.PASSED, "freshness(day)")


@pytest.mark.parametrize("moments", ["", AT % "at" + AT % "seen"], ids=["none", "two"])
def test_freshness_that_nothing_measures_is_an_error(moments: str) -> None:
    broken = report(moments + FRESH, dated=False)
    found = verdict(broken, "freshness")
    assert broken.outcome is Outcome.BROKEN
    assert (found.status, found.datasets) == (Status.ERROR, ("slots",))
    assert "the age of which column?" in str(found.reason)
    assert found.clause == "contract.quality.freshness.max_age_minutes"
    assert to_json(broken)


def test_a_missing_day_counts_as_zero_rows() -> None:
    assert verdict(report(BAND, dated=True), "volume").value == 2
    blocked = report(BAND.replace("rows_per_day: 2", "rows_per_day: 3"), dated=True, days=3)
    assert blocked.outcome is Outcome.BLOCKED
    assert verdict(blocked, "volume").value == pytest.approx(6 / 7)


def test_a_volume_over_days_is_an_error_where_there_are_no_dates() -> None:
    broken = report(BAND, dated=False)
    found = verdict(broken, "volume")
    assert (broken.outcome, found.status) == (Outcome.BROKEN, Status.ERROR)
    assert "dataset 'slots' has no date_column" in str(found.reason)
