"""The columns that a query returns, from its SQL alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import sqlglot
from sqlglot import exp

from dqx_airflow.dql.sql_parser import InvalidSqlError, TooDeepSqlError, parse_sql

if TYPE_CHECKING:
    from sqlglot import Expr

Tables: TypeAlias = Mapping[str, "tuple[str, ...]"]
"""Known columns of tables, by the name of the table in lower case."""
_Sources: TypeAlias = "Sequence[tuple[str, Outputs]]"
"""The columns of the tables of a query, each with its alias in lower case."""
_QUERY_REFERENCE = re.compile(r"\{\{\s*(?:ref|source)\s*\(\s*(?P<arguments>[^)]*)\)\s*\}\}")
_COMMENTS = re.compile(r"\{#.*?#\}|\{\{\s*config\s*\([^{}]*\)\s*\}\}", re.DOTALL)
_VALUE = re.compile(r"\{\{[^{}]*\}\}|\$\{[^{}]*\}")
_TEMPLATE = "template__"
"""The placeholder for a template with unknown text: a value, or any number of columns."""
_DEEPEST = 100
_JOINS_THAT_FILTER = ("SEMI", "ANTI")
"""The kinds of joins that return no column of the joined table."""
_NAME_CASTS = frozenset({"postgres", "redshift", "spark", "spark2", "databricks"})
"""The dialects that name `CAST(a AS int)` after the column; others have a name of their own."""
_OF_SEVERAL_COLUMNS = frozenset({"inline", "inline_outer", "json_tuple", "stack"})


@dataclass(frozen=True, slots=True)
class Outputs:
    """The names of the columns of a query in order, `None` for those without a name.

    `unknown` is the reason why there may be further columns, for example a star; None if there are
    none. `problem` is the reason why the text is not a query.
    """

    names: tuple[str | None, ...] = ()
    unknown: str | None = None
    problem: str | None = None

    def has(self, name: str) -> bool:
        """True if a column has the name, which is case-insensitive in SQL."""
        return any(item is not None and item.lower() == name.lower() for item in self.names)


def outputs_of(query: str, dialect: str | None = None, tables: Tables | None = None) -> Outputs:
    """The columns that a query returns.

    :param dialect: the SQL dialect, by its name in DataLex and sqlglot.
    :param tables: known columns of tables, for stars.
    """
    if "{%" in query:
        return Outputs(unknown="a template generates the query, so its columns are unknown")
    text = _QUERY_REFERENCE.sub(_referred, _COMMENTS.sub(" ", query))
    text = _VALUE.sub(_TEMPLATE, text)
    known = dialect if dialect in sqlglot.Dialect.classes else None
    try:
        statements = parse_sql(text, known)
    except TooDeepSqlError:
        return Outputs(problem="the query is nested too deeply")
    except InvalidSqlError as error:
        return Outputs(problem=f"invalid SQL: {error}")
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        return Outputs(problem="the query is not a single SELECT")
    try:
        return _QueryScope(tables or {}, known).outputs(statements[0])
    except RecursionError:
        return Outputs(unknown="the query is nested too deeply")


def _referred(match: re.Match[str]) -> str:
    """`{{ ref('orders') }}` is the table orders."""
    named = re.findall(r"['\"]([^'\"]+)['\"]", match["arguments"])
    return ".".join(f'"{name}"' for name in named) or "unknown_table"


@dataclass(frozen=True, slots=True)
class _QueryScope:
    """The scope of a query: the known columns of tables, and the queries defined around it."""

    tables: Tables
    dialect: str | None = None
    defined: dict[str, Outputs] = field(default_factory=dict)
    depth: int = 0

    def outputs(self, query: Expr) -> Outputs:
        if self.depth > _DEEPEST:
            return Outputs(unknown="the query is nested too deeply")
        within = replace(self, defined=dict(self.defined), depth=self.depth + 1)
        if isinstance(query, exp.Subquery | exp.Paren):
            return _renamed(within.outputs(query.this), query)
        clause = query.args.get("with_")
        is_recursive = clause is not None and clause.args.get("recursive")
        for cte in () if clause is None else clause.expressions:
            name = cte.alias.lower()
            if is_recursive:
                # It may refer to itself: the first part of the union defines the columns.
                within.defined.setdefault(name, Outputs(unknown=f"{name} is recursive"))
            within.defined[name] = _renamed(within.outputs(cte.this), cte)
        if isinstance(query, exp.SetOperation):
            # The first part defines the names.
            left = within.outputs(query.left)
            if not query.args.get("by_name"):
                return left
            right = within.outputs(query.right)
            extra = tuple(name for name in right.names if name is None or not left.has(name))
            return Outputs((*left.names, *extra), left.unknown or right.unknown)
        if isinstance(query, exp.Select):
            return within.of_select(query)
        return Outputs(unknown=f"the columns of {query.key.upper()} are unknown")

    def of_select(self, select: exp.Select) -> Outputs:
        sources = [*self._sources(select)]
        outputs = Outputs()
        for item in select.expressions:
            if isinstance(item, exp.Star):
                outputs = _joined(outputs, _of_star(item, sources))
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                outputs = _joined(outputs, _of_star(item.this, sources, item.table.lower()))
            else:
                outputs = _joined(outputs, _of_expression(item, self.dialect))
        if select.args.get("pivots"):
            outputs = _joined(outputs, Outputs(unknown="a pivot makes columns of values"))
        return outputs

    def _sources(self, select: exp.Select) -> Iterator[tuple[str, Outputs]]:
        """The tables and subqueries in the FROM and the joins whose columns a star stands for: the
        alias, empty for a subquery without one, and the columns."""
        items = []
        if (from_ := select.args.get("from_")) is not None:
            items.append(from_.this)
        for join in select.args.get("joins") or ():
            if join.kind not in _JOINS_THAT_FILTER:
                items.append(join.this)
            elif join.side == "RIGHT":
                reason = f"a {join.side} {join.kind} JOIN returns columns of one side alone"
                yield "", Outputs(unknown=reason)
                return
        items += select.args.get("laterals") or ()
        for item in items:
            yield item.alias_or_name.lower(), self.of_source(item)

    def of_source(self, item: Expr) -> Outputs:
        if item.args.get("pivots"):
            return Outputs(unknown="a pivot makes columns of values")
        if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Subquery):
            return _renamed(self.outputs(item.this), item)
        if isinstance(item, exp.Subquery):
            return self.outputs(item)
        if isinstance(item, exp.Values):
            columns = item.args["alias"].columns if item.args.get("alias") else ()
            if columns:
                return Outputs(tuple(column.name for column in columns))
            return Outputs(unknown="VALUES without names for its columns")
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            return self._of_table(item)
        return Outputs(unknown=f"the columns of {item.sql()} are unknown")

    def _of_table(self, item: exp.Table) -> Outputs:
        written = ".".join(part.name for part in item.parts).lower()
        if not item.db and written in self.defined:
            return _renamed(self.defined[written], item)
        shown = "a template" if _TEMPLATE in written else written
        # It has these, and may have others that are unknown.
        known = self.tables.get(written) or self.tables.get(item.name.lower()) or ()
        return _renamed(Outputs(known, f"the columns of {shown} are unknown"), item)


def _joined(left: Outputs, right: Outputs) -> Outputs:
    """The columns of both; the first reason why there may be more is kept."""
    return Outputs((*left.names, *right.names), left.unknown or right.unknown)


def _of_expression(item: Expr, dialect: str | None) -> Outputs:
    """The columns of an expression after SELECT: one, unless it has several aliases.

    Without an alias, only a column has the same name in all databases.
    """
    name = ""
    match item:
        case exp.Aliases():
            return Outputs(tuple(alias.name for alias in item.aliases))
        case exp.Paren():
            return _of_expression(item.this, dialect)
        case exp.Cast() if dialect in _NAME_CASTS:
            return _of_expression(item.this, dialect)
        case (
            exp.Dot(expression=exp.Star()) | exp.Like(this=exp.Star()) | exp.ILike(this=exp.Star())
        ):
            return Outputs(unknown=f"{item.sql(dialect)} has any number of columns")
        case exp.Columns() | exp.UDTF():
            return Outputs(unknown=f"{item.sql(dialect)} has any number of columns")
        case exp.Func() if _name_of(item) in _OF_SEVERAL_COLUMNS:
            return Outputs(unknown=f"{item.sql(dialect)} has any number of columns")
        case exp.Alias() | exp.Column() | exp.Dot():
            name = item.output_name
    if _TEMPLATE in name:
        return Outputs(unknown="a template generates columns or their names")
    return Outputs((name or None,))


def _name_of(function: exp.Func) -> str:
    name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
    return name.lower()


def _of_star(star: exp.Star, sources: _Sources, table: str | None = None) -> Outputs:
    """The columns of `*`, or of `table.*`."""
    if star.args.get("ilike") is not None:
        return Outputs(unknown="a star with a pattern has the columns whose names match")
    if not sources:
        return Outputs(unknown="a star without a table")
    found = [source for alias, source in sources if table in (None, alias)]
    if not found:
        return Outputs(unknown=f"{table}.* does not refer to a table of the query")
    outputs = Outputs()
    for source in found:
        columns = Outputs(tuple(_through_star(source, star)), source.unknown)
        outputs = _joined(outputs, columns)
    return outputs


def _through_star(source: Outputs, star: exp.Star) -> list[str | None]:
    """The columns of a source through `*`, `* EXCLUDE (a)`, `* RENAME (a AS b)`."""
    left_out = {item.name.lower() for item in star.args.get("except_") or ()}
    renamed = {item.this.name.lower(): item.alias for item in star.args.get("rename") or ()}
    return [
        renamed.get(name.lower(), name) if name is not None else None
        for name in source.names
        if name is None or name.lower() not in left_out
    ]


def _renamed(outputs: Outputs, item: Expr) -> Outputs:
    """The columns with the names of an alias: `AS t(a, b)`."""
    alias = item.args.get("alias")
    columns = [column.name for column in alias.columns] if alias is not None else []
    if not columns:
        return outputs
    rest = outputs.names[len(columns) :]
    unknown = outputs.unknown if len(outputs.names) < len(columns) else None
    return replace(outputs, names=(*columns, *rest), unknown=unknown or outputs.unknown)
