"""The columns that a query returns, as far as its text alone proves them. sqlglot parses it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

if TYPE_CHECKING:
    from sqlglot import Expr

Tables: TypeAlias = Mapping[str, "tuple[str, ...]"]
"""Known columns of tables, by the name of the table in lower case."""

_REFERENCE = re.compile(r"\{\{\s*(?:ref|source)\s*\(\s*(?P<arguments>[^)]*)\)\s*\}\}")
_SAYS_NOTHING = re.compile(r"\{#.*?#\}|\{\{\s*config\s*\([^{}]*\)\s*\}\}", re.DOTALL)
_VALUE = re.compile(r"\{\{[^{}]*\}\}|\$\{[^{}]*\}")
_TEMPLATE = "template__"
"""The placeholder for a template with unknown text: a value, or any number of columns."""
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Outputs:
    """The names of the columns of a query in order, `None` for those without a name.

    `unknown` says why there may be further columns, for example because of a star; None if there
    are none. `problem` says why the text is not a query.
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
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    if "{%" in query:
        return Outputs(unknown="a template generates the query, so its columns are unknown")
    text = _REFERENCE.sub(_referred, _SAYS_NOTHING.sub(" ", query))
    text = _VALUE.sub(_TEMPLATE, text)
    known = dialect if dialect in sqlglot.Dialect.classes else None
    try:
        statements = [item for item in sqlglot.parse(text, dialect=known) if item is not None]
    except SqlglotError as error:
        first = str(error).splitlines()[0].split(" for <class")[0]
        return Outputs(problem=f"invalid SQL: {first}")
    except RecursionError:
        return Outputs(problem="the query is nested too deeply")
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        return Outputs(problem="the query is not a single SELECT")
    try:
        return _outputs_of(statements[0], {}, tables or {}, 0)
    except RecursionError:
        return Outputs(unknown="the query is nested too deeply")


def _referred(match: re.Match[str]) -> str:
    """`{{ ref('orders') }}` is the table orders."""
    named = re.findall(r"['\"]([^'\"]+)['\"]", match["arguments"])
    return ".".join(f'"{name}"' for name in named) or "unknown_table"


def _outputs_of(query: Expr, defined: Mapping[str, Outputs], tables: Tables, depth: int) -> Outputs:
    if depth > _DEEPEST:
        return Outputs(unknown="the query is nested too deeply")
    if isinstance(query, exp.Subquery | exp.Paren):
        return _renamed(_outputs_of(query.this, defined, tables, depth + 1), query)
    within = dict(defined)
    for cte in query.args["with_"].expressions if query.args.get("with_") else ():
        name = cte.alias.lower()
        if query.args["with_"].args.get("recursive"):
            # It may refer to itself: the first part of the union defines the columns.
            within.setdefault(name, Outputs(unknown=f"{name} is recursive"))
        within[name] = _renamed(_outputs_of(cte.this, within, tables, depth + 1), cte)
    if isinstance(query, exp.SetOperation):
        # The first part defines the names.
        if query.args.get("by_name"):
            left = _outputs_of(query.left, within, tables, depth + 1)
            right = _outputs_of(query.right, within, tables, depth + 1)
            extra = tuple(name for name in right.names if name is None or not left.has(name))
            return Outputs((*left.names, *extra), left.unknown or right.unknown)
        return _outputs_of(query.left, within, tables, depth + 1)
    if isinstance(query, exp.Select):
        return _of_select(query, within, tables, depth)
    return Outputs(unknown=f"the columns of {query.key.upper()} are unknown")


def _of_select(
    select: exp.Select, defined: Mapping[str, Outputs], tables: Tables, depth: int
) -> Outputs:
    names: list[str | None] = []
    unknown = None
    sources = _sources(select, defined, tables, depth)
    for item in select.expressions:
        star = item if isinstance(item, exp.Star) else None
        of_table = None
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            star, of_table = item.this, item.table.lower()
        if star is None:
            if _TEMPLATE in item.output_name:
                unknown = unknown or "a template generates columns or their names"
                continue
            if isinstance(item, exp.Aliases):
                names += [alias.name for alias in item.aliases]
            else:
                names.append(item.output_name or None)
            continue
        if of_table is not None and of_table not in sources:
            unknown = unknown or f"{of_table}.* does not refer to a table of the query"
            continue
        parts = [sources[of_table]] if of_table is not None else list(sources.values())
        if not parts:
            unknown = unknown or "a star without a table"
        for part in parts:
            names += _through_star(part, star)
            unknown = unknown or part.unknown
    if select.args.get("pivots"):
        unknown = unknown or "a pivot makes columns of values"
    return Outputs(tuple(names), unknown)


def _through_star(source: Outputs, star: exp.Star) -> list[str | None]:
    """The columns of a source through `*`, `* EXCLUDE (a)`, `* RENAME (a AS b)`."""
    left_out = {item.name.lower() for item in star.args.get("except_") or ()}
    renamed = {item.this.name.lower(): item.alias for item in star.args.get("rename") or ()}
    return [
        renamed.get(name.lower(), name) if name is not None else None
        for name in source.names
        if name is None or name.lower() not in left_out
    ]


def _sources(
    select: exp.Select, defined: Mapping[str, Outputs], tables: Tables, depth: int
) -> dict[str, Outputs]:
    """The sources in the FROM and the joins of a SELECT, by alias."""
    from_ = select.args.get("from_")
    items = [from_.this] if from_ is not None else []
    items += [join.this for join in select.args.get("joins") or ()]
    items += list(select.args.get("laterals") or ())
    sources: dict[str, Outputs] = {}
    for item in items:
        sources[item.alias_or_name.lower()] = _of_source(item, defined, tables, depth)
    return sources


def _of_source(item: Expr, defined: Mapping[str, Outputs], tables: Tables, depth: int) -> Outputs:
    if item.args.get("pivots"):
        return Outputs(unknown="a pivot makes columns of values")
    if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Subquery):
        return _renamed(_outputs_of(item.this, defined, tables, depth + 1), item)
    if isinstance(item, exp.Subquery):
        return _outputs_of(item, defined, tables, depth + 1)
    if isinstance(item, exp.Values):
        columns = item.args["alias"].columns if item.args.get("alias") else ()
        if columns:
            return Outputs(tuple(column.name for column in columns))
        return Outputs(unknown="VALUES without names for its columns")
    if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
        return Outputs(unknown=f"the columns of {item.sql()} are unknown")
    written = ".".join(part.name for part in item.parts).lower()
    if not item.db and written in defined:
        return _renamed(defined[written], item)
    columns_known = tables.get(written) or tables.get(item.name.lower())
    shown = "a template" if _TEMPLATE in written else written
    unknown = f"the columns of {shown} are unknown"
    if columns_known is None:
        return _renamed(Outputs(unknown=unknown), item)
    # It has these, and may have others that are unknown.
    return _renamed(Outputs(columns_known, unknown), item)


def _renamed(outputs: Outputs, item: Expr) -> Outputs:
    """The columns with the names of an alias: `AS t(a, b)`."""
    alias = item.args.get("alias")
    columns = [column.name for column in alias.columns] if alias is not None else []
    if not columns:
        return outputs
    rest = outputs.names[len(columns) :]
    unknown = outputs.unknown if len(outputs.names) < len(columns) else None
    return replace(outputs, names=(*columns, *rest), unknown=unknown or outputs.unknown)
