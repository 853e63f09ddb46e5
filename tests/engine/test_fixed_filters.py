"""Filters that always select the same rows, and those that might not."""

from __future__ import annotations

import pytest

from dqx_airflow.engine.scan.fixed_filters import is_fixed

COLUMNS = ("id", "status", "at", "a", "x y", "now", "current_date", "user", "x", "r", "date")

FIXED = """
    id = 0
    ID >= -1.5e3 AND `x y` <> 2
    status IN ('a', 'b')
    status = 'current_date'
    NOT (id > 1 AND (status = 'x' OR status IS NOT NULL))
    at <= TIMESTAMP'2024-01-01 00:00:00'
    at BETWEEN DATE '2024-01-01' AND date'2024-02-01'
    a.b.now = 1
    id IN (1, -2) AND id % 2 = 0
    status LIKE 'a%' AND true
    id <=> 3L
    (id = 1) OR (status = 'a')
    id = (1 - (2)) * (-1)
    'a' = status
    X = 1
"""

OPEN = r"""
    at <= now()
    at <= NOW ()
    at <= `now`()
    at <= `now` ()
    at <= (now)()
    a.now() > 1
    at <= now/**/()
    at <= current_date
    at <= CURRENT_TIMESTAMP
    at <= timestamp
    (id)(1)
    at <= `current_date`
    at <= `CURRENT_TIMESTAMP`
    at <= localtimestamp
    at <= TIMESTAMP'now'
    at <= TIMESTAMP 'NOW'
    at <= TIMESTAMP/* */'now'
    at <= TIMESTAMP/* */'2024-01-01'
    at <= DATE'today'
    at <= date '  yesterday '
    at <= timestamp_ltz'tomorrow'
    at <= 'now'
    at <= ' Now'
    at <= "now"
    at <= 'n' 'ow'
    at <= r'now'
    at <= 'n\u006fw'
    at <= 'n\157w'
    at <= 'to' || 'day'
    at <= cast('now' as timestamp)
    at <= try_cast('today' as date)
    at <= 'now'::timestamp
    at <= x'6E6F77'
    at <= date(unix_timestamp())
    at <= interval '1' day
    at > (SELECT max(day) FROM days)
    id IN (SELECT id FROM other)
    EXISTS (SELECT 1 FROM other)
    id < rand() * 10
    id = my_function(id)
    status = current_user
    user = 'me'
    status = session_user
    id > limit_of_today
    id > session.limit_of_today
    id > :limit
    id > ?
    id > ${limit}
    status = '${env:USER}'
    _metadata.file_modification_time > '2024-01-01'
    status = input_file_name()
    CASE WHEN id > 1 THEN true END
    id > 1 -- AND status = 'x'
    id > 1 /*+ hint */
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("condition", lines(FIXED))
def test_columns_compared_with_plain_literals_are_a_fixed_filter(condition: str) -> None:
    assert is_fixed(condition, COLUMNS)


@pytest.mark.parametrize("condition", lines(OPEN))
def test_a_condition_on_the_clock_or_the_session_is_not_fixed(condition: str) -> None:
    assert not is_fixed(condition, COLUMNS)
