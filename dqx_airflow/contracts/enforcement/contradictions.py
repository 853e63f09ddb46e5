"""Rules of a contract that exclude each other, or that no value satisfies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

from dqx_airflow.contracts import demands
from dqx_airflow.contracts import model as elements
from dqx_airflow.metrics.spark_values import COMPARATORS

_UPPER = ("<", "<=")
_LOWER = (">", ">=")
_ANY_CONDITION = demands.Condition("!=", 0)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Rules that exclude each other, or a rule that excludes every value; `what` describes them."""

    rules: tuple[elements.Rule, ...]
    what: str


_ValueLimit: TypeAlias = "tuple[elements.Rule, str, demands.Literal]"
"""A bound of the values, or of their lengths: its rule, its comparison and its limit."""


def contradictions(contract: elements.Contract) -> Iterator[Contradiction]:
    """All contradictions of a contract, in its order."""
    for model in contract.models:
        for item in model.walk():
            yield from _among(item.rules)
        yield from _among(model.rules)


def _among(rules: Sequence[elements.Rule]) -> Iterator[Contradiction]:
    # A share of the rows leaves room for others.
    strict = [rule for rule in rules if rule.share >= 1]
    limits = [(rule, rule.demand) for rule in strict]
    bounds = [(rule, it.op, it.value) for rule, it in limits if isinstance(it, demands.Bound)]
    lengths = [(rule, it.op, it.count) for rule, it in limits if isinstance(it, demands.Length)]
    yield from _crossed(bounds, "minimum", "maximum")
    yield from _crossed(lengths, "least length", "greatest length")
    yield from _no_value_left(strict, [rule for rule, *_ in (*bounds, *lengths)])
    yield from _conditions(rules)
    for rule in rules:
        match rule.demand:
            case demands.Digits(precision=precision, scale=scale) if scale > precision:
                message = f"the scale {scale} is larger than the precision {precision}"
                yield Contradiction((rule,), message)
            case demands.Volume(low=low, high=high) if _is_above(low, high):
                yield Contradiction((rule,), f"the band starts at {low}, above its end at {high}")
            case demands.HourlyVolume(low=low, high=high) if _is_above(low, high):
                yield Contradiction((rule,), f"at least {low} rows per hour, but at most {high}")


def _crossed(limits: Sequence[_ValueLimit], least: str, most: str) -> Iterator[Contradiction]:
    for (rule, op, low), (other_rule, other_op, high) in product(limits, repeat=2):
        is_strict = "=" not in op or "=" not in other_op
        is_band = op in _LOWER and other_op in _UPPER
        if is_band and _is_above(low, high, or_equal=is_strict):
            message = f"the {least} {low} is above the {most} {high}"
            if low == high:
                message = f"no value is between {low} and {high}, which are excluded"
            yield Contradiction((rule, other_rule), message)


def _is_above(low: demands.Literal, high: demands.Literal, *, or_equal: bool = False) -> bool:
    """False for values that cannot be compared; dates are compared as ISO strings."""
    if isinstance(low, str) and isinstance(high, str):
        length = min(len(low), len(high))
        return low > high and low[:length] > high[:length]
    if isinstance(low, bool) or isinstance(high, bool):
        return False
    if isinstance(low, int | float) and isinstance(high, int | float):
        return low > high or (or_equal and low == high)
    return False


def _no_value_left(
    rules: Sequence[elements.Rule], limits: Sequence[elements.Rule]
) -> Iterator[Contradiction]:
    """The lists of values of which none satisfies the bounds next to it."""
    for rule in rules:
        if isinstance(rule.demand, demands.OneOf) and rule.demand.values:
            for limit in limits:
                kept = (_keeps(value, limit.demand) for value in rule.demand.values)
                if not any(kept):
                    yield Contradiction((rule, limit), "none of the values is within the limit")


def _keeps(value: demands.Literal, limit: object) -> bool:
    match limit:
        case demands.Length(op=op, count=count) if isinstance(value, str):
            return COMPARATORS[op](len(value), count)
        case demands.Bound(op=op, value=bound) if (
            isinstance(value, int | float)
            and isinstance(bound, int | float)
            and not isinstance(value, bool)
        ):
            return COMPARATORS[op](value, bound)
    return True


def _conditions(rules: Sequence[elements.Rule]) -> Iterator[Contradiction]:
    """Conditions on the same number that exclude each other, or that no number satisfies."""
    numbers: dict[object, list[tuple[elements.Rule, demands.Interval]]] = {}
    for rule in rules:
        match rule.demand:
            case demands.MetricRule() as demand:
                key: object = replace(demand, condition=_ANY_CONDITION)
            case demands.QueryGives(query=query):
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
                is_apart = max(other[0], interval[0]) >= min(other[1], interval[1])
                if other[0] <= other[1] and is_apart:
                    yield Contradiction((other_rule, rule), "no number satisfies both thresholds")
