"""Bounds in a contract that cannot be satisfied: a minimum above the maximum, and the like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dqx_airflow.contracts.demands import (
    Bound,
    Condition,
    Digits,
    HourlyVolume,
    Length,
    Literal,
    MetricRule,
    OneOf,
    QueryGives,
    Volume,
)
from dqx_airflow.contracts.demands.measured import Interval
from dqx_airflow.contracts.model import Contract, Rule

_UPPER, _LOWER = ("<", "<="), (">", ">=")
_ANY_CONDITION = Condition("!=", 0)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Rules that exclude each other, or one that excludes everything; `what` describes it."""

    rules: tuple[Rule, ...]
    what: str


@dataclass(frozen=True, slots=True)
class _Limit:
    """A bound of the values, or of their lengths."""

    rule: Rule
    op: str
    value: Literal


def contradictions(contract: Contract) -> Iterator[Contradiction]:
    """All contradictions of a contract, in its order."""
    for model in contract.models:
        for item in model.walk():
            yield from _among(item.rules)
        yield from _among(model.rules)


def _among(rules: Sequence[Rule]) -> Iterator[Contradiction]:
    # A share of the rows leaves room for others.
    strict = [rule for rule in rules if rule.share >= 1]
    bounds = [
        _Limit(rule, rule.demand.op, rule.demand.value)
        for rule in strict
        if isinstance(rule.demand, Bound)
    ]
    lengths = [
        _Limit(rule, rule.demand.op, rule.demand.count)
        for rule in strict
        if isinstance(rule.demand, Length)
    ]
    yield from _crossed(bounds, "minimum", "maximum")
    yield from _crossed(lengths, "least length", "greatest length")
    yield from _no_value_left(strict, [limit.rule for limit in (*bounds, *lengths)])
    yield from _conditions(rules)
    for rule in rules:
        match rule.demand:
            case Digits(precision=precision, scale=scale) if scale > precision:
                message = f"the scale {scale} is larger than the precision {precision}"
                yield Contradiction((rule,), message)
            case Volume(low=float() | int() as low, high=float() | int() as high) if low > high:
                yield Contradiction((rule,), f"the band starts at {low}, above its end at {high}")
            case HourlyVolume(low=float() | int() as low, high=float() | int() as high) if (
                low > high
            ):
                yield Contradiction((rule,), f"at least {low} rows per hour, but at most {high}")


def _crossed(limits: Sequence[_Limit], least: str, most: str) -> Iterator[Contradiction]:
    for low in limits:
        for high in limits:
            if low.op in _LOWER and high.op in _UPPER:
                is_strict = "=" not in low.op or "=" not in high.op
                if _is_above(low.value, high.value, or_equal=is_strict):
                    message = f"the {least} {low.value} is above the {most} {high.value}"
                    if low.value == high.value:
                        message = (
                            f"no value is between {low.value} and {high.value}, which are excluded"
                        )
                    yield Contradiction((low.rule, high.rule), message)


def _is_above(low: Literal, high: Literal, *, or_equal: bool) -> bool:
    """False for values that cannot be compared; dates are compared as ISO strings."""
    if isinstance(low, str) and isinstance(high, str):
        length = min(len(low), len(high))
        return low > high and low[:length] > high[:length]
    if isinstance(low, bool) or isinstance(high, bool):
        return False
    if isinstance(low, int | float) and isinstance(high, int | float):
        return low > high or (or_equal and low == high)
    return False


def _no_value_left(rules: Sequence[Rule], limits: Sequence[Rule]) -> Iterator[Contradiction]:
    """The lists of values of which none satisfies the bounds next to it."""
    for rule in rules:
        if isinstance(rule.demand, OneOf) and rule.demand.values:
            for limit in limits:
                kept = (_keeps(value, limit.demand) for value in rule.demand.values)
                if not any(kept):
                    yield Contradiction((rule, limit), "none of the values is within the limit")


def _keeps(value: Literal, limit: object) -> bool:
    match limit:
        case Length(op=op, count=count) if isinstance(value, str):
            return _holds(len(value), op, count)
        case Bound(op=op, value=bound) if (
            isinstance(value, int | float)
            and isinstance(bound, int | float)
            and not isinstance(value, bool)
        ):
            return _holds(value, op, bound)
    return True


def _holds(value: float, op: str, bound: float) -> bool:
    return {">": value > bound, ">=": value >= bound, "<": value < bound, "<=": value <= bound}[op]


# Conditions on one number -------------------------------------------------------------------------


def _conditions(rules: Sequence[Rule]) -> Iterator[Contradiction]:
    """Conditions on the same number that exclude each other, or that no number satisfies."""
    numbers: dict[object, list[tuple[Rule, Interval]]] = {}
    for rule in rules:
        match rule.demand:
            case MetricRule() as demand:
                key: object = replace(demand, condition=_ANY_CONDITION)
            case QueryGives(query=query):
                key = query
            case _:
                continue
        if len(accepted := rule.demand.condition.accepted) == 1:  # one that excludes no value alone
            numbers.setdefault(key, []).append((rule, accepted[0]))
    for group in numbers.values():
        for position, (rule, interval) in enumerate(group):
            if interval[0] > interval[1]:
                yield Contradiction((rule,), "no number is between these bounds")
                continue
            for other_rule, other in group[:position]:
                if other[0] <= other[1] and _is_apart(other, interval):
                    yield Contradiction((other_rule, rule), "no number satisfies both thresholds")


def _is_apart(first: Interval, second: Interval) -> bool:
    return max(first[0], second[0]) >= min(first[1], second[1])
