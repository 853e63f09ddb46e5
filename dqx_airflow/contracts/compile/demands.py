"""The table of demands, and the function that compiles each of them to DQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts.compile import columns, datasets, measured
from dqx_airflow.contracts.compile.sql_meanings import Query, RowSql, TableSql, row_meaning
from dqx_airflow.contracts.compile.sql_predicates import CompiledClaim, EnforcedByType, RuleContext
from dqx_airflow.contracts.compile.terms import UnenforceableError
from dqx_airflow.contracts.compile.values import PREDICATES
from dqx_airflow.contracts.demands import (
    AllComplete,
    AmongRows,
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
from dqx_airflow.dql.printer import show_where


def claim_of(context: RuleContext) -> CompiledClaim | EnforcedByType:
    """The claim for a rule.

    :raises UnenforceableError: there is none, with the reason.
    """
    demand = context.rule.demand
    return CLAIMS[type(demand)](context, demand)


def _among_rows(context: RuleContext, demand: AmongRows) -> CompiledClaim | EnforcedByType:
    where = row_meaning(context, demand.where, demand.sql_dialect)
    if isinstance(where, RowSql | TableSql | Query):
        raise UnenforceableError(f"DQL cannot express the filter: {demand.where}")
    rule = replace(context.rule, demand=demand.demand)
    claim = claim_of(replace(context, rule=rule, is_filtered=True))
    if isinstance(claim, EnforcedByType):
        raise UnenforceableError(
            "a column has the same type in all rows, so a filter has no effect"
        )
    return replace(claim, text=claim.text + show_where(where))


CLAIMS: dict[type, Callable[[RuleContext, Any], CompiledClaim | EnforcedByType]] = {
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
    AmongRows: _among_rows,
    Fresh: datasets.fresh,
    Prompt: datasets.prompt,
    Retained: datasets.retained,
    Volume: datasets.volume,
    HourlyVolume: datasets.hourly_volume,
    Arrives: datasets.arrives,
}
"""What makes the claim of a rule, by the type of its demand."""
