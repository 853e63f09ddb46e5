"""A contract over several dates gives the results of a run per date."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest

from dqx_airflow import Contract, MemoryDatabase
from dqx_airflow.errors import RequestError

NOW = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)
DAYS = [date(2024, 11, 27), date(2024, 11, 28)]
TEXT = """\
contract:
  id: bronze.slots
  version: 1.0.0
  schema:
    columns:
      - {name: id, type: bigint, semantic: the slot}
      - {name: day, type: date, semantic: the day}
  quality: {completeness: [{column: id, min_pct: 1.0}]}
"""
ROWS = [{"id": 1, "day": DAYS[0]}, {"id": None, "day": DAYS[1]}]
DATABASE = MemoryDatabase({"slots": ROWS}, date_columns={"slots": "day"})


def test_each_date_has_the_verdicts_of_its_own_run() -> None:
    contract = Contract.from_string(TEXT)
    found = contract.run_dates(DATABASE, "2024-11-27..2024-11-28", now=NOW)
    alone = [contract.run(DATABASE, day, now=NOW).report for day in DAYS]
    assert [found[day].report.verdicts for day in DAYS] == [report.verdicts for report in alone]
    assert [found[day].report.contract for day in DAYS] == [report.contract for report in alone]
    assert [outcome.value for outcome in found.outcomes.values()] == ["passed", "blocked"]


def test_a_selection_applies_to_each_date() -> None:
    found = Contract.from_string(TEXT).run_dates(
        DATABASE, DAYS, now=NOW, only="contract.schema.columns[1]"
    )
    assert [day for day, results in found.items() if not results.report.partial] == []


def test_an_empty_list_of_dates_is_refused() -> None:
    with pytest.raises(RequestError, match="dates"):
        Contract.from_string(TEXT).run_dates(DATABASE, [], now=NOW)
