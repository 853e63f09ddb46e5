"""Whether a contract can be relied on: the version that a gate pins, and its status on a date."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date

from dqx_airflow.contracts.model import Contract, day_of
from dqx_airflow.contracts.notice_periods import end_of_period

_VERSION = re.compile(r"v?(\d{1,9}(?:\.\d{1,9})*)([-+.][\w.+-]+)?", re.ASCII)
_WHOLE = 3
"""The parts of a complete version: major, minor and patch."""


@dataclass(frozen=True, slots=True)
class LifecycleStatus:
    """Why a contract is not active, or not for long; `is_refused`: no gate may rely on it."""

    message: str
    is_refused: bool


def is_version(pin: str) -> bool:
    """True for a version that can be pinned: `2`, `2.3`, `2.3.0`."""
    return _VERSION.fullmatch(pin) is not None


def objection_to_version(
    contract: Contract, expected: str, models: Collection[str] = ()
) -> str | None:
    """Why the version of a contract is not the pinned one; None if it is.

    `2` accepts every 2.x.y, `2.3` every 2.3.x. A complete version such as `2.3.0`, and one with a
    suffix such as `2.3.0-rc1`, accepts only itself. If each model has a version of its own, those
    of the `models` are compared: all of them by default.
    """
    contracts = [
        replace(contract, id=model.title or model.name, version=model.version, models=())
        for model in contract.models
        if model.version is not None and (not models or model.name in models)
    ]
    if contract.version is None and contracts:
        objections = (objection_to_version(item, expected) for item in contracts)
        return next((objection for objection in objections if objection is not None), None)
    pin = _VERSION.fullmatch(expected.strip())
    if pin is None:
        return f"the pin '{expected}' is not a version: write 2, 2.3 or 2.3.0"
    written = contract.version
    if written is None:
        return f"{contract.id} has no version, but version {expected} is pinned"
    if written == expected.strip():
        return None
    match = _VERSION.fullmatch(written.strip())
    if match is None:
        return f"{contract.id} has version '{written}', which cannot be pinned"
    wanted, actual = pin[1].split("."), match[1].split(".")
    actual += ["0"] * (len(wanted) - len(actual))
    is_itself = len(actual) == len(wanted) and match[2] == pin[2]
    is_series = len(wanted) < _WHOLE and pin[2] is None
    same = [int(part) for part in actual[: len(wanted)]] == [int(part) for part in wanted]
    if same and (is_series or is_itself):
        return None
    return (
        f"{contract.id} has version {written}, but version {expected} is pinned: "
        "review the changes with `dql contract diff`, then update the pin"
    )


def lifecycle_status(contract: Contract, on: date) -> LifecycleStatus | None:
    """The status of a contract on a date according to its lifecycle; None if it is active.

    A contract past its sunset is refused, and a deprecated one when its notice period has ended.
    """
    cycle = contract.lifecycle
    sunset, deprecated = day_of(cycle.sunset_date), day_of(cycle.deprecation_date)
    use = f"; its successor is {cycle.successor}" if cycle.successor else ""
    if cycle.status == "sunset" or (sunset is not None and sunset <= on):
        when = f" on {sunset}" if sunset is not None else ""
        return LifecycleStatus(f"{contract.id} was sunset{when}{use}", is_refused=True)
    if deprecated is not None and deprecated > on:
        return LifecycleStatus(
            f"{contract.id} will be deprecated on {deprecated}{use}", is_refused=False
        )
    if cycle.status == "deprecated" or deprecated is not None:
        since = f" since {deprecated}" if deprecated is not None else ""
        notice = cycle.notice_days
        if sunset is None and deprecated is not None and notice is not None:
            end = end_of_period(deprecated, notice)
            if end <= on:
                message = (
                    f"{contract.id} is deprecated{since}, its notice period ended on {end}{use}"
                )
                return LifecycleStatus(message, is_refused=True)
            return LifecycleStatus(
                f"{contract.id} is deprecated{since}, until {end}{use}", is_refused=False
            )
        until = f", until {sunset}" if sunset is not None else ""
        return LifecycleStatus(f"{contract.id} is deprecated{since}{until}{use}", is_refused=False)
    starts = day_of(cycle.effective_date)
    if starts is not None and starts > on:
        return LifecycleStatus(f"{contract.id} is not in effect before {starts}", is_refused=False)
    return None
