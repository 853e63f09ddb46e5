"""Pinned versions of contracts: `2`, `2.3` or `2.3.0`."""

from __future__ import annotations

import re
from collections.abc import Collection

from dqx_airflow.contracts import model as elements

_VERSION = re.compile(r"v?(\d{1,9}(?:\.\d{1,9})*)([-+.][\w.+-]+)?", re.ASCII)
_WHOLE = 3
"""The number of numbers in a complete version: major, minor and patch."""


def is_version(pin: str) -> bool:
    """True for a version that can be pinned: `2`, `2.3`, `2.3.0`."""
    return _VERSION.fullmatch(pin) is not None


def objection_to_version(
    contract: elements.Contract, expected: str, models: Collection[str] = ()
) -> str | None:
    """The objection if the version of a contract is not the pinned version; None if it is.

    `2` accepts every 2.x.y, `2.3` every 2.3.x. A complete version such as `2.3.0`, and a version
    with a suffix such as `2.3.0-rc1`, accepts only itself. If each model has a version of its own,
    the versions of the `models` are compared: of all models by default.
    """
    with_versions = [
        model
        for model in contract.models
        if model.version is not None and (not models or model.name in models)
    ]
    if contract.version is not None or not with_versions:
        return _objection(contract.id, contract.version, expected)
    for model in with_versions:
        objection = _objection(model.title or model.name, model.version, expected)
        if objection is not None:
            return objection
    return None


def _objection(name: str, version: str | None, expected: str) -> str | None:
    pin = _VERSION.fullmatch(expected.strip())
    if pin is None:
        return f"the pin '{expected}' is not a version: write 2, 2.3 or 2.3.0"
    if version is None:
        return f"{name} has no version, but version {expected} is pinned"
    if version == expected.strip():
        return None
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        return f"{name} has version '{version}', which cannot be pinned"
    if _is_pinned(match, pin):
        return None
    return (
        f"{name} has version {version}, but version {expected} is pinned: "
        "review the changes with `dql contract diff`, then update the pin"
    )


def _is_pinned(version: re.Match[str], pin: re.Match[str]) -> bool:
    """Whether a pin accepts a version; both are matches of `_VERSION`."""
    wanted = [int(part) for part in pin[1].split(".")]
    actual = [int(part) for part in version[1].split(".")]
    while len(actual) < len(wanted):
        actual.append(0)
    if actual[: len(wanted)] != wanted:
        return False
    is_series = len(wanted) < _WHOLE and pin[2] is None
    is_itself = len(actual) == len(wanted) and version[2] == pin[2]
    return is_series or is_itself
