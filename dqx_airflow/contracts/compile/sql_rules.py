"""The SQL of contracts, in the dialect of a server: as predicates of DQL, or as Spark SQL.

sqlglot parses and writes it. It is expensive to import: this module is imported when there is SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from dqx_airflow.contracts.compile import sql_forms, terms
from dqx_airflow.contracts.compile.sql_exact import exact
from dqx_airflow.contracts.compile.sql_table import sqlglot_dialect
from dqx_airflow.contracts.compile.value_kinds import Kind, columns_of
from dqx_airflow.dql import nodes
from dqx_airflow.dql.sql_parser import SQLGLOT_DEFECTS, InvalidSqlError, TooDeepSqlError, parse_sql
from dqx_airflow.dql.walk import is_about_items
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values.exact import WrittenFloat

if TYPE_CHECKING:
    from sqlglot import Expr

_SPARK = "spark"
_WINDOWED = "windowed"
_TOO_DEEP = str(TooDeepSqlError())


class NotInDqlError(NoCounterpartError):
    """A predicate has a subexpression for which DQL has no syntax."""

    def __init__(self) -> None:
        NoCounterpartError.__init__(self, "DQL has no syntax for it")


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
    simple = _over_own_rows(tree, scope)
    if simple is not None:
        value, where = simple
        if where is None and not value.find(exp.Query, exp.Window):
            return sql_forms.TableSql(_in_spark(_without_qualifiers(value, scope)))
        counted = value.this if isinstance(value, exp.Count) else None
        if where is not None and isinstance(counted, exp.Star | exp.Literal):
            try:
                return predicate_of(_without_qualifiers(where, scope), scope)
            except NotInDqlError:
                pass
    return sql_forms.Query(*_over_datasets(tree, scope))


def value_in_spark(sql: str, sql_dialect: str) -> str:
    """Translates an expression or a query of columns with unknown types to Spark SQL. `any` is an
    unknown dialect.

    :raises NoCounterpartError: it is neither, or has another value in Spark.
    """
    if sql_dialect in (_SPARK, "databricks"):
        return sql
    return _in_spark(exact(parsed(sql, sql_dialect), sql_dialect, lambda _table: None, None))


def parsed(sql: str, sql_dialect: str | None) -> Expr:
    try:
        statements = parse_sql(sql, sqlglot_dialect(sql_dialect))
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
    """The subexpressions of a class, without those inside nested queries."""
    for node in tree.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(node, kind):
            yield node


def _over_own_rows(tree: exp.Query, scope: sql_forms.SqlScope) -> tuple[Expr, Expr | None] | None:
    """The value and the condition of a query over nothing but the rows of the model."""
    if not isinstance(tree, exp.Select):
        return None
    used = {key for key, value in tree.args.items() if value}
    if not used <= {"expressions", "from_", "where", "kind"}:
        return None
    table = from_of(tree)
    if not isinstance(table, exp.Table):
        return None
    if (
        not isinstance(table.this, exp.Identifier)
        or scope.dataset(written_name(table)) != scope.name
    ):
        return None
    if {key for key, value in table.args.items() if value} - {"this", "db", "catalog"}:
        return None
    where = tree.args.get("where")
    return tree.selects[0].unalias(), where.this if where is not None else None


# Predicates of DQL -------------------------------------------------------------------------------

_COMPARATORS: dict[type[Expr], str] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "==",
    exp.NEQ: "!=",
}
_OPERATORS: dict[type[Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_FUNCTIONS = (exp.Length, exp.Lower, exp.Upper, exp.Abs, exp.Year, exp.Month, exp.Day)
"""The SQL functions that have the same name in DQL."""


def predicate_of(tree: Expr, scope: sql_forms.SqlScope) -> nodes.Expression:
    """The predicate in DQL.

    :raises NotInDqlError: DQL has no syntax for a part of it.
    """
    return _Predicate(scope).predicate(tree)


@dataclass(frozen=True, slots=True)
class _Predicate:
    """Translates an SQL predicate to DQL. `parameter` is the parameter of the enclosing lambda
    function."""

    scope: sql_forms.SqlScope
    parameter: str | None = None

    def predicate(self, tree: Expr) -> nodes.Expression:
        match tree:
            case _ if tree.args.get("negate"):  # how newer versions of sqlglot write `is not null`
                plain = tree.copy()
                plain.set("negate", None)
                return terms.negation(self.predicate(plain))
            case exp.Paren():
                return self.predicate(tree.this)
            case exp.And() | exp.Or():
                word = "and" if isinstance(tree, exp.And) else "or"
                left, right = self.predicate(tree.this), self.predicate(tree.expression)
                return nodes.Junction(word, left, right)
            case exp.Not():
                return terms.negation(self.predicate(tree.this))
            case exp.Between():
                low, high = self._value(tree.args["low"]), self._value(tree.args["high"])
                return nodes.Within(self._value(tree.this), low, high)
            case exp.In() if tree.args.get("query") is not None:
                return self._lookup(tree)
            case exp.In() if tree.expressions:
                choices = tuple(map(self._literal, tree.expressions))
                return terms.member(self._value(tree.this), *choices)
            case exp.Is() if isinstance(tree.expression, exp.Null):
                return nodes.IsNull(self._value(tree.this))
            case exp.Like() if _is_text(tree.expression) and "\\" not in tree.expression.name:
                pattern = terms.text(tree.expression.name)
                return nodes.Like(self._value(tree.this), pattern)
            case exp.Column():
                return nodes.Compare("==", self._value(tree), nodes.Truth(True))
            case exp.ArrayContains():
                return self._contains(tree.this, tree.expression)
            case exp.EQ() if isinstance(tree.expression, exp.Any):
                return self._contains(tree.expression.this, tree.this)
            case exp.Exists() if isinstance(tree.expression, exp.Lambda):
                return self._of_items("some", tree.this, tree.expression)
            case exp.Anonymous(expressions=[array, exp.Lambda() as function]):
                if tree.name.lower() == "forall":
                    return self._of_items("every", array, function)
        op = _COMPARATORS.get(type(tree))
        if op is None:
            raise NotInDqlError
        return nodes.Compare(op, self._value(tree.this), self._value(tree.expression))

    def _contains(self, array: Expr, value: Expr) -> nodes.Expression:
        equal = nodes.Compare("==", nodes.Item(()), self._literal(value))
        return nodes.Quantified(nodes.Name("some"), self._value(array), equal)

    def _of_items(self, quantifier: str, array: Expr, function: exp.Lambda) -> nodes.Expression:
        """A lambda function, `item -> predicate`, as a predicate over the items of an array."""
        if len(function.expressions) != 1:
            raise NotInDqlError
        within = replace(self, parameter=function.expressions[0].name)
        predicate = within.predicate(function.this)
        expression = nodes.Quantified(nodes.Name(quantifier), self._value(array), predicate)
        if not is_about_items(expression):
            raise NotInDqlError
        return expression

    def _lookup(self, tree: exp.In) -> nodes.Expression:
        """`column IN (SELECT other FROM table)`"""
        query = tree.args["query"].unnest()
        if not isinstance(query, exp.Select) or not isinstance(tree.this, exp.Column):
            raise NotInDqlError
        table = from_of(query)
        used = {key for key, value in query.args.items() if value}
        is_simple = used <= {"expressions", "from_", "distinct", "kind"}
        if not is_simple or not isinstance(table, exp.Table):
            raise NotInDqlError
        if len(query.selects) != 1 or not isinstance(query.selects[0], exp.Column):
            raise NotInDqlError
        dataset = self.scope.dataset(written_name(table))
        other = terms.values_of(query.selects[0].name, dataset)
        return nodes.Member(self._value(tree.this), other)

    def _value(self, tree: Expr) -> nodes.Expression:
        match tree:
            case exp.Paren():
                return self._value(tree.this)
            case exp.Column() if not isinstance(tree.this, exp.Star):
                return terms.column_named(*(part.name for part in tree.parts))
            case exp.Identifier() if tree.name == self.parameter:
                return nodes.Item(())
            case exp.Dot() if "." not in tree.name:
                outer = self._value(tree.this)
                if not isinstance(outer, nodes.Item):
                    raise NotInDqlError
                return nodes.Item((*outer.path, tree.name))
            case exp.Neg():
                inner = self._value(tree.this)
                if isinstance(inner, nodes.Number):
                    return terms.number(-inner.value)
                return nodes.Negative(inner)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                op = _OPERATORS[type(tree)]
                return nodes.Arithmetic(op, self._value(tree.this), self._value(tree.expression))
            case exp.TsOrDsToDate() if isinstance(tree.parent, exp.Year | exp.Month | exp.Day):
                return self._value(tree.this)
            case exp.Coalesce():
                given = (tree.this, *tree.expressions)
                return terms.call("coalesce", *map(self._value, given))
            case exp.Trim() if not (tree.expression or tree.args.get("position")):
                return terms.call("trim", self._value(tree.this))
        if type(tree) in _FUNCTIONS:
            return terms.call(type(tree).__name__.lower(), self._value(tree.this))
        return self._literal(tree)

    def _literal(self, tree: Expr) -> nodes.Expression:
        match tree:
            case exp.Literal() if tree.is_string:
                return terms.text(tree.this)
            case exp.Literal():
                return terms.number(_number(tree.this))
            case exp.Neg() if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
                return terms.number(-_number(tree.this.this))
            case exp.Boolean():
                return nodes.Truth(bool(tree.this))
            case exp.Cast() if _is_text(tree.this) and tree.to.is_type("date"):
                try:
                    return nodes.Day(date.fromisoformat(tree.this.this))
                except ValueError:
                    raise NotInDqlError from None
        raise NotInDqlError


def _is_text(tree: Expr) -> bool:
    return isinstance(tree, exp.Literal) and tree.is_string


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return WrittenFloat(text)
    except ValueError:
        raise NoCounterpartError(f"invalid SQL: {text} is not a number") from None


def from_of(query: exp.Query) -> Expr | None:
    """The table or subquery in the FROM clause of a query; None without one."""
    clause = query.args.get("from_")
    return clause.this if clause is not None else None


def written_name(table: exp.Table) -> str:
    """The name of a table as written in the SQL, with its schema and catalog."""
    return ".".join(part.name for part in table.parts)


def is_same_sql(old: str, old_dialect: str | None, new: str, new_dialect: str | None) -> bool:
    """True if two SQL texts are equivalent."""
    if old.strip() == new.strip() and old_dialect == new_dialect:
        return True
    before, after = _lenient(old, old_dialect), _lenient(new, new_dialect)
    return before is not None and before == after


def comparison(predicate: str, dialect: str | None) -> tuple[Expr, tuple[str, float]] | None:
    """The left side of a comparison, and its operator and number: `>=` and 1; None for any other
    predicate."""
    tree = _lenient(predicate, dialect)
    if not isinstance(tree, exp.Binary) or (op := _COMPARATORS.get(type(tree))) is None:
        return None
    number = tree.expression
    sign = 1
    if isinstance(number, exp.Neg):
        number = number.this
        sign = -1
    if not isinstance(number, exp.Literal) or number.is_string:
        return None
    try:
        return tree.this, (op, sign * float(number.this))
    except ValueError:  # such as `1e`
        return None


def _lenient(text: str, dialect: str | None) -> Expr | None:
    """The SQL as a tree; None if it cannot be parsed."""
    # Placeholders such as {model} are words to the parser.
    plain = text.replace("{", "__").replace("}", "__")
    try:
        statements = parse_sql(plain, dialect or "spark")
    except InvalidSqlError:
        return None
    return statements[0] if len(statements) == 1 else None
