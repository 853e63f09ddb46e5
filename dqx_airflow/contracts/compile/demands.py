"""The table of demands: ONE entry each. A new demand of the model needs one here, and no more."""

from __future__ import annotations

from collections.abc import Callable

from dqx_airflow.contracts.compile import columns, datasets, measured
from dqx_airflow.contracts.compile.rule_context import Claim, EnforcedByType, RuleContext
from dqx_airflow.contracts.compile.values import PREDICATES
from dqx_airflow.contracts.model import (
    AllComplete,
    Arrives,
    Complete,
    Distinct,
    Fresh,
    HourlyVolume,
    MetricRule,
    OfType,
    OnlyColumns,
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

DEMANDS: dict[type, Callable[[RuleContext], Claim | EnforcedByType]] = {
    Presence: columns.presence,
    OfType: columns.of_type,
    OnlyColumns: columns.only_columns,
    Required: columns.required,
    **dict.fromkeys(PREDICATES, columns.value),
    UniqueItems: columns.unique_items,
    Unique: measured.unique,
    Distinct: measured.distinct,
    Complete: measured.complete,
    AllComplete: measured.all_complete,
    MetricRule: measured.measured,
    QueryGives: measured.query_gives,
    Refers: datasets.refers,
    RowsSatisfy: datasets.rows_satisfy,
    Fresh: datasets.fresh,
    Prompt: datasets.prompt,
    Retained: datasets.retained,
    Volume: datasets.volume,
    HourlyVolume: datasets.hourly_volume,
    Arrives: datasets.arrives,
}
"""What is claimed for a rule, by the type of its demand.

Each raises UnenforceableError, with the reason, for a rule of which nothing can be claimed.
"""
