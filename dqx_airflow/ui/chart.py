"""A history of values as a small chart: round numbers as its levels, and the positions of its lines
and marks in the units of an SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import TypeAlias

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.ui.verdict_text import Reading
from dqx_airflow.values import MetricValue, Status, Verdict
from dqx_airflow.values.exact import NUMBERS, is_finite_number

_NUMBER = re.compile(r"(?<![\w.])(-?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(%?)(?=\)?$)")
_Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PastValue:
    """A past value: `scaled_value` is the compared number, and `value` the measured one.

    `when` is its date as text, and `on` its date, by which it is positioned. `limits` are the
    numbers that it was compared with, `event` is the text of another event at that time, which gets
    a mark, and `href` the page of the run.
    """

    when: str
    scaled_value: MetricValue
    limits: tuple[float, ...]
    status: Status
    multiplier: float = 1.0
    profiles: tuple[str, ...] = ()
    event: str = ""
    on: date | None = None
    href: str = ""
    value: MetricValue = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A value in the chart; a missing one is at the bottom."""

    x: float
    y: float
    status: str
    label: str
    has_event: bool
    href: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """A period in which profiles were active."""

    x: float
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The shapes to draw. `lines` and `limits` are the points of polylines.

    `rules` are the heights of the horizontal lines, highest first, and `levels` their labels.
    `posts` are the positions of the vertical lines, and `days` their labels; without dates there
    are no such lines, and `days` has the first and last `when`. `limit` is the last limit as text.
    """

    width: int
    height: int
    label: str
    lines: tuple[str, ...]
    limits: tuple[str, ...]
    marks: tuple[Mark, ...]
    bands: tuple[Band, ...]
    levels: tuple[str, ...]
    rules: tuple[float, ...]
    days: tuple[str, ...]
    posts: tuple[float, ...]
    limit: str


def past_of(on: date, verdict: Verdict, href: str = "") -> PastValue:
    """A verdict as a past value: the compared number, and its limits."""
    return PastValue(
        on.isoformat(),
        verdict.scaled_value,
        limits_of(verdict.threshold, verdict.expected),
        verdict.status,
        verdict.multiplier,
        verdict.profiles,
        on=on,
        href=href,
        value=verdict.value,
    )


def limits_of(threshold: MetricValue, expected: str) -> tuple[float, ...]:
    """The limits of a condition as numbers: the threshold, and for a range, such as `between`, the
    upper limit from the text `expected`. Empty if the threshold is not a number."""
    if not is_finite_number(threshold):
        return ()
    assert isinstance(threshold, NUMBERS)
    lower = float(threshold)
    if expected.startswith(("between", "not between", "within")) and (
        match := _NUMBER.search(expected)
    ):
        upper = float(match[1].replace("_", "")) / (100 if match[2] else 1)
        return (lower, upper) if upper >= lower else (lower,)
    return (lower,)


def chart_of(
    name: str,
    history: Sequence[PastValue],
    width: int,
    height: int,
    read: Reading = format_value,
    *,
    is_age: bool = False,
) -> Chart | None:
    """The chart of a history, oldest first; None if fewer than two values are numbers.

    Values are positioned by their dates, or side by side if they have none. Counts begin at zero.

    :param read: the format of the values.
    :param is_age: whether they are durations in seconds.
    """
    values = [_finite_or_none(past.scaled_value) for past in history]
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return None
    drawn = [*numbers, *(limit for past in history for limit in past.limits)]
    is_count = all(isinstance(past.scaled_value, int | None) for past in history)
    levels = levels_of(float(min(drawn)), float(max(drawn)), is_count=is_count, is_age=is_age)
    plane = _Plane(width, height, tuple(_places(history)), levels[0], levels[-1])
    points = [
        None if value is None else (plane.x(index), plane.y(value))
        for index, value in enumerate(values)
    ]
    days, posts = _axis(history, plane)
    return Chart(
        width=width,
        height=height,
        label=_label(name, history, numbers, read),
        lines=_polylines(points),
        limits=_limit_lines(history, plane),
        marks=_marks(history, points, plane, read),
        bands=_bands(history, plane),
        levels=tuple(
            read(int(level) if level.is_integer() else level) for level in reversed(levels)
        ),
        rules=tuple(map(plane.y, reversed(levels))),
        days=days,
        posts=posts,
        limit=" and ".join(map(read, history[-1].limits)),
    )


_MARGIN = 6.0


@dataclass(frozen=True, slots=True)
class _Plane:
    """Maps the values of a history to positions in a drawing. `places` are the positions of the
    values from left to right, from 0 to 1; `low` and `high` the ends of the scale."""

    width: int
    height: int
    places: tuple[float, ...]
    low: float
    high: float

    def x_of_share(self, share: float) -> float:
        """The position of a share of the time, from 0 to 1."""
        return round(_MARGIN + share * (self.width - 2 * _MARGIN), 1)

    def x(self, index: float) -> float:
        """The position of a value; halfway between two of them for a fractional index."""
        before = self.places[math.floor(index)]
        after = self.places[math.ceil(index)]
        return self.x_of_share((before + after) / 2)

    def y(self, value: float) -> float:
        """The position of a number on the scale."""
        # Halves, because the difference of the largest numbers overflows.
        span = self.high / 2 - self.low / 2
        share = (value / 2 - self.low / 2) / span if span else 0.5
        return round(self.height - _MARGIN - share * (self.height - 2 * _MARGIN), 1)

    @property
    def bottom(self) -> float:
        """The position of a mark without a number."""
        return round(self.height - _MARGIN / 2, 1)


def _limit_lines(history: Sequence[PastValue], plane: _Plane) -> tuple[str, ...]:
    """The lines of the first limits, and of the second ones, if there are any."""
    lines: list[str] = []
    for index in range(max(len(past.limits) for past in history)):
        lines += _steps([past.limits[index : index + 1] for past in history], plane)
    return tuple(lines)


def _marks(
    history: Sequence[PastValue], points: Sequence[_Point | None], plane: _Plane, read: Reading
) -> tuple[Mark, ...]:
    marks = []
    for index, (point, past) in enumerate(zip(points, history, strict=True)):
        x, y = point or (plane.x(index), plane.bottom)
        description = _description(past, read)
        marks.append(Mark(x, y, past.status.value, description, bool(past.event), past.href))
    return tuple(marks)


def _axis(history: Sequence[PastValue], plane: _Plane) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The labelled days, and their positions."""
    first = history[0]
    last = history[-1]
    if first.on is None or last.on is None or not first.on < last.on:
        return tuple(dict.fromkeys((first.when, last.when))), ()
    length = (last.on - first.on).days
    days = days_of(first.on, last.on)
    posts = tuple(plane.x_of_share((day - first.on).days / length) for day in days)
    return tuple(day.isoformat() for day in days), posts


def _places(history: Sequence[PastValue]) -> list[float]:
    """The positions of the values from left to right, from 0 to 1."""
    days = [past.on.toordinal() for past in history if past.on]
    if len(days) < len(history) or not days[0] < days[-1] or days != sorted(days):
        days = list(range(len(history)))
    return [(day - days[0]) / max(days[-1] - days[0], 1) for day in days]


def _finite_or_none(value: MetricValue) -> float | None:
    return float(value) if is_finite_number(value) and not isinstance(value, str | None) else None


def _polylines(points: Sequence[_Point | None]) -> tuple[str, ...]:
    """The polylines through consecutive points; a missing point ends one, and a single point has
    none."""
    stretches = [list(group) for is_drawn, group in groupby(points, bool) if is_drawn]
    return tuple(
        " ".join(f"{point[0]},{point[1]}" for point in stretch if point)
        for stretch in stretches
        if len(stretch) > 1
    )


def _steps(limits: Sequence[tuple[float, ...]], plane: _Plane) -> tuple[str, ...]:
    """The points of a limit's line, with a step between two values with different limits."""
    points: list[_Point | None] = []
    for index, limit in enumerate(limits):
        if not limit:
            points.append(None)
            continue
        height = plane.y(limit[0])
        points.append((plane.x(max(index - 0.5, 0)), height))
        points.append((plane.x(min(index + 0.5, len(limits) - 1)), height))
    return _polylines(points)


def _bands(history: Sequence[PastValue], plane: _Plane) -> tuple[Band, ...]:
    """The periods in which profiles were active; each value covers half of the distance to the
    next."""
    bands = []
    index = 0
    for profiles, group in groupby(history, lambda past: past.profiles):
        end = index + len(list(group))
        if profiles:
            left = plane.x(max(index - 0.5, 0))
            right = plane.x(min(end - 0.5, len(history) - 1))
            bands.append(Band(left, round(right - left, 1), ", ".join(profiles)))
        index = end
    return tuple(bands)


def _label(name: str, history: Sequence[PastValue], numbers: Sequence[float], read: Reading) -> str:
    failed = sum(past.status is Status.FAILED for past in history)
    return (
        f"{name}: {len(history)} runs from {history[0].when} to {history[-1].when}, "
        f"from {read(min(numbers))} to {read(max(numbers))}, "
        f"most recently {read(history[-1].scaled_value)}; {failed} failed"
    )


def _description(past: PastValue, read: Reading) -> str:
    parts = [f"{past.when}: {read(past.scaled_value)}", past.status.value]
    if past.limits:
        parts.append(f"limit {' and '.join(map(read, past.limits))}")
    if past.multiplier != 1.0:
        parts.append(f"multiplier {past.multiplier:g}")
    if past.profiles:
        parts.append(", ".join(past.profiles))
    if past.event:
        parts.append(past.event)
    return ", ".join(parts)


_STEPS = (1, 2, 5, 10)
_AGES = (
    *(1.0 * seconds for seconds in (1, 5, 15, 30)),
    *(60.0 * minutes for minutes in (1, 5, 15, 30)),
    *(3600.0 * hours for hours in (1, 2, 3, 6, 12)),
    *(86_400.0 * days for days in (1, 2, 5, 10, 30, 100)),
)
"""The steps of a scale of durations, in seconds."""
_INTERVALS = 4
_SMALLEST = 1e-300
_LARGEST = 1e300


def levels_of(
    low: float, high: float, *, is_count: bool = False, is_age: bool = False
) -> tuple[float, ...]:
    """The levels of a scale for values from `low` to `high`, ascending and evenly spaced.

    Counts begin at zero, and so do values close to it. A constant has a single level, and numbers
    that are too large or too small have only the two ends.

    :param is_age: whether the values are seconds, whose steps are minutes, hours and days.

    >>> levels_of(0.03, 0.508)
    (0.0, 0.2, 0.4, 0.6)
    """
    if low > 0 and (is_count or low < high / 2):
        low = 0.0
    elif high < 0 and (is_count or high > low / 2):
        high = 0.0
    span = high - low
    if span == 0 or not _SMALLEST < span < _LARGEST:
        return (low,) if low == high else (low, high)
    step = _age_step(span) if is_age else _step(span)
    if is_count:
        step = max(step, 1.0)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(-math.floor(math.log10(step)), 0)
    return tuple(round(multiple * step, digits) for multiple in range(first, last + 1))


def _step(span: float) -> float:
    rough = span / _INTERVALS
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(unit * step for step in _STEPS if unit * step >= rough * (1 - 1e-9))


def _age_step(span: float) -> float:
    return next((age for age in _AGES if age >= span / _INTERVALS), None) or _step(span)


def days_of(first: date, last: date) -> tuple[date, ...]:
    """The labelled days of a time axis, as evenly spaced as days can be."""
    days = (last - first).days
    parts = min(days, _INTERVALS)
    if parts < 1:
        return (first,)
    return tuple(first + timedelta(days=round(days * part / parts)) for part in range(parts + 1))
