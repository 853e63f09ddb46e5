"""The table of demands: ONE entry each. A new demand of the model needs one here, and no more."""

from __future__ import annotations

from collections.abc import Callable

from dqx_airflow.contracts.compile import columns, datasets, measured
from dqx_airflow.contracts.compile.place import Claim, Place, Within
from dqx_airflow.contracts.compile.values import PREDICATES
from dqx_airflow.contracts.model import (
    Arrives,
    Complete,
    Distinct,
    Fresh,
    HourlyVolume,
    Measured,
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

DEMANDS: dict[type, Callable[[Place], Claim | Within]] = {
    Presence: columns.presence,
    OfType: columns.of_type,
    OnlyColumns: columns.only_columns,
    Required: columns.required,
    **dict.fromkeys(PREDICATES, columns.value),
    UniqueItems: columns.unique_items,
    Unique: measured.unique,
    Distinct: measured.distinct,
    Complete: measured.complete,
    Measured: measured.measured,
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
