"""Years of daily metrics of simulated companies, in families, with planted incidents.

A company has five datasets with six assertions each. A family says which traits its companies have;
a seed draws how strong they are, and where shifts, campaigns and incidents fall. `TUNED_ON` are the
families that limits are chosen on. `SCORED` are businesses that nothing is chosen on: they are only
scored, for the table in the docs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

import holidays
import numpy as np

FIRST = date(2024, 7, 1)
DAYS = 365
HELD_OUT = 182
"""The first day that is judged; labels are given before it."""
DATASETS = ("orders", "items", "payments", "customers", "events")
ASSERTIONS = ("rows", "amount", "price", "nulls", "matched", "keys")
INCIDENTS = (
    "lost",
    "partial",
    "doubled",
    "doubled with its keys",
    "cents",
    "thousands",
    "mispriced",
    "null leak",
    "null burst",
    "broken reference",
    "stuck",
    "late",
    "other unit for days",
)
_BETWEEN_INCIDENTS = 9.0
"""The mean number of days between two incidents of a company."""
_PART_OF_YEAR = np.arange(DAYS) / DAYS
_MONDAY, _FRIDAY = 0, 4


@dataclass(frozen=True)
class Family:
    """The traits of the companies of a family; ranges are drawn from.

    `weekdays` are shares of a usual day from Monday on; `month_days` multiply days counted from
    the start (1, 2) or the end (-1) of the month, of business days where the weekend is closed.
    """

    name: str
    weekdays: tuple[float, ...] = (1.0,) * 7
    country: str | None = None
    holiday: float = 1.0
    bridge: float = 1.0
    growth: tuple[float, float] = (-0.05, 0.1)
    season: float = 0.05
    month_days: Mapping[int, float] = field(default_factory=dict)
    shifts: int = 0
    campaigns: int = 0
    noise: tuple[float, float] = (0.04, 0.08)
    tail: float = 30.0
    missing: float = 0.0
    late: float = 0.0
    size: tuple[float, float] = (2e3, 2e5)
    nulls: tuple[float, float] = (0.003, 0.04)
    unmatched: tuple[float, float] = (0.002, 0.02)
    price_noise: tuple[float, float] = (0.005, 0.02)
    price_season: float = 0.0
    price_campaigns: int = 0
    """Weeks of lower prices, and more rows, in all datasets."""
    closures: int = 0
    """Weeks with an eighth to a quarter fewer rows, such as of a closed store."""
    spikes: int = 0
    """Announced days with two to four times as many rows."""
    steps: int = 0
    """Small lasting steps upward, such as of new devices."""
    paydays: Mapping[int, float] = field(default_factory=dict)
    """Days of the month, as numbers, that multiply."""
    periods: tuple[tuple[tuple[int, int], tuple[int, int], float], ...] = ()
    """The first and the last (month, day) of periods of a year that multiply."""


_SHOP = (0.85, 0.85, 0.9, 1.0, 1.15, 1.35, 1.2)
_OFFICE = (1.05, 1.0, 1.0, 1.0, 0.95, 0.0, 0.0)
_TUNED_ON = (
    Family(
        "A", weekdays=_SHOP, country="US", holiday=1.5, growth=(0.15, 0.35), season=0.1, campaigns=5
    ),
    Family(
        "B",
        weekdays=_OFFICE,
        country="DE",
        holiday=0.08,
        bridge=0.5,
        season=0.1,
        month_days={-1: 1.6},
    ),
    Family(
        "C",
        weekdays=(1.1, 1.1, 1.1, 1.1, 1.0, 0.75, 0.75),
        growth=(0.5, 0.9),
        shifts=1,
        month_days={1: 1.9, 2: 1.4},
    ),
    Family(
        "D", noise=(0.1, 0.2), tail=3.0, missing=0.04, nulls=(1e-4, 4e-4), unmatched=(2e-4, 5e-4)
    ),
    Family(
        "E",
        weekdays=(1.1, 1.0, 1.0, 1.0, 1.1, 0.45, 0.15),
        country="GB",
        holiday=0.2,
        shifts=2,
        late=0.12,
        month_days={-1: 1.15},
    ),
    Family(
        "F", weekdays=(0.9, 0.9, 0.9, 0.9, 1.0, 1.1, 1.4), noise=(0.08, 0.15), tail=4.0, campaigns=9
    ),
    Family(
        "G",
        weekdays=(1.2, 1.1, 1.0, 0.9, 0.8, 0.9, 1.1),
        country="FR",
        holiday=0.8,
        season=0.4,
        campaigns=4,
    ),
    Family(
        "H",
        weekdays=_OFFICE,
        country="US",
        holiday=0.1,
        growth=(0.0, 0.2),
        month_days={-1: 2.2, 1: 1.3},
    ),
    Family("I", weekdays=_SHOP, growth=(0.9, 1.6), shifts=2, campaigns=3, noise=(0.06, 0.1)),
    Family("J", season=0.3, missing=0.05, noise=(0.03, 0.05), tail=4.0, unmatched=(1e-4, 1e-3)),
    Family(
        "K",
        weekdays=(1.1, 1.0, 1.0, 1.0, 1.0, 0.8, 0.8),
        country="CA",
        holiday=0.7,
        campaigns=3,
        size=(60, 600),
        noise=(0.1, 0.15),
    ),
    Family(
        "L",
        weekdays=(1.0, 1.0, 1.0, 1.0, 1.05, 0.9, 0.7),
        country="BR",
        holiday=0.6,
        growth=(-0.4, -0.2),
        shifts=1,
        tail=4.0,
        month_days={1: 1.5, 2: 1.2, -1: 1.2},
        late=0.08,
    ),
    Family(
        "M",
        weekdays=(0.8, 0.8, 0.9, 1.0, 1.2, 1.5, 0.8),
        country="US",
        holiday=0.9,
        campaigns=1,
        price_campaigns=5,
        closures=1,
        noise=(0.05, 0.09),
        price_noise=(0.008, 0.03),
    ),
    Family(
        "N",
        weekdays=(1.1, 1.0, 1.0, 1.0, 1.1, 0.9, 0.8),
        country="GB",
        holiday=0.7,
        paydays={1: 1.6, 15: 1.3, 28: 1.8},
        growth=(0.1, 0.3),
        noise=(0.05, 0.1),
    ),
    Family(
        "O",
        weekdays=(1.1, 1.1, 1.0, 1.0, 0.9, 0.5, 0.4),
        size=(20, 300),
        noise=(0.1, 0.2),
        price_noise=(0.08, 0.3),
        nulls=(0.005, 0.05),
    ),
    Family(
        "P", steps=8, shifts=1, noise=(0.004, 0.02), price_season=0.25, price_noise=(0.005, 0.03)
    ),
    Family(
        "Q",
        weekdays=(1.0, 1.0, 1.0, 1.0, 1.05, 0.95, 0.9),
        country="DE",
        holiday=0.8,
        season=0.2,
        spikes=4,
        periods=(((12, 20), (1, 5), 1.6),),
        noise=(0.08, 0.16),
        tail=5.0,
        price_noise=(0.03, 0.1),
    ),
)
_SCORED = (
    Family(
        "grocer",
        weekdays=(0.9, 0.85, 0.9, 1.0, 1.25, 1.4, 0.7),
        country="FR",
        holiday=0.35,
        season=0.06,
        price_campaigns=9,
        closures=2,
        campaigns=2,
        periods=(((12, 18), (12, 24), 1.5),),
        noise=(0.03, 0.06),
        price_noise=(0.004, 0.012),
        size=(2e4, 3e5),
    ),
    Family(
        "adtech",
        weekdays=(1.05, 1.05, 1.05, 1.0, 0.95, 0.95, 0.95),
        country="US",
        holiday=0.95,
        growth=(-0.1, 0.2),
        noise=(0.06, 0.14),
        tail=5.0,
        size=(1e5, 3e6),
        nulls=(0.02, 0.15),
        unmatched=(0.005, 0.05),
        price_noise=(0.02, 0.06),
        month_days={-1: 1.2, 1: 0.85},
    ),
    Family(
        "b2b",
        weekdays=(1.1, 1.05, 1.0, 1.0, 0.85, 0.03, 0.02),
        country="DE",
        holiday=0.05,
        bridge=0.6,
        growth=(0.0, 0.12),
        month_days={-1: 1.5, 1: 0.9},
        periods=(((12, 22), (1, 6), 0.35), ((8, 1), (8, 25), 0.8)),
        noise=(0.05, 0.1),
        price_noise=(0.02, 0.08),
        size=(1e3, 3e4),
    ),
    Family(
        "saas",
        weekdays=(1.1, 1.15, 1.15, 1.1, 1.0, 0.45, 0.4),
        country="US",
        holiday=0.5,
        growth=(0.8, 2.5),
        shifts=1,
        month_days={1: 1.3},
        noise=(0.03, 0.07),
        size=(5e3, 2e5),
    ),
    Family(
        "payments",
        weekdays=(1.0, 0.95, 0.95, 1.0, 1.25, 1.15, 0.75),
        country="GB",
        holiday=0.6,
        growth=(0.1, 0.4),
        paydays={1: 1.5, 15: 1.25, 25: 1.6, 28: 1.3},
        periods=(((11, 25), (12, 23), 1.3),),
        noise=(0.03, 0.06),
        nulls=(1e-4, 2e-3),
        unmatched=(1e-4, 1e-3),
        size=(2e4, 5e5),
    ),
    Family(
        "sensors",
        season=0.0,
        growth=(0.0, 0.1),
        steps=12,
        noise=(0.002, 0.01),
        price_season=0.45,
        price_noise=(0.01, 0.05),
        nulls=(0.001, 0.02),
        size=(2e4, 5e5),
    ),
    Family(
        "erp",
        weekdays=(1.3, 1.0, 1.0, 1.0, 1.2, 0.0, 0.0),
        country="AT",
        holiday=0.0,
        growth=(-0.05, 0.1),
        month_days={-1: 2.0, 1: 1.7, 2: 1.3},
        noise=(0.1, 0.25),
        tail=6.0,
        price_noise=(0.04, 0.15),
        missing=0.01,
        size=(500, 2e4),
    ),
    Family(
        "travel",
        weekdays=(1.1, 1.0, 0.95, 0.95, 1.0, 1.0, 1.15),
        country="ES",
        holiday=0.85,
        season=0.45,
        campaigns=3,
        price_season=0.2,
        periods=(((7, 10), (8, 31), 1.3), ((12, 26), (1, 20), 1.5)),
        noise=(0.04, 0.09),
        price_noise=(0.01, 0.04),
    ),
    Family(
        "marketplace",
        weekdays=(0.95, 0.95, 0.95, 1.0, 1.0, 1.05, 1.15),
        country="US",
        holiday=1.1,
        growth=(0.1, 0.5),
        campaigns=6,
        spikes=4,
        price_campaigns=4,
        noise=(0.04, 0.09),
        size=(1e4, 5e5),
    ),
    Family(
        "small",
        weekdays=(1.2, 1.1, 1.0, 1.0, 0.9, 0.6, 0.5),
        country="NL",
        holiday=0.5,
        growth=(-0.1, 0.3),
        noise=(0.05, 0.2),
        size=(8, 120),
        nulls=(0.005, 0.06),
        unmatched=(0.002, 0.03),
        price_noise=(0.05, 0.3),
    ),
)

TUNED_ON = {family.name: family for family in _TUNED_ON}
SCORED = {family.name: family for family in _SCORED}
"""Ten businesses; no one has chosen anything on them."""

FAMILIES = {**TUNED_ON, **SCORED}


@dataclass(frozen=True)
class Incident:
    day: int
    days: int
    dataset: str
    kind: str


@dataclass(frozen=True)
class Company:
    """A year: for each assertion `dataset.assertion`, its values (NaN without data), whether there
    was an issue, and whether the day is neutral, since the dataset had an issue elsewhere."""

    family: Family
    dates: tuple[date, ...]
    values: Mapping[str, np.ndarray]
    issues: Mapping[str, np.ndarray]
    neutral: Mapping[str, np.ndarray]
    incidents: tuple[Incident, ...]
    parts: Mapping[str, Mapping[str, np.ndarray]]


def calendar_of(family: Family) -> dict[date, str]:
    if family.country is None:
        return {}
    years = range(FIRST.year, FIRST.year + 3)
    return dict(holidays.country_holidays(family.country, years=years))


def company(family: Family, seed: int) -> Company:
    """The year of a company."""
    rng = np.random.default_rng([seed, zlib.crc32(family.name.encode())])
    dates = tuple(FIRST + timedelta(days=n) for n in range(DAYS))
    load, price = _load(family, dates, rng)
    parts = {name: _dataset(family, dates, load, price, rng) for name in DATASETS}
    incidents = tuple(_incidents(rng))
    values, issues, neutral = {}, {}, {}
    for name, columns in parts.items():
        marked = {assertion: np.zeros(DAYS, bool) for assertion in ASSERTIONS}
        for incident in incidents:
            if incident.dataset == name:
                _plant(incident, columns, marked, rng)
        hit = np.any([*marked.values()], axis=0)
        for assertion, series in _measured(columns).items():
            key = f"{name}.{assertion}"
            values[key], issues[key] = series, marked[assertion] & ~np.isnan(series)
            neutral[key] = hit & ~issues[key]
    return Company(family, dates, values, issues, neutral, incidents, parts)


def _load(
    family: Family, dates: tuple[date, ...], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The load that all datasets of a company share, and the factor of their prices."""
    load = np.array([family.weekdays[on.weekday()] for on in dates])
    load = load * (1 + rng.uniform(*family.growth)) ** _PART_OF_YEAR
    load = load * _season(family.season, rng)
    _apply_calendar(family, dates, load, rng)
    for _ in range(family.shifts):
        first = int(rng.integers(60, 330))
        load[first:] *= rng.choice([rng.uniform(0.65, 0.85), rng.uniform(1.2, 1.6)])
    for days in _stretches(family.campaigns, range(1, 6), rng):
        load[days] *= rng.uniform(1.3, 2.2)
    price = _season(family.price_season, rng)
    for days in _stretches(family.price_campaigns, range(3, 8), rng):
        load[days] *= rng.uniform(1.05, 1.5)
        price[days] *= rng.uniform(0.75, 0.95)
    for days in _stretches(family.closures, range(18, 31), rng, latest=330):
        load[days] *= rng.uniform(0.75, 0.88)
    for days in _stretches(family.spikes, range(1, 3), rng):
        load[days] *= rng.uniform(2.0, 4.0)
    for _ in range(family.steps):
        first = int(rng.integers(10, 355))
        load[first:] *= 1 + rng.uniform(0.004, 0.03)
    for number, on in enumerate(dates):
        load[number] *= family.paydays.get(on.day, 1.0)
        for first_day, last_day, factor in family.periods:
            if _is_within((on.month, on.day), first_day, last_day):
                load[number] *= factor
    return load, price


def _season(strength: float, rng: np.random.Generator) -> np.ndarray:
    """A wave over the year with a random phase, around 1."""
    return 1 + strength * np.sin(2 * np.pi * (_PART_OF_YEAR + rng.uniform()))


def _apply_calendar(
    family: Family, dates: tuple[date, ...], load: np.ndarray, rng: np.random.Generator
) -> None:
    """Multiplies holidays, bridge days, and days counted from the start or the end of the month."""
    calendar = calendar_of(family)
    closed = {number for number, share in enumerate(family.weekdays) if share == 0}
    for number, on in enumerate(dates):
        if on in calendar:
            load[number] *= family.holiday * rng.uniform(0.85, 1.15)
        elif _is_bridge(on, calendar):
            load[number] *= family.bridge
        for position, factor in family.month_days.items():
            if _position(on, closed, calendar, position):
                load[number] *= factor


def _is_bridge(on: date, calendar: Mapping[date, str]) -> bool:
    """True for a Monday before a holiday, and a Friday after one."""
    if on.weekday() == _MONDAY:
        return on + timedelta(days=1) in calendar
    return on.weekday() == _FRIDAY and on - timedelta(days=1) in calendar


def _stretches(
    number: int, lengths: range, rng: np.random.Generator, latest: int = 355
) -> Iterator[slice]:
    """Random stretches of days, which begin before the day `latest`. The next one is drawn when it
    is asked for, after what the caller draws for this one."""
    for _ in range(number):
        first = int(rng.integers(35, latest))
        yield slice(first, first + int(rng.integers(lengths.start, lengths.stop)))


def _is_within(day: tuple[int, int], first: tuple[int, int], last: tuple[int, int]) -> bool:
    """True if a (month, day) is in a period, which may go on into the next year."""
    if last < first:
        return day >= first or day <= last
    return first <= day <= last


def _position(on: date, closed: set[int], calendar: Mapping[date, str], position: int) -> bool:
    """True for the business day at a position of its month: 1 is the first one, -1 the last."""
    step = timedelta(days=1 if position < 0 else -1)
    left, at = abs(position), on
    if on.weekday() in closed or on in calendar:
        return False
    while at.month == on.month:
        left -= at.weekday() not in closed and at not in calendar
        at += step
    return left == 0


def _dataset(
    family: Family,
    dates: tuple[date, ...],
    load: np.ndarray,
    price_factor: np.ndarray,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    size = np.exp(rng.uniform(*np.log(family.size)))
    spread, tail = rng.uniform(*family.noise), family.tail
    own = np.exp(np.cumsum(rng.normal(0, 0.003, DAYS)))
    noise = np.exp(spread * rng.standard_t(tail, DAYS) / np.sqrt(tail / (tail - 2)))
    expected = size * load ** rng.uniform(0.8, 1.1) * own * noise
    late = 1 - family.late * rng.beta(1, 4, DAYS)
    rows = rng.poisson(expected * late).astype(float)
    rows[rng.random(DAYS) < family.missing] = 0
    level = np.exp(rng.uniform(np.log(3), np.log(300)))
    price = level * np.exp(np.cumsum(rng.normal(0, 0.0008, DAYS)))
    price = price * np.exp(rng.uniform(*family.price_noise) * rng.standard_t(max(tail, 4), DAYS))
    price = price * price_factor
    return {
        "rows": rows,
        "price": price,
        "null_share": rng.uniform(*family.nulls) * np.exp(rng.normal(0, 0.08, DAYS)),
        "unmatched": rng.uniform(*family.unmatched) * np.exp(rng.normal(0, 0.1, DAYS)),
        "repeated": rng.poisson(rng.uniform(0, 6), DAYS).astype(float),
        "seed": rng.integers(0, 2**31, DAYS).astype(float),
    }


def _measured(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    rows = columns["rows"]
    known = np.where(rows > 0, rows, np.nan)
    nulls, unmatched = np.zeros(DAYS), np.zeros(DAYS)
    for day in range(DAYS):
        rng = np.random.default_rng(int(columns["seed"][day]))
        nulls[day] = rng.binomial(int(rows[day]), min(1, columns["null_share"][day]))
        unmatched[day] = rng.binomial(int(rows[day]), min(1, columns["unmatched"][day]))
    return {
        "rows": known,
        "amount": known * columns["price"],
        "price": np.where(rows > 0, columns["price"], np.nan),
        "nulls": nulls / known,
        "matched": 1 - unmatched / known,
        "keys": np.where(rows > 0, columns["repeated"], np.nan),
    }


def _incidents(rng: np.random.Generator) -> Iterator[Incident]:
    day = 31.0
    while True:
        day += 1 + rng.exponential(_BETWEEN_INCIDENTS - 1)
        if day >= DAYS - 15:
            return
        kind = INCIDENTS[rng.integers(len(INCIDENTS))]
        days = {
            "null leak": 12,
            "mispriced": int(rng.integers(1, 4)),
            "other unit for days": int(rng.integers(5, 15)),
        }.get(kind, 1)
        yield Incident(int(day), days, DATASETS[rng.integers(len(DATASETS))], kind)


def _plant(
    incident: Incident,
    columns: dict[str, np.ndarray],
    marked: Mapping[str, np.ndarray],
    rng: np.random.Generator,
) -> None:
    day, rows = incident.day, columns["rows"]
    if rows[day] == 0 or rows[day - 1] == 0:
        return
    days = slice(day, day + incident.days)
    touched: tuple[str, ...] = ("rows", "amount")
    match incident.kind:
        case "lost":
            rows[day] = max(1, int(rows[day] * rng.uniform(0.0, 0.2)))
        case "partial":
            rows[day] = int(rows[day] * rng.uniform(0.5, 0.8))
        case "doubled":
            rows[day] *= 2
        case "doubled with its keys":
            columns["repeated"][day] += rows[day]
            rows[day] *= 2
            touched = ("rows", "amount", "keys")
        case "cents" | "thousands":
            columns["price"][day] *= 100 if incident.kind == "cents" else 0.001
            touched = ("amount", "price")
        case "other unit for days":
            columns["price"][days] *= rng.choice([0.001, 0.28, 3.6, 100])
            touched = ("amount", "price")
        case "mispriced":
            columns["price"][days] *= rng.choice([0.85, 1.2])
            touched = ("price",)
        case "null leak":
            columns["null_share"][days] += rng.uniform(0.03, 0.15)
            touched = ("nulls",)
        case "null burst":
            columns["null_share"][day] += rng.uniform(0.1, 0.6)
            touched = ("nulls",)
        case "broken reference":
            columns["unmatched"][day] += rng.uniform(0.05, 0.5)
            touched = ("matched",)
        case "stuck":
            for series in columns.values():
                series[day] = series[day - 1]
        case "late":
            held_back = int(rows[day] * rng.uniform(0.2, 0.5))
            rows[day] -= held_back
            rows[day + 1] += held_back
    for assertion in touched:
        marked[assertion][days] = True
