"""Years of daily metrics of a shop, in different shapes, with planted incidents.

Every shape has weekdays, a season, growth, holidays and noise. After the first month, about one day
in twelve has an incident: lost rows, NULLs, duplicates, wrong prices, ids that are NULL.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

FIRST = date(2025, 1, 1)
DAYS = 365
HOLIDAYS = {(1, 1), (4, 18), (5, 1), (10, 3), (12, 25), (12, 26)}


@dataclass(frozen=True, slots=True)
class Day:
    """The metrics of a day, and for each assertion whether there was a real issue."""

    date: date
    metrics: Mapping[str, float]
    issues: frozenset[str]


@dataclass(frozen=True, slots=True)
class Shape:
    """How the years of a shape differ from others.

    :param saturday: the rows of a Saturday, as a share of a usual day; `sunday` and `holiday`
        likewise.
    :param growth: the growth over the year, as a share.
    :param levels: factors for all rows, each from a day of the year on: a migration, a new market.
    :param month_end: the rows of the last two days of a month, as a share of a usual day.
    :param noise: the standard deviation of the rows, as a share; `late_noise` is that of the last
        day of the year, if it changes over the year.
    :param missing: the share of days without data.
    :param kept: the lowest and the highest share of rows that an incident leaves.
    :param creeping: whether incidents grow over five days instead of one: rows are lost and NULLs
        appear gradually. The first of these days are too small to be called issues.
    """

    saturday: float = 0.9
    sunday: float = 0.55
    holiday: float = 0.6
    growth: float = 0.15
    levels: tuple[tuple[int, float], ...] = ()
    month_end: float = 1.0
    noise: float = 0.04
    late_noise: float | None = None
    missing: float = 0.0
    kept: tuple[float, float] = (0.05, 0.25)
    creeping: bool = False

    def level(self, number: int, on: date) -> float:
        """The expected number of rows."""
        share = number / DAYS
        level = 10_000 * (1 + self.growth * share) * (1 + 0.08 * math.sin(share * 2 * math.pi))
        level *= self.sunday if on.weekday() == 6 else self.saturday if on.weekday() == 5 else 1.0
        level *= self.holiday if (on.month, on.day) in HOLIDAYS else 1.0
        level *= self.month_end if (on + timedelta(days=2)).month != on.month else 1.0
        return level * math.prod(factor for start, factor in self.levels if number >= start)

    def days(self, seed: int) -> list[Day]:
        """The days of a year that have data."""
        chance, days, before = random.Random(seed), list[Day](), 10_000
        creep: tuple[str, int] | None = None
        for number in range(DAYS):
            on = FIRST + timedelta(days=number)
            late = self.noise if self.late_noise is None else self.late_noise
            noise = self.noise + (late - self.noise) * number / DAYS
            rows = int(max(self.level(number, on) * chance.gauss(1, noise), 1))
            price = chance.gauss(20, 0.35)
            share = min(max(chance.gauss(0.02, 0.006), 0.002), 0.05)
            duplicates = int(chance.expovariate(1 / 4))
            ids, issues = 0, set[str]()
            if creep is not None:
                kind, step = creep
                creep = (kind, step + 1) if step < 5 else None
                if kind == "lost":
                    rows = int(rows * (1 - 0.14 * step))
                    issues |= {"rows", "revenue"} if step > 2 else set()
                else:
                    share = 0.02 + 0.03 * step
                    issues |= {"nulls"} if step > 2 else set()
            elif number > 30 and chance.random() < 0.085:
                kind = chance.choice(("lost", "nulls", "duplicates", "price", "ids"))
                if self.creeping and kind in {"lost", "nulls"}:
                    creep = kind, 1
                elif kind == "lost":
                    rows = int(rows * chance.uniform(*self.kept))
                    issues |= {"rows", "revenue", "change"}
                elif kind == "nulls":
                    share = chance.uniform(0.12, 0.6)
                elif kind == "duplicates":
                    duplicates = chance.randint(60, 900)
                elif kind == "price":
                    price *= chance.choice((0.01, 0.5, 1.6, 100))
                    if price < 15:
                        issues.add("revenue")
                else:
                    ids = chance.randint(1, 40)
                if creep is None:
                    issues |= {kind} & {"nulls", "duplicates", "price", "ids"}
            if self.missing and chance.random() < self.missing:
                continue
            metrics = {
                "rows": rows,
                "before": before,
                "revenue": rows * price,
                "nulls": int(rows * share),
                "duplicates": duplicates,
                "price": price,
                "ids": ids,
            }
            days.append(Day(on, metrics, frozenset(issues)))
            before = rows
        return days


SHAPES = {
    "shop": Shape(),
    "office": Shape(saturday=0.3, sunday=0.15, holiday=0.2),
    "growth": Shape(saturday=1.0, sunday=1.0, growth=1.5),
    "migration": Shape(levels=((110, 1.5), (250, 0.7))),
    "month_end": Shape(month_end=1.8, late_noise=0.12),
    "gaps": Shape(missing=0.05, kept=(0.3, 0.6)),
    "creeping": Shape(creeping=True, kept=(0.3, 0.6)),
}
"""By name: `shop` is the one that the tuner was developed with."""
