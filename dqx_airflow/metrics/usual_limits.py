"""The limits of what is usual for a metric on a day, from its values on the days before.

The expected value is level x weekday x day of the month or holiday, fitted by medians, so that a
few incidents do not move it. There are no weekdays where chance makes days differ as much: in a few
weeks, three or four noisy days would make a factor. The factors multiply; shares and small counts
are added up on the scale of their square roots, where their noise is about the same at every size.
The level is the median of the last four weeks. A day may as well be at the median of the last
three: a shift or a campaign alarms twice, and the way back not at all. What is far from the level
does not become one by itself: after a change of unit each day alarms until a person says that it is
fine. The distance of the limits comes from the errors of the forecast on days without an issue:
five standard deviations, or more where the tail of these errors is heavy; of volumes half as much
again. Errors of a volume are factors, those of a mean, a maximum or a percentile shares of its
level: as a factor, five times the level would be within the noise of a maximum that varies by half.
Limits of anything but a volume are farther away while few weeks are known: errors of days from
which the factors were fitted are smaller than those of the next day. Shares of few rows have the
noise of counting these.

numpy computes many days at once: a backtest requests all days of an assertion together.
"""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from dqx_airflow.errors import RequestError
from dqx_airflow.values.exact import nearest_float

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Kind(str, Enum):
    """The kind of a metric: a volume grows and shifts with the business; a share has a level."""

    VOLUME = "volume"
    OTHER = "other"


DEFAULT_DAYS = 126
"""The default number of days before the date to compute limits from: 18 weeks, with four ends of a
month."""

FEWEST_KNOWN = 14
"""The minimum number of known earlier days: with fewer, there are no usual limits."""

MOST_LOAD = 1.9
"""A volume that is this many times as large as expected, or as many times smaller, always fails, so
that a double or a half load never passes. Where that is within the noise of its days, such as of
small counts, it is `NOISE_SIGMAS` instead."""

NOISE_SIGMAS = 3.0
"""The fewest standard deviations between a volume and its limits."""

FAR = 2.5
"""A value that is this many times as large as its level, or as many times smaller, never becomes
the level by itself, such as after a change of unit: it alarms until a person labels one of its days
as fine."""

_MOST_NEGATIVE = 0.1
"""A volume that is negative on at most this share of the days is positive, and was wrong there, as
is a mean that is nothing. So was anything that was negative on days on which it was an incident."""
_LONG = 28
_SHORT = 3
_NEARBY = 1.9
"""A mean or a share may as well be at the median of its last three days, if that is at most this
many times as large as the median of four weeks, or as many times smaller."""
_VOLUME_WIDTH = 1.5
"""Limits of volumes are this many times as far away as the errors alone demand, since business
moves them. Chosen on the families `TUNED_ON` of `benchmarks.companies`."""
_STEEPNESS = 1.5
"""How fast the lower limit of a mean goes to nothing where its distance is a large share of the
level; up to a share of 0.58, the limit is the level less the distance."""
_FEWEST_BEFORE = 5
_SIGMAS = 5.0
_RETURN_DAYS = 10_000
_TAIL = 0.8
_MOST_SIGMAS_OF_OTHERS = 8.0
_NO_ROW = 1e-12
_LEAST_WITHOUT = 0.1
_FEWEST_WITH_SOME = 10
_MOST_ROWS = 2.5
_LEAST_CHANCE = 0.6
"""Bounds to treat the smallest share as the share of one row: the median of the others is at most
this many rows, and days differ from each other this often, relative to pure chance. A single leak
must not look like a row, and hide the next one."""
_COUNTING = 1.3
_COUNTING_SIGMAS = 4.0
"""Errors of up to 1.3 standard deviations of counting are treated as noise of counting, without a
heavy tail: the limits are then four standard deviations away."""
_FEWEST_WEEKS = 2
_GROSS = 6.0
"""Errors of more standard deviations come from incidents and campaigns, unless labelled as fine."""
_SIGMA_OF_MEDIAN = 1.4826
_OFTEN = 0.8
_SIGMAS_OF_OFTEN = 1.2816
"""The number of standard deviations that this share of normal errors is within."""
_MOST_OFTEN = 0.5
"""The largest share of the level that such errors are of it: a half or a double is no noise."""
_CHI_SQUARED = 16.8
"""What chance exceeds in 1% of the cases, with six degrees of freedom: those of seven weekdays."""
_CLEAR = 4.0
_DOUBT = 2.0
_MOST_SEEN = 8
"""The fewest standard errors of a factor of the calendar that counts."""
_MOST_REPEATED = 3
_LEAST_REPEATED = 100.0


@dataclass(frozen=True, slots=True)
class DayBefore:
    """The history of a day: earlier values, oldest first, the last one yesterday's.

    `issues` and `fine` are the labelled days, as numbers of days before.
    """

    date: date
    values: Sequence[float | None]
    issues: Collection[int] = ()
    fine: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class UsualLimits:
    """The usual limits of a day. `repeated` is yesterday's value if no other day had the value of
    the day before: the same value again probably means that the same delivery was read again."""

    low: float
    high: float
    expected: float
    repeated: float | None
    _fit: _Fit = field(repr=False)
    _row: int

    @property
    def text(self) -> str:
        """The factors of the day, such as `Tuesday x 1.02, growth 1.5% a month`."""
        return self._fit.text(self._row)


@dataclass(frozen=True)
class _Scale:
    """A scale on which noise is about the same at every size; `least` is the smallest distance of a
    limit there, and `counting` the standard deviation of counting rows where these are few."""

    forth: Callable[[Any], Any]
    back: Callable[[float], float]
    least: float
    is_log: bool = False
    counting: float = 0.0
    is_linear: bool = False
    is_ratio: bool = False
    is_complement: bool = False

    def is_within(self, own: Floats, level: Floats, factor: float, noise: Any) -> NDArray[np.bool_]:
        """True where a value is at most `factor` times as large as a level or as many times
        smaller, or differs from it by noise at most. A share near all must be so in what it lacks
        as well."""
        import numpy as np

        low, high = self._multiples(level, factor)
        is_multiple = (np.minimum(low, high) <= own) & (own <= np.maximum(low, high))
        is_within: NDArray[np.bool_] = is_multiple | (np.abs(own - level) <= noise)
        return is_within

    def distances(self, own: Floats, level: Floats) -> Floats:
        """How far values are from their levels; for a ratio as shares of these."""
        import numpy as np

        apart: Floats = np.abs(np.expm1(own - level) if self.is_ratio else own - level)
        return apart

    def below(self, level: Floats, half: Floats) -> Floats:
        """The lower limits. A ratio has a positive one, however noisy, so that a mean of nothing is
        not usual."""
        import numpy as np

        if not self.is_ratio:
            return level - half
        limits: Floats = level + np.fmax(np.log1p(-np.fmin(half, 1)), -_STEEPNESS * half)
        return limits

    def above(self, level: Floats, half: Floats) -> Floats:
        """The upper limits."""
        import numpy as np

        limits: Floats = level + (np.log1p(half) if self.is_ratio else half)
        return limits

    def _multiples(self, level: Floats, factor: float) -> tuple[Floats, Floats]:
        import numpy as np

        if self.is_log:
            return level - math.log(factor), level + math.log(factor)
        if self.is_linear:
            return level / factor, level * factor
        root = math.sqrt(factor)
        if not self.is_complement:
            return level / root, level * root
        share = 1 - np.square(level)
        low, high = -_root(1 - share / factor), -_root(1 - share * factor)
        return np.maximum(low, level * root), np.minimum(high, level / root)


def known_text(on: date, labels: Mapping[date, bool]) -> str:
    """A date, and the labels of days before it, as one operand: `2024-11-29 3:fine 10:issue`."""
    known = (
        f"{(on - day).days}:{'issue' if is_issue else 'fine'}"
        for day, is_issue in sorted(labels.items(), reverse=True)
        if day < on
    )
    return " ".join([on.isoformat(), *known])


def day_before(known: str, values: Sequence[float | None]) -> DayBefore:
    """The day of a `known_text`."""
    on, *labels = known.split(" ")
    lags: dict[str, list[int]] = {"issue": [], "fine": []}
    for label in labels:
        lag, _, word = label.partition(":")
        lags[word].append(int(lag))
    return DayBefore(date.fromisoformat(on), values, lags["issue"], lags["fine"])


def usual_limits(
    days: Sequence[DayBefore], kind: Kind, country: str | None = None
) -> list[UsualLimits | None]:
    """The limits of each day; None where too few days before it are known.

    :param days: with equally many values.
    :param country: whose public holidays count, such as US or DE-BY.
    :raises RequestError: the holidays of the country are not available.
    """
    import numpy as np

    with np.errstate(all="ignore"):  # what overflows has no limits
        return _limits(days, kind, country)


def _limits(days: Sequence[DayBefore], kind: Kind, country: str | None) -> list[UsualLimits | None]:
    import numpy as np

    length = 7 * -(-max((len(day.values) for day in days), default=7) // 7)
    values = np.full((len(days), length), np.nan)
    fine = np.zeros((len(days), length), bool)
    for row, day in enumerate(days):
        known = [math.nan if value is None else nearest_float(value) for value in day.values]
        values[row, length - len(known) :] = np.where(np.isfinite(known), known, np.nan)
        for lag in day.issues:
            if 1 <= lag <= length:
                values[row, -lag] = np.nan
        fine[row, [-lag for lag in day.fine if 1 <= lag <= length]] = True
    found: list[UsualLimits | None] = [None] * len(days)
    enough = np.flatnonzero((~np.isnan(values)).sum(1) >= FEWEST_KNOWN).tolist()
    repeated = _repeated(values, kind)
    if kind is Kind.VOLUME:
        values = _without_other_weekdays(values)
    scales = _scales(values, kind)
    for scale in dict.fromkeys(scales[row] for row in enough):
        rows = [row for row in enough if scales[row] is scale]
        fit = _Fit.of(scale, values[rows], [days[row].date for row in rows], country)
        ends = fit.ends(kind, fine[rows])
        for number, (row, own) in enumerate(zip(rows, zip(*ends, strict=True), strict=True)):
            low, middle, high = sorted(map(scale.back, map(float, own)))
            if all(map(math.isfinite, (low, middle, high))):
                found[row] = UsualLimits(low, high, middle, repeated[row], fit, number)
    return found


def _without_other_weekdays(values: Floats) -> Floats:
    """Values without the other weekdays where a volume is zero on most days of this weekday, such
    as the sales of a shop that is closed on Sundays."""
    import numpy as np

    same = np.arange(values.shape[1]) % 7 == 0  # whole weeks, so that the first day is one of them
    is_closed = _median(values[:, same]) == 0
    return np.where(is_closed[:, None] & ~same, np.nan, values)


def _scales(values: Floats, kind: Kind) -> list[_Scale]:
    """The scale of the values of each row."""
    import numpy as np

    middle = _median(values)
    is_whole = (np.isnan(values) | (values == np.round(values))).all(axis=1)
    size = _median(np.abs(values))

    # from week to week, so that neither weekdays nor a shift look like noise
    weekly = np.abs(values[:, 7:] - values[:, :-7]) / math.sqrt(2)
    noise = _GROSS * _SIGMA_OF_MEDIAN * _median(weekly)
    is_gross = np.abs(values - middle[:, None]) > noise[:, None]
    is_usual = ~is_gross | (middle <= 0)[:, None]
    known = np.maximum((~np.isnan(values)).sum(1), 1)
    negative = (is_usual & (values < 0)).sum(1) / known
    most_negative = _MOST_NEGATIVE if kind is Kind.VOLUME else 0
    # A single mean of nothing must not let the next one pass.
    is_often_none = (is_usual & (values <= 0)).sum(1) / known > _MOST_NEGATIVE

    def scale_of(row: int) -> _Scale:
        if negative[row] > most_negative:
            return _linear(float(f"{0.02 * size[row] + 1e-9:.1g}"))
        if kind is Kind.VOLUME:
            return _COUNT if middle[row] == 0 or (middle[row] < 20 and is_whole[row]) else _LOG
        if np.nan_to_num(values[row]).max() <= 1:
            return _share(values[row], middle[row] > 0.5)
        if is_often_none[row]:  # it has no factors
            return _linear(float(f"{_RATIO.least * size[row] + 1e-9:.1g}"))
        return _RATIO

    return [scale_of(row) for row in range(len(values))]


def _repeated(values: Floats, kind: Kind) -> list[float | None]:
    """Yesterday's value for each row, if the same value again would be unusual; otherwise None."""
    pairs = (values[:, 1:] == values[:, :-1]).sum(1)
    size = _median(values)
    is_strange = (pairs <= _MOST_REPEATED) & (size >= _LEAST_REPEATED)
    return [
        last if kind is Kind.VOLUME and strange and not math.isnan(last) else None
        for last, strange in zip(values[:, -1].tolist(), is_strange, strict=True)
    ]


def _root(values: Any) -> Any:
    import numpy as np

    return np.sqrt(np.maximum(values, 0))


def _logarithm(values: Any) -> Any:
    import numpy as np

    return np.log(np.where(values > 0, values, np.nan))


def _square(root: float) -> float:
    positive = max(root, 0.0)
    return positive * positive  # unlike `**`, it does not raise


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


_COUNT = _Scale(lambda v: _root(v + 0.375), lambda root: max(_square(root) - 0.375, 0), 1.2)
_LOG = _Scale(_logarithm, _exponential, 0.06, is_log=True)
_RATIO = _Scale(_logarithm, _exponential, 0.06, is_log=True, is_ratio=True)


def _share(values: Floats, is_complement: bool) -> _Scale:
    """The scale of a share. If it is none, or all, on many days by chance, its smallest other value
    is the share of one row, and the square root has the noise of a count: F. J. Anscombe, The
    transformation of Poisson, binomial and negative-binomial data, 1948."""
    import numpy as np

    parts = 1 - values if is_complement else values
    has_some = parts > _NO_ROW
    some = parts[has_some]
    known = ~np.isnan(parts)
    none = 1 - len(some) / max(int(known.sum()), 1)
    of_a_row = 0.0
    if len(some) >= _FEWEST_WITH_SOME and none >= _LEAST_WITHOUT and _is_chance(has_some, known):
        # Where most days have many more than the smallest, that is not a row.
        most = _MOST_ROWS * max(1.0, -math.log(none))
        of_a_row = float(some.min()) if np.median(some) <= most * some.min() else 0.0
    return _share_scale(float(f"{of_a_row:.2g}"), is_complement)


def _is_chance(has_some: NDArray[np.bool_], known: NDArray[np.bool_]) -> bool:
    """True if zero and non-zero days occur by chance: a day predicts neither the next one nor
    the same weekday, as it would with a weekly pattern, an incident or a lasting change."""
    import numpy as np

    share = has_some.sum() / known.sum()
    for lag in (1, 7):
        pairs = known[lag:] & known[:-lag]
        differ = np.mean((has_some[lag:] != has_some[:-lag])[pairs]) if pairs.any() else 0.0
        if differ < _LEAST_CHANCE * 2 * share * (1 - share):
            return False
    return True


@lru_cache(maxsize=256)
def _share_scale(of_a_row: float, is_complement: bool) -> _Scale:
    added = 0.375 * of_a_row
    counting = math.sqrt(of_a_row) / 2
    least = max(0.015, 4 * counting)

    def forth(share: Any) -> Any:
        return _root(share + added)

    def back(root: float) -> float:
        return max(_square(root) - added, 0)

    if is_complement:
        return _Scale(
            lambda share: -forth(1 - share),
            lambda value: 1 - back(-value),
            least,
            counting=counting,
            is_complement=True,
        )
    return _Scale(forth, back, least, counting=counting)


@lru_cache(maxsize=64)
def _linear(least: float) -> _Scale:
    return _Scale(lambda values: values, lambda value: value, least, is_linear=True)


@dataclass(frozen=True)
class _Fit:
    """Days by rows, and the days before them by columns, on their scale: without the effects of
    weekday and calendar in `level_days`, which has the known days only, at the end of a row."""

    scale: _Scale
    dates: Sequence[date]
    weekdays: Floats
    events: Floats
    doubts: Floats
    event_names: Sequence[str | None]
    adjusted: Floats
    level_days: Floats
    order: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, scale: _Scale, values: Floats, dates: Sequence[date], country: str | None) -> _Fit:
        import numpy as np

        values = scale.forth(values)
        rows, length = values.shape
        events = _Events.of(dates, length, country)
        weekday = np.zeros((rows, 1, 7))
        effects = np.zeros((rows, length + 1))
        for _ in range(2):
            weeks = (values - effects[:, :length]).reshape(rows, length // 7, 7)
            level = _median(weeks - weekday)[:, :, None]
            weekday = _weekday_effects(weeks - level)[:, None, :]
            effects, doubts, names = events.effects(
                values - np.repeat(level[:, :, 0], 7, 1) - np.tile(weekday[:, 0], length // 7)
            )
        adjusted = values - np.tile(weekday[:, 0], length // 7) - effects[:, :length]
        order = np.argsort(~np.isnan(adjusted), axis=1, kind="stable")
        known = np.take_along_axis(adjusted, order, 1)
        today = weekday[:, 0, 0], effects[:, length]
        return cls(scale, dates, *today, doubts, names, adjusted, known, order)

    def ends(self, kind: Kind, fine: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """The lower limits, the expected values and the upper limits, on the scale."""
        import numpy as np

        scale = self.scale
        is_fine = np.take_along_axis(fine, self.order, 1)
        known = self._without_unseen_shifts(is_fine)
        left = np.argsort(~np.isnan(known), axis=1, kind="stable")
        known = np.take_along_axis(known, left, 1)
        is_fine = np.take_along_axis(is_fine, left, 1)
        length = known.shape[1]
        long, short = _before(known, _LONG, every=7), _before(known, _SHORT)
        errors = np.fmin(
            scale.distances(known, long[:, :length]), scale.distances(known, short[:, :length])
        )
        sigma = np.maximum(_SIGMA_OF_MEDIAN * _median(errors), scale.least / 4)
        if kind is Kind.OTHER and (scale.is_ratio or scale.is_linear):
            # Where most days have the same value, such as a minimum of whole numbers, the others
            # are no incidents, unless they are far from it.
            often = _quantile(errors, _OFTEN)
            most = _MOST_OFTEN * (1 if scale.is_ratio else np.abs(long[:, length]))
            is_one_value = (_median(errors) == 0) & (often > _GROSS * sigma) & (often <= most)
            sigma = np.where(is_one_value, often / _SIGMAS_OF_OFTEN, sigma)
        is_gross = errors > _GROSS * sigma[:, None]
        usual = np.where(is_gross & ~is_fine, np.nan, errors)
        load = np.maximum(math.log(MOST_LOAD), NOISE_SIGMAS * sigma)
        half = self._half(kind, sigma, usual)
        if kind is Kind.VOLUME and scale.is_log:
            half = np.minimum(half, load)
        expected, recent = long[:, length], short[:, length]
        if kind is Kind.OTHER:
            # a level around zero has no multiples
            noise = _GROSS * sigma if scale.is_linear else 0.0
            is_near = scale.is_within(recent, expected, _NEARBY, noise)
            recent = np.where(is_near, recent, np.nan)
        yesterday = np.where(fine[:, -1], self.adjusted[:, -1], np.nan)
        # a level that a person accepted, until it is the median of four weeks
        is_accepted = (is_gross & is_fine)[:, -(_LONG // 2 + 1) :].any(1)
        accepted = np.where(is_accepted, _median(known[:, -_SHORT:]), np.nan)
        now = np.array([expected, recent, yesterday, accepted])
        least = np.fmin.reduce(now)
        most = np.fmax.reduce(now)
        if kind is Kind.VOLUME and scale.is_log:
            # nearby levels are noise, and no reason to let a double load pass
            room = load - half
            least = np.where(expected - least > half, least, np.maximum(least, expected - room))
            most = np.where(most - expected > half, most, np.minimum(most, expected + room))
        on_top = self.weekdays + self.events
        half = half + self.doubts
        if kind is Kind.VOLUME and scale.is_log:
            half = np.minimum(half, load)
        return (
            scale.below(least + on_top, half),
            _median(known[:, -_LONG:]) + on_top,
            scale.above(most + on_top, half),
        )

    def _half(self, kind: Kind, sigma: Floats, usual: Floats) -> Floats:
        """The distance of the limits from the level, from the usual errors."""
        import numpy as np

        scale = self.scale
        tail = _quantile(usual, _TAIL)
        far = _quantile(usual, (1 + _TAIL) / 2)
        reach = tail + (far - tail) / math.log(2) * math.log(_RETURN_DAYS * (1 - _TAIL))
        if kind is Kind.OTHER:  # its tail is rarely heavy, but of issues without a label
            reach = np.minimum(reach, _MOST_SIGMAS_OF_OTHERS * sigma)
        half = np.maximum(_SIGMAS * sigma, reach)
        if kind is Kind.OTHER:
            weeks = np.maximum((~np.isnan(self.adjusted)).sum(1) / 7, _FEWEST_WEEKS)
            half = half * np.sqrt(weeks / (weeks - 1))
        elif scale.is_log:
            half = _VOLUME_WIDTH * half
        half = np.maximum(half, scale.least)
        is_counting = sigma <= _COUNTING * scale.counting
        return np.where(is_counting, np.maximum(_COUNTING_SIGMAS * sigma, scale.least), half)

    def _without_unseen_shifts(self, is_fine: NDArray[np.bool_]) -> Floats:
        """The known days without those that are far from the level before them, as after a change
        of unit, unless a person labelled such a day as fine."""
        import numpy as np

        known = self.level_days
        middle = _median(known)[:, None]
        # from day to day, since a shift in the middle of the days would look like noise
        errors = np.abs(np.diff(known, axis=1)) / math.sqrt(2)
        noise = _GROSS * np.maximum(_SIGMA_OF_MEDIAN * _median(errors), self.scale.least / 4)
        is_apart = ~np.isnan(known) & ~self.scale.is_within(known, middle, math.sqrt(FAR), 0.0)
        rows = np.flatnonzero(is_apart.any(1))
        left: Floats = known.copy()
        if len(rows):
            left[rows] = self._seen_shifts(known[rows], is_fine[rows], noise[rows])
        return left

    def _seen_shifts(self, known: Floats, is_fine: NDArray[np.bool_], noise: Floats) -> Floats:
        """The known days, one after the other, without those that are far from the level that the
        days before them have, and from the last value that is labelled as fine."""
        import numpy as np

        left: Floats = known.copy()
        accepted = np.full(len(known), np.nan)
        # from the level of the first half, so that an incident at its beginning is none
        lags = np.arange(known.shape[1], 0, -1)
        is_later = lags <= (~np.isnan(known)).sum(1)[:, None] // 2
        first = _median(np.where(is_later, np.nan, known))
        kept = np.repeat(first[:, None], _LONG, 1)
        for column, own in enumerate(known.T):
            level = _median(kept)
            # what was accepted ends when the days are back at their level
            is_back = np.abs(own - level) < np.abs(own - accepted)
            accepted = np.where(is_back, np.nan, accepted)
            accepted = np.where(is_fine[:, column], own, accepted)
            is_kept = self.scale.is_within(own, level, FAR, noise)
            is_kept |= self.scale.is_within(own, accepted, FAR, noise)
            left[~is_kept, column] = np.nan
            kept[is_kept] = np.column_stack([kept[is_kept, 1:], own[is_kept]])
        return left

    def text(self, row: int) -> str:
        """The factors of a day in words; none on scales where effects are added."""
        import numpy as np

        if not self.scale.is_log:
            return ""
        parts = []
        weekday, event = (_exponential(float(part[row])) for part in (self.weekdays, self.events))
        if abs(weekday - 1) >= 0.005:
            parts.append(f"{self.dates[row]:%A} x {weekday:.2f}")
        if abs(event - 1) >= 0.005:
            parts.append(f"{self.event_names[row]} x {event:.2f}")
        known = self.level_days[row]
        known = known[~np.isnan(known)]
        if len(known) >= 2 * _LONG:
            weeks = len(self.adjusted[row]) / 7 * len(known) / self.adjusted.shape[1]
            step = float(_middle(known[-_LONG:]) - _middle(known[:_LONG]))
            month = _exponential(step / (weeks * 7 - _LONG) * 30) - 1
            if abs(month) >= 0.005:
                parts.append(f"{'growth' if month > 0 else 'decline'} {abs(month):.1%} a month")
        return ", ".join(parts)


def _weekday_effects(errors: Floats) -> Floats:
    """The effect of each weekday, from the errors of whole weeks; none for any of them where chance
    alone makes weekdays differ as much, such as in a few weeks of noisy days."""
    import numpy as np

    effects = _median(errors.transpose(0, 2, 1))
    known = (~np.isnan(errors)).sum(1)
    effects = np.where(known >= _FEWEST_WEEKS, np.nan_to_num(effects), 0)
    rest = np.abs(errors - effects[:, None, :])
    weeks = np.maximum(known.mean(1), _FEWEST_WEEKS)
    # Medians of few days are near them: C. Croux, P. Rousseeuw, Time-efficient algorithms for two
    # highly robust estimators of scale, 1992, has factors within 5% of this one.
    spread = _SIGMA_OF_MEDIAN * _median(rest.reshape(len(rest), -1)) * weeks / (weeks - 1)
    error = 1.25 * np.fmax(spread, 1e-12)[:, None] / np.sqrt(np.maximum(known, 1))
    is_shown = np.square(effects / error).sum(1) > _CHI_SQUARED
    return np.where(is_shown[:, None], effects, 0)


def _before(known: Floats, length: int, every: int = 1) -> Floats:
    """The median of the last `length` known days before each position, and after the last one;
    computed again only after `every` days."""
    import numpy as np

    columns = known.shape[1]
    padded = np.pad(known, ((0, 0), (length, 0)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, length, axis=1)
    first = columns % every
    looked_at = np.arange(first, columns + 1, every)
    medians = _median(windows[:, looked_at])
    few = (~np.isnan(windows[:, looked_at])).sum(-1) < min(_FEWEST_BEFORE, length)
    medians[few] = np.nan
    last = (np.arange(columns + 1) - first) // every
    return np.where(last >= 0, medians[:, np.maximum(last, 0)], np.nan)


def _median(values: Floats) -> Floats:
    """The median along the last axis, without missing values."""
    import numpy as np

    ordered = np.sort(values, axis=-1)  # missing ones are last
    rows = ordered.reshape(-1, ordered.shape[-1])
    last = np.maximum(np.count_nonzero(~np.isnan(rows), axis=1) - 1, 0)
    each = np.arange(len(rows))
    medians: Floats = (rows[each, last // 2] + rows[each, (last + 1) // 2]) / 2
    return medians.reshape(ordered.shape[:-1])


def _middle(values: Floats) -> float:
    return float(_median(values))


def _quantile(values: Floats, share: float) -> Floats:
    import numpy as np

    ordered = np.sort(values, axis=1)
    count = (~np.isnan(ordered)).sum(1, keepdims=True)
    at = np.minimum((share * count).astype(int), np.maximum(count - 1, 0))
    return np.take_along_axis(ordered, at, 1)[:, 0]


# The calendar


@dataclass(frozen=True)
class _Events:
    """The parts of the calendar: their name, on how many days it must have been seen, for each row
    the columns of the last of these days, and whether a column is such a day, the day itself last.
    """

    parts: Sequence[tuple[str, int, NDArray[np.int64], NDArray[np.bool_]]]

    @classmethod
    def of(cls, dates: Sequence[date], length: int, country: str | None) -> _Events:
        import numpy as np

        first = min(dates) - timedelta(days=length)
        starts = np.array([(on - first).days - length for on in dates])[:, None]
        parts = []
        for name, fewest, days in _calendar(first, max(dates), country):
            is_day = np.array(days)
            at = np.flatnonzero(is_day)
            last = np.searchsorted(at, starts + length) + np.arange(-_MOST_SEEN, 0)
            columns = np.where(last >= 0, at[np.maximum(last, 0)] if len(at) else 0, -1) - starts
            parts.append((name, fewest, columns, is_day[starts + np.arange(length + 1)]))
        return cls(parts)

    def effects(self, errors: Floats) -> tuple[Floats, Floats, list[str | None]]:
        """The effect of the calendar on each column; for the last column, also its uncertainty and
        its name."""
        import numpy as np

        rows, length = errors.shape
        spread = _SIGMA_OF_MEDIAN * _median(np.abs(errors))
        effects = np.zeros((rows, length + 1))
        clearest = np.full((rows, length + 1), _CLEAR)
        doubts = np.zeros(rows)
        names: list[str | None] = [None] * rows
        for name, fewest, columns, is_day in self.parts:
            seen = np.where(
                columns >= 0, np.take_along_axis(errors, np.maximum(columns, 0), 1), np.nan
            )
            count = (~np.isnan(seen)).sum(1)
            effect = np.nan_to_num(_median(seen))
            apart = 1.25 * _SIGMA_OF_MEDIAN * _median(np.abs(seen - effect[:, None]))
            error = np.fmax(np.fmax(apart, spread), 1e-12) / np.sqrt(np.maximum(count, 1))
            clear = np.where(count >= fewest, np.abs(effect) / error, 0)
            chosen = is_day & (clear[:, None] > clearest)
            effects = np.where(chosen, effect[:, None], effects)
            clearest = np.where(chosen, clear[:, None], clearest)
            doubts = np.where(chosen[:, -1], _DOUBT * error, doubts)
            today = chosen[:, -1]
            names = [name if own else was for own, was in zip(today, names, strict=True)]
        return effects, doubts, names


@lru_cache(maxsize=32)
def _calendar(
    first: date, last: date, country: str | None
) -> tuple[tuple[str, int, tuple[bool, ...]], ...]:
    """The parts of the calendar that may have an effect: their name, on how many days it must have
    been seen, and which days belong to it."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    public = holidays_of(country, first, last) if country else {}
    one = timedelta(days=1)

    def is_business(on: date) -> bool:
        return on.weekday() < 5 and on not in public

    def is_bridge(on: date) -> bool:
        aside = {0: one, 4: -one}.get(on.weekday())
        return is_business(on) and aside is not None and on + aside in public

    parts: list[tuple[str, int, Callable[[date], bool]]] = [
        (f"{_ORDINALS[number]} {word}", 3, _nth(number, counts))
        for number in _ORDINALS
        for word, counts in (("day of the month", lambda on: True), ("business day", is_business))
    ]
    if public:
        parts += [
            ("holiday", 1, lambda on: on in public and on.weekday() < 5),
            ("holiday at the weekend", 1, lambda on: on in public and on.weekday() >= 5),
            ("day after a holiday", 1, lambda on: on - one in public and is_business(on)),
            ("bridge day", 1, is_bridge),
        ]
    return tuple((name, fewest, tuple(map(holds, days))) for name, fewest, holds in parts)


_ORDINALS = {1: "first", 2: "second", -1: "last"}


def _nth(number: int, counts: Callable[[date], bool]) -> Callable[[date], bool]:
    """True for the nth day that counts, from the start or the end of its month."""

    @cache
    def of_month(year: int, month: int) -> date | None:
        days = (date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1))
        counted = [on for on in days if counts(on)]
        if len(counted) < abs(number):
            return None
        return counted[number - 1 if number > 0 else number]

    return lambda on: on == of_month(on.year, on.month)


def holidays_of(country: str, first: date, last: date) -> Mapping[date, str]:
    """The public holidays of a country, such as US or DE-BY, in the years of some days and in the
    following year, from the package `holidays`.

    :raises RequestError: the package is not installed, or does not contain the country.
    """
    try:
        import holidays
    except ModuleNotFoundError as error:
        message = "holidays need the package holidays"
        raise RequestError(message, "pip install 'dqx-airflow[tuning]'") from error
    code, _, subdivision = country.partition("-")
    years = range(first.year, last.year + 2)
    try:
        by_date = holidays.country_holidays(code, subdiv=subdivision or None, years=years)
    except (NotImplementedError, KeyError, ValueError) as error:
        message = f"unknown country or region '{country}'"
        raise RequestError(message, "write a code such as US, DE or DE-BY") from error
    return dict(sorted(by_date.items()))
