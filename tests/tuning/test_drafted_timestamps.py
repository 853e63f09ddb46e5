"""A draft calls a string of JSON or CSV a date or a timestamp only if a gate reads it as one."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from dqx_airflow.plan.in_memory.table import value_of
from dqx_airflow.tuning.column_tables import read_files

DAYS = ("2024-03-01", "2024-02-30", "20240301", "2024-3-1")
CLOCKS = (
    *("", "23", "23:30", "23:30:15", "23:30:15.5", "23:30:15.123456", "23:30:15.123456789"),
    *("23:30:15,5", "2330", "233015", "24:00:00", "23:60:00", "23:59:60"),
)
ZONES = (
    *("", "Z", " Z", "+01", "+0100", "+01:00", "-18:00", "+18:30", "+19:00", "+1:00"),
    *(" UTC", "[Europe/Zurich]"),
)


@pytest.mark.more
@pytest.mark.parametrize("ending", ["json", "csv"])
@pytest.mark.parametrize("separator", "T ")
def test_no_string_is_drafted_as_what_a_gate_does_not_read(
    ending: str, separator: str, tmp_path: Path
) -> None:
    drafted = {}
    for day, clock, zone in product(DAYS, CLOCKS, ZONES):
        text = f"{day}{separator if clock else ''}{clock}{zone}"
        file = tmp_path / f"t.{ending}"
        written = json.dumps({"at": text}) if ending == "json" else f'at\n"{text}"'
        file.write_text(written + "\n")
        drafted[text] = _types(file)["at"]
    moments = {text: kind for text, kind in drafted.items() if kind in ("date", "timestamp")}
    assert [text for text, kind in moments.items() if value_of(text, kind) is None] == []
    assert drafted[f"2024-03-01{separator}23:30:15.5+01:00"] == "timestamp"
    assert drafted[f"2024-03-01{separator}23:30Z"] == "string"


def test_strings_within_json_are_drafted_as_what_a_gate_reads(tmp_path: Path) -> None:
    rows = [
        {"a": {"x": "2024-03-01T23:30Z"}, "b": [{"y": "2024-03-01"}], "c": ["2024-03-01T23+01"]},
        {"a": None, "b": [], "c": None},
    ]
    file = tmp_path / "t.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert _types(file) == {
        "a": "struct<x:string>",
        "b": "array<struct<y:timestamp>>",
        "c": "array<string>",
    }


def _types(file: Path) -> dict[str, str]:
    return read_files(str(file), None, lambda table: table.types)
