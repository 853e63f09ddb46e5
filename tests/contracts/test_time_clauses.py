"""Clauses about time: calendar frequencies, delays between two columns, consistent periods."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from dqx_airflow import Contract, ContractRegistry, MemoryDatabase, Table
from dqx_airflow.contracts.demands import Arrives
from dqx_airflow.contracts.demands.deliveries import days_due
from dqx_airflow.contracts.dialects.durations import DAY_S, MONTH_S, WEEK_S, YEAR_S
from dqx_airflow.contracts.enforcement.lint import lint
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.errors import RegistryError
from dqx_airflow.values import Outcome, SourceFile

NOW = datetime(2024, 12, 31, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("interval_s", "cron", "on", "days"),
    [
        (DAY_S, None, "2024-11-29", 1),
        (WEEK_S, None, "2024-11-29", 7),
        (MONTH_S, None, "2024-03-31", 31),
        (MONTH_S, None, "2024-03-30", 30),
        (MONTH_S, None, "2024-03-01", 29),
        (3 * MONTH_S, None, "2024-11-30", 92),
        (YEAR_S, None, "2024-12-31", 366),
        (7 * DAY_S, "0 3 * * 1-5", "2024-11-29", 1),
        (7 * DAY_S, "0 3 * * 1-5", "2024-12-01", 3),
        (7 * DAY_S, "0 6 * * 1", "2024-11-28", 4),
        (31 * DAY_S, "0 0 1 * *", "2024-11-30", 30),
        (31 * DAY_S, "0 0 L * *", "2024-12-05", 6),
        (DAY_S / 96, "*/15 * * * *", "2024-12-05", 1),
        (40 * DAY_S, None, None, 40),
    ],
)
def test_data_is_due_since_the_last_day_of_its_schedule(
    interval_s: float, cron: str | None, on: str | None, days: int
) -> None:
    demand = Arrives(None, interval_s, cron)
    assert days_due(demand, date.fromisoformat(on) if on else None) == days


FREQUENCY = """\
dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 1.0.0}
models: {orders: {fields: {day: {type: date}}}}
servicelevels: {frequency: {%s}}
"""


def delivered(frequency: str, on: str, *days: str) -> Outcome:
    rows = [(date.fromisoformat(day),) for day in days]
    table = Table.typed({"day": "date"}, rows)
    database = MemoryDatabase({"orders": table}, date_columns={"orders": "day"})
    contract = Contract.from_string(FREQUENCY % frequency)
    return contract.run(database, date.fromisoformat(on), now=NOW, allow_empty=True).outcome


@pytest.mark.parametrize(
    ("frequency", "on", "last", "is_kept"),
    [
        ("interval: weekly", "2024-11-29", "2024-11-23", True),
        ("interval: weekly", "2024-11-29", "2024-11-22", False),
        ("interval: monthly", "2024-11-29", "2024-11-01", True),
        ("interval: monthly", "2024-03-01", "2024-02-01", False),
        ("cron: 0 3 * * 1-5", "2024-12-01", "2024-11-29", True),
        ("cron: 0 3 * * 1-5", "2024-12-01", "2024-11-28", False),
        ("cron: 0 3 * * 1-5", "2024-11-29", "2024-11-28", False),
        ("interval: monthly, cron: 0 0 1 * *", "2024-12-05", "2024-12-01", True),
        ("interval: monthly, cron: 0 0 1 * *", "2024-12-05", "2024-11-30", False),
        ("cron: '@weekly'", "2024-11-29", "2024-11-24", True),
    ],
)
def test_a_frequency_is_judged_by_its_calendar(
    frequency: str, on: str, last: str, is_kept: bool
) -> None:
    outcome = delivered(frequency, on, last, "2024-01-01")
    assert outcome is (Outcome.PASSED if is_kept else Outcome.BLOCKED)


DELAYS = """\
contract:
  id: bronze.slots
  version: 1.0.0
  schema:
    columns:
      - {name: event_ts, type: timestamp, semantic: when}
      - {name: landed_at, type: timestamp, semantic: when it came}
  sla:
    bronze_landing_%s: 5
    x-bronze_landing: {from: event_ts, to: landed_at}
"""


@pytest.mark.parametrize(
    ("key", "late", "outcome"),
    [
        ("p99_minutes", 1, Outcome.PASSED),
        ("p99_minutes", 2, Outcome.BLOCKED),
        ("p95_minutes", 5, Outcome.PASSED),
        ("p95_minutes", 6, Outcome.BLOCKED),
        ("p50_seconds", 0, Outcome.BLOCKED),
    ],
)
def test_a_delay_holds_for_its_share_of_the_rows(key: str, late: int, outcome: Outcome) -> None:
    at = datetime(2024, 11, 29, tzinfo=timezone.utc)
    rows = [(at, at + timedelta(minutes=60 if number < late else 1)) for number in range(100)]
    table = Table.typed({"event_ts": "timestamp", "landed_at": "timestamp"}, rows)
    contract = Contract.from_string(DELAYS % key)
    found = contract.run(MemoryDatabase({"slots": table}), at.date(), now=NOW)
    assert found.outcome is outcome, str(found)


LIFE = """\
contract:
  id: bronze.slots
  version: %s
  schema: {columns: [{name: %s, type: bigint, semantic: the slot}]}
  versioning: {deprecation_notice_days: 0, dual_write_window_days: 30}
  lifecycle: {%s}
"""


@pytest.mark.parametrize(
    ("lifecycle", "expected"),
    [
        ("deprecation_date: 2026-03-01, sunset_date: 2026-02-01", "is before the deprecation"),
        ("deprecation_date: 2026-03-01, sunset_date: 2026-03-20", "30 days of dual writes"),
        ("sunset_date: 2026-02-31", "is not a date"),
        ("deprecation_date: 2026-03-01, sunset_date: 2026-03-31", None),
    ],
)
def test_dates_and_periods_are_held_against_each_other(
    lifecycle: str, expected: str | None
) -> None:
    source = SourceFile("c.yaml", LIFE % ("1.0.0", "id", lifecycle))
    found = read_contract(source)
    assert found.contract is not None
    messages = [item.message for item in lint(found.contract) if item.code == "E427"]
    assert len(messages) == (expected is not None), messages
    assert [message for message in messages if expected and expected not in message] == []


def test_a_new_major_version_leaves_the_window_of_dual_writes_to_the_old_one(
    tmp_path: Path,
) -> None:
    registry, file = ContractRegistry(tmp_path / "registry"), tmp_path / "c.yaml"

    def write(version: str, column: str, lifecycle: str) -> Path:
        file.write_text(LIFE % (version, column, lifecycle))
        return file

    ending = "status: deprecated, deprecation_date: 2026-02-01, sunset_date: 2026-04-01"
    registry.register(write("1.5.0", "id", ending), on=date(2026, 2, 1))
    new = write("2.0.0", "key", "status: stable")
    with pytest.raises(RegistryError, match="30 days of dual writes are promised"):
        registry.register(new, on=date(2026, 3, 10))
    assert registry.register(new, on=date(2026, 3, 2)) == "bronze.slots:2.0.0"
