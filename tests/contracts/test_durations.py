"""Durations and intervals: their length in seconds, and invalid ones."""

from __future__ import annotations

import pytest

from dqx_airflow.contracts.dialects.durations import (
    DAY_S,
    HOUR_S,
    MINUTE_S,
    MONTH_S,
    WEEK_S,
    YEAR_S,
    duration_s,
    seconds_of,
)
from dqx_airflow.contracts.dialects.frequencies import cron_interval_s, interval_s
from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.values import SourceFile


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("25h", 25 * HOUR_S),
        ("24 hours", DAY_S),
        ("5s", 5),
        ("1 year", YEAR_S),
        ("30d", 30 * DAY_S),
        ("7_years", 7 * YEAR_S),
        ("2000ms", 2),
        ("15 m", 15 * MINUTE_S),
        ("1.5 Hours", 1.5 * HOUR_S),
        ("1 quarter", 3 * MONTH_S),
        ("1h30m", 1.5 * HOUR_S),
        ("1 day 12 hours", 1.5 * DAY_S),
        (" 2 weeks ", 2 * WEEK_S),
        ("0d", 0),
        ("PT24H", DAY_S),
        ("P1Y", YEAR_S),
        ("P12M", YEAR_S),
        ("P3M", 3 * MONTH_S),
        ("PT3M", 3 * MINUTE_S),
        ("P2W", 2 * WEEK_S),
        ("P1DT12H", 1.5 * DAY_S),
        ("PT0.5S", 0.5),
        ("PT1,5H", 1.5 * HOUR_S),
        ("p1d", DAY_S),
    ],
)
def test_a_duration_is_converted_to_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "help_line"),
    [
        ("24", "24 has no unit: write 24h or PT24H for hours, 24d or P24D for days"),
        ("5M", "write '5 months' or '5 minutes'"),
        ("5 huors", "did you mean '5 hours'?"),
        ("P1H", "ISO 8601 writes P1Y2M3DT4H5M6S, with a T before hours, minutes and seconds"),
        ("PT", "ISO 8601 writes P1Y2M3DT4H5M6S, with a T before hours, minutes and seconds"),
        ("-1h", "write it as 24h, '7 days' or PT24H"),
        ("soon", "write it as 24h, '7 days' or PT24H"),
        ("", "write it as 24h, '7 days' or PT24H"),
        ("9" * 400 + "h", "write it as 24h, '7 days' or PT24H"),
    ],
)
def test_an_invalid_duration_is_reported_with_a_suggestion(text: str, help_line: str) -> None:
    root = read_document(SourceFile("contract.yaml", f"a:\n  threshold: '{text}'\n")).root
    assert isinstance(root, Mapping)
    level = root.get("a")
    assert isinstance(level, Mapping)
    node = level.get("threshold")
    assert node is not None
    found: list[Diagnostic] = []
    assert duration_s(node, found.append) is None
    assert [(error.code, error.span, error.help) for error in found] == [
        ("E410", node.span, help_line)
    ]
    assert found[0].message == f"a.threshold: '{text}' is not a duration"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("hourly", HOUR_S),
        ("Daily", DAY_S),
        ("weekly", WEEK_S),
        ("monthly", MONTH_S),
        ("annually", YEAR_S),
        ("15 minutes", 15 * MINUTE_S),
        ("every 2 hours", 2 * HOUR_S),
        ("PT1H", HOUR_S),
        ("often", None),
        ("0d", None),
    ],
)
def test_an_interval_is_converted_to_seconds_or_none(text: str, seconds: float | None) -> None:
    assert interval_s(text) == seconds


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        ("0 0 * * *", DAY_S),
        ("@daily", DAY_S),
        ("0 * * * *", HOUR_S),
        ("*/15 * * * *", 15 * MINUTE_S),
        ("0 0 * * 0", WEEK_S),
        ("0 0 * * 7", WEEK_S),
        ("0 6 * * 1-5", 3 * DAY_S),
        ("0 6 * * mon,thu", 4 * DAY_S),
        ("0 6,18 * * *", 12 * HOUR_S),
        ("0 8-17 * * *", 15 * HOUR_S),
        ("0 0 1 * *", 31 * DAY_S),
        ("0 0 1 jan *", 366 * DAY_S),
        ("0 0 1,15 * 1", 7 * DAY_S),
        ("0 0 ? * MON", WEEK_S),
        ("0 0 L * *", 31 * DAY_S),
        ("0 0 * * 1#1", 35 * DAY_S),
    ],
)
def test_a_cron_expression_has_its_longest_interval(expression: str, seconds: float) -> None:
    assert cron_interval_s(expression) == seconds


@pytest.mark.parametrize(
    "expression", ["", "daily", "0 0 * *", "61 * * * *", "0 0 31 2 *", "*/0 * * * *", "5-1 * * * *"]
)
def test_an_invalid_cron_expression_has_no_interval(expression: str) -> None:
    assert cron_interval_s(expression) is None
