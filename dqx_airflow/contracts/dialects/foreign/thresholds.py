"""Thresholds and severities of rules in other languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dqx_airflow.contracts.demands import Condition
from dqx_airflow.contracts.dialects.extensions import slug
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Severity
from dqx_airflow.values.exact import is_finite_number

_WORDS = {
    **dict.fromkeys(("p0", "critical", "blocker", "fatal"), Severity.P0),
    **dict.fromkeys(("p1", "error", "high", "major"), Severity.P1),
    **dict.fromkeys(("p2", "warning", "warn", "medium", "minor"), Severity.P2),
    **dict.fromkeys(("p3", "info", "low", "informational", "notice"), Severity.P3),
}


def severity_of(word: str | None) -> Severity | None:
    """The severity for a word; None for no word, and for an unknown one."""
    return _WORDS.get(word.strip().lower()) if word else None


_OPERATORS = {
    "must_be": "==",
    "must_not_be": "!=",
    "must_be_greater_than": ">",
    "must_be_greater_or_equal_to": ">=",
    "must_be_greater_than_or_equal": ">=",
    "must_be_greater_than_or_equal_to": ">=",
    "must_be_less_than": "<",
    "must_be_less_or_equal_to": "<=",
    "must_be_less_than_or_equal": "<=",
    "must_be_less_than_or_equal_to": "<=",
    "must_be_between": "between",
    "must_not_be_between": "not between",
    "must_be_not_between": "not between",
}


def is_threshold(key: str) -> bool:
    """True for a key such as `mustBe` or `must_be_between`."""
    return slug(key) in _OPERATORS


def conditions(rule: Mapping[str, Any]) -> tuple[Condition, ...]:
    """All comparisons of a rule.

    :raises NoCounterpartError: one of them cannot be made.
    """
    bounds = []
    for key, value in rule.items():
        if not is_threshold(key):
            continue
        op = _OPERATORS[slug(key)]
        condition = _condition(op, value)
        if condition is None:
            wanted = "two numbers, the lower first" if op.endswith("between") else "a number"
            raise NoCounterpartError(f"{key} takes {wanted}")
        bounds.append(condition)
    return tuple(bounds)


def permits_none(condition: Condition, *, is_percent: bool = False) -> bool:
    """True if only zero satisfies the condition on a count, or on a percentage of the rows."""
    op, bound = condition.op, condition.bound
    if op == "==" or is_percent:
        return op in ("==", "<=") and bound == 0
    return (op == "<" and 0 < bound <= 1) or (op == "<=" and 0 <= bound < 1)


def _condition(op: str, value: object) -> Condition | None:
    if not op.endswith("between"):
        return Condition(op, value) if is_finite_number(value) else None
    match value:
        case [low, high] if is_finite_number(low) and is_finite_number(high) and low <= high:
            return Condition(op, low, high)
    return None
