"""Dates and timestamps in CSV and JSON are read in the format of their contract."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow import Contract, SparkDatabase
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.enforcement.contract_datasets import known_of
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.values import DatasetRef, Outcome, SourceFile

ON = date(2024, 3, 1)
SERVER = "servers: [{server: files, type: local, path: %s, format: %s}]"
CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: visits
version: 1.0.0
status: active
%s
schema:
  - name: visits
    properties:
%s
"""
DAY = """\
      - name: day
        logicalType: date
        logicalTypeOptions: {format: dd.MM.yyyy, minimum: "01.02.2021", maximum: "2021-12-31"}
"""
BOTH = f"""{DAY}\
      - {{name: at, logicalType: timestamp, logicalTypeOptions: {{format: "yyyy-MM-dd HH:mm"}}}}
"""


def _field(name: str, logical: str, pattern: str | None) -> str:
    options = f', logicalTypeOptions: {{format: "{pattern}"}}' if pattern else ""
    return f"      - {{name: {name}, logicalType: {logical}{options}}}\n"


def _unenforced(fields: str, server: str, *refs: DatasetRef) -> list[str]:
    found = read_contract(SourceFile("c.yaml", CONTRACT % (server, fields)))
    assert found.contract is not None, found.diagnostics
    return [item.reason for item in compile_contract(found.contract, refs).unenforced]


def _options(fields: str) -> dict[str, str]:
    found = read_contract(SourceFile("c.yaml", CONTRACT % (SERVER % ("a.csv", "csv"), fields)))
    assert found.contract is not None
    assert "options" not in known_of(found.contract.models[0], file_format="delta")
    options: dict[str, str] = known_of(found.contract.models[0], file_format="csv").get(
        "options", {}
    )
    return options


@pytest.mark.parametrize(
    ("logical", "pattern", "option", "reason"),
    [
        ("date", "dd.MM.yyyy", "dd.MM.yyyy", None),
        ("date", "yyyy-MM-dd", "yyyy-MM-dd", None),
        ("date", "d/M/yy", "d/M/yy", None),
        ("date", "MMM d, yyyy", "MMM d, yyyy", None),
        ("timestamp", "yyyy-MM-ddTHH:mm:ssXXX", "yyyy-MM-dd'T'HH:mm:ssXXX", None),
        ("timestamp", "dd.MM.yyyy hh:mm a", "dd.MM.yyyy hh:mm a", None),
        ("date", "DD.MM.YYYY", None, "no letter Y"),
        ("date", "dd.MM", None, "has no year"),
        ("date", "yyyy-mm-dd", None, "has minutes"),
        ("date", "dd.MM.yyyy HH:mm", None, "has a time, which a date loses"),
        ("timestamp", "EEE dd.MM.yyyy", None, "no letter E"),
    ],
)
def test_a_format_is_read_or_its_clause_is_an_error(
    logical: str, pattern: str, option: str | None, reason: str | None
) -> None:
    fields = _field("a", logical, pattern)
    reasons = _unenforced(fields, SERVER % ("a.csv", "csv"))
    assert len(reasons) == (reason is not None), reasons
    assert reason is None or reason in reasons[0]
    assert [*_options(fields).values()] == ([option] if option is not None else [])
    # Tables hold real dates.
    assert _unenforced(fields, SERVER % ("a.parquet", "parquet")) == []


@pytest.mark.parametrize(
    ("first", "second", "is_read"),
    [
        ("dd.MM.yyyy", "dd.MM.yyyy", True),
        ("yyyy-MM-dd", None, True),
        ("dd.MM.yyyy", None, False),
        ("dd.MM.yyyy", "d/M/yy", False),
    ],
)
def test_dates_of_a_text_file_have_one_format(
    first: str, second: str | None, is_read: bool
) -> None:
    fields = _field("a", "date", first) + _field("b", "date", second)
    server = SERVER % ("a.json", "json")
    assert (_unenforced(fields, server) == []) == is_read
    assert _unenforced(fields, server, DatasetRef("visits", table="shop.visits")) == []
    assert (_options(fields) == {"dateFormat": first}) == (first == second)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("day", "at", "outcome", "failed"),
    [
        ("01.02.2021", "2024-01-01 00:00", Outcome.PASSED, []),
        ("31.12.2021", "2024-01-01 23:59", Outcome.PASSED, []),
        ("31.01.2021", "2024-01-01 00:00", Outcome.BLOCKED, ["visits.day.minimum"]),
        ("01.01.2022", "2024-01-01 00:00", Outcome.BLOCKED, ["visits.day.maximum"]),
        ("30.02.2021", "2024-01-01 00:00", Outcome.BLOCKED, ["visits.well_formed"]),
        ("2021-02-01", "2024-01-01 00:00", Outcome.BLOCKED, ["visits.well_formed"]),
        ("01.02.2021", "2024-01-01T00:00:00", Outcome.BLOCKED, ["visits.well_formed"]),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_strings_of_a_file_are_read_in_their_format(
    spark: Any, tmp_path: Path, kind: str, day: str, at: str, outcome: Outcome, failed: list[str]
) -> None:
    file = tmp_path / f"visits.{kind}"
    as_json = f'{{"day": "{day}", "at": "{at}"}}\n'
    file.write_text(f"day,at\n{day},{at}\n" if kind == "csv" else as_json)
    contract = Contract.from_string(CONTRACT % (SERVER % (file, kind), BOTH))
    found = contract.run(SparkDatabase(spark, {"visits": {"path": str(file), "format": kind}}), ON)
    assert found.outcome is outcome, str(found)
    assert [verdict.assertion for verdict in found if verdict.status.value != "passed"] == failed


@pytest.mark.spark
def test_a_nested_string_is_read_in_its_format(spark: Any, tmp_path: Path) -> None:
    nested = f"      - name: visit\n        logicalType: object\n        properties:\n{DAY}"
    fields = nested.replace(DAY, DAY.replace("      ", "          "))
    for day, outcome in (("01.02.2021", Outcome.PASSED), ("2021-02-01", Outcome.BLOCKED)):
        file = tmp_path / f"{day}.json"
        file.write_text(f'{{"visit": {{"day": "{day}"}}}}\n')
        contract = Contract.from_string(CONTRACT % (SERVER % (file, "json"), fields))
        place = {"visits": {"path": str(file), "format": "json"}}
        found = contract.run(SparkDatabase(spark, place), ON)
        assert found.outcome is outcome, str(found)
