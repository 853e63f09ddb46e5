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
from dqx_airflow.diagnostics.diagnostic import errors_of
from dqx_airflow.errors import RegistryError, RequestError, SourceError
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


ODCS_LIFE = """\
apiVersion: v3.1.0
kind: DataContract
id: slots
version: 1.0.0
status: %s
schema: [{name: slots, properties: [{name: id, logicalType: integer}]}]
slaProperties: [%s]
customProperties: [%s]
"""
PRODUCT_LIFE = """\
contract: {name: Slots, version: 1.0.0, %s}
schema: {fields: [{name: id, type: bigint}]}
"""
ENDS = {
    "fabric sunset": LIFE % ("1.0.0", "id", "sunset_date: %s"),
    "fabric deprecation": LIFE % ("1.0.0", "id", "deprecation_date: %s"),
    "product deprecation": PRODUCT_LIFE % "deprecation_date: %s",
    "odcs sunset": ODCS_LIFE % ("active", "{property: endOfLife, value: %s}", ""),
    "odcs short": ODCS_LIFE % ("active", "{property: el, value: %s}", ""),
    "odcs other name": ODCS_LIFE % ("active", "{property: EOL, value: %s}", ""),
    "odcs first of two": ODCS_LIFE
    % ("active", "{property: el, value: %s}, {property: endOfLife, value: 2999-01-01}", ""),
    "odcs deprecation": ODCS_LIFE % ("active", "", "{property: deprecationDate, value: %s}"),
    "odcs notice": ODCS_LIFE
    % (
        "active",
        "",
        "{property: deprecationDate, value: 2026-01-01}, "
        "{property: deprecationNoticeDays, value: %s}",
    ),
}
"""Contracts with each place for a date of their end, or for the days to it."""
NO_DATES = (
    "'2024-02-30'",
    "2024-13-01",
    "2024/02/12",
    "12.02.2024",
    "'Feb 12, 2024'",
    "20240212x",
    "2024-02",
    "''",
)


def _run_of(text: str) -> Outcome:
    rows = MemoryDatabase({name: [{"id": 1}] for name in ("slots", "Slots")})
    return Contract.from_string(text, on=date(2026, 3, 1)).run(rows, date(2026, 3, 1)).outcome


@pytest.mark.parametrize("written", NO_DATES)
@pytest.mark.parametrize("place", ENDS)
def test_an_end_that_cannot_be_read_is_an_error_once(place: str, written: str) -> None:
    text = ENDS[place] % written
    found = read_contract(SourceFile("c.yaml", text))
    if found.errors:  # the schema refuses it already
        with pytest.raises(SourceError):
            _run_of(text)
        return
    assert found.contract is not None
    assert [item.code for item in errors_of(lint(found.contract))] == [
        "E422" if "other name" in place else "E427"
    ]
    assert _run_of(text) is Outcome.BROKEN


@pytest.mark.parametrize(
    ("written", "codes"),
    [("Available 24/7", []), ("on request", []), ("2024-02-30", ["E427"]), ("2026-01-01", [])],
)
def test_a_beginning_is_a_date_or_a_text_about_the_service(written: str, codes: list[str]) -> None:
    level = f"{{property: generalAvailability, value: {written}}}"
    found = read_contract(SourceFile("c.yaml", ODCS_LIFE % ("active", level, "")))
    assert found.contract is not None
    assert [item.code for item in errors_of(lint(found.contract))] == codes


@pytest.mark.parametrize("place", ENDS)
def test_a_contract_without_a_date_of_its_end_runs(place: str) -> None:
    if "other name" in place:
        return
    assert _run_of(ENDS[place] % "null") is Outcome.PASSED


@pytest.mark.parametrize(
    ("status", "is_typo", "expected"),
    [
        ("active", False, Outcome.PASSED),
        ("in review", False, Outcome.PASSED),
        ("actve", True, Outcome.PASSED),
        ("retird", True, Outcome.BROKEN),
        ("sunseted", True, Outcome.BROKEN),
        ("Retired", False, None),
        ("sunset", False, None),
        ("end_of_life", False, None),
        ("EOL", False, None),
    ],
)
def test_a_word_for_the_end_ends_a_contract(
    status: str, is_typo: bool, expected: Outcome | None
) -> None:
    text = ODCS_LIFE % (status, "", "")
    found = read_contract(SourceFile("c.yaml", text))
    assert found.contract is not None
    assert [item.code for item in errors_of(lint(found.contract))] == ["E422"] * is_typo
    if expected is None:
        with pytest.raises(RequestError, match="slots was sunset"):
            _run_of(text)
    else:
        assert _run_of(text) is expected


@pytest.mark.parametrize("status", ["retired", "sunset"])
def test_either_status_of_a_table_contract_ends_it(status: str) -> None:
    text = LIFE % ("1.0.0", "id", "status: active")
    with pytest.raises(RequestError, match=r"bronze\.slots was sunset"):
        _run_of(text.replace("  version:", f"  status: {status}\n  version:"))


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
