"""Years of daily metrics of simulated companies, in twelve families, with planted incidents.

A company has five datasets with six assertions each. A family says which traits its companies have;
a seed draws how strong they are, and where shifts, campaigns and incidents fall. Families A to F
are for development; G to L are generated for the table in the docs alone.
"""

from __future__ import annotations

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
)
_BETWEEN_INCIDENTS = 9.0
"""The mean number of days between two incidents of a company."""


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


_SHOP = (0.85, 0.85, 0.9, 1.0, 1.15, 1.35, 1.2)
_OFFICE = (1.05, 1.0, 1.0, 1.0, 0.95, 0.0, 0.0)
FAMILIES: dict[str, Family] = {
    "A": Family("A", _SHOP, "US", 1.5, growth=(0.15, 0.35), season=0.1, campaigns=5),
    "B": Family("B", _OFFICE, "DE", 0.08, 0.5, season=0.1, month_days={-1: 1.6}),
    "C": Family(
        "C",
        (1.1, 1.1, 1.1, 1.1, 1.0, 0.75, 0.75),
        growth=(0.5, 0.9),
        shifts=1,
        month_days={1: 1.9, 2: 1.4},
    ),
    "D": Family(
        "D", noise=(0.1, 0.2), tail=3.0, missing=0.04, nulls=(1e-4, 4e-4), unmatched=(2e-4, 5e-4)
    ),
    "E": Family(
        "E",
        (1.1, 1.0, 1.0, 1.0, 1.1, 0.45, 0.15),
        "GB",
        0.2,
        shifts=2,
        late=0.12,
        month_days={-1: 1.15},
    ),
    "F": Family(
        "F", (0.9, 0.9, 0.9, 0.9, 1.0, 1.1, 1.4), noise=(0.08, 0.15), tail=4.0, campaigns=9
    ),
    "G": Family("G", (1.2, 1.1, 1.0, 0.9, 0.8, 0.9, 1.1), "FR", 0.8, season=0.4, campaigns=4),
    "H": Family("H", _OFFICE, "US", 0.1, growth=(0.0, 0.2), month_days={-1: 2.2, 1: 1.3}),
    "I": Family("I", _SHOP, growth=(0.9, 1.6), shifts=2, campaigns=3, noise=(0.06, 0.1)),
    "J": Family(
        "J", season=0.3, missing=0.05, noise=(0.03, 0.05), tail=4.0, unmatched=(1e-4, 1e-3)
    ),
    "K": Family(
        "K",
        (1.1, 1.0, 1.0, 1.0, 1.0, 0.8, 0.8),
        "CA",
        0.7,
        campaigns=3,
        size=(60, 600),
        noise=(0.1, 0.15),
    ),
    "L": Family(
        "L",
        (1.0, 1.0, 1.0, 1.0, 1.05, 0.9, 0.7),
        "BR",
        0.6,
        growth=(-0.4, -0.2),
        shifts=1,
        tail=4.0,
        month_days={1: 1.5, 2: 1.2, -1: 1.2},
        late=0.08,
    ),
}


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
    rng = np.random.default_rng([seed, ord(family.name)])
    dates = tuple(FIRST + timedelta(days=n) for n in range(DAYS))
    load = _load(family, dates, rng)
    parts = {name: _dataset(family, dates, load, rng) for name in DATASETS}
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


def _load(family: Family, dates: tuple[date, ...], rng: np.random.Generator) -> np.ndarray:
    """The load that all datasets of a company share: weekdays, holidays, growth, shifts,
    campaigns."""
    calendar, days = calendar_of(family), np.arange(DAYS)
    closed = {number for number, share in enumerate(family.weekdays) if share == 0}
    load = np.array([family.weekdays[on.weekday()] for on in dates])
    growth = rng.uniform(*family.growth)
    load = load * (1 + growth) ** (days / DAYS)
    load = load * (1 + family.season * np.sin(2 * np.pi * (days / DAYS + rng.uniform())))
    for on_number, on in enumerate(dates):
        if on in calendar:
            load[on_number] *= family.holiday * rng.uniform(0.85, 1.15)
        elif on.weekday() in (0, 4) and (
            on + timedelta(days=1 if on.weekday() == 0 else -1) in calendar
        ):
            load[on_number] *= family.bridge
        for position, factor in family.month_days.items():
            if _position(on, closed, calendar, position):
                load[on_number] *= factor
    for _ in range(family.shifts):
        load[int(rng.integers(60, 330)) :] *= rng.choice(
            [rng.uniform(0.65, 0.85), rng.uniform(1.2, 1.6)]
        )
    for _ in range(family.campaigns):
        first, length = int(rng.integers(35, 355)), int(rng.integers(1, 6))
        load[first : first + length] *= rng.uniform(1.3, 2.2)
    return load


def _position(on: date, closed: set[int], calendar: Mapping[date, str], position: int) -> bool:
    step = timedelta(days=1 if position < 0 else -1)
    left, at = abs(position), on
    if on.weekday() in closed or on in calendar:
        return False
    while at.month == on.month:
        left -= at.weekday() not in closed and at not in calendar
        at += step
    return left == 0


def _dataset(
    family: Family, dates: tuple[date, ...], load: np.ndarray, rng: np.random.Generator
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
    price = price * np.exp(rng.uniform(0.005, 0.02) * rng.standard_t(max(tail, 4), DAYS))
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
        if day >= DAYS - 12:
            return
        kind = INCIDENTS[rng.integers(len(INCIDENTS))]
        days = {"null leak": 12, "mispriced": int(rng.integers(1, 4))}.get(kind, 1)
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
