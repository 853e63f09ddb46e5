"""The SQL of contracts, in the dialect of a server: as predicates of DQL, or as Spark SQL.

sqlglot parses and writes it. It is expensive to import: this module is imported when there is SQL.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import ParseError, SqlglotError, UnsupportedError

from dqx_airflow.contracts.compile.sql_exact import exact, sqlglot_dialect
from dqx_airflow.contracts.compile.sql_kinds import Kind, columns_of
from dqx_airflow.contracts.compile.sql_meanings import (
    CountOfRows,
    Query,
    RowSql,
    SqlAggregate,
    TableSql,
)
from dqx_airflow.contracts.compile.sql_predicates import (
    DatasetNamer,
    NotInDqlError,
    from_of,
    predicate_of,
    written_name,
)
from dqx_airflow.contracts.model import Field
from dqx_airflow.dql import nodes
from dqx_airflow.errors import NoCounterpartError

if TYPE_CHECKING:
    from sqlglot import Expr

FieldsOf: TypeAlias = Callable[[str], tuple[Field, ...]]
"""Returns the fields of a dataset, none if they are unknown."""

_SPARK = "spark"
_WINDOWED = "windowed"


def _no_fields(_dataset: str) -> tuple[Field, ...]:
    return ()


def row_rule(
    sql: str,
    sql_dialect: str | None,
    model: str,
    dataset_of: DatasetNamer,
    fields_of: FieldsOf = _no_fields,
) -> nodes.Expression | RowSql | TableSql | Query:
    """The meaning of an SQL predicate: a predicate of DQL if the language can express it.

    :param model: the dataset of its rows. A query counts the rows that violate it.
    :raises NoCounterpartError: it is not a single read-only expression, or has another value in
        Spark.
    """
    tree = parsed(sql, sql_dialect)
    if isinstance(tree, exp.Query) or not isinstance(tree, exp.Condition | exp.Paren):
        raise NoCounterpartError("not a condition on a row")
    tree = _meant(tree, sql_dialect, model, dataset_of, fields_of)
    tree = _without_qualifiers(tree, model, dataset_of)
    try:
        return predicate_of(tree, dataset_of)
    except NotInDqlError:
        pass
    if tree.find(exp.Query, exp.Window):
        return _breaking_rows(tree, model, dataset_of)
    spark = _in_spark(tree)
    return TableSql(spark) if tree.find(exp.AggFunc) else RowSql(spark)


def query_rule(
    sql: str,
    sql_dialect: str | None,
    model: str,
    dataset_of: DatasetNamer,
    fields_of: FieldsOf = _no_fields,
) -> Query | SqlAggregate | CountOfRows:
    """The meaning of a query that returns one value.

    :raises NoCounterpartError: it is not a single query, returns several values, or another one in
        Spark.
    """
    tree = parsed(sql, sql_dialect)
    if isinstance(tree, exp.Subquery):
        tree = tree.unnest()
    if not isinstance(tree, exp.Query):
        raise NoCounterpartError("not a query")
    _demand_one_value(tree)
    meant = _meant(tree, sql_dialect, model, dataset_of, fields_of)
    assert isinstance(meant, exp.Query)
    tree = _windows_first(meant)
    simple = _over_own_rows(tree, model, dataset_of)
    if simple is not None:
        value, where = simple
        if where is None and not value.find(exp.Query, exp.Window):
            return SqlAggregate(_in_spark(_without_qualifiers(value, model, dataset_of)))
        if where is not None and _is_count_of_rows(value):
            try:
                bare = _without_qualifiers(where, model, dataset_of)
                return CountOfRows(predicate_of(bare, dataset_of))
            except NotInDqlError:
                pass
    return Query(*_over_datasets(tree, dataset_of))


def value_in_spark(sql: str, sql_dialect: str) -> str:
    """An expression or a query of columns with unknown types. `any` is an unknown dialect.

    :raises NoCounterpartError: it is neither, or has another value in Spark.
    """
    if sql_dialect in (_SPARK, "databricks"):
        return sql
    return _in_spark(exact(parsed(sql, sql_dialect), sql_dialect, lambda _table: None, None))


def parsed(sql: str, sql_dialect: str | None) -> Expr:
    # What sqlglot cannot parse is reported as the reason: its own warning would add nothing.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        trees = sqlglot.parse(sql, dialect=sqlglot_dialect(sql_dialect))
    except SqlglotError as error:
        details = error.errors if isinstance(error, ParseError) else []
        problem = (details[0]["description"] if details else str(error)).splitlines()[0]
        problem = problem.split(" for <class")[0].rstrip(". ")
        raise NoCounterpartError(f"invalid SQL: {problem}") from error
    except ValueError as error:
        raise NoCounterpartError(f"invalid SQL: {error}") from error
    statements = [statement for statement in trees if statement is not None]
    if len(statements) != 1:
        raise NoCounterpartError("expected one statement")
    tree = statements[0]
    if isinstance(tree, exp.Alias) or tree.find(
        exp.DDL, exp.DML, exp.Command, exp.Into, exp.Placeholder, exp.Parameter
    ):
        raise NoCounterpartError("expected one read-only SQL expression")
    if any(isinstance(test.args.get("field"), exp.Column) for test in tree.find_all(exp.In)):
        raise NoCounterpartError("a table after IN: write `IN (SELECT column FROM table)`")
    return tree


def _meant(
    tree: Expr, sql_dialect: str | None, model: str, dataset_of: DatasetNamer, fields_of: FieldsOf
) -> Expr:
    """The tree in Spark SQL, with the same value."""
    if sql_dialect in (None, _SPARK, "databricks"):
        return tree

    def columns(table: str) -> Mapping[str, Kind | None] | None:
        return columns_of(fields_of(dataset_of(table)), sql_dialect) or None

    try:
        return exact(tree, sql_dialect, columns, model)
    except RecursionError:
        raise NoCounterpartError("the SQL is nested too deeply") from None


def _in_spark(tree: Expr) -> str:
    try:
        return tree.sql(dialect=_SPARK, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise NoCounterpartError(f"Spark SQL has nothing for it: {error}") from error


# Tables and columns ------------------------------------------------------------------------------


def _over_datasets(tree: exp.Query, dataset_of: DatasetNamer) -> tuple[str, tuple[str, ...]]:
    """The query with datasets instead of its tables, and their names."""
    tree = tree.copy()
    defined = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    datasets: dict[str, None] = {}
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or (
            not table.db and table.name.lower() in defined
        ):
            continue
        dataset = dataset_of(written_name(table))
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


def _without_qualifiers(tree: Expr, model: str, dataset_of: DatasetNamer) -> Expr:
    """The expression with unqualified columns of the model, except in its queries."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        if column.find_ancestor(exp.Query):
            continue
        qualifier = ".".join(part.name for part in column.parts[:-1])
        if qualifier and dataset_of(qualifier) == model:
            for key in ("table", "db", "catalog"):
                column.set(key, None)
    return tree


def _breaking_rows(tree: Expr, model: str, dataset_of: DatasetNamer) -> Query:
    """The query for the number of rows that violate a predicate, which contains windows or
    queries."""
    table = exp.Table(this=exp.to_identifier(model, quoted=True))
    if tree.find(exp.Window):
        holds = exp.select(exp.alias_(tree.copy(), "holds")).from_(table)
        broken = exp.select("count(*)").from_(holds.subquery("checked")).where("NOT holds")
    else:
        broken = exp.select("count(*)").from_(table).where(exp.not_(exp.paren(tree.copy())))
    return Query(*_over_datasets(broken, dataset_of))


def _windows_first(tree: exp.Query) -> exp.Query:
    """The query with the window inside its aggregate computed first, by a subquery.

    `MAX(at - LAG(at) OVER (...))` is what people write, even in the specification, and no database
    runs it as it is.
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
        not function.find_ancestor(exp.Window) for function in _own(columns[0], exp.AggFunc)
    ) or any(_own(columns[0], exp.Anonymous))
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
    return any(True for column in inner.selects for _ in _own(column, exp.AggFunc))


def _own(tree: Expr, kind: type[Expr]) -> Iterator[Expr]:
    """The parts of an expression of a kind, those of queries in it left out."""
    for node in tree.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(node, kind):
            yield node


def _over_own_rows(
    tree: exp.Query, model: str, dataset_of: DatasetNamer
) -> tuple[Expr, Expr | None] | None:
    """The value and the condition of a query over nothing but the rows of the model."""
    if not isinstance(tree, exp.Select):
        return None
    used = {key for key, value in tree.args.items() if value}
    if not used <= {"expressions", "from", "from_", "where", "kind"}:
        return None
    table = from_of(tree)
    if not isinstance(table, exp.Table):
        return None
    if not isinstance(table.this, exp.Identifier) or dataset_of(written_name(table)) != model:
        return None
    if {key for key, value in table.args.items() if value} - {"this", "db", "catalog"}:
        return None
    where = tree.args.get("where")
    return tree.selects[0].unalias(), where.this if where is not None else None


def _is_count_of_rows(value: Expr) -> bool:
    if not isinstance(value, exp.Count):
        return False
    return isinstance(value.this, exp.Star | exp.Literal)
