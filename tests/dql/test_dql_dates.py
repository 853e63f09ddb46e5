"""When profiles are active: see the tables of dates.md."""

from __future__ import annotations

import locale
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.dql.dates import check_date, is_active
from tests.sound_suites import sound_suite


def _rows() -> list[tuple[str, ...]]:
    text = (Path(__file__).parent / "dates.md").read_text(encoding="utf-8")
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.split("\n")]
    return [row for row in rows if row[-1] in ("yes", "no")]


@pytest.mark.few(22)
@pytest.mark.parametrize("row", _rows(), ids=" ".join)
def test_a_profile_is_active_in_its_period_and_at_no_other_time(row: tuple[str, ...]) -> None:
    start, end, on, active = row
    text = f'suite "S" {{ profile "P" {{ from {start} to {end} }} }}'
    suite = sound_suite(text)
    profile = suite.profiles[0]
    assert profile.start is not None
    assert profile.end is not None
    assert not [*check_date(profile.start), *check_date(profile.end)]
    assert is_active(profile.start, profile.end, date.fromisoformat(on)) == (active == "yes")


def test_the_date_table_is_not_empty() -> None:
    assert len(_rows()) > 60


def test_months_and_weekdays_are_english_in_every_locale() -> None:
    code = (
        "import locale\n"
        "locale.setlocale(locale.LC_ALL, {name!r})\n"
        "from dqx_airflow.dql.dates import MONTHS, WEEKDAYS\n"
        "assert MONTHS['december'] == 12 and WEEKDAYS['sunday'] == 6\n"
    )
    for name in _locales():
        subprocess.run([sys.executable, "-c", code.format(name=name)], check=True, timeout=60)


def _locales() -> list[str]:
    """Some that this machine has, of other languages if possible."""
    before = locale.setlocale(locale.LC_ALL)
    found = []
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "ja_JP.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_ALL, name)
            found.append(name)
        except locale.Error:
            continue
        finally:
            locale.setlocale(locale.LC_ALL, before)
    return found[:2]
