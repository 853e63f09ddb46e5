"""Completes the measurements of a day: values of earlier days are its lagged values.

If an assertion is new, no past gate stored the value of a week ago that it compares with. It is
taken from the day on which it was measured, if the dataset was read in the same way on both days:
an instance of a mapped gate takes its own. What no gate measured stays unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from dqx_airflow.tuning.past_days import PastDay


@dataclass(frozen=True, slots=True)
class _Lagged:
    """The key of a lagged value, and its key on the day on which it was measured."""

    key: str
    own_key: str
    dataset: str
    lag: int


def with_earlier_values(days: Sequence[PastDay], keys: Iterable[str]) -> tuple[PastDay, ...]:
    """The days, completed by the values of earlier days that they lack.

    :param keys: those of requests (`plan.measured.request_key`).
    """
    lagged = [lagged_value for key in dict.fromkeys(keys) if (lagged_value := _lagged(key))]
    if not lagged:
        return tuple(days)
    by_date: dict[date, list[PastDay]] = {}
    for day in days:
        by_date.setdefault(day.date, []).append(day)
    return tuple(_filled(day, lagged, by_date) for day in days)


def _lagged(key: str) -> _Lagged | None:
    parts = json.loads(key)
    dataset, lag = parts[0], parts[3]
    if not isinstance(lag, int) or lag < 1:
        return None
    parts[3] = 0
    own_key = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return _Lagged(key, own_key, dataset, lag)


def _filled(
    day: PastDay, lagged: Sequence[_Lagged], by_date: Mapping[date, Sequence[PastDay]]
) -> PastDay:
    measured = day.measured
    if not measured.values:  # of an older version, or nothing is known
        return day
    values, details = dict(measured.values), dict(measured.details)
    for lagged_value in lagged:
        if any(lagged_value.key in keys for keys in (values, measured.failures, measured.groups)):
            continue
        for earlier in by_date.get(day.date - timedelta(days=lagged_value.lag), ()):
            stored = earlier.measured
            if lagged_value.own_key in stored.values and _is_same(
                lagged_value.dataset, day, earlier
            ):
                values[lagged_value.key] = stored.values[lagged_value.own_key]
                if lagged_value.own_key in stored.details:
                    details[lagged_value.key] = stored.details[lagged_value.own_key]
                break
    return replace(day, measured=replace(measured, values=values, details=details))


def _is_same(dataset: str, day: PastDay, earlier: PastDay) -> bool:
    """Whether a dataset was read in the same way on both days."""
    reading = day.measured.reads.get(dataset)
    if reading is None and day.map_index != earlier.map_index:
        return False
    return reading == earlier.measured.reads.get(dataset)
