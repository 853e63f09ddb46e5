"""The syntax trees of SQL in contracts, and parts of them.

sqlglot is expensive to import: this module is imported when there is SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from dqx_airflow.contracts.compile.sql_table import sqlglot_dialect
from dqx_airflow.dql.sql_parser import InvalidSqlError, TooDeepSqlError, parse_sql
from dqx_airflow.errors import NoCounterpartError

if TYPE_CHECKING:
    from sqlglot import Expr

COMPARATORS: dict[type[Expr], str] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "==",
    exp.NEQ: "!=",
}
"""The comparisons of SQL, as DQL writes them."""


def parsed(sql: str, sql_dialect: str | None) -> Expr:
    """The tree of one read-only expression or query.

    :raises NoCounterpartError: the SQL is invalid, several statements, or not read-only.
    """
    try:
        statements = _statements(sql, sqlglot_dialect(sql_dialect))
    except TooDeepSqlError as error:
        raise NoCounterpartError(str(error)) from None
    except InvalidSqlError as error:
        raise NoCounterpartError(f"invalid SQL: {error}") from error
    if len(statements) != 1:
        raise NoCounterpartError("expected one statement")
    tree = statements[0]
    if isinstance(tree, exp.Alias) or tree.find(
        exp.DDL, exp.DML, exp.Command, exp.Into, exp.Placeholder, exp.Parameter
    ):
        raise NoCounterpartError("expected one read-only SQL expression")
    of_in = ("expressions", "query", "unnest")
    if any(not any(map(test.args.get, of_in)) for test in tree.find_all(exp.In)):
        raise NoCounterpartError("no list after IN: write `IN (SELECT column FROM table)`")
    return tree


def _statements(sql: str, dialect: str | None) -> list[Expr]:
    """The statements of SQL. A condition may begin with a column that has the name of a statement,
    as in `comment is null`: in brackets it is an expression.

    :raises InvalidSqlError: it cannot be parsed.
    """
    error: InvalidSqlError | None = None
    statements: list[Expr] = []
    try:
        statements = parse_sql(sql, dialect)
        if not any(isinstance(statement, exp.Command) for statement in statements):
            return statements
    except TooDeepSqlError:
        raise
    except InvalidSqlError as found:
        error = found
    try:
        (bracketed,) = parse_sql(f"({sql}\n)", dialect)
    except (InvalidSqlError, ValueError):
        if error is not None:
            raise error from None
        return statements
    return [bracketed.this] if isinstance(bracketed, exp.Paren) else statements


def from_of(query: exp.Query) -> Expr | None:
    """The table or subquery in the FROM clause of a query; None without one."""
    clause = query.args.get("from_")
    return clause.this if clause is not None else None


def written_name(table: exp.Table) -> str:
    """The name of a table as written in the SQL, with its schema and catalog."""
    return ".".join(part.name for part in table.parts)


def subexpressions(tree: Expr, kind: type[Expr]) -> Iterator[Expr]:
    """The subexpressions of a class, without those inside nested queries."""
    for node in tree.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(node, kind):
            yield node
