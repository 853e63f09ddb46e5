"""Charts of a history: the value, its limit and the gaps, whatever the numbers are."""

from __future__ import annotations

import math
from datetime import date
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.diagnostics.verdicts import format_duration
from dqx_airflow.values import MetricValue, Status

pytestmark = pytest.mark.airflow


@pytest.fixture
def chart(api_environment: None) -> ModuleType:
    """The module; its house imports Airflow, which has to find the home of the tests."""
    from dqx_airflow.ui import chart

    return chart


def past(chart: ModuleType, *values: MetricValue, limit: float | None = None) -> list[Any]:
    limits = () if limit is None else (limit,)
    return [
        chart.PastValue(f"day {place}", value, limits, Status.PASSED)
        for place, value in enumerate(values)
    ]


def test_larger_values_are_higher_and_later_ones_further_right(chart: ModuleType) -> None:
    drawn = chart.chart_of("a", past(chart, 1, 3, 2), 100, 50)
    assert drawn is not None
    first, second, third = drawn.marks
    assert second.y < third.y < first.y
    assert first.x < second.x < third.x
    assert (drawn.levels, drawn.days) == (("3", "2", "1", "0"), ("day 0", "day 2"))


def test_values_are_placed_by_date(chart: ModuleType) -> None:
    days = [date(2024, 3, 1), date(2024, 3, 2), date(2024, 3, 11)]
    history = [chart.PastValue(str(on), 1.5, (), Status.PASSED, on=on) for on in days]
    drawn = chart.chart_of("a", history, 112, 50)
    assert drawn is not None
    assert [mark.x for mark in drawn.marks] == [6.0, 16.0, 106.0]
    assert drawn.days == ("2024-03-01", "2024-03-03", "2024-03-06", "2024-03-09", "2024-03-11")
    assert drawn.posts == (6.0, 26.0, 56.0, 86.0, 106.0)


def test_the_axis_of_counts_starts_at_zero(chart: ModuleType) -> None:
    counts = chart.chart_of("a", past(chart, 634, 983), 100, 50)
    shares = chart.chart_of("a", past(chart, 0.5, 0.7), 100, 50)
    near = chart.chart_of("a", past(chart, 0.03, 0.508), 100, 50)
    assert (counts.levels[-1], shares.levels[-1], near.levels[-1]) == ("0", "0.5", "0")
    assert near.levels == ("0.6", "0.4", "0.2", "0")
    assert near.rules == (6.0, 18.7, 31.3, 44.0)


def test_a_constant_has_one_label(chart: ModuleType) -> None:
    drawn = chart.chart_of("a", past(chart, 0, 0), 100, 50)
    assert drawn.levels == ("0",)


def test_the_limit_is_always_within_the_chart(chart: ModuleType) -> None:
    drawn = chart.chart_of("a", past(chart, 1, 2, limit=100), 100, 50)
    assert drawn is not None
    (line,) = drawn.limits
    assert {point.split(",")[1] for point in line.split()} == {"6.0"}
    assert drawn.levels[0] == drawn.limit == "100"


def test_a_limit_that_changes_has_a_step(chart: ModuleType) -> None:
    drawn = chart.chart_of("a", [*past(chart, 1, 2, limit=5), *past(chart, 1, 2, limit=9)], 100, 50)
    assert drawn is not None
    heights = [point.split(",")[1] for point in drawn.limits[0].split()]
    assert len(set(heights)) == 2
    assert heights == sorted(heights, key=float, reverse=True)


def test_a_day_without_a_value_is_a_gap_with_a_mark_at_the_bottom(chart: ModuleType) -> None:
    drawn = chart.chart_of("a", past(chart, 1, 2, None, 3, 4), 100, 50)
    assert drawn is not None
    assert len(drawn.lines) == 2
    assert drawn.marks[2].y > max(mark.y for mark in drawn.marks if mark is not drawn.marks[2])


@pytest.mark.parametrize("values", [(), (1,), (None, None), ("2024-01-01", "2024-01-02")])
def test_fewer_than_two_numbers_give_no_chart(
    chart: ModuleType, values: tuple[MetricValue, ...]
) -> None:
    assert chart.chart_of("a", past(chart, *values), 100, 50) is None


@pytest.mark.parametrize(
    "values",
    [
        (0, 0, 0),
        (5.0, 5.0),
        (-1e308, 1e308),
        (1e-320, 2e-320),
        (10**400, 1, 2),
        (float("nan"), 1.0, float("inf"), 2.0),
        (True, 1, 2),
    ],
)
def test_every_number_is_within_the_chart(
    chart: ModuleType, values: tuple[MetricValue, ...]
) -> None:
    drawn = chart.chart_of("a", past(chart, *values, limit=1.0), 100, 50)
    assert drawn is not None
    for mark in drawn.marks:
        assert math.isfinite(mark.x)
        assert math.isfinite(mark.y)
        assert 0 <= mark.x <= 100
        assert 0 <= mark.y <= 50


@pytest.mark.parametrize(
    ("threshold", "expected", "limits"),
    [
        (0.1, "< MAX_NULLS (10%)", (0.1,)),
        (0.1, "between 10% and 30%", (0.1, 0.3)),
        (0.1, "between LOW (10%) and HIGH (30%)", (0.1, 0.3)),
        (41.2, "within 3 stddev of 30 days (41.2 and 58.9)", (41.2, 58.9)),
        (1, "between 1 and 1_000", (1, 1000)),
        (1, "between 1 and 2 hours", (1,)),
        (5, "between 5 and -3", (5,)),
        ("2024-01-01", "> 2024-01-01", ()),
        (None, "is not None", ()),
    ],
)
def test_the_limits_of_a_condition(
    chart: ModuleType, threshold: MetricValue, expected: str, limits: tuple[float, ...]
) -> None:
    assert chart.limits_of(threshold, expected) == limits


def test_days_with_profiles_have_a_labelled_band(chart: ModuleType) -> None:
    history = past(chart, 1, 2, 3, 4)
    history[1:3] = [chart.PastValue("x", 2, (), Status.PASSED, 0.5, ("easter",)) for _ in range(2)]
    drawn = chart.chart_of("a", history, 106, 50)
    assert drawn is not None
    (band,) = drawn.bands
    assert band.label == "easter"
    assert drawn.marks[0].x < band.x < drawn.marks[1].x
    assert drawn.marks[2].x < band.x + band.width < drawn.marks[3].x


def test_a_profile_that_holds_to_the_end_stays_within_the_chart(chart: ModuleType) -> None:
    history = [
        chart.PastValue(str(day), day, (), Status.PASSED, 1.0, ("easter",) if day % 4 == 0 else ())
        for day in range(5)
    ]
    drawn = chart.chart_of("a", history, 106, 50)
    assert drawn is not None
    assert len(drawn.bands) == 2
    assert min(band.x for band in drawn.bands) >= 0
    assert max(band.x + band.width for band in drawn.bands) <= 106


def test_ages_have_durations_at_their_scale(chart: ModuleType) -> None:
    history = past(chart, 60.0, 7200.0)
    drawn = chart.chart_of("a", history, 100, 50, format_duration, is_age=True)
    assert drawn is not None
    assert drawn.levels[0] == "2 hours"
    assert drawn.levels[1:3] == ("1 hour 30 minutes", "1 hour")


def test_the_label_describes_the_chart_to_screen_readers(chart: ModuleType) -> None:
    history = [*past(chart, 1, 2.5), chart.PastValue("day 9", 7, (5.0,), Status.FAILED)]
    drawn = chart.chart_of("orders.share", history, 100, 50)
    assert drawn is not None
    assert (
        drawn.label
        == "orders.share: 3 runs from day 0 to day 9, from 1 to 7, most recently 7; 1 failed"
    )
    assert drawn.marks[2].label == "day 9: 7, failed, limit 5"
