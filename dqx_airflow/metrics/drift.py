"""Drift: the distance between the distributions of a column on a day and on earlier days.

A column on a day is stored as a *summary*, a JSON string: the number of rows of each value, and of
NULL. Up to `MOST_STEPS` different numbers are kept exactly. Of more, the values are kept
at which the number of rows up to them passes another 1/`MOST_STEPS` of all: between them, the
number of rows up to a value is known to that share. So the summary of a day depends on nothing but
its rows: it is stored once, serves as the day itself and as the reference of any later day, and
gives both the same bins. Of more than `MOST_CATEGORIES` strings there is no summary.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeAlias

from dqx_airflow.values import MetricValue
from dqx_airflow.values.files import table_rows

MOST_CATEGORIES = 1000
"""With more different strings, a column has no drift."""

MOST_STEPS = 100
"""With more different numbers, their distribution is kept in this many steps of equal share."""

LONGEST_REPEATED = 1_000
"""The characters of the longest summary of an earlier day that a verdict repeats. Longer ones stand
only with the verdict of their own day, where a backtest finds them."""

BINS = 10
"""Numbers are compared in this many bins, with equally many rows of the reference in each."""

SMALLEST_SHARE = 0.0001
"""The share that `psi` assumes for a category or bin that is smaller, or has no rows."""

NO_DRIFT = (
    f"no rows on one of the days, nothing but NULL for `ks`, or more than {MOST_CATEGORIES:,} "
    "different strings"
)
"""The cases in which drift has no value, for messages."""

Rows: TypeAlias = "Counter[Any]"
"""The number of rows by value: of numbers or of strings, and of None for NULL."""


def summary_text(points: Iterable[tuple[Any, int]], nulls: int, values: int) -> str | None:
    """The summary of some rows; None if there are none.

    :param points: numbers as floats, or strings, with their numbers of rows.
    :param nulls: the rows that are NULL.
    :param values: the others. Without points, they have too many strings.
    """
    rows: Rows = Counter()
    for value, count in points:
        rows[value] += count
    if not nulls + values:
        return None
    if values and not rows:
        return _TOO_MANY
    return json.dumps([*sorted(rows.items()), (None, nulls)], ensure_ascii=False)


_TOO_MANY = "null"


def _shares(day: Rows, reference: Rows) -> list[tuple[float, float]]:
    """The shares of the day and of the reference in each category or bin, NULL being one. Up to
    `BINS` different numbers of the reference are categories, like strings."""
    edges: list[float] = []
    numbers = sorted(value for value in reference if isinstance(value, float))
    if len(numbers) > BINS:
        running = list(accumulate(reference[value] for value in numbers))
        wanted = (-(-running[-1] * part // BINS) for part in range(1, BINS))
        edges = sorted({numbers[bisect_left(running, rows)] for rows in wanted})
    first = _binned(day, edges)
    second = _binned(reference, edges)
    total = first.total()
    other = second.total()
    return [(first[bin_] / total, second[bin_] / other) for bin_ in first.keys() | second.keys()]


def _binned(rows: Rows, edges: Sequence[float]) -> Rows:
    binned: Rows = Counter()
    for value, count in rows.items():
        is_binned = edges and isinstance(value, float)
        binned[bisect_left(edges, value) if is_binned else value] += count
    return binned


def _psi(day: Rows, reference: Rows) -> float:
    """The population stability index, the sum of `(p - q) * ln(p / q)` over the shares `p` of the
    day and `q` of the reference (N. Siddiqi, "Credit Risk Scorecards", 2006)."""
    shares = [(max(p, SMALLEST_SHARE), max(q, SMALLEST_SHARE)) for p, q in _shares(day, reference)]
    return math.fsum((p - q) * math.log(p / q) for p, q in shares)


def _js(day: Rows, reference: Rows) -> float:
    """The Jensen-Shannon distance to base 2, from 0 to 1: the square root of the divergence (Endres
    and Schindelin, "A new metric for probability distributions", 2003)."""

    def to_middle(p: float, q: float) -> float:
        return p * math.log2(2 * p / (p + q)) if p else 0.0

    shares = _shares(day, reference)
    divergence = math.fsum(to_middle(p, q) + to_middle(q, p) for p, q in shares) / 2
    return math.sqrt(min(1.0, max(0.0, divergence)))


def _ks(day: Rows, reference: Rows) -> float | None:
    """The statistic of Kolmogorov and Smirnov for two samples: the largest difference between the
    shares of rows up to a value."""
    sides = [
        {value: count for value, count in rows.items() if value is not None}
        for rows in (day, reference)
    ]
    totals = [sum(side.values()) for side in sides]
    if not all(totals):
        return None
    most = 0.0
    up_to = [0, 0]
    for value in sorted(sides[0].keys() | sides[1].keys()):
        up_to = [rows + side.get(value, 0) for rows, side in zip(up_to, sides, strict=True)]
        most = max(most, abs(up_to[0] / totals[0] - up_to[1] / totals[1]))
    return most


def _between(compare: Callable[[Rows, Rows], float | None]) -> Callable[..., MetricValue]:
    """Returns a function that compares the summary of a day with the rows of all earlier days
    together. Earlier days without rows do not count."""

    @lru_cache(maxsize=512)  # usual limits of drift compute the drift of each earlier day again
    def drift(day: MetricValue, *earlier: MetricValue) -> MetricValue:
        known = [str(text) for text in (day, *earlier) if text is not None]
        if day is None or len(known) < 2 or _TOO_MANY in known:
            return None
        first, *others = (Counter(dict(json.loads(text))) for text in known)
        reference: Rows = Counter()
        for rows in others:
            reference.update(rows)
        return compare(first, reference)

    return drift


DRIFT: Mapping[str, Callable[..., MetricValue]] = {
    "psi": _between(_psi),
    "js": _between(_js),
    "ks": _between(_ks),
}
"""The functions that compute drift from the summaries of a day and of earlier days, by name."""

DRIFT_SUMMARY = {"psi": "value_summary", "js": "value_summary", "ks": "number_summary"}
"""The metric whose values are the summaries."""

LARGEST_DRIFT = {"psi": math.inf, "js": 1, "ks": 1}
"""The largest values; the smallest one is 0."""

DRIFT_DOCS: dict[str, str] = dict(table_rows(__package__, "functions.txt", "drift"))
"""The description of each kind of drift, by name."""

EARLIER_DAYS = "usual n"
"""The parameter with the number of days before the date whose rows, together, are compared with."""

DRIFT_PARAMETERS = ("lag", EARLIER_DAYS, "step", "dataset", "where")
"""The parameters of a call: one day before to compare with, or several."""
