"""Columns in the SQL of a contract that no model it reads has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.compile.sql_meanings import filled_in, placeholders
from dqx_airflow.contracts.compile.sql_predicates import written_name
from dqx_airflow.contracts.compile.sql_rules import parsed
from dqx_airflow.contracts.compile.terms import UnenforceableError
from dqx_airflow.contracts.demands import QueryGives, RowsSatisfy
from dqx_airflow.contracts.model import Model

if TYPE_CHECKING:
    from sqlglot import Expr


def missing_columns(context: RuleContext) -> Iterator[str]:
    """The unknown columns of an SQL rule, as written. If it reads a table that is not a model of
    the contract, or that defines columns itself, they are unknowable."""
    demand = context.rule.demand
    assert isinstance(demand, QueryGives | RowsSatisfy)
    sql = demand.query if isinstance(demand, QueryGives) else demand.predicate
    try:
        tree = parsed(filled_in(sql, placeholders(context), demand.sql_dialect), demand.sql_dialect)
    except UnenforceableError:
        return  # coverage reports it
    models = _models_read(context, tree)
    if models is None:
        return
    named = (*tree.find_all(exp.Alias), *tree.find_all(exp.CTE), *tree.find_all(exp.Subquery))
    tables = {context.model.name.lower()}
    tables |= {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    tables |= {expression.alias.lower() for expression in named}
    columns = {item.name.lower() for model in models for item in model.fields}
    columns |= {expression.alias.lower() for expression in named}
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if parts[0].lower() in tables and len(parts) > 1:
            parts = parts[1:]
        is_given = column.find_ancestor(exp.Lambda) is not None or isinstance(column.this, exp.Star)
        if not is_given and parts[0].lower() not in columns:
            yield ".".join(parts)


def _models_read(context: RuleContext, tree: Expr) -> list[Model] | None:
    """The models behind the tables; None if one is unknown, or defines columns itself."""
    if tree.find(exp.Lateral, exp.Unnest, exp.Values, exp.Pivot, exp.UDTF):
        return None
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [table for table in tree.find_all(exp.Table) if table.name.lower() not in defined]
    names = {context.dataset(written_name(table)) for table in tables}
    models = [context.contract.model(name) for name in (names | {context.model.name})]
    with_fields = [model for model in models if model is not None and model.fields]
    return with_fields if len(with_fields) == len(models) else None
