"""Patterns for dates in string columns, and the errors in those that do not identify a day."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dqx_airflow.datasets.date_pattern import DatePatternError, date_of_text, date_text

DAY = date(2024, 3, 2)


PATTERNS = ("yyyy-MM-dd", "uuuuMMdd", "d.M.yy", "'day' dd/MM/y", "yyyy'T'MM''dd", "yyyy/yyyy-MM-dd")


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
    assert date_of_text(pattern, text) == DAY


@given(st.sampled_from(PATTERNS), st.dates(date(2000, 1, 1), date(2099, 12, 31)))
def test_the_text_of_each_date_is_that_date(pattern: str, on: date) -> None:
    assert date_text(pattern, date_of_text(pattern, date_text(pattern, on)) or DAY) == date_text(
        pattern, on
    )


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2024-3-2"),
        ("yyyy-MM-dd", "2024-03-02 00:00:00"),
        ("yyyy-MM-dd", "2024-02-30"),
        ("yyyy-MM-dd", "２０２４-03-02"),  # noqa: RUF001
        ("yyyyMMdd", "2024-03-02"),
        ("d.M.yy", "02.03.24"),
        ("yyyy/yyyy-MM-dd", "2023/2024-03-02"),
    ],
)
def test_another_text_is_no_date(pattern: str, text: str) -> None:
    assert date_of_text(pattern, text) is None


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
