"""The table of demands, and the function that compiles each of them to DQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile import columns, datasets, measured
from dqx_airflow.contracts.compile.sql_meanings import Query, RowSql, TableSql, row_meaning
from dqx_airflow.contracts.compile.sql_predicates import CompiledClaim, EnforcedByType, RuleContext
from dqx_airflow.contracts.compile.values import PREDICATES
from dqx_airflow.dql.printer import show_where
from dqx_airflow.errors import NoCounterpartError


def claim_of(context: RuleContext) -> CompiledClaim | EnforcedByType:
    """The claim for a rule.

    :raises NoCounterpartError: there is none, with the reason.
    """
    demand = context.rule.demand
    return CLAIMS[type(demand)](context, demand)


def _among_rows(context: RuleContext, demand: demands.AmongRows) -> CompiledClaim | EnforcedByType:
    where = row_meaning(context, demand.where, demand.sql_dialect)
    if isinstance(where, RowSql | TableSql | Query):
        raise NoCounterpartError(f"DQL cannot express the filter: {demand.where}")
    rule = replace(context.rule, demand=demand.demand)
    claim = claim_of(replace(context, rule=rule, is_filtered=True))
    if isinstance(claim, EnforcedByType):
        raise NoCounterpartError(
            "a column has the same type in all rows, so a filter has no effect"
        )
    return replace(claim, text=claim.text + show_where(where))


CLAIMS: dict[type, Callable[[RuleContext, Any], CompiledClaim | EnforcedByType]] = {
    demands.Presence: columns.presence,
    demands.OfType: columns.of_type,
    demands.OnlyColumns: columns.only_columns,
    demands.Required: columns.required,
    **dict.fromkeys(PREDICATES, columns.value),
    demands.UniqueItems: columns.unique_items,
    demands.Unique: measured.unique,
    demands.Distinct: measured.distinct,
    demands.Complete: measured.complete,
    demands.AllComplete: measured.all_complete,
    demands.MetricRule: measured.measured,
    demands.QueryGives: measured.query_gives,
    demands.Refers: datasets.refers,
    demands.RowsSatisfy: datasets.rows_satisfy,
    demands.AmongRows: _among_rows,
    demands.Fresh: datasets.fresh,
    demands.Prompt: datasets.prompt,
    demands.Retained: datasets.retained,
    demands.Volume: datasets.volume,
    demands.HourlyVolume: datasets.hourly_volume,
    demands.Arrives: datasets.arrives,
}
"""What makes the claim of a rule, by the type of its demand."""
