"""Translates the SQL of a rule, with its placeholders filled in, to DQL or Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.compile.sql_forms import Query, RowSql, SqlScope, TableSql
from dqx_airflow.contracts.model import plain_name
from dqx_airflow.dql import nodes
from dqx_airflow.errors import NoCounterpartError

_PLACEHOLDER = re.compile(r"(?<!\\[pPx])\$?\{\{?\s*(?P<name>[A-Za-z_]\w*)\s*\}?\}")
"""`\\p{L}` in a regular expression is none."""
_QUOTES = "\"`'."
_BACKTICKS = (None, "spark", "databricks", "hive", "mysql", "bigquery", "clickhouse")
"""Dialects in which double quotes delimit strings, and backticks names."""
_QUALIFIER = re.compile(
    r"""["`\[]?\$?\{\{?\s*(?:schema|dataset|database|catalog|project)\s*\}?\}["`\]]?\s*\.\s*""",
    re.IGNORECASE,
)
"""Qualifiers before the name of a table: they locate it on a server, but here it is a dataset."""


def filled_in(sql: str, names: Mapping[str, str], sql_dialect: str | None) -> str:
    """The SQL with names for its placeholders: `{model}`, `${property}`, `{{ column }}`.

    :raises NoCounterpartError: a placeholder is unknown.
    """

    def fill(match: re.Match[str]) -> str:
        key = match["name"].lower()
        if key not in names:
            known = ", ".join(f"{{{known}}}" for known in names)
            raise NoCounterpartError(f"nothing is known for {match[0]}: there is {known}")
        before = sql[match.start() - 1 : match.start()]
        is_plain = re.fullmatch(r"[A-Za-z_][\w.]*", names[key]) is not None
        if is_plain or (before and before in _QUOTES):
            return names[key]
        quote = "`" if sql_dialect in _BACKTICKS else '"'
        return quote + names[key].replace(quote, 2 * quote) + quote

    return _PLACEHOLDER.sub(fill, _QUALIFIER.sub("", sql))


def placeholders(context: RuleContext) -> dict[str, str]:
    """The values of `{model}`, `{field}` and other placeholders in the SQL of a rule."""
    tables = ("model", "table", "table_name", "object", "schema", "dataset")
    names = dict.fromkeys(tables, context.model.name)
    if context.item is not None and context.is_reachable:
        column = plain_name(context.item.path)
        names |= dict.fromkeys(("field", "column", "property", "column_name"), column)
    return names


def row_meaning(
    context: RuleContext, predicate: str, sql_dialect: str | None
) -> nodes.Expression | RowSql | TableSql | Query:
    """Translates an SQL predicate over the rows of a model.

    :raises NoCounterpartError: it is not a single read-only expression, or has other placeholders.
    """
    from dqx_airflow.contracts.compile.sql_rules import row_rule

    return row_rule(
        filled_in(predicate, placeholders(context), sql_dialect), sql_dialect, _scope(context)
    )


def query_meaning(
    context: RuleContext, written: str, sql_dialect: str | None
) -> Query | TableSql | nodes.Expression:
    """Translates a query that returns one value. A query that counts rows of the model becomes the
    predicate that is true for these rows.

    :raises NoCounterpartError: it is not a single query, or has other placeholders.
    """
    from dqx_airflow.contracts.compile.sql_rules import query_rule

    text = filled_in(written, placeholders(context), sql_dialect)
    return query_rule(text, sql_dialect, _scope(context))


def _scope(context: RuleContext) -> SqlScope:
    return SqlScope(context.model.name, context.dataset, context.fields_of)
