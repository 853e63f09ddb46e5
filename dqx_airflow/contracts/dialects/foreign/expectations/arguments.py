"""The arguments of an expectation, and the demands that many of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dqx_airflow.contracts.column_paths import dotted_path
from dqx_airflow.contracts.demands import Condition, Demand, Literal, RowsSatisfy
from dqx_airflow.contracts.dialects.foreign.values import ValueDemand, all_hold, is_value, values_in
from dqx_airflow.exact import is_finite_number

Demands: TypeAlias = tuple[Demand, ...]


class NoCounterpartError(Exception):
    """Why an expectation cannot be translated."""


@dataclass(slots=True)
class ExpectationArguments:
    """The `kwargs` of an expectation, which records those that were requested.

    `share` is the share of values for a single demand, as in `Rule`.
    """

    given: Mapping[str, Any]
    column: str | None
    sql_dialect: str | None
    share: float = 1.0
    asked: set[str] = field(default_factory=set)

    def take(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        value = self.given.get(key)
        return default if value is None else value

    def text(self, key: str) -> str:
        value = self.take(key)
        if not isinstance(value, str) or not value:
            raise NoCounterpartError(f"it has no {key}")
        return value

    def items(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, list) or not value:
            raise NoCounterpartError(f"it has no {key}, or an empty one")
        return value

    def values(self, key: str) -> tuple[Literal, ...]:
        literals = values_in(self.take(key))
        if literals is None:
            raise NoCounterpartError(f"its {key} is not a list of values")
        return literals

    def path(self, key: str) -> str:
        """A column as DQL writes it; a dot leads into a struct, as in Spark."""
        return dotted_path(self.text(key))

    def paths(self, key: str) -> tuple[str, ...]:
        return tuple(dotted_path(str(name)) for name in self.items(key))

    def own_column(self) -> str:
        """The column of the expectation; by default that of its field."""
        if self.column is None or self.given.get("column") is not None:
            self.column = self.path("column")
        return self.column

    def mostly(self) -> float:
        share = self.take("mostly", 1)
        if not is_finite_number(share) or not 0 <= share <= 1:
            raise NoCounterpartError("mostly must be between 0 and 1")
        return float(share)


Expectations: TypeAlias = "dict[str, Callable[[ExpectationArguments], Demands]]"


def each_value(arguments: ExpectationArguments, demands: tuple[ValueDemand, ...]) -> Demands:
    """The demands; if `mostly` is less than 1, for that share of the values, as one predicate."""
    share = arguments.mostly()
    if share == 1:
        return demands
    if len(demands) == 1:
        arguments.share = share
        return demands
    return (RowsSatisfy(all_hold(arguments.own_column(), demands), share=share),)


def bounds_in(arguments: ExpectationArguments) -> list[tuple[str, Any]]:
    """The bounds as comparisons: `(">=", 1)`."""
    bounds = []
    for key, strict, ops in (("min", "strict_min", ">>="), ("max", "strict_max", "<<=")):
        value = arguments.take(f"{key}_value")
        op = ops[0] if arguments.take(strict, False) is True else ops[1:]
        if value is not None and not is_value(value):
            raise NoCounterpartError(f"its {key}_value is not a value")
        if value is not None:
            bounds.append((op, value))
    if not bounds:
        raise NoCounterpartError("it has neither min_value nor max_value")
    return bounds


def conditions_in(arguments: ExpectationArguments) -> tuple[Condition, ...]:
    bounds = bounds_in(arguments)
    if not all(is_finite_number(value) for _, value in bounds):
        raise NoCounterpartError("its bounds are not numbers")
    match bounds:
        case [(">=", low), ("<=", high)] if low <= high:
            return (Condition("between", low, high),)
    return tuple(Condition(op, value) for op, value in bounds)
