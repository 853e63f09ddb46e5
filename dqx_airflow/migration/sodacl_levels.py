"""The conditions of a SodaCL check, at each of its levels."""

from __future__ import annotations

import re
from typing import Any

from dqx_airflow.migration.foreign_rule import UntranslatableError
from dqx_airflow.values import Severity


def levels_of(text: str, settings: dict[str, Any]) -> list[tuple[Severity | None, str | None]]:
    """The condition that must hold at each level of a check; None if a level is not a comparison.
    `fail` and `warn` are taken from the settings."""
    levels = [
        (severity, settings.pop(key))
        for key, severity in (("fail", None), ("warn", Severity.P3))
        if key in settings
    ]
    if not levels:
        return [(None, text)]
    return [
        (severity, f"{text} {_negated(str(condition)[5:])}")
        if str(condition).startswith("when ")
        else (severity, None)
        for severity, condition in levels
    ]


_OPPOSITES = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "!=": "=", "=": "!="}


def _negated(condition: str) -> str:
    """The negation of a condition under which a check fails."""
    bare = condition.strip()
    if bare.startswith("between "):
        return f"not {bare}"
    if bare.startswith("not between "):
        return bare.removeprefix("not ")
    for op, opposite in _OPPOSITES.items():
        if bare.startswith(op):
            return f"{opposite} {bare.removeprefix(op).strip()}"
    return condition


_SIGNS = {"=": "==", "<>": "!="}
_BOUND = r"[-+]?\d+(?:\.\d+)?"
_BETWEEN = re.compile(rf"between\s+({_BOUND})\s*%?\s+and\s+({_BOUND})\s*%?")
_SIGNED = re.compile(rf"(<=|>=|!=|<>|<|>|=)\s*({_BOUND})\s*%?")


def comparison_text(comparison: str, unit: str) -> str:
    """A comparison in DQL: `between 1% and 5%`.

    :param unit: of the bounds, `%` or none.
    :raises UntranslatableError: it does not compare with a number.
    """
    bare = comparison.strip()
    if (match := _BETWEEN.fullmatch(bare)) is not None:
        low, high = (bound.removeprefix("+") for bound in match.groups())
        return f"between {low}{unit} and {high}{unit}"
    if (match := _SIGNED.fullmatch(bare)) is not None:
        return f"{_SIGNS.get(match[1], match[1])} {match[2].removeprefix('+')}{unit}"
    raise UntranslatableError(f"'{bare}' does not compare with a number")
