"""The verdicts whose labels a tuner lacks most."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.costs import KnownTruth
from dqx_airflow.values import Status


@dataclass(frozen=True, slots=True)
class WantedLabel:
    """A verdict to label. `map_index` is that of an instance of a mapped gate, -1 for others."""

    check: str
    name: str
    date: date
    status: Status
    map_index: int = -1


def wanted_labels(
    backtest: Backtest,
    known: Sequence[Sequence[KnownTruth | None]],
    rows: Collection[int],
    days: Collection[int],
    most: int,
) -> tuple[WantedLabel, ...]:
    """Verdicts without a label, the most useful one first, each on another date if there are
    enough.

    Those on dates without a label come first, since labels on one date are too few. Failures come
    before passes: they are false alarms, or show where issues begin. Those next to the limit come
    before those far from it: they decide where it goes. Of equal ones, the newest comes first.

    :param known: the truth about each assertion on each day; None where it does not count.
    """
    statuses = backtest.judge().statuses
    verdicts: dict[tuple[int, int], tuple[bool, float]] = {}
    labelled: set[date] = set()
    for row in rows:
        distances = backtest.distances(row, {})
        for index in days:
            truth, status = known[row][index], statuses[row][index]
            if truth is None:
                continue
            if truth.is_label:
                labelled.add(backtest.days[index].date)
            elif status in (Status.PASSED, Status.FAILED):
                distance = distances[index]
                far = math.inf if distance is None else distance
                verdicts[row, index] = status is Status.PASSED, far

    def rank(place: tuple[int, int]) -> tuple[bool, bool, float, int, int]:
        row, index = place
        return backtest.days[index].date in labelled, *verdicts[place], -index, row

    wanted: list[WantedLabel] = []
    while verdicts and len(wanted) < most:
        row, index = min(verdicts, key=rank)
        del verdicts[row, index]
        assertion, day = backtest.assertions[row], backtest.days[index]
        labelled.add(day.date)
        status = statuses[row][index]
        assert status is not None
        wanted.append(WantedLabel(assertion.check, assertion.name, day.date, status, day.map_index))
    return tuple(wanted)
