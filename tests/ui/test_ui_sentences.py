"""Failures in the words of the data."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone, tzinfo

import pytest

from dqx_airflow.values import Status, Verdict
from tests.ui.ui_scene import BAD_NULLS

pytestmark = pytest.mark.airflow  # the pages import Airflow


def failed(expression: str, expected: str, value: object, **changes: object) -> Verdict:
    """A failed assertion on the dataset `orders`."""
    verdict = replace(
        BAD_NULLS, expression=expression, expected=expected, value=value, scaled_value=value
    )
    return replace(verdict, datasets=("orders",), metric=None, threshold=None, **changes)


@pytest.mark.parametrize(
    ("expression", "expected", "value", "sentence"),
    [
        ("null_count(id)", "== 0", 3, "3 rows of orders have no id"),
        ("null_count(id)", "== 0", 1, "1 row of orders has no id"),
        ("null_count(id) / num_rows()", "< 2%", 0.024, "2.4% of orders have no id"),
        ("null_count(id) / num_rows()", "< 0.02", 0.024, "2.4% of orders have no id"),
        ("duplicate_count(id)", "== 0", 12480, "12,480 rows of orders repeat a value of id"),
        ("duplicate_count(id) / num_rows()", "< 1%", 0.05, "5% of orders repeat a value of id"),
        ("duplicate_count([a, b])", "== 0", 1, "1 row of orders repeats values of a, b"),
        ("freshness(at)", "< 2 hours", 9000.0, "the newest at of orders is 2 hours 30 minutes old"),
        ("num_rows()", "> 0", 0, "orders has no rows"),
        ("num_rows()", "> 100", 12, "orders has 12 rows"),
        (
            "each row: price > 0",
            "== 0 violating rows",
            1472,
            "1,472 rows of orders violate `price > 0`",
        ),
        (
            "95% of rows: price > 0",
            ">= 95% of rows",
            0.9,
            "90% of the rows of orders satisfy `price > 0`",
        ),
        ("average(price)", "< 5", 7, "average(price) is 7"),
    ],
)
def test_a_failure_is_a_sentence_about_the_data(
    expression: str, expected: str, value: object, sentence: str
) -> None:
    from dqx_airflow.ui.verdict_text import sentence_of

    assert sentence_of(failed(expression, expected, value)) == sentence


@pytest.mark.parametrize(
    ("to_come", "words"),
    [
        (timedelta(hours=2, seconds=-30), "in 1 h 59 min"),
        (timedelta(hours=2, seconds=30), "in 2 h"),
        (timedelta(minutes=25, seconds=30), "in 25 min"),
        (timedelta(days=3, hours=4, minutes=50), "in 3 d 4 h"),
        (timedelta(seconds=30), "in less than a minute"),
        (timedelta(hours=-2, minutes=-50), "2 hours ago"),
    ],
)
def test_a_deadline_is_given_to_the_minute_and_an_age_is_not(
    to_come: timedelta, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import responses

    now = datetime(2024, 3, 20, 3, tzinfo=timezone.utc)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls.fromtimestamp(now.timestamp(), tz)

    monkeypatch.setattr(responses, "datetime", Clock)
    template = responses._environment().from_string("{{ at|ago }}")
    assert template.render(at=now + to_come) == words


def test_what_has_no_value_says_why() -> None:
    from dqx_airflow.ui.verdict_text import sentence_of

    broken = failed("num_rows()", "> 0", None, status=Status.ERROR, reason="no table at s3://x")
    assert sentence_of(broken) == "no table at s3://x"
    assert sentence_of(failed("average(x)", "> 0", None)) == "average(x) has no value"


def test_groups_and_profiles_keep_their_metric() -> None:
    from dqx_airflow.ui.verdict_text import sentence_of

    of_groups = failed("num_rows()", "> 0 for each store", 0, groups=3, worst_group='"basel"')
    assert sentence_of(of_groups) == 'num_rows() is 0 for "basel"'
    scaled = replace(failed("num_rows()", "> 1000", 500), multiplier=1.8, scaled_value=900)
    assert sentence_of(scaled) == "num_rows() is 900 (500 x 1.8)"


@pytest.mark.parametrize(
    ("expected", "limit"),
    [
        ("== 0 violating rows", "limit 0"),
        ("== 0", "limit 0"),
        ("< MAX (2%)", "limit < MAX (2%)"),
        ("between 1 and 5", "expected between 1 and 5"),
        ("> 10000", "limit > 10,000"),
        ("<= 12480.5 rows", "limit <= 12,480.5 rows"),
        ("< 2026", "limit < 2026"),
    ],
)
def test_a_limit_stands_beside_its_value(expected: str, limit: str) -> None:
    from dqx_airflow.ui.verdict_text import limit_words

    assert limit_words(failed("num_rows()", expected, 1)) == limit


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (12480, "12,480"),
        (2026, "2026"),
        (-10407.5, "-10,407.5"),
        (0.5, "0.5"),
        ("2026-11-27", "2026-11-27"),
    ],
)
def test_long_numbers_have_separators(value: object, shown: str) -> None:
    from dqx_airflow.ui.verdict_text import value_of

    assert value_of(failed("maximum(x)", "> 1", value)) == shown
