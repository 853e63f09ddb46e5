"""The SQL of contracts, in the dialect of a server: as predicates of DQL, or as Spark SQL.

sqlglot parses and writes it. It is expensive to import: this module is imported when there is SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from dqx_airflow.contracts.compile import sql_forms
from dqx_airflow.contracts.compile.sql_exact import exact
from dqx_airflow.contracts.compile.sql_predicates import NotInDqlError, predicate_of
from dqx_airflow.contracts.compile.sql_trees import from_of, parsed, subexpressions, written_name
from dqx_airflow.contracts.compile.value_kinds import Kind, columns_of
from dqx_airflow.dql import nodes
from dqx_airflow.dql.sql_parser import SQLGLOT_DEFECTS, TooDeepSqlError
from dqx_airflow.errors import NoCounterpartError

if TYPE_CHECKING:
    from sqlglot import Expr

_SPARK = "spark"
_WINDOWED = "windowed"
_TOO_DEEP = str(TooDeepSqlError())


def row_rule(
    sql: str, sql_dialect: str | None, scope: sql_forms.SqlScope
) -> nodes.Expression | sql_forms.RowSql | sql_forms.TableSql | sql_forms.Query:
    """Translates an SQL predicate to DQL if the language can express it, else to Spark SQL.

    A predicate that becomes a query returns the number of rows that violate it.

    :raises NoCounterpartError: it is not a single read-only expression, or has another value in
        Spark.
    """
    tree = parsed(sql, sql_dialect)
    if isinstance(tree, exp.Query) or not isinstance(tree, exp.Condition | exp.Paren):
        raise NoCounterpartError("not a condition on a row")
    tree = _meant(tree, sql_dialect, scope)
    tree = _without_qualifiers(tree, scope)
    try:
        return predicate_of(tree, scope)
    except NotInDqlError:
        pass
    if tree.find(exp.Query, exp.Window):
        return _breaking_rows(tree, scope)
    spark = _in_spark(tree)
    return sql_forms.TableSql(spark) if tree.find(exp.AggFunc) else sql_forms.RowSql(spark)


def query_rule(
    sql: str, sql_dialect: str | None, scope: sql_forms.SqlScope
) -> sql_forms.Query | sql_forms.TableSql | nodes.Expression:
    """Translates a query that returns one value. A query that counts rows of the model becomes the
    predicate that is true for these rows.

    :raises NoCounterpartError: it is not a single query, returns several values, or another one in
        Spark.
    """
    tree = parsed(sql, sql_dialect)
    if isinstance(tree, exp.Subquery):
        tree = tree.unnest()
    if not isinstance(tree, exp.Query):
        raise NoCounterpartError("not a query")
    _demand_one_value(tree)
    meant = _meant(tree, sql_dialect, scope)
    assert isinstance(meant, exp.Query)
    tree = _windows_first(meant)
    return _over_own_rows(tree, scope) or sql_forms.Query(*_over_datasets(tree, scope))


def value_in_spark(sql: str, sql_dialect: str) -> str:
    """Translates an expression or a query of columns with unknown types to Spark SQL. `any` is an
    unknown dialect.

    :raises NoCounterpartError: it is neither, or has another value in Spark.
    """
    if sql_dialect in (_SPARK, "databricks"):
        return sql
    return _in_spark(exact(parsed(sql, sql_dialect), sql_dialect, lambda _table: None, None))


def _meant(tree: Expr, sql_dialect: str | None, scope: sql_forms.SqlScope) -> Expr:
    """The tree in Spark SQL, with the same value."""
    if sql_dialect in (None, _SPARK, "databricks"):
        return tree

    def columns(table: str) -> Mapping[str, Kind | None] | None:
        return columns_of(scope.fields_of(scope.dataset(table)), sql_dialect) or None

    try:
        return exact(tree, sql_dialect, columns, scope.name)
    except RecursionError:
        raise NoCounterpartError(_TOO_DEEP) from None
    except SQLGLOT_DEFECTS as error:
        raise NoCounterpartError("SQL that cannot be translated") from error


def _in_spark(tree: Expr) -> str:
    try:
        return tree.sql(dialect=_SPARK, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise NoCounterpartError(f"Spark SQL has nothing for it: {error}") from error
    except RecursionError:
        raise NoCounterpartError(_TOO_DEEP) from None
    except SQLGLOT_DEFECTS as error:
        raise NoCounterpartError("SQL that cannot be translated") from error


# Tables and columns ------------------------------------------------------------------------------


def _over_datasets(tree: exp.Query, scope: sql_forms.SqlScope) -> tuple[str, tuple[str, ...]]:
    """The query with datasets instead of its tables, and their names."""
    tree = tree.copy()
    defined = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    datasets: dict[str, None] = {}
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or (
            not table.db and table.name.lower() in defined
        ):
            continue
        dataset = scope.dataset(written_name(table))
        datasets[dataset] = None
        short = table.name
        is_same = not table.db and short == dataset
        table.set("this", exp.to_identifier(dataset, quoted=True))
        table.set("db", None)
        table.set("catalog", None)
        if not table.alias and not is_same:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(short, quoted=True)))
    for column in tree.find_all(exp.Column):
        # A qualifier of several parts keeps the last one, which is now the name of the table.
        if column.args.get("db"):
            column.set("db", None)
            column.set("catalog", None)
    return _in_spark(tree), tuple(datasets)


def _without_qualifiers(tree: Expr, scope: sql_forms.SqlScope) -> Expr:
    """The expression with unqualified columns of the model, except in its queries."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        if column.find_ancestor(exp.Query):
            continue
        qualifier = ".".join(part.name for part in column.parts[:-1])
        if qualifier and scope.dataset(qualifier) == scope.name:
            for key in ("table", "db", "catalog"):
                column.set(key, None)
    return tree


def _breaking_rows(tree: Expr, scope: sql_forms.SqlScope) -> sql_forms.Query:
    """The query for the number of rows that violate a predicate, which contains windows or
    queries."""
    table = exp.Table(this=exp.to_identifier(scope.name, quoted=True))
    if tree.find(exp.Window):
        holds = exp.select(exp.alias_(tree.copy(), "holds")).from_(table)
        broken = exp.select("count(*)").from_(holds.subquery("checked")).where("NOT holds")
    else:
        broken = exp.select("count(*)").from_(table).where(exp.not_(exp.paren(tree.copy())))
    return sql_forms.Query(*_over_datasets(broken, scope))


def _windows_first(tree: exp.Query) -> exp.Query:
    """The query with the window function inside its aggregate moved into a subquery.

    People write `MAX(at - LAG(at) OVER (...))`, even in the specification, and no database runs it
    unchanged.
    """
    if not isinstance(tree, exp.Select) or tree.args.get("group"):
        return tree
    value = tree.expressions[0].unalias().copy()
    aggregates = [
        call for call in value.find_all(exp.AggFunc) if call.find_ancestor(exp.Window) is None
    ]
    if len(aggregates) != 1 or aggregates[0].this is None:
        return tree
    aggregate = aggregates[0]
    if not aggregate.this.find(exp.Window):
        return tree
    inner = tree.copy()
    inner.set("expressions", [exp.alias_(aggregate.this.copy(), _WINDOWED)])
    aggregate.set("this", exp.column(_WINDOWED))
    return exp.select(value).from_(inner.subquery(_WINDOWED))


def _demand_one_value(tree: exp.Query) -> None:
    columns = tree.selects
    if len(columns) != 1 or tree.is_star:
        raise NoCounterpartError("the query returns several columns; expected one number")
    if not isinstance(tree, exp.Select):
        raise NoCounterpartError("the query gives several rows, and one number is wanted")
    limit = tree.args.get("limit")
    is_one_row = isinstance(limit, exp.Limit) and limit.expression.name == "1"
    is_aggregated = any(
        not function.find_ancestor(exp.Window)
        for function in subexpressions(columns[0], exp.AggFunc)
    ) or any(subexpressions(columns[0], exp.Anonymous))
    is_grouped = tree.args.get("group") is not None
    if from_of(tree) is None or is_one_row or (is_aggregated and not is_grouped):
        return
    if is_grouped or not _reads_one_row(tree):
        raise NoCounterpartError("the query gives several rows, and one number is wanted")


def _reads_one_row(tree: exp.Select) -> bool:
    """True if a query uses the result of one row of another query."""
    source = from_of(tree)
    if tree.args.get("joins"):
        return False
    inner: Expr | None = source.this if isinstance(source, exp.Subquery) else None
    if isinstance(source, exp.Table):
        tables = {cte.alias_or_name.lower(): cte.this for cte in tree.find_all(exp.CTE)}
        inner = tables.get(source.name.lower())
    if not isinstance(inner, exp.Select) or inner.args.get("group") is not None:
        return False
    return any(True for column in inner.selects for _ in subexpressions(column, exp.AggFunc))


def _over_own_rows(
    tree: exp.Query, scope: sql_forms.SqlScope
) -> sql_forms.TableSql | nodes.Expression | None:
    """The simpler form of a query that reads nothing but rows of the model: the value over all
    rows, or the predicate of the rows that it counts. None if it has neither."""
    if not _reads_own_rows(tree, scope):
        return None
    value = tree.selects[0].unalias()
    where = tree.args.get("where")
    if where is None:
        if value.find(exp.Query, exp.Window):
            return None
        return sql_forms.TableSql(_in_spark(_without_qualifiers(value, scope)))
    is_count_of_rows = isinstance(value, exp.Count) and isinstance(
        value.this, exp.Star | exp.Literal
    )
    if not is_count_of_rows:
        return None
    try:
        return predicate_of(_without_qualifiers(where.this, scope), scope)
    except NotInDqlError:
        return None


def _reads_own_rows(tree: exp.Query, scope: sql_forms.SqlScope) -> bool:
    """True for a query over the model alone, with at most a WHERE clause."""
    if not isinstance(tree, exp.Select):
        return False
    clauses = {key for key, value in tree.args.items() if value}
    if not clauses <= {"expressions", "from_", "where", "kind"}:
        return False
    table = from_of(tree)
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return False
    if scope.dataset(written_name(table)) != scope.name:
        return False
    parts = {key for key, value in table.args.items() if value}
    return parts <= {"this", "db", "catalog"}
