"""The quality dimension of a rule, in the words of ODCS: its own, or that of its demand."""

from __future__ import annotations

from dqx_airflow.contracts.demands import (
    AllComplete,
    AmongRows,
    Arrives,
    Bound,
    Complete,
    Demand,
    Digits,
    Distinct,
    Fresh,
    HasFormat,
    HourlyVolume,
    Length,
    MetricRule,
    MultipleOf,
    OfType,
    OneOf,
    OnlyColumns,
    Pattern,
    Presence,
    Prompt,
    QueryGives,
    Refers,
    Required,
    Retained,
    RowsSatisfy,
    Unique,
    UniqueItems,
    Volume,
)
from dqx_airflow.contracts.model import Promise, Rule

DIMENSIONS: dict[type, str | None] = {
    Presence: "conformity",
    OfType: "conformity",
    OnlyColumns: "conformity",
    Required: "completeness",
    Unique: "uniqueness",
    Refers: "consistency",
    Pattern: "conformity",
    HasFormat: "conformity",
    OneOf: "conformity",
    Bound: "conformity",
    Length: "conformity",
    MultipleOf: "conformity",
    Digits: "conformity",
    UniqueItems: "uniqueness",
    MetricRule: None,
    Complete: "completeness",
    AllComplete: "completeness",
    Distinct: "uniqueness",
    RowsSatisfy: None,
    AmongRows: None,
    QueryGives: None,
    Fresh: "timeliness",
    Prompt: "timeliness",
    Retained: "conformity",
    Volume: "coverage",
    HourlyVolume: "coverage",
    Arrives: "timeliness",
}
"""What a demand measures where its rule does not say; None where that depends on the rule."""

_OF_METRICS = {
    "null_count": "completeness",
    "missing_count": "completeness",
    "duplicate_count": "uniqueness",
    "unique_count": "uniqueness",
    "malformed_count": "conformity",
    "invalid_count": "conformity",
    "num_rows": "coverage",
}


def dimension_of(rule: Rule | Promise) -> str | None:
    """The dimension in lower case; None where neither the rule nor its demand has one.

    >>> dimension_of(Rule("required", Required(), ()))
    'completeness'
    """
    if rule.dimension:
        return rule.dimension.lower()
    return _of_demand(rule.demand) if isinstance(rule, Rule) else None


def _of_demand(demand: Demand) -> str | None:
    if isinstance(demand, AmongRows):
        return _of_demand(demand.demand)
    if isinstance(demand, MetricRule):
        return _OF_METRICS.get(demand.metric)
    return DIMENSIONS[type(demand)]
