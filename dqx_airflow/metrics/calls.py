"""The calls of a suite that are computed from metrics: functions, windows of days, ages, and the
calls that only one form of assertion takes. `metrics.derived` computes them.
"""

from __future__ import annotations

from fractions import Fraction

from dqx_airflow.values.files import table_rows

ARITY: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("abs", "sqrt", "log", "exp"), (1, 1)),
    **dict.fromkeys(("min", "max"), (2, None)),
    "coalesce": (1, None),
}
"""The functions of metrics that a suite may call, with their minimum and maximum number of
arguments."""

FUNCTION_DOCS: dict[str, str] = dict(table_rows(__package__, "functions.txt", "functions"))
"""The functions of `ARITY` with the value that each returns."""

CHANGES: dict[str, int] = {"day_over_day": 1, "week_over_week": 7}
"""Absolute change `abs((today - base) / base)` against `base`, n days before (seed 001)."""

USUAL = "usual"
"""The window that excludes the target date: the median of `n` earlier days, `step` days apart."""

USUAL_LIMITS: tuple[str, ...] = ("lowest_usual", "highest_usual")
"""The limits of `within usual(m)`, from the days before the date: see `metrics.usual_limits`."""

USUAL_OPERANDS = ("known day", "kind", "country", "today")
"""The operands of these limits before the values of the days before."""

WINDOWS: tuple[str, ...] = ("stddev", "mean", USUAL, *USUAL_LIMITS)
"""Functions over the values of `n` days: `stddev` and `mean` include the target date."""

WINDOW_DOCS: dict[str, str] = dict(table_rows(__package__, "functions.txt", "windows"))


HOLIDAYS = "holidays"
"""The parameter with the country whose public holidays `within usual` uses: `holidays "DE-BY"`."""


def window_parameters(window: str) -> tuple[str, ...]:
    """The parameters of a window."""
    if window in USUAL_LIMITS:
        return ("n", HOLIDAYS)
    return ("n", "step", "lag") if window == USUAL else ("n", "lag")


def window_lags(window: str, n: int, step: int = 1) -> range:
    """The distances of the days of a window from the target date."""
    return range(step, n * step + 1, step) if window == USUAL else range(n)


AGES: dict[str, str] = {
    "freshness": "the time since the newest date or timestamp of the column",
    "data_lag": "the time since the start of the newest day of the column",
}
"""Calls with one column that return a duration in seconds, measured when the gate runs."""

TIMELINESS = "timeliness"
"""The call with one column that is compared with a time of day: `by 06:00 UTC`."""

DISTRIBUTION = "distribution"
"""The call with one column that is compared with shares: `matches {"A": 50%}`."""

MOST_COMMON = "most_common"
"""The call with a column and a number of values, which must be in a list: `in ["A", "B"]`."""

DEFAULT_STDDEV_DAYS = 30
"""The default window of `within 3 stddev`, in days before the target date."""

DEFAULT_SHARE_TOLERANCE = Fraction(5, 100)
"""By so much the share of a value may differ from the expected one where no tolerance is given."""

SHORTCUTS: dict[str, str] = dict(table_rows(__package__, "functions.txt", "shortcuts"))
"""Calls that are assertions of their own, and what they stand for."""
