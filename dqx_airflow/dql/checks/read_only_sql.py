"""Checks the Spark SQL of `sql(...)` and `query(...)`, of datasets and their filters: one read-only
expression, nothing else.

sqlglot parses it. It is imported only if a suite contains such SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from dqx_airflow.dql import nodes
from dqx_airflow.dql.moments import is_no_moment
from dqx_airflow.dql.spark_calls import objection_to_calls

if TYPE_CHECKING:
    from sqlglot import Expr, exp

    from dqx_airflow.dql.checks.call_arguments import ArgumentChecker

_TABLE_FUNCTIONS = frozenset({"range", "explode", "posexplode", "inline", "stack"})

_FILE_FORMATS = frozenset(
    {"delta", "parquet", "csv", "json", "orc", "avro", "iceberg", "text", "xml", "binaryfile"}
)

_INDIRECT = ("identifier", "table", "input_file", "_metadata", "dqx: ")
"""Beginnings of names in SQL by which columns are read that are not named, as is the value of a
folder."""

_OF_PATHS = frozenset("/.:\\")

_READ_ONLY = {
    "sql": 'write one aggregate expression, such as sql("sum(amount) / count(*)")',
    "query": 'write one query, such as query("SELECT count(*) FROM orders")',
}


class _RefusedSqlError(Exception):
    """SQL is rejected: the reason and, if more specific than the form of all SQL, a hint."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


def check_sql(kind: str, text: nodes.Text, arguments: ArgumentChecker) -> None:
    """Reports what is wrong with the SQL of `sql` or `query`."""
    try:
        if kind == "sql":
            _check_aggregate(text.value)
        else:
            for name in _tables(text.value):
                arguments.known_dataset(nodes.Name(name, span=text.span))
    except _RefusedSqlError as refused:
        arguments.error("E115", str(refused), text.span, refused.hint or _READ_ONLY[kind])


def objection_to_select(text: str) -> str | None:
    """The reason why SQL is not a single read-only query over catalog tables; None if it is."""
    try:
        for table in _tables_in(_query(text)):
            parts = [part.name for part in table.parts]
            # `parquet.`/some/path`` reads files outside of the catalog.
            if any(set(part) & _OF_PATHS for part in parts) or (
                len(parts) > 1 and parts[-2].lower() in _FILE_FORMATS
            ):
                place = table.sql(dialect="spark")
                return f"{place} is not a catalog table: give its path as a dataset"
    except _RefusedSqlError as refused:
        return str(refused)
    return None


def tables_of_select(text: str) -> list[str]:
    """The tables that a query reads, by the names that it uses; empty if it is not a query."""
    try:
        parts = (table.parts for table in _tables_of_others(_query(text)))
        return list(dict.fromkeys(".".join(part.sql("spark") for part in path) for path in parts))
    except _RefusedSqlError:
        return []


@cache
def datasets_of_query(text: str) -> tuple[str, ...]:
    """The datasets that the SQL of `query(...)` reads; empty if it is rejected."""
    try:
        return tuple(dict.fromkeys(_tables(text)))
    except _RefusedSqlError:
        return ()


def objection_to_filter(text: str) -> str | None:
    """The reason why SQL is not a predicate that depends on its rows only; None if it is."""
    try:
        _only(f"SELECT 1 WHERE {text}")
    except _RefusedSqlError as refused:
        return str(refused)
    return None


@cache
def may_read(query: str, columns: frozenset[str]) -> bool:
    """False only if a query certainly reads none of the columns: nothing in it has such a name, or
    stands for all columns, for columns by their position, or for text that becomes a name."""
    from sqlglot import exp

    names = {_case_folded(part) for column in columns for part in (column, column.split(".")[0])}
    try:
        tree = _only(query)
    except _RefusedSqlError:
        return True
    if not isinstance(tree, exp.Query):
        return True
    for node in tree.walk():
        is_by_position = isinstance(node, exp.TableAlias) and bool(node.args.get("columns"))
        is_everything = isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)
        # Spark can be set to take strings in double quotes for names.
        may_name = isinstance(node, exp.Identifier | exp.Anonymous | exp.Literal)
        name = _case_folded(node.name) if may_name else ""
        is_named = name in names or name.startswith(_INDIRECT)
        if is_by_position or is_everything or is_named:
            return True
    return False


def _case_folded(name: str) -> str:
    """A name as Spark compares it: letter by letter, in upper and in lower case."""
    return name.upper().lower().replace("\N{COMBINING DOT ABOVE}", "")


def _check_aggregate(text: str) -> None:
    from sqlglot import exp

    select = _only(f"SELECT {text}")
    is_select = isinstance(select, exp.Select) and len(select.expressions) == 1
    others = (value for key, value in select.args.items() if key not in ("expressions", "kind"))
    if not is_select or any(others):
        raise _RefusedSqlError("expected a single expression")
    if select.find(exp.Subquery) or len(list(select.find_all(exp.Query))) > 1:
        raise _RefusedSqlError("a subquery in an aggregate expression: use query()")
    if select.find(exp.Window):
        raise _RefusedSqlError("a window function is not an aggregate")
    if not select.find(exp.AggFunc, exp.Anonymous, exp.AnonymousAggFunc):
        raise _RefusedSqlError("missing aggregate function, such as sum or count")


def _tables(text: str) -> Iterator[str]:
    """The datasets that a query for one value reads."""
    from sqlglot import exp

    query = _query(text)
    if isinstance(query, exp.Select) and len(query.expressions) != 1:
        raise _RefusedSqlError("the query must return one column")
    for table in _tables_of_others(query):
        if table.db or table.catalog:
            place = table.sql(dialect="spark")
            message = f"{place} is not a dataset: queries cannot read files or catalogs"
            raise _RefusedSqlError(message)
        yield table.name


def _query(text: str) -> exp.Query:
    from sqlglot import exp

    query = _only(text)
    if not isinstance(query, exp.Query):
        raise _RefusedSqlError("this is not a query")
    return query


def _tables_of_others(query: exp.Query) -> Iterator[exp.Table]:
    """The tables of a query that it does not define itself."""
    for table in _tables_in(query):
        if table.db or table.catalog or not _is_defined(table):
            yield table


def _is_defined(table: exp.Table) -> bool:
    """Whether a name is that of a WITH around it. The query behind a name sees the names before its
    own, and its own if that is recursive: `WITH orders AS (SELECT * FROM orders)` reads a table."""
    from sqlglot import exp

    name = table.name.lower()
    inner: Expr = table
    while (outer := inner.parent) is not None:
        visible: list[exp.CTE] = []
        if isinstance(outer, exp.With):
            place = next(n for n, cte in enumerate(outer.expressions) if cte is inner)
            visible = outer.expressions[: place + bool(outer.recursive)]
        elif isinstance(outer, exp.Query) and not isinstance(inner, exp.With):
            visible = outer.ctes
        if any(cte.alias_or_name.lower() == name for cte in visible):
            return True
        inner = outer
    return False


def _tables_in(query: exp.Query) -> Iterator[exp.Table]:
    """Everything that a query reads by name, except for table functions, which are checked."""
    from sqlglot import exp

    for table in query.find_all(exp.Table):
        inside = table.this
        if isinstance(table.parent, exp.JoinHint):  # an alias of the query, or a table in it
            continue
        if isinstance(inside, exp.Identifier):
            yield table
            continue
        if isinstance(inside, exp.Values):  # whose rows are in the query
            continue
        is_known = isinstance(inside, exp.Func) and not isinstance(inside, exp.Anonymous)
        name = inside.sql_name() if is_known else inside.name or inside.key
        if name.lower() not in _TABLE_FUNCTIONS:
            raise _RefusedSqlError(f"the table function '{name}' is not allowed")


def _moment_in(node: Expr) -> str | None:
    """The text of a literal such as `DATE '2024-02-29'`, with which Spark fails if it is not a
    date; `try_cast` makes it NULL."""
    from sqlglot import exp

    if not isinstance(node, exp.Cast) or node.args.get("safe"):
        return None
    is_moment = node.to.this in exp.DataType.TEMPORAL_TYPES
    is_text = isinstance(node.this, exp.Literal) and node.this.is_string
    return str(node.this.this) if is_moment and is_text else None


def _only(text: str) -> Expr:
    """Parses the single statement of a text, which must neither write nor leave Spark SQL."""
    from sqlglot import exp

    from dqx_airflow.dql.sql_parser import InvalidSqlError, TooDeepSqlError, parse_sql

    try:
        statements = parse_sql(text, "spark")
    except TooDeepSqlError as error:
        raise _RefusedSqlError(str(error)) from None
    except InvalidSqlError as error:
        raise _RefusedSqlError(f"invalid Spark SQL: {error}") from error
    if len(statements) != 1:
        raise _RefusedSqlError("expected one statement")
    statement = statements[0]
    writing = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Command, exp.Into)
    for node in statement.walk():
        if isinstance(node, (*writing, exp.QueryTransform)):  # TRANSFORM runs a script
            raise _RefusedSqlError("only read-only SQL is allowed")
        if (moment := _moment_in(node)) is not None and is_no_moment(moment):
            hint = "write a day and a time that exist, or try_cast for a value that may be NULL"
            raise _RefusedSqlError(f"{moment!r} is not a date or timestamp", hint)
    objection = objection_to_calls(text)
    if objection is not None:
        raise _RefusedSqlError(objection)
    return statement
