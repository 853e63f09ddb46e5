"""The share of changes that the limits of an assertion find: how near they are to the values of
fine days. Labels name few missed issues, so that two forms of an assertion that alarm equally often
differ in this alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.values.exact import NUMBERS, nearest_float

FACTORS = (0.25, 0.5, 0.8, 1.25, 2.0, 4.0)
"""The changes that are tried on the value of each day. A share near all is changed in its rest."""


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """How many of the tried changes the limits find."""

    found: int
    tried: int

    @property
    def share(self) -> float:
        """1 where nothing could be tried."""
        return self.found / self.tried if self.tried else 1.0

    def __str__(self) -> str:
        return f"{self.share:.0%}"


def found_changes(judged: Backtest, row: int, days: Iterable[int]) -> FoundChanges:
    """The changes of an assertion's value on some days that its limits find, each on a side that it
    limits."""
    values = judged.compared(row)
    limits = judged.limits(row)
    measured = ((day, values[day]) for day in days)
    known = {day: nearest_float(value) for day, value in measured if isinstance(value, NUMBERS)}
    if not known:
        return FoundChanges(0, 0)
    is_share = all(0 <= value <= 1 for value in known.values())
    is_near_all = is_share and median(known.values()) > 0.5
    found = tried = 0
    for day, value in known.items():
        own = [(op, of_days[day]) for op, of_days in limits]
        for changed in _changed(value, is_near_all=is_near_all):
            sides = [(op, limit) for op, limit in own if limit is not None]
            against = [limit for op, limit in sides if (op[0] == "<") == (changed > value)]
            if against:
                tried += 1
                found += any(_is_beyond(changed, value, limit) for limit in against)
    return FoundChanges(found, tried)


def _changed(value: float, *, is_near_all: bool) -> Iterator[float]:
    for factor in FACTORS:
        changed = 1 - (1 - value) * factor if is_near_all else value * factor
        if changed != value and not (is_near_all and changed < 0):
            yield changed


def _is_beyond(changed: float, value: float, limit: float) -> bool:
    """Whether a changed value is beyond the limit on the side to which it changed."""
    return changed > limit if changed > value else changed < limit
