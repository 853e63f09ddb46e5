"""The sweeps as data: in each of them, every step asks for more than the one before.

Imports nothing but pyspark: it also runs in the environments of the other tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from types import MappingProxyType

from simple_checks import Kind, SimpleCheck
from workload import DAY

WIDE_COLUMNS = 20
DAYS, ASSERTIONS, COLUMNS, KEYS = (1, 8, 30), (10, 100, 1_000), (20, 100, 200), (1, 2, 4, 8)

_KEY = ("machine_id", "event_ts")
_MORE: tuple[tuple[str, ...], ...] = (
    (),
    ("casino_id",),
    ("game_type",),
    ("amount_wagered",),
    ("amount_won",),
    ("casino_id", "game_type"),
    ("casino_id", "amount_wagered"),
    ("game_type", "amount_wagered"),
)
"""What is added to the key, so that there are several."""


@dataclass(frozen=True)
class Step:
    """The checks of each day of a table, or of a table without dates."""

    checks: tuple[SimpleCheck, ...]
    dates: tuple[date, ...] = ()


@dataclass(frozen=True)
class Sweep:
    """Steps by name; the name is the number of days, assertions or keys."""

    title: str
    steps: Mapping[str, Step]


def _window(days: int) -> Step:
    """Five checks of each day."""
    checks = (
        SimpleCheck("machine null", Kind.COMPLETE, ("machine_id",)),
        SimpleCheck("casino null", Kind.COMPLETE, ("casino_id",)),
        SimpleCheck("wagered least", Kind.LEAST, ("amount_wagered",), least=0),
        SimpleCheck("wagered most", Kind.MOST, ("amount_wagered",), most=1000),
        SimpleCheck("won most", Kind.MOST, ("amount_won",), most=1000),
    )
    return Step(checks, tuple(DAY - timedelta(days=back) for back in range(days)))


def _assertions(count: int) -> Step:
    """Three kinds over all columns, with different bounds around the values, 0 to 999."""

    def check(number: int) -> SimpleCheck:
        kind = (Kind.BETWEEN, Kind.LEAST, Kind.MOST)[number % 3]
        return SimpleCheck(
            f"a{number}",
            kind,
            (f"c{number % WIDE_COLUMNS}",),
            least=None if kind is Kind.MOST else -number,
            most=None if kind is Kind.LEAST else 1000 + number,
        )

    return Step(tuple(map(check, range(count))))


def _columns(count: int) -> Step:
    """A check of each of the first columns."""
    checks = (SimpleCheck(f"c{n}", Kind.LEAST, (f"c{n}",), least=0) for n in range(count))
    return Step(tuple(checks))


def _keys(count: int) -> Step:
    checks = (
        SimpleCheck(f"key {number}", Kind.UNIQUE, _KEY + more)
        for number, more in enumerate(_MORE[:count])
    )
    return Step(tuple(checks), (DAY,))


SWEEPS: Mapping[str, Sweep] = MappingProxyType(
    {
        "windows": Sweep("Days of a window", {f"{n:,}": _window(n) for n in DAYS}),
        "assertions": Sweep(
            f"Assertions over {WIDE_COLUMNS} columns",
            {f"{n:,}": _assertions(n) for n in ASSERTIONS},
        ),
        "columns": Sweep("Columns with an assertion", {f"{n:,}": _columns(n) for n in COLUMNS}),
        "keys": Sweep("Uniqueness of several keys", {f"{n:,}": _keys(n) for n in KEYS}),
    }
)
