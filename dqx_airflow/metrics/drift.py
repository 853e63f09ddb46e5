"""Drift: the distance between the distributions of a column on a day and on earlier days.

A column on a day is stored as a *summary*, a JSON string: the number of rows of each value, and of
NULL. Up to `MOST_STEPS` different numbers are kept exactly. Of more, the smallest value is kept,
and those at which the number of rows up to them passes another 1/`MOST_STEPS` of all: between them,
the number of rows up to a value is known to that share. So the summary of a day depends on nothing
but its rows: it is stored once, serves as the day itself and as the reference of any later day, and
gives both the same bins. Of more than `MOST_CATEGORIES` strings there is no summary.

What is computed from steps is approximate: `drift_bounds` returns the smallest and the largest
value that is possible for rows with these summaries.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

from dqx_airflow.values import MetricValue
from dqx_airflow.values.files import table_rows

MOST_CATEGORIES = 1000
"""With more different strings, a column has no drift."""

MOST_STEPS = 1000
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


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a day.

    :param rows: the number of rows of each value; of a number in steps, the rows above the number
        before it, up to this one.
    :param is_stepped: the numbers are kept in steps.
    """

    rows: Rows
    is_stepped: bool = False


def summary_text(
    points: Iterable[tuple[Any, int]], nulls: int, values: int, *, is_stepped: bool = False
) -> str | None:
    """The summary of some rows; None if there are none.

    :param points: numbers as floats, or strings, with their numbers of rows.
    :param nulls: the rows that are NULL.
    :param values: the others. Without points, they have too many strings.
    :param is_stepped: the points are steps.
    """
    rows: Rows = Counter()
    for value, count in points:
        rows[value] += count
    if not nulls + values:
        return None
    if values and not rows:
        return _TOO_MANY
    listed = [*sorted(rows.items()), (None, nulls)]
    return json.dumps({_STEPS: listed} if is_stepped else listed, ensure_ascii=False)


_TOO_MANY = "null"
_STEPS = "steps"


@lru_cache(maxsize=512)
def _summary_from(text: str) -> Summary:
    known = json.loads(text)
    is_stepped = isinstance(known, dict)
    return Summary(Counter(dict(known[_STEPS] if is_stepped else known)), is_stepped)


# The formulas

Share: TypeAlias = float
Term: TypeAlias = Callable[[Share, Share], float]
"""The part of a bin in a sum over all bins, from its shares of the day and of the reference. It is
0 for equal shares, and grows with their difference."""


def _psi_term(p: Share, q: Share) -> float:
    p = max(p, SMALLEST_SHARE)
    q = max(q, SMALLEST_SHARE)
    return (p - q) * math.log(p / q)


def _js_term(p: Share, q: Share) -> float:
    def to_middle(p: float, q: float) -> float:
        return p * math.log2(2 * p / (p + q)) if p else 0.0

    return to_middle(p, q) + to_middle(q, p)


def _distance(sum_of_terms: float) -> float:
    return math.sqrt(min(1.0, max(0.0, sum_of_terms / 2)))


@dataclass(frozen=True, slots=True)
class _OfBins:
    """A kind of drift that is a function of a sum over all bins."""

    term: Term
    of_sum: Callable[[float], float]

    def value(self, shares: Iterable[tuple[Share, Share]]) -> float:
        return self.of_sum(math.fsum(self.term(p, q) for p, q in shares))


_OF_BINS = {
    # The population stability index, the sum of `(p - q) * ln(p / q)` over the shares `p` of the
    # day and `q` of the reference (N. Siddiqi, "Credit Risk Scorecards", 2006).
    "psi": _OfBins(_psi_term, float),
    # The Jensen-Shannon distance to base 2, from 0 to 1: the square root of the divergence (Endres
    # and Schindelin, "A new metric for probability distributions", 2003).
    "js": _OfBins(_js_term, _distance),
}


# Of all rows


def _shares(day: Rows, reference: Rows) -> list[tuple[Share, Share]]:
    """The shares of the day and of the reference in each category or bin, NULL being one. Up to
    `BINS` different numbers of the reference are categories, like strings."""
    edges: list[float] = []
    numbers = _numbers(reference)
    if len(numbers) > BINS:
        running = list(accumulate(reference[value] for value in numbers))
        edges = sorted({numbers[bisect_left(running, rows)] for rows in _deciles(running[-1])})
    first = _binned(day, edges)
    second = _binned(reference, edges)
    total = first.total()
    other = second.total()
    return [(first[bin_] / total, second[bin_] / other) for bin_ in first.keys() | second.keys()]


def _numbers(rows: Rows) -> list[float]:
    return sorted(value for value in rows if isinstance(value, float))


def _deciles(rows: int) -> list[int]:
    """The numbers of rows up to the edges between the bins."""
    return [-(-rows * part // BINS) for part in range(1, BINS)]


def _binned(rows: Rows, edges: Sequence[float]) -> Rows:
    binned: Rows = Counter()
    for value, count in rows.items():
        is_binned = edges and isinstance(value, float)
        binned[bisect_left(edges, value) if is_binned else value] += count
    return binned


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


# Of steps


class _UpTo(NamedTuple):
    """The smallest and the largest possible number of rows up to a value."""

    low: int
    high: int

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


@dataclass(frozen=True, slots=True)
class _Side:
    """The day or its reference at all values that are kept of either, in ascending order.

    :param up_to: the rows up to each value, and then to any number between it and the next one.
    """

    up_to: tuple[_UpTo, ...]
    numbers: int
    nulls: int

    @property
    def rows(self) -> int:
        return self.numbers + self.nulls

    def before(self, position: int) -> _UpTo:
        return self.up_to[position - 1] if position else _UpTo(0, 0)


def _side(summaries: Sequence[Summary], values: Sequence[float]) -> _Side:
    low: Counter[float] = Counter()
    high: Counter[float] = Counter()
    high_after: Counter[float] = Counter()
    numbers = 0
    nulls = 0
    for summary in summaries:
        nulls += summary.rows[None]
        before = 0
        most_before = 0
        for value, rows, most in _with_most_after(summary):
            most_here = most if abs(value) > _LARGEST_EXACT else rows
            low[value] += rows - before
            high[value] += most_here - most_before
            high_after[value] += most - most_here
            before = rows
            most_before = most
        numbers += before
    up_to = []
    least = 0
    most = 0
    for value in values:
        least += low[value]
        most += high[value]
        up_to.append(_UpTo(least, most))
        most += high_after[value]
        up_to.append(_UpTo(least, most))
    return _Side(tuple(up_to), numbers, nulls)


def _with_most_after(summary: Summary) -> Iterator[tuple[float, int, int]]:
    """The kept values of a day, each with the number of rows up to it, and the most rows that are
    possible up to a number before the next kept value."""
    values = _numbers(summary.rows)
    running = list(accumulate(summary.rows[value] for value in values))
    total = running[-1] if running else 0
    for value, rows, following in zip(values, running, [*running[1:], total + 1], strict=True):
        most = rows
        if summary.is_stepped:
            # With one row more, the number of rows would pass the next step.
            passed = rows * MOST_STEPS // total
            most = min(-(-(passed + 1) * total // MOST_STEPS) - 1, following - 1)
        yield value, rows, most


_LARGEST_EXACT = 2**53
"""Larger whole numbers may share a double."""


class _Range(NamedTuple):
    """A value of drift that is computed from steps, or a share of rows, with the smallest and the
    largest possible one."""

    value: float
    low: float
    high: float


def _of_steps(kind: str, day: Summary, reference: Sequence[Summary]) -> _Range | None:
    values = sorted({value for one in (day, *reference) for value in _numbers(one.rows)})
    first = _side([day], values)
    second = _side(reference, values)
    if kind == "ks":
        return _ks_of_steps(first, second)
    of_bins = _OF_BINS[kind]
    listed = {value for one in reference for value in _numbers(one.rows)}
    if len(listed) > BINS or any(one.is_stepped for one in reference):
        bins = _bins_of_steps(first, second)
        found = [_term_of_bin(of_bins.term, p, q) for p, q in bins]
    else:
        found = [*_terms_of_categories(of_bins.term, first, second, values, listed)]
    p = first.nulls / first.rows
    q = second.nulls / second.rows
    of_nulls = of_bins.term(p, q)
    found.append(_Range(of_nulls, of_nulls, of_nulls))
    value, low, high = (of_bins.of_sum(math.fsum(side)) for side in zip(*found, strict=True))
    return _Range(value, low, high)


def _term_of_bin(term: Term, p: _Range, q: _Range) -> _Range:
    low = 0.0
    if p.low > q.high:
        low = term(p.low, q.high)
    elif q.low > p.high:
        low = term(p.high, q.low)
    high = max(term(p.low, q.high), term(p.high, q.low))
    return _Range(min(max(term(p.value, q.value), low), high), low, high)


def _bins_of_steps(day: _Side, reference: _Side) -> list[tuple[_Range, _Range]]:
    """The shares of the day and of the reference in each bin. An edge lies at a kept value of the
    reference, or somewhere between two."""
    edges: dict[tuple[int, int], tuple[int, int]] = {}
    for least in _deciles(reference.numbers):
        first = bisect_left(reference.up_to, least, key=lambda rows: rows.high)
        last = bisect_left(reference.up_to, least, key=lambda rows: rows.low)
        middle = bisect_left(reference.up_to, 2 * least, key=lambda rows: rows.low + rows.high)
        edges[first, last] = (middle, least)
    ends_of_day = [_Range(0, 0, 0)]
    ends_of_reference = [_Range(0, 0, 0)]
    for (first, last), (middle, least) in edges.items():
        ends = day.up_to
        ends_of_day.append(_Range(ends[middle].middle, ends[first].low, ends[last].high))
        ends = reference.up_to
        low = max(least, ends[first].low)
        ends_of_reference.append(_Range(ends[middle].middle, low, ends[last].high))
    ends_of_day.append(_Range(day.numbers, day.numbers, day.numbers))
    ends_of_reference.append(_Range(reference.numbers, reference.numbers, reference.numbers))
    return [
        (_share_between(*of_day, day.rows), _share_between(*of_reference, reference.rows))
        for of_day, of_reference in zip(
            pairwise(ends_of_day), pairwise(ends_of_reference), strict=True
        )
    ]


def _share_between(start: _Range, end: _Range, rows: int) -> _Range:
    """The share of the rows between two ends."""
    low = max(0.0, end.low - start.high)
    return _Range(
        max(0.0, end.value - start.value) / rows, low / rows, (end.high - start.low) / rows
    )


def _terms_of_categories(
    term: Term, day: _Side, reference: _Side, values: Sequence[float], listed: Iterable[float]
) -> Iterator[_Range]:
    """The terms of the few numbers of the reference, and of all others of the day. How many others
    there are is not known: they are most different if they are one."""
    known = _Range(0, 0, 0)
    for value in sorted(listed):
        position = 2 * bisect_left(values, value)
        here = day.up_to[position]
        before = day.before(position)
        p = _share_between(
            _Range(before.middle, before.low, before.high),
            _Range(here.middle, here.low, here.high),
            day.rows,
        )
        rows = reference.up_to[position].low - reference.before(position).low
        q = rows / reference.rows
        yield _term_of_bin(term, p, _Range(q, q, q))
        known = _Range(known.value + p.value, known.low + p.low, known.high + p.high)
    numbers = day.numbers / day.rows
    others = term(max(0.0, numbers - known.low), 0)
    yield _Range(term(max(0.0, numbers - known.value), 0), 0, others)


def _ks_of_steps(day: _Side, reference: _Side) -> _Range | None:
    if not day.numbers or not reference.numbers:
        return None
    value = low = high = 0.0
    for first, second in zip(day.up_to, reference.up_to, strict=True):
        p, q = (
            _Range(rows.middle / side.numbers, rows.low / side.numbers, rows.high / side.numbers)
            for rows, side in ((first, day), (second, reference))
        )
        value = max(value, abs(p.value - q.value))
        low = max(low, p.low - q.high, q.low - p.high)
        high = max(high, p.high - q.low, q.high - p.low)
    return _Range(value, low, high)


# Of summaries


@lru_cache(maxsize=512)  # usual limits of drift compute the drift of each earlier day again
def _compared(kind: str, day: MetricValue, *earlier: MetricValue) -> _Range | float | None:
    """Compares the summary of a day with the rows of all earlier days together. Earlier days
    without rows do not count."""
    known = [str(text) for text in (day, *earlier) if text is not None]
    if day is None or len(known) < 2 or _TOO_MANY in known:
        return None
    first, *others = map(_summary_from, known)
    if any(summary.is_stepped for summary in (first, *others)):
        return _of_steps(kind, first, others)
    reference: Rows = Counter()
    for summary in others:
        reference.update(summary.rows)
    if kind == "ks":
        return _ks(first.rows, reference)
    return _OF_BINS[kind].value(_shares(first.rows, reference))


def _drift(kind: str, *summaries: MetricValue) -> MetricValue:
    found = _compared(kind, *summaries)
    return found.value if isinstance(found, _Range) else found


def drift_bounds(kind: str, summaries: Iterable[MetricValue]) -> tuple[float, float] | None:
    """The smallest and the largest value that the rows with some summaries may have; None if they
    have only one, or none.

    :param summaries: of the day, and of the days that it is compared with.
    """
    found = _compared(kind, *summaries)
    if not isinstance(found, _Range) or found.low == found.high:
        return None
    return found.low, found.high


DRIFT: Mapping[str, Callable[..., MetricValue]] = {
    kind: partial(_drift, kind) for kind in ("psi", "js", "ks")
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
