"""The status of a contract on a date: deprecated, past its sunset, or not yet in effect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from dqx_airflow.contracts import model as elements


@dataclass(frozen=True, slots=True)
class LifecycleStatus:
    """The status of a contract that is not active, or not for long; `is_refused`: no gate may rely
    on it."""

    message: str
    is_refused: bool


def lifecycle_status(contract: elements.Contract, on: date) -> LifecycleStatus | None:
    """The status of a contract on a date according to its lifecycle; None if it is active.

    A contract past its sunset is refused, and so is a deprecated contract after its notice period.
    """
    life = contract.lifecycle
    sunset = elements.day_of(life.sunset_date)
    deprecated = elements.day_of(life.deprecation_date)
    starts = elements.day_of(life.effective_date)
    use = f"; its successor is {life.successor}" if life.successor else ""
    if life.status == "sunset" or (sunset is not None and sunset <= on):
        when = f" on {sunset}" if sunset is not None else ""
        return LifecycleStatus(f"{contract.id} was sunset{when}{use}", is_refused=True)
    if deprecated is not None and deprecated > on:
        message = f"{contract.id} will be deprecated on {deprecated}{use}"
        return LifecycleStatus(message, is_refused=False)
    if life.status == "deprecated" or deprecated is not None:
        since = f" since {deprecated}" if deprecated is not None else ""
        end = end_of(life)
        if end is None:
            return LifecycleStatus(f"{contract.id} is deprecated{since}{use}", is_refused=False)
        is_over = end <= on
        until = f"its notice period ended on {end}" if is_over else f"until {end}"
        return LifecycleStatus(f"{contract.id} is deprecated{since}, {until}{use}", is_over)
    if starts is not None and starts > on:
        return LifecycleStatus(f"{contract.id} is not in effect before {starts}", is_refused=False)
    return None


def end_of(life: elements.Lifecycle) -> date | None:
    """The date from which a version must not be relied on: its sunset, or the end of its notice."""
    sunset = elements.day_of(life.sunset_date)
    deprecated = elements.day_of(life.deprecation_date)
    if sunset is not None or deprecated is None or life.notice_days is None:
        return sunset
    return elements.end_of_period(deprecated, life.notice_days)
