"""Patterns for dates in string columns, and the errors in those that do not identify a day."""

from __future__ import annotations

from datetime import date

import pytest

from dqx_airflow.datasets.date_pattern import DatePatternError, date_text

DAY = date(2024, 3, 2)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2024-03-02"),
        ("uuuuMMdd", "20240302"),
        ("d.M.yy", "2.3.24"),
        ("'day' dd/MM/y", "day 02/03/2024"),
        ("yyyy'T'MM''dd", "2024T03'02"),
    ],
)
def test_a_date_is_written_as_spark_writes_it(pattern: str, text: str) -> None:
    assert date_text(pattern, DAY) == text


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "must contain the year, the month and the day"),
        ("yyyyMM", "must contain the year, the month and the day"),
        ("yyyy-mm-dd", "'mm' is not supported"),
        ("yyyyMMddHH", "'HH' is not supported"),
        ("yyyyMMdd'", "is invalid"),
        ("[yyyy]MMdd", "is invalid"),
    ],
)
def test_a_pattern_that_names_no_day_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(DatePatternError, match=problem):
        date_text(pattern, DAY)
