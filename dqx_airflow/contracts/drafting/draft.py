"""From an observed table to a contract that it satisfies."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from dqx_airflow.contracts.column_paths import column_path
from dqx_airflow.contracts.demands import (
    Bound,
    Complete,
    Demand,
    OfType,
    OneOf,
    Pattern,
    Presence,
    Required,
    Unique,
)
from dqx_airflow.contracts.dialects.field_types import with_type
from dqx_airflow.contracts.drafting.observed import ObservedColumn, ObservedTable
from dqx_airflow.contracts.model import Contract, Dialect, Field, Lifecycle, Model, Rule, Server
from dqx_airflow.values import Span

FIRST_VERSION = "0.1.0"
_NOWHERE = Span("", 1, 1, 1, 1)


def draft(table: ObservedTable, dialect: Dialect) -> Contract:
    """The contract: what is true for all current rows, without what is specific to them."""
    key = tuple(map(column_path, table.key))
    return Contract(
        dialect,
        None,
        id=table.name,
        version=FIRST_VERSION,
        span=_NOWHERE,
        name=table.name,
        models=(
            Model(
                table.name,
                _NOWHERE,
                tuple(_field(column, table) for column in table.columns),
                (_rule("primary_key", Unique(key)),) if key else (),
                location=table.place.rpartition(".")[2] if table.format is None else None,
            ),
        ),
        servers=(_server(table),),
        lifecycle=Lifecycle(status="draft", written_status="draft"),
    )


def _server(table: ObservedTable) -> Server:
    if table.format is not None:
        return Server("local", "local", _NOWHERE, table.place, table.format)
    # The standards use this name for any catalog that Spark reads; they have no other word for it.
    schema = table.place.rpartition(".")[0]
    return Server("catalog", "databricks", _NOWHERE, f"{schema}.{{model}}")


def _field(column: ObservedColumn, table: ObservedTable) -> Field:
    item = Field(
        column.name,
        column_path(column.name),
        None,
        _NOWHERE,
        rules=tuple(_rule(name, demand) for name, demand in _demands(column, table)),
        is_key=column.name in table.key,
        is_sensitive=column.is_personal,
        classification="pii" if column.is_personal else None,
    )
    return with_type(item, column.type)


def _demands(column: ObservedColumn, table: ObservedTable) -> Iterator[tuple[str, Demand]]:
    yield "exists", Presence()
    yield "type", OfType()
    if table.rows and column.nulls == 0:
        yield "required", Required()
    # The minimum of an id is meaningless.
    if column.name not in table.key and not column.is_named_like_a_key:
        if column.lowest is not None:
            yield "minimum", Bound(">=", column.lowest)
        if column.highest is not None:
            yield "maximum", Bound("<=", column.highest)
    if column.pattern is not None:
        yield "pattern", Pattern(column.pattern)
    if column.values:
        yield "enum", OneOf(column.values)
    if 0 < column.nulls < table.rows and (percent := _percent(column, table)) > 0:
        yield "completeness", Complete(column_path(column.name), percent / 100)


def _percent(column: ObservedColumn, table: ObservedTable) -> float:
    """The share of existing values in whole percents: the exact number is meaningless."""
    return floor(100 * (table.rows - column.nulls) / table.rows)


def _rule(name: str, demand: Demand) -> Rule:
    return Rule(name, demand, ())
