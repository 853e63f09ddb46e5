"""Translates SQL to Spark SQL if the value is provably the same; otherwise says why not.

`sql_table.txt` lists the expressions that are translated, by dialect and with the types of their
operands; all others are refused. This module translates the clauses of queries, and expressions
without a fixed form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp, parse_one, transpile

from dqx_airflow.contracts.compile.sql_table import (
    DIALECTS,
    Row,
    filled_template,
    fits,
    is_of,
    is_of_literals,
    matched,
    sqlglot_dialect,
    table,
    unit_of,
    wrapped,
)
from dqx_airflow.contracts.compile.value_kinds import (
    KINDS,
    LONGEST,
    Kind,
    as_decimal,
    sum_of,
    widest,
)
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values.files import table_rows

if TYPE_CHECKING:
    from sqlglot import Expr

Columns: TypeAlias = Mapping[str, Kind | None]
Typed: TypeAlias = "tuple[Expr, Kind | None]"
_SPEAKS = {"athena": "trino", "presto": "trino"}
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "WEEK": 604_800}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_HINTS: dict[str, str] = dict(table_rows(__package__, "sql_table.txt", "hints"))
_MORE = {"having", "where", "qualify"}
_PARTS = {*_MORE, "expressions", "from_", "joins", "group", "order"}
_ENDS = {"limit", "offset", "with_"}


def exact(
    tree: Expr, sql_dialect: str, columns_of: Callable[[str], Columns | None], model: str | None
) -> Expr:
    """The expression or query in Spark SQL with the same value.

    :param columns_of: the kinds of the columns of a table, None if they are unknown.
    :param model: the table of a condition; None for an expression of any kind.
    :raises NoCounterpartError: no such expression exists, or the value is an interval.
    """
    translation = _Translation(_SPEAKS.get(sql_dialect, sql_dialect), columns_of, model is None)
    if model is None and not isinstance(tree, exp.Query):
        return translation.value(tree, _Scope({}))[0]
    if model is not None and not isinstance(tree, exp.Query):
        return translation.condition(tree, _Scope({model: columns_of(model)}))
    query, columns = translation.subquery(tree, None)
    if [kind.name for kind in columns.values() if kind is not None] == ["interval"]:
        raise NoCounterpartError(
            "it returns an interval, not a number: write EXTRACT(EPOCH FROM ...) for its seconds"
        )
    return query


def import_dialects() -> None:
    """Imports all dialects, which sqlglot otherwise does on their first use."""
    for name in ("spark", *DIALECTS):
        transpile("SELECT 1", read=name, write=name)


@dataclass(slots=True)
class _Scope:
    """The tables that an expression can use, by alias; `outer` is the scope of the outer query."""

    tables: dict[str, Columns | None]
    outer: _Scope | None = None
    aliases: Columns = field(default_factory=dict)

    def kind(self, column: exp.Column) -> Kind | None:
        names = [part.name.lower() for part in column.parts]
        for start in range(len(names)):
            tables = [
                columns
                for alias, columns in self.tables.items()
                if not start or alias.lower().rpartition(".")[2] == names[start - 1]
            ]
            path = ".".join(names[start:])
            kinds = {columns[path] for columns in tables if columns and path in columns}
            if kinds and (start or None not in tables):
                return kinds.pop() if len(kinds) == 1 else None
        if column.name.lower() in self.aliases:
            return self.aliases[column.name.lower()]
        return self.outer.kind(column) if self.outer is not None else None


@dataclass(slots=True)
class _Translation:
    sql_dialect: str
    columns_of: Callable[[str], Columns | None]
    is_imported: bool = False
    ctes: dict[str, Columns] = field(default_factory=dict)

    def refusal(self, node: Expr, kinds: tuple[Kind | None, ...] = ()) -> NoCounterpartError:
        written = node.sql(dialect=sqlglot_dialect(self.sql_dialect))
        written = written if len(written) <= 60 else f"{written[:57]}..."
        instead = "write the rule in Spark SQL, with `dialect: spark`"
        of = "an unknown database" if self.sql_dialect in ("ansi", "any") else self.sql_dialect
        if of != self.sql_dialect:
            instead = "name its database, as in `dialect: postgres`, or write `dialect: spark`"
        if self.is_imported:
            own = " with the name of the database, or" if of != self.sql_dialect else ""
            kinds = ()
            instead = f"add --sql-dialect{own} with spark, to read it as Spark SQL"
        is_compared = isinstance(node, exp.EQ | exp.NEQ | exp.In)
        hint = _HINTS.get(self.sql_dialect if is_compared else node.key)
        instead = f"write {hint}, or {instead}" if hint else instead
        if None in kinds:
            instead = f"add the types of its columns to the contract, or {instead}"
        return NoCounterpartError(f"`{written}` of {of} may have another value in Spark: {instead}")

    # Queries -------------------------------------------------------------------------------------

    def subquery(self, tree: Expr, outer: _Scope | None) -> tuple[Expr, dict[str, Kind | None]]:
        """The translated query, and the kinds of its columns by name."""
        query = tree.copy()
        return query, self._query(query, outer)

    def _query(self, tree: Expr, outer: _Scope | None) -> dict[str, Kind | None]:
        """Translates a query in place; returns the kinds of its columns by name."""
        if (given := tree.args.get("with_")) is not None:
            self._only(given, "expressions")
            for cte in given.expressions:
                self.ctes[cte.alias.lower()] = _named(self._query(cte.this, outer), cte)
        if isinstance(tree, exp.Subquery):
            return self._query(tree.this, outer)
        scope = _Scope({}, outer)
        if isinstance(tree, exp.SetOperation):
            self._only(tree, "this", "expression", "distinct", "order", *_ENDS)
            written = tree.copy()
            first = self._query(tree.this, outer)
            second = self._query(tree.expression, outer)
            pairs = zip(first.values(), second.values(), strict=False)
            columns = dict(zip(first, map(self._widest, pairs), strict=False))
            if len(first) != len(second) or not all(map(self.is_groupable, columns.values())):
                raise self.refusal(written, tuple(columns.values()))
            scope.tables[""] = columns
        elif isinstance(tree, exp.Select):
            columns = self._select(tree, scope)
        else:
            raise self.refusal(tree)
        self._ended(tree, scope)
        return columns

    def _select(self, tree: Expr, scope: _Scope) -> dict[str, Kind | None]:
        self._only(tree, *_PARTS, *_ENDS, "distinct")
        if (source := tree.args.get("from_")) is not None:
            self._source(source.this, scope)
        self._joins(tree, scope)
        columns: dict[str, Kind | None] = {}
        distinct = tree.args.get("distinct")
        for number, item in enumerate(list(tree.expressions)):
            if isinstance(item, exp.Star):
                self._only(item)
                for inner in scope.tables.values():
                    columns |= inner if inner is not None else {"*": None}
                continue
            value, kind = self.value(item.unalias(), scope)
            columns[item.alias_or_name.lower() or f"_{number}"] = kind
            item.unalias().replace(value)
        if distinct is not None and (
            distinct.args.get("on") or not all(map(self.is_groupable, columns.values()))
        ):
            raise self.refusal(distinct, tuple(columns.values()))
        scope.aliases = columns
        for key in _MORE & tree.args.keys():
            if (clause := tree.args[key]) is not None:
                clause.set("this", self.condition(clause.this, scope))
        if (group := tree.args.get("group")) is not None:
            self._only(group, "expressions")
            group.set("expressions", [self._key(key, scope) for key in group.expressions])
        return columns

    def _ended(self, tree: Expr, scope: _Scope) -> None:
        """Translates ORDER BY, LIMIT and OFFSET in place."""
        if (order := tree.args.get("order")) is not None:
            self._order(order, scope)
        for key in ("limit", "offset"):
            clause = tree.args.get(key)
            if clause is not None:
                self._only(clause, "expression", "count", "direction")
                number = clause.expression or clause.args.get("count")
                if not fits(number, "count"):
                    raise self.refusal(clause)
                kind = exp.Limit if key == "limit" else exp.Offset
                tree.set(key, kind(expression=number.copy()))

    def _order(self, order: Expr, scope: _Scope) -> Expr:
        for item in order.expressions:
            self._only(item, "this", "desc", "nulls_first")
            value, kind = self._by_number(item.this, scope) or self.value(item.this, scope)
            if not self.is_ordered(kind):
                raise self.refusal(item, (kind,))
            item.set("this", value)
        return order

    def _source(self, node: Expr, scope: _Scope) -> None:
        self._only(node, "this", "db", "catalog", "alias", "joins")
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            written = ".".join(part.name for part in node.parts)
            columns = self.ctes.get(written.lower()) or self.columns_of(written)
        elif isinstance(node, exp.Subquery):
            columns = _named(self._query(node.this, scope.outer), node)
        else:
            raise self.refusal(node)
        scope.tables[node.alias_or_name or f"_{len(scope.tables)}"] = columns
        self._joins(node, scope)

    def _joins(self, node: Expr, scope: _Scope) -> None:
        for join in node.args.get("joins") or ():
            self._only(join, "this", "side", "kind", "on", "using")
            self._source(join.this, scope)
            if (condition := join.args.get("on")) is not None:
                join.set("on", self.condition(condition, scope))
            for name in join.args.get("using") or ():
                self._key(exp.column(name.name), scope)

    def _only(self, node: Expr, *known: str) -> None:
        """Checks that a node has no other arguments than the given ones, which are translated.

        :raises NoCounterpartError: it has another argument."""
        given = {name for name, part in node.args.items() if part}
        if given - {"operation_modifiers", "kind", *known}:
            raise self.refusal(node)

    def _key(self, key: Expr, scope: _Scope) -> Expr:
        """Translates a value by which rows are grouped."""
        value, kind = self._by_number(key, scope) or self.value(key, scope)
        if not self.is_groupable(kind):
            raise self.refusal(key, (kind,))
        return value

    def _by_number(self, key: Expr, scope: _Scope) -> Typed | None:
        """A column of the query by its number: `GROUP BY 1`."""
        if not fits(key, "count"):
            return None
        kinds = dict(enumerate((scope.aliases or scope.tables.get("") or {}).values(), 1))
        return key.copy(), kinds.get(int(key.name), KINDS["other"])

    def is_groupable(self, kind: Kind | None) -> bool:
        """Whether values are equal in Spark exactly if they are equal in the dialect."""
        return self._is_same(exp.EQ, kind)

    def is_ordered(self, kind: Kind | None) -> bool:
        """Whether values have the same order in Spark."""
        return self._is_same(exp.LT, kind)

    def _is_same(self, comparison: type[Expr], kind: Kind | None) -> bool:
        left, right = exp.column("a"), exp.column("b")
        scope = _Scope({"": {"a": kind, "b": kind}})
        if kind is not None and kind.name == "null":
            return True
        found = self._by_row(comparison(this=left, expression=right), scope)
        return found is not None and found[0] == comparison(this=left, expression=right)

    # Expressions ---------------------------------------------------------------------------------

    def condition(self, node: Expr, scope: _Scope) -> Expr:
        """Translates an expression that is true, false or NULL."""
        value, kind = self.value(node, scope)
        if not is_of(kind, "bool") and not (
            kind is None and self.sql_dialect not in ("mysql", "sqlite", "tsql")
        ):
            raise self.refusal(node, (kind,))
        return value

    def value(self, node: Expr, scope: _Scope) -> Typed:
        """The expression in Spark SQL, with the kind of its value in the dialect."""
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            value, _ = self.value(plain, scope)
            return exp.not_(wrapped(value), copy=False), KINDS["bool"]
        truth = self._truth(node, scope)
        if truth is not None:
            return truth, KINDS["bool"]
        for translate in (self._leaf, self._composed, self._moved, self._by_row):
            found = translate(node, scope)
            if found is not None:
                return found
        raise self.refusal(node, self._kinds_in(node, scope))

    def _leaf(self, node: Expr, scope: _Scope) -> Typed | None:
        """Translates a column or a literal; None for other expressions."""
        match node:
            case exp.Column() if not isinstance(node.this, exp.Star):
                return self._column(node, scope)
            case exp.Literal() | exp.RawString() | exp.National():
                return self._literal(node)
            case exp.Null():
                return node.copy(), KINDS["null"]
            case exp.Boolean():
                return node.copy(), KINDS["bool"]
            case exp.DateStrToDate() if fits(node.this, "daytext"):  # DATE '...' of Oracle
                return exp.cast(node.this.copy(), "date"), KINDS["moment"]
            case exp.Interval():
                seconds = self._seconds(node)
                return exp.Literal.number(seconds * 1_000_000), KINDS["interval"]
        return None

    def _truth(self, node: Expr, scope: _Scope) -> Expr | None:
        """Translates a comparison, or a junction of conditions; None for other expressions."""
        match node:
            case exp.And() | exp.Or() | exp.Not():
                parts = {
                    key: self.condition(part, scope) for key, part in node.args.items() if part
                }
                return type(node)(**parts)
            case exp.EQ() | exp.NEQ() | exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._compared(node, exp.EQ, scope)
            case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self._compared(node, exp.LT, scope)
            case exp.Between():
                return self._between(node, scope)
            case exp.In():
                return self._member(node, scope)
            case exp.Exists() if isinstance(node.this, exp.Query):
                return exp.Exists(this=self.subquery(node.this, scope)[0])
        return None

    def _between(self, node: exp.Between, scope: _Scope) -> Expr:
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this, expression=node.args["high"])
        first = self._compared(low, exp.LT, scope)
        last = self._compared(high, exp.LT, scope)
        if first.this != last.this:
            return exp.and_(first, last)
        return exp.Between(this=first.this, low=first.expression, high=last.expression)

    def _composed(self, node: Expr, scope: _Scope) -> Typed | None:
        """Translates an expression around other expressions; None for other expressions."""
        match node:
            case exp.Paren():
                value, kind = self.value(node.this, scope)
                return exp.paren(value, copy=False), kind
            case exp.Subquery() if self.sql_dialect != "sqlite" or node.unnest().find(exp.AggFunc):
                query, columns = self.subquery(node, scope)
                return query, next(iter(columns.values()))
            case exp.Case():
                return self._case(node, scope)
            case exp.Filter():
                value, kind = self.value(node.this, scope)
                if isinstance(value, exp.AggFunc):
                    where = exp.Where(this=self.condition(node.expression.this, scope))
                    return exp.Filter(this=value, expression=where), kind
            case exp.Window():
                return self._window(node, scope)
            case exp.Cast() if node.to.is_type("decimal") and self.sql_dialect != "sqlite":
                return self._as_decimal(node, scope)
        return None

    def _kinds_in(self, node: Expr, scope: _Scope) -> tuple[Kind | None, ...]:
        """The kinds of the columns, if a row of the table matches the shape of the expression."""
        rows = table(self.sql_dialect).get(type(node), ())
        is_listed = any(matched(row.pattern, node, {}) for row in rows)
        columns = node.find_all(exp.Column) if is_listed else ()
        return tuple(scope.kind(column) for column in columns)

    def _by_row(self, node: Expr, scope: _Scope) -> Typed | None:
        """The translation by the first row of the table that matches the form and the kinds; None
        without one."""
        known: dict[int, Typed | NoCounterpartError] = {}
        refused: NoCounterpartError | None = None
        for row in table(self.sql_dialect).get(type(node), ()):
            found: dict[str, Expr] = {}
            if not matched(row.pattern, node, found):
                continue
            try:
                operands = self._operands(found, known, scope)
            except NoCounterpartError as error:
                refused = refused or error
                continue
            result = self._result(row, operands) if operands is not None else None
            if result is not None:
                return result
        if refused is not None:
            raise refused
        return None

    def _operands(
        self, found: Mapping[str, Expr], known: dict[int, Typed | NoCounterpartError], scope: _Scope
    ) -> dict[str, Typed] | None:
        """The translated expressions for the placeholders of a row; None if one of them does not
        accept its expression.

        :param known: the expressions that have been tried; further ones are added.
        :raises NoCounterpartError: one of the expressions has no translation.
        """
        operands: dict[str, Typed] = {}
        for name, part in found.items():
            if id(part) not in known:
                known[id(part)] = self._tried(part, scope)
            operand = known[id(part)]
            if isinstance(operand, NoCounterpartError):
                raise operand
            if not self._accepts(name.strip("_0123456789"), part, operand):
                return None
            operands[name] = operand
        return operands

    def _tried(self, node: Expr, scope: _Scope) -> Typed | NoCounterpartError:
        try:
            return self.value(node, scope)
        except NoCounterpartError as error:
            return error

    def _accepts(self, hole: str, node: Expr, typed: Typed) -> bool:
        value, kind = typed
        if is_of_literals(hole):
            return fits(value, hole)
        if hole == "column":
            return isinstance(node, exp.Column) and is_of(kind, "text")
        if hole == "key":
            return self.is_groupable(kind)
        return self.is_ordered(kind) if hole == "ordered" else is_of(kind, hole)

    def _result(self, row: Row, typed: Mapping[str, Typed]) -> Typed | None:
        """The template of a row with the operands, and the kind of its value; None if the value may
        differ."""
        operands = [typed[name] for name in sorted(typed)]
        if row.result == "quotient":
            (left, first), (right, second) = operands
            return self._quotient(left, first, right, second)
        if row.result == "mean":
            return self._mean(*operands[0])
        kinds = [kind for _, kind in operands]
        kind: Kind | None
        values = kinds if "_bool" not in typed else kinds[1:]
        if row.result == "wide":
            kind = self._widest(values)
        elif row.result == "same":
            kind = values[0] if len(set(values)) == 1 else KINDS["other"]
        elif row.result in ("added", "product", "total", "total_of_bigint"):
            kind = sum_of(row.result, kinds, self.sql_dialect)
        else:
            named = typed.get(row.result)
            kind = named[1] if named is not None else KINDS[row.result]
        if kind is not None and kind.name == "other":
            return None
        return filled_template(
            row.template, {name: value for name, (value, _) in typed.items()}
        ), kind

    def _mean(self, value: Expr, kind: Kind | None) -> Typed | None:
        """The mean of exact numbers, as the quotient of their sum and their count."""
        size = as_decimal(kind)
        if size is not None:
            size = Kind("decimal", min(size.digits + 10, LONGEST), size.scale)
        total = exp.Sum(this=value)
        return self._quotient(total, size, exp.Count(this=value.copy()), KINDS["bigint"])

    def _quotient(
        self, left: Expr, first: Kind | None, right: Expr, second: Kind | None
    ) -> Typed | None:
        """The quotient of exact numbers, with the digits that the dialect keeps."""
        # Short integers as long ones: then Spark keeps more digits.
        long = {KINDS["int"]: KINDS["bigint"], None: None}
        a = as_decimal(long.get(first, first))
        b = as_decimal(long.get(second, second))
        if a is None or b is None:
            return None
        scale = max(6, a.scale + b.digits + 1)
        if (digits := a.digits - a.scale + b.scale + scale) > LONGEST:
            scale = max(scale - (digits - LONGEST), 6)
        kept = {"mysql": a.scale + 4, "snowflake": max(a.scale, min(a.scale + 6, 12))}
        places = kept.get(self.sql_dialect)
        if scale < (18 if places is None else places + 6):
            return None
        divisor = f"cast(_r AS DECIMAL({b.digits},{b.scale}))"
        divisor = f"nullif({divisor}, 0)" if self.sql_dialect == "mysql" else divisor
        text = f"cast(_l AS DECIMAL({a.digits},{a.scale})) / {divisor}"
        text = text if places is None else f"round({text}, {places})"
        filled = filled_template(parse_one(text, dialect="spark"), {"_l": left, "_r": right})
        kind = Kind("decimal", LONGEST, scale if places is None else places)
        # MySQL computes with more digits than it shows.
        return filled, kind if self.sql_dialect != "mysql" else KINDS["shown"]

    def _column(self, node: exp.Column, scope: _Scope) -> Typed:
        kind = scope.kind(node)
        if kind is not None and self.sql_dialect == "redshift" and kind.name == "text":
            kind = KINDS["padded"]
        if self.sql_dialect == "sqlite" and kind is not None and kind.name in ("decimal", "number"):
            return exp.cast(node.copy(), "double"), KINDS["numeric"]
        return node.copy(), kind

    def _literal(self, node: Expr) -> Typed:
        if not isinstance(node, exp.Literal) or node.is_string:
            return exp.Literal.string(node.name), KINDS["text"]
        whole, _, fraction = node.name.partition(".")
        digits = len(whole.lstrip("0")) + len(fraction)
        is_float = bool(fraction) and self.sql_dialect in ("bigquery", "sqlite")
        if is_float or not (whole + fraction).isdigit():
            return exp.Literal.number(node.name), KINDS["float"]
        if not fraction and digits < 19:
            return node.copy(), KINDS["int" if int(whole) < 2**31 else "bigint"]
        kind = Kind("decimal", max(digits, 1), len(fraction))
        return node.copy(), kind if digits <= LONGEST else KINDS["other"]

    def _compared(self, node: Expr, comparison: type[Expr], scope: _Scope) -> Expr:
        """Translates a comparison by a row of `=` or `<`, whose sides may be swapped."""
        for left, right in ((node.this, node.expression), (node.expression, node.this)):
            shape = comparison(this=left, expression=right)
            found = self._by_row(shape, scope)
            if found is not None and type(found[0]) is comparison:
                sides = [wrapped(found[0].this), wrapped(found[0].expression)]
                sides = sides if left is node.this else sides[::-1]
                return type(node)(this=sides[0], expression=sides[1])
            if found is not None and isinstance(node, exp.EQ):
                return found[0]
        typed = (self.value(side, scope) for side in (node.this, node.expression))
        values, kinds = zip(*typed, strict=True)
        if KINDS["null"] in kinds:
            return type(node)(this=values[0], expression=values[1])
        raise self.refusal(node, kinds)

    def _member(self, node: Expr, scope: _Scope) -> Expr:
        self._only(node, "this", "expressions", "query")
        if (query := node.args.get("query")) is not None:
            inner, columns = self.subquery(query, scope)
            own, kind = self.value(node.this, scope)
            kinds = {"own": kind, "other": next(iter(columns.values()))}
            sides = exp.EQ(this=exp.column("own"), expression=exp.column("other"))
            compared = self._by_row(sides, _Scope({"": kinds}))
            is_mixed = self.sql_dialect == "mysql" and kind != kinds["other"]
            if compared is None or compared[0] != sides or is_mixed:
                raise self.refusal(node, tuple(kinds.values()))
            return exp.In(this=own, query=inner)
        pairs = [
            self._compared(exp.EQ(this=node.this, expression=choice), exp.EQ, scope)
            for choice in node.expressions
        ]
        if any(type(pair) is not exp.EQ or pair.this != pairs[0].this for pair in pairs):
            raise self.refusal(node)
        return exp.In(this=pairs[0].this, expressions=[pair.expression for pair in pairs])

    def _case(self, node: Expr, scope: _Scope) -> Typed:
        branches = []
        kinds = []
        for branch in node.args["ifs"]:
            test = branch.this
            if node.this is not None:
                test = exp.EQ(this=node.this, expression=test)
            value, kind = self.value(branch.args["true"], scope)
            branches.append(exp.If(this=self.condition(test, scope), true=value))
            kinds.append(kind)
        default = node.args.get("default")
        last, kind = self.value(default if default is not None else exp.Null(), scope)
        result = self._widest([*kinds, kind])
        if result == KINDS["other"]:
            raise self.refusal(node)
        return exp.Case(ifs=branches, default=None if default is None else last), result

    def _widest(self, kinds: Iterable[Kind | None]) -> Kind | None:
        """The kind of a value that has one of several kinds. For integers beside floats in SQLite
        it is `other`: SQLite keeps the integers, which may have more digits than a float, and
        divides them as integers."""
        known = {*kinds} - {KINDS["null"]}
        kind = widest(known)
        is_mixed = self.sql_dialect == "sqlite" and len(known) > 1
        return KINDS["other"] if is_mixed and kind == KINDS["float"] else kind

    def _window(self, node: Expr, scope: _Scope) -> Typed:
        self._only(node, "this", "partition_by", "order", "spec", "over")
        value, kind = self.value(node.this, scope)
        spec = node.args.get("spec")
        is_plain = spec is None or not spec.args.get("exclude")
        if not isinstance(value, exp.AggFunc | exp.RowNumber) or not is_plain:
            raise self.refusal(node)
        order = node.args.get("order")
        out = exp.Window(
            this=value,
            partition_by=[self._key(key, scope) for key in node.args.get("partition_by") or ()],
            order=self._order(order.copy(), scope) if order is not None else None,
            spec=spec.copy() if spec is not None else None,
        )
        return out, kind

    def _as_decimal(self, node: exp.Cast, scope: _Scope) -> Typed:
        value, kind = self.value(node.this, scope)
        written = [part.name for part in node.to.expressions]
        is_sized = bool(written) and all(re.fullmatch("[0-9]{1,4}", size) for size in written)
        if not is_sized or not is_of(kind, "sized") or isinstance(node, exp.TryCast):
            raise self.refusal(node, (kind,))
        sizes = [int(size) for size in written]
        scale = sizes[1] if len(sizes) > 1 else 0
        # `exp.cast` would leave out a cast of a decimal to one of another size.
        size = exp.DataType.build(f"decimal({sizes[0]},{scale})")
        return exp.Cast(this=value, to=size), Kind("decimal", sizes[0], scale)

    # Dates ---------------------------------------------------------------------------------------

    def _seconds(self, node: Expr) -> int:
        """The length in seconds of an interval such as `2 hours`: an integer and a unit."""
        unit = unit_of(node.args.get("unit"))
        amount = node.this
        if not isinstance(amount, exp.Literal) or not re.fullmatch(r"-?\d{1,6}", amount.name):
            raise self.refusal(node)
        if unit not in _SECONDS:
            raise self.refusal(node)
        return int(amount.name) * _SECONDS[unit]

    def _moved(self, node: Expr, scope: _Scope) -> Typed | None:
        """Translates a date or timestamp plus or minus an interval; None for other expressions."""
        interval = _added_interval(node)
        if interval is None:
            return None
        value, kind = self.value(node.this, scope)
        if is_of(kind, "interval"):
            return None
        if fits(value, "timetext"):
            value = exp.cast(value, "timestamp")
            kind = KINDS["stamp"]
        amount, unit = interval
        is_time = is_of(kind, "time") or (kind is None and self.sql_dialect != "mysql")
        is_known = unit in _SECONDS or unit in _MONTHS
        if not is_time or not is_known or self.sql_dialect not in DIALECTS:
            raise self.refusal(node, (kind,))
        length = self._length(node, amount, unit, scope)
        sign = exp.Sub if isinstance(node, _MINUS) else exp.Add
        # Databases differ in whether a date stays a date; both are compared in the same way.
        kept = kind if kind is None or kind.name == "moment" else KINDS["stamp"]
        return exp.paren(sign(this=wrapped(value), expression=length), copy=False), kept

    def _length(self, node: Expr, amount: Expr, unit: str, scope: _Scope) -> Expr:
        """The length of an interval in Spark SQL.

        :param node: the expression with the interval, for its refusal.
        """
        factor = 3 if unit == "QUARTER" else 1
        part = exp.var("MONTH" if unit == "QUARTER" else unit)
        digits = 6 if unit in ("SECOND", "MINUTE", "HOUR", "DAY") else 3
        text = amount.sql() if isinstance(amount, exp.Neg) else amount.name
        if isinstance(amount, exp.Literal | exp.Neg) and re.fullmatch(rf"-?\d{{1,{digits}}}", text):
            number = exp.Literal.string(str(int(text) * factor))
            return exp.Interval(this=number, unit=part)
        count, kind = self.value(amount, scope)
        # Beyond the year 9999, MySQL has NULL.
        if not is_of(kind, "int") or self.sql_dialect == "mysql":
            raise self.refusal(node, (kind,))
        one = exp.Interval(this=exp.Literal.string(str(factor)), unit=part)
        return exp.Mul(this=wrapped(count), expression=one)


_PLUS = (exp.DateAdd, exp.TsOrDsAdd, exp.TimestampAdd, exp.DatetimeAdd, exp.Add)
_MINUS = (exp.DateSub, exp.TimestampSub, exp.DatetimeSub, exp.Sub)


def _added_interval(node: Expr) -> tuple[Expr, str] | None:
    """The amount and the unit of the interval that an expression adds or subtracts; None for other
    expressions."""
    if not isinstance(node, (*_PLUS, *_MINUS)):
        return None
    amount = node.expression
    unit = node.args.get("unit") or exp.var("DAY")
    if isinstance(amount, exp.Interval):
        return amount.this, unit_of(amount.args.get("unit") or unit)
    if isinstance(node, exp.Add | exp.Sub):
        return None
    return amount, unit_of(unit)


def _named(columns: dict[str, Kind | None], node: Expr) -> dict[str, Kind | None]:
    """The columns of a query with the names of its alias: `AS t(a, b)`."""
    alias = node.args.get("alias")
    names = [name.name.lower() for name in alias.args.get("columns") or ()] if alias else []
    return dict(zip(names, columns.values(), strict=False)) if names else columns
