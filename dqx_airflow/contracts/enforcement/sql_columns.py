"""Columns in the SQL of rules that the models of the contract do not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.compile.sql_meanings import filled_in, placeholders
from dqx_airflow.contracts.compile.sql_trees import parsed, written_name
from dqx_airflow.contracts.demands import QueryGives, RowsSatisfy
from dqx_airflow.errors import NoCounterpartError

if TYPE_CHECKING:
    from sqlglot import Expr


def missing_columns(context: RuleContext) -> Iterator[str]:
    """The unknown columns of an SQL rule, as written. Empty if they cannot be determined: the rule
    reads a table that is not a model of the contract, or defines columns itself."""
    demand = context.rule.demand
    assert isinstance(demand, QueryGives | RowsSatisfy)
    sql = demand.query if isinstance(demand, QueryGives) else demand.predicate
    try:
        tree = parsed(filled_in(sql, placeholders(context), demand.sql_dialect), demand.sql_dialect)
    except NoCounterpartError:
        return  # coverage reports it
    models = _models_read(context, tree)
    if models is None:
        return
    aliases = {
        expression.alias.lower() for expression in tree.find_all(exp.Alias, exp.CTE, exp.Subquery)
    }
    tables = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    tables |= {context.model.name.lower(), *aliases}
    columns = {item.name.lower() for model in models for item in model.fields} | aliases
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or column.find_ancestor(exp.Lambda) is not None:
            continue
        parts = [part.name for part in column.parts]
        if parts[0].lower() in tables and len(parts) > 1:
            parts = parts[1:]
        if parts[0].lower() not in columns:
            yield ".".join(parts)


def _models_read(context: RuleContext, tree: Expr) -> list[elements.Model] | None:
    """The models of the tables in SQL; None if a table is unknown, or defines columns itself."""
    if tree.find(exp.Lateral, exp.Unnest, exp.Values, exp.Pivot, exp.UDTF):
        return None
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [table for table in tree.find_all(exp.Table) if table.name.lower() not in defined]
    names = {context.dataset(written_name(table)) for table in tables}
    models = [context.contract.model(name) for name in (names | {context.model.name})]
    with_fields = [model for model in models if model is not None and model.fields]
    return with_fields if len(with_fields) == len(models) else None
