"""The kinds of demands on data that contracts make, each with everything that its readers need.

A kind is a class: its wording, its quality dimension, the fields that identify it and that make it
stricter, its claim in DQL, and its form in other tools. All demands on a column except
`Required` and `Presence` are about the values that are not NULL.
"""

from __future__ import annotations

from dqx_airflow.contracts.demand import (
    NONE,
    Condition,
    Demand,
    Interval,
    Literal,
    Order,
    all_of,
    compare_demands,
    literal_text,
    one_line,
    printable_line,
    rising,
)
from dqx_airflow.contracts.demands.columns import (
    AllComplete,
    Complete,
    OfOneType,
    OfType,
    OnlyColumns,
    Presence,
    Required,
    WrittenAs,
)
from dqx_airflow.contracts.demands.deliveries import (
    Arrives,
    DemandOnPeriod,
    Fresh,
    HourlyVolume,
    Prompt,
    Retained,
    Volume,
)
from dqx_airflow.contracts.demands.keys import Distinct, Refers, Unique
from dqx_airflow.contracts.demands.measures import MetricRule
from dqx_airflow.contracts.demands.queries import AmongRows, QueryGives, RowsSatisfy
from dqx_airflow.contracts.demands.values import (
    Bound,
    Digits,
    Length,
    MultipleOf,
    OfFormat,
    OneOf,
    Pattern,
    TimeBound,
    TimeText,
    UniqueItems,
    ValueDemand,
)

__all__ = [
    "NONE",
    "AllComplete",
    "AmongRows",
    "Arrives",
    "Bound",
    "Complete",
    "Condition",
    "Demand",
    "DemandOnPeriod",
    "Digits",
    "Distinct",
    "Fresh",
    "HourlyVolume",
    "Interval",
    "Length",
    "Literal",
    "MetricRule",
    "MultipleOf",
    "OfFormat",
    "OfOneType",
    "OfType",
    "OneOf",
    "OnlyColumns",
    "Order",
    "Pattern",
    "Presence",
    "Prompt",
    "QueryGives",
    "Refers",
    "Required",
    "Retained",
    "RowsSatisfy",
    "TimeBound",
    "TimeText",
    "Unique",
    "UniqueItems",
    "ValueDemand",
    "Volume",
    "WrittenAs",
    "all_of",
    "compare_demands",
    "literal_text",
    "one_line",
    "printable_line",
    "rising",
]
