"""The SQL of users that Sail evaluates as Spark does: in suites, contracts, queries and filters.

SQL is read with the types of its columns. An operation is accepted over the types for which its
values were compared with Spark's (`tests/engine/sql_on_sail.txt`); any other makes the SQL refused.
What differs is mainly arithmetic: Sail wraps integers that overflow, cuts off the digits of
decimals that Spark rounds, and compares NaN by its sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from typing import TYPE_CHECKING

from dqx_airflow.engine.session.sail import INSTEAD, patterns_as_written
from dqx_airflow.metrics.types import WHOLE_SIZES, decimal_size
from dqx_airflow.plan.model import MetricRequest

if TYPE_CHECKING:
    from sqlglot import Expr, exp

    from dqx_airflow.engine.proof.operations import SeenDataset

_WHOLE = ("integer", "bigint", "count")
_FLOATING = ("float", "double", "computed double")
_MOST_DIGITS = 38
_MORE_IN_SUM = 10
"""The digits that Spark adds to a decimal for its sum."""
_DIGITS = {"integer": 10, "bigint": 20, "count": 20}
"""The digits of the decimal to which a whole number is converted."""
_LARGEST_FACTOR = 1_000_000
_PLAIN_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_QUOTED = re.compile(
    r"`[^`]*`|(?P<quote>['\"])(?:\\.|(?!(?P=quote))[^\\])*(?P=quote)(?P<doubled>(?P=quote))?",
    re.DOTALL,
)
_WITHOUT_OTHER_ESCAPES = re.compile(r"(?:[^\\]|\\[\\'])*", re.DOTALL)
"""A literal whose escape sequences stand for a backslash or a quote."""

_OF_ONE: Mapping[str, Mapping[str, str]] = {
    "lower": {"string": "string"},
    "upper": {"string": "string"},
    "trim": {"string": "string"},
    "length": {"string": "integer"},
    "abs": {"integer": "integer"},
    "isnan": {"float": "boolean", "double": "boolean", "computed double": "boolean"},
    "year": {"date": "integer", "timestamp": "integer", "timestamp_ntz": "integer"},
    "month": {"date": "integer", "timestamp": "integer", "timestamp_ntz": "integer"},
    "day": {"date": "integer", "timestamp": "integer", "timestamp_ntz": "integer"},
    "dayofmonth": {"date": "integer", "timestamp": "integer", "timestamp_ntz": "integer"},
    "dayofweek": {"date": "integer", "timestamp": "integer", "timestamp_ntz": "integer"},
    "hour": {"timestamp": "integer", "timestamp_ntz": "integer"},
    "minute": {"timestamp": "integer", "timestamp_ntz": "integer"},
    "second": {"timestamp": "integer", "timestamp_ntz": "integer"},
    "arraysize": {"array": "integer"},
    "avg": dict.fromkeys(("integer", "bigint", "float", "double"), "computed double"),
    **{
        name: dict.fromkeys(("integer", "bigint", "float", "double", "decimal"), "computed double")
        for name in ("stddev", "stddevpop", "stddevsamp", "variance", "variancepop")
    },
}
"""The type of a function of one operand, by the type of the operand. Names are those of sqlglot."""


_CASTS: Mapping[tuple[str, str], str] = {
    ("integer", "BIGINT"): "bigint",
    ("count", "BIGINT"): "bigint",
    ("integer", "DOUBLE"): "computed double",
    ("count", "DOUBLE"): "computed double",
    ("decimal", "DOUBLE"): "computed double",
    ("boolean", "INT"): "integer",
    ("date", "DATE"): "date",
    ("timestamp", "DATE"): "date",
    ("timestamp_ntz", "DATE"): "date",
}
"""The types of casts by the type of the operand, and what it is cast to."""

_DERIVED = ("approxquantile", "concatws")
"""Operations that were not compared, though sqlglot derives them from some that were."""

_JOINS = (
    *(("", ""), ("", "INNER"), ("", "SEMI"), ("", "ANTI")),
    *(("LEFT", ""), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("LEFT", "ANTI")),
)
"""The joins that were compared: side and kind."""

_UNITS_OF_MOMENTS = ("SECOND", "MINUTE", "HOUR", "DAY")


class _RefusedError(Exception):
    """SQL has a part that was not compared; the message says which."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type. A `count` is a whole number that cannot overflow, a `computed double` may be a NaN of
    either sign. `digits` and `scale` are those of a decimal; `text` is the value of a literal."""

    name: str
    digits: int = 0
    scale: int = 0
    text: str | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def whole_digits(self) -> int:
        return self.digits - self.scale


_BOOLEAN, _STRING, _NULL = _Kind("boolean"), _Kind("string"), _Kind("null")
_COUNT, _COMPUTED = _Kind("count"), _Kind("computed double")


def _kind_of(spark_type: str) -> _Kind:
    name = spark_type.lower().partition("<")[0]
    if name.startswith("decimal"):
        return _Kind("decimal", *decimal_size(name))
    if name == "bigint":
        return _Kind("bigint")
    if name in WHOLE_SIZES:
        return _Kind("integer")
    return _Kind(name)


Columns = Mapping[str, _Kind]


@dataclass(frozen=True, slots=True)
class _Scope:
    """The columns that names refer to: of each source by its alias, in lower case."""

    sources: Mapping[str, Columns] = field(default_factory=dict)

    def find(self, column: exp.Column) -> _Kind:
        """:raises _RefusedError: no source, or several, have the column."""
        name, alias = column.name.lower(), column.table.lower()
        if alias and alias not in self.sources:
            raise _RefusedError(f"`{column.sql('spark')}`")
        wanted = [self.sources[alias]] if alias else [*self.sources.values()]
        found = [columns[name] for columns in wanted if name in columns]
        if not found or len({kind.name for kind in found}) > 1:
            raise _RefusedError(f"`{column.sql('spark')}`")
        return found[0]


def objection_to_request(
    sail: str, request: MetricRequest, datasets: Mapping[str, SeenDataset]
) -> str | None:
    """The reason for not evaluating the SQL of a request on Sail; None if it is evaluated.

    :param sail: the version of Sail.
    :param datasets: the datasets that could be opened, by name.
    """
    text = str(request.arguments[0])
    tables = {name.lower(): _columns_of(seen) for name, seen in datasets.items()}
    try:
        if request.metric == "query":
            _Reader(_Scope(), tables).columns_of_query(_parsed(text))
        elif (own := tables.get(request.dataset.lower())) is not None:
            _Reader(_Scope({"": own}), {}).kind(_parsed(text))
    except _RefusedError as refused:
        return _objection(sail, refused)
    return None


def objection_to_filter(sail: str, condition: str, types: Mapping[str, str]) -> str | None:
    """The reason for not evaluating the filter of a dataset on Sail; None if it is evaluated.

    :param types: the types of its columns.
    """
    own = {name.lower(): _kind_of(type_) for name, type_ in types.items()}
    try:
        _Reader(_Scope({"": own}), {}).condition(_parsed(condition))
    except _RefusedError as refused:
        return _objection(sail, refused)
    return None


def _objection(sail: str, refused: _RefusedError) -> str:
    return f"Sail {sail} may evaluate {refused} differently from Spark: {INSTEAD}"


def _columns_of(seen: SeenDataset) -> Columns:
    return {name.lower(): _kind_of(type_) for name, type_ in seen.schema.types.items()}


def _parsed(text: str) -> Expr:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        raise _RefusedError("this SQL") from None
    _require_translated_patterns(parsed, text)
    _require_plain_quotes(text)
    return parsed


def _require_plain_quotes(text: str) -> None:
    """:raises _RefusedError: a string has a doubled quote, which Sail leaves out."""
    for found in _QUOTED.finditer(text):
        if found["doubled"]:
            raise _RefusedError(f"the doubled quote in {found[0]}...")


def _require_translated_patterns(parsed: Expr, text: str) -> None:
    """:raises _RefusedError: a regular expression is not written as `RLIKE '...'`, in which form it
    is translated for Sail; or has an escape sequence besides doubled backslashes; or a comment
    beside it, which may contain another one."""
    from sqlglot import exp, tokenize

    written = patterns_as_written(text)
    if len(written) != len([*parsed.find_all(exp.RegexpLike)]):
        raise _RefusedError("a regular expression that is not written as RLIKE '...'")
    if written and any(token.comments for token in tokenize(text, dialect="spark")):
        raise _RefusedError("a comment beside a regular expression")
    for pattern in written:
        if _WITHOUT_OTHER_ESCAPES.fullmatch(pattern) is None:
            raise _RefusedError(f"the escape sequences of RLIKE '{pattern}'")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Finds the types of expressions, and the columns of queries.

    :param tables: the columns of the tables that queries read, by name in lower case.
    """

    scope: _Scope
    tables: Mapping[str, Columns]

    def kind(self, node: Expr) -> _Kind:
        """The type of an expression.

        :raises _RefusedError: it has an operation that was not compared over its types.
        """
        from sqlglot import exp

        if node.key in _DERIVED:
            raise _refusal(node)
        match node:
            case exp.Paren(this=inner):
                return self.kind(inner)
            case exp.Column():
                return self.scope.find(node)
            case exp.Literal():
                return _kind_of_literal(node)
            case exp.Boolean():
                return _BOOLEAN
            case exp.Null():
                return _NULL
            case exp.Neg(this=exp.Literal() as literal):
                return self.kind(literal)
            case exp.And() | exp.Or() | exp.Not():
                for part in _operands(node):
                    self.condition(part)
                return _BOOLEAN
            case exp.Is(this=operand, expression=exp.Null()):
                self.kind(operand)
                return _BOOLEAN
            case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
                return self._compared(node, *_operands(node))
            case exp.NullSafeEQ():
                return self._compared(node, *_operands(node))
            case exp.Between(this=operand) if not node.args.get("symmetric"):
                return self._compared(node, operand, node.args["low"], node.args["high"])
            case exp.In(this=operand, expressions=choices):
                return self._member(node, operand, choices)
            case exp.Exists(this=exp.Select() as select):
                self.columns_of_query(select)
                if _is_aggregate(select):
                    raise _refusal(node)
                return _BOOLEAN
            case exp.Like(this=operand, expression=exp.Literal() as pattern):
                return self._like(node, operand, pattern)
            case exp.RegexpLike(this=operand, expression=exp.Literal(is_string=True)):
                return self._of_strings(node, operand)
            case exp.Case() | exp.If() | exp.Coalesce() | exp.Nullif():
                return self._chosen(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                return self._computed(node)
            case exp.Mod(this=operand, expression=exp.Literal() as divisor):
                kind = self.kind(operand)
                if kind.name != "integer" or not _whole_value(divisor):
                    raise _refusal(node, kind)
                return _Kind("integer")
            case exp.AggFunc() | exp.Filter():
                return self._aggregate(node)
            case exp.CurrentDate(this=None):
                return _Kind("date")
            case exp.CurrentTimestamp(this=None):
                return _Kind("timestamp")
            case exp.Cast() | exp.TsOrDsToDate():
                return self._cast(node)
            case exp.TsOrDsAdd() | exp.TimestampAdd():
                return self._moved(node)
            case exp.Left(expression=exp.Literal()) | exp.Right(expression=exp.Literal()):
                return self._end_of_string(node)
            case exp.Contains() | exp.StartsWith() | exp.EndsWith() | exp.DPipe() | exp.Concat():
                return self._joined(node)
            case exp.Subquery(this=exp.Select() as select) if _is_aggregate(
                select
            ) and not select.args.get("having"):
                return self._only_column(select)
        return self._of_one(node)

    def condition(self, node: Expr) -> None:
        """:raises _RefusedError: it is not a condition that was compared."""
        kind = self.kind(node)
        if kind not in (_BOOLEAN, _NULL):
            raise _refusal(node, kind)

    def _compared(self, node: Expr, *operands: Expr) -> _Kind:
        first, *others = [self.kind(operand) for operand in operands]
        for other in others:
            if not _are_comparable(first, other):
                raise _refusal(node, first, other)
        return _BOOLEAN

    def _member(self, node: Expr, operand: Expr, choices: Sequence[Expr]) -> _Kind:
        from sqlglot import exp

        query = node.args.get("query")
        if query is None:
            return self._compared(node, operand, *choices)
        select = query.this if isinstance(query, exp.Subquery) else query
        first, other = self.kind(operand), self._only_column(select)
        is_floating = first.name in _FLOATING or other.name in _FLOATING
        if is_floating or not _are_comparable(first, other):
            raise _refusal(node, first, other)
        if not _is_row_condition(node) or _is_aggregate(select):
            raise _refusal(node)
        return _BOOLEAN

    def _like(self, node: Expr, operand: Expr, pattern: exp.Literal) -> _Kind:
        if "\\" in pattern.name:
            raise _refusal(node)
        return self._of_strings(node, operand)

    def _cast(self, node: Expr) -> _Kind:
        """The type of a cast that neither fails nor rounds, nor reads a string."""
        if node.args.get("format") is not None:
            raise _refusal(node)
        kind = self.kind(node.this)
        if kind.name == "string" and kind.text and _is_plain_date(kind.text):
            kind = _Kind("date")
        to = "DATE" if node.key == "tsordstodate" else node.args["to"].sql("spark").upper()
        name = _CASTS.get((kind.name, to))
        if name is None:
            raise _refusal(node, kind)
        return _Kind(name)

    def _moved(self, node: Expr) -> _Kind:
        """The type of a moment that a number of units is added to."""
        kind, unit = self.kind(node.this), node.args["unit"].name.upper()
        units = _UNITS_OF_MOMENTS if kind.name == "timestamp" else ("DAY",)
        if kind.name not in ("date", "timestamp") or unit not in units:
            raise _refusal(node, kind)
        if _whole_value(node.args["expression"]) is None:
            raise _refusal(node)
        return kind

    def _joined(self, node: Expr) -> _Kind:
        """The type of what is found in strings, or made of them."""
        for part in (*_operands(node), *node.expressions):
            self._of_strings(node, part)
        return _STRING if node.key in ("dpipe", "concat") else _BOOLEAN

    def _end_of_string(self, node: Expr) -> _Kind:
        if _whole_value(node.expression) is None:
            raise _refusal(node)
        self._of_strings(node, node.this)
        return _STRING

    def _of_strings(self, node: Expr, operand: Expr) -> _Kind:
        kind = self.kind(operand)
        if kind.name != "string":
            raise _refusal(node, kind)
        return _BOOLEAN

    def _chosen(self, node: Expr) -> _Kind:
        """The type of the values of which one is chosen."""
        from sqlglot import exp

        match node:
            case exp.Nullif(this=first, expression=second):
                self._compared(node, first, second)
                return replace(self.kind(first), text=None)
            case exp.Coalesce(this=first, expressions=others):
                parts = [first, *others]
            case exp.If(this=test, args=arguments):
                self.condition(test)
                parts = [arguments[key] for key in ("true", "false") if arguments.get(key)]
            case _:
                if node.this is not None:
                    raise _refusal(node)
                for branch in node.args["ifs"]:
                    self.condition(branch.this)
                parts = [branch.args["true"] for branch in node.args["ifs"]]
                parts += [node.args["default"]] if node.args.get("default") else []
        return _common(node, [self.kind(part) for part in parts])

    def _computed(self, node: Expr) -> _Kind:
        from sqlglot import exp

        operands = _operands(node)
        first, second = (self.kind(operand) for operand in operands)
        names = {first.name, second.name}
        is_division = isinstance(node, exp.Div)
        if names <= {*_WHOLE, *_FLOATING} and (is_division or names & {*_FLOATING}):
            return _COMPUTED
        if names <= {"count", "integer"} and "count" in names:
            wholes = [kind for kind in (first, second) if kind.name == "integer"]
            if all(kind.text and int(kind.text) <= _LARGEST_FACTOR for kind in wholes):
                return self._of_counts(node, wholes)
        if names <= {"decimal", "integer", "bigint"} and "decimal" in names and not is_division:
            return _decimal_of(node, _as_decimal(first), _as_decimal(second))
        raise _refusal(node, first, second)

    def _of_counts(self, node: Expr, wholes: Sequence[_Kind]) -> _Kind:
        """The type of a sum, or of the product of a count and a literal: another factor could make
        it overflow."""
        from sqlglot import exp

        if not isinstance(node, exp.Mul):
            return _COUNT
        if not wholes:
            raise _refusal(node, _COUNT)
        return _Kind("bigint")

    def _aggregate(self, node: Expr) -> _Kind:
        from sqlglot import exp

        match node:
            case exp.Filter(this=aggregate, expression=exp.Where(this=condition)):
                self.condition(condition)
                if self.kind(condition) is _NULL:
                    raise _refusal(node)
                if isinstance(aggregate, exp.CountIf):
                    raise _refusal(node)  # Sail counts the rows that the filter leaves out, too
                return self._aggregate(aggregate)
            case exp.Count(this=exp.Star(), expressions=[]):
                return _COUNT
            case exp.Count(this=exp.Distinct(expressions=[exp.Struct(expressions=fields)])):
                for part in fields:
                    kind = self._key(part.expression if part.key == "propertyeq" else part)
                    if kind.name in _FLOATING:
                        raise _refusal(node, kind)
                return _COUNT
            case exp.Count(this=exp.Distinct(expressions=parts)):
                for part in parts:
                    self._key(part)
                return _COUNT
            case exp.Count(this=operand, expressions=[]):
                self.kind(operand)
                return _COUNT
            case exp.CountIf(this=condition):
                self.condition(condition)
                return _COUNT
            case exp.Min(this=operand, expressions=[]) | exp.Max(this=operand, expressions=[]):
                return self._key(operand)
            case exp.Sum(this=operand):
                return self._sum(node, self.kind(operand))
            case exp.Quantile() if isinstance(node.args["quantile"], exp.Literal):
                kind = self.kind(node.this)
                if kind.name not in (*_WHOLE, "decimal"):
                    raise _refusal(node, kind)
                return _COMPUTED
        return self._of_one(node)

    def _sum(self, node: Expr, kind: _Kind) -> _Kind:
        if kind.name == "integer":
            return _Kind("bigint")
        if kind.name == "decimal" and kind.digits + _MORE_IN_SUM <= _MOST_DIGITS:
            return _Kind("decimal", kind.digits + _MORE_IN_SUM, kind.scale)
        if kind.name in _FLOATING:
            return _COMPUTED
        raise _refusal(node, kind)

    def _key(self, node: Expr) -> _Kind:
        """The type of an expression whose values are ordered, or told apart."""
        kind = replace(self.kind(node), text=None)
        is_nested = kind.name in ("array", "map", "struct", "binary", "variant")
        if is_nested or kind is _NULL or kind.name == "computed double":
            raise _refusal(node, kind)
        return kind

    def _of_one(self, node: Expr) -> _Kind:
        parts = [part for part in node.args.values() if part not in (None, [], False, True, "")]
        of_operand = _OF_ONE.get(node.key)
        if of_operand is None or len(parts) != 1 or parts[0] is not node.this:
            raise _refusal(node)
        kind = self.kind(node.this)
        if kind.name not in of_operand:
            raise _refusal(node, kind)
        if {node.key, node.this.unnest().key} <= {"lower", "upper"}:
            raise _refusal(node)  # Spark leaves out the inner one
        return _Kind(of_operand[kind.name])

    def _only_column(self, select: Expr) -> _Kind:
        columns = [*self.columns_of_query(select).values()]
        if len(columns) != 1:
            raise _refusal(select)
        return columns[0]

    def columns_of_query(self, query: Expr) -> Columns:
        """The columns of a query, by name in lower case.

        :raises _RefusedError: it is of a form that was not compared.
        """
        from sqlglot import exp

        if not isinstance(query, exp.Select):
            raise _refusal(query)
        known = ("with_", "with", "kind", "expressions", "from_", "from", "joins", "where")
        more = ("group", "having", "distinct")
        if any(value for key, value in query.args.items() if key not in (*known, *more)):
            raise _RefusedError(f"`{_shown(query)}`")
        tables = dict(self.tables)
        for shared in query.ctes:
            if shared.args["alias"].args.get("columns"):
                raise _refusal(shared)
            tables[shared.alias.lower()] = replace(self, tables=tables).columns_of_query(
                shared.this
            )
        sources = dict(self.scope.sources)
        inside = replace(self, tables=tables)
        own: dict[str, Columns] = {}
        joins = query.args.get("joins") or []
        source = query.args.get("from_") or query.args.get("from")
        for part in [
            *([source.this] if source is not None else []),
            *(join.this for join in joins),
        ]:
            own[part.alias_or_name.lower()] = inside._columns_of_source(part)
        reader = replace(inside, scope=_Scope({**sources, **own}))
        for join in joins:
            reader._check_join(join)
        for condition in (query.args.get("where"), query.args.get("having")):
            if condition is not None:
                reader.condition(condition.this)
        group = query.args.get("group")
        if group is not None:
            reader._check_group(group)
        if query.args.get("distinct"):
            for one in query.expressions:
                reader._key(one.unalias())
        return dict(chain.from_iterable(reader._selected(one, own) for one in query.expressions))

    def _columns_of_source(self, source: Expr) -> Columns:
        from sqlglot import exp

        alias = source.args.get("alias")
        known = ("this", "alias")
        is_other = any(value for key, value in source.args.items() if key not in known)
        if is_other or (alias is not None and alias.args.get("columns")):
            raise _refusal(source)
        match source:
            case exp.Table() if source.name.lower() in self.tables and not source.db:
                return self.tables[source.name.lower()]
            case exp.Subquery(this=exp.Select() as select):
                return self.columns_of_query(select)
        raise _refusal(source)

    def _check_group(self, group: exp.Group) -> None:
        if any(value for key, value in group.args.items() if key != "expressions"):
            raise _refusal(group)
        for key in group.expressions:
            self._key(key)

    def _check_join(self, join: exp.Join) -> None:
        if (join.side, join.kind) not in _JOINS:
            raise _refusal(join)
        on, using = join.args.get("on"), join.args.get("using")
        if on is not None:
            self.condition(on)
        for name in using or ():
            self.scope.find(_column(name.name))
        if on is None and not using:
            raise _refusal(join)

    def _selected(self, node: Expr, own: Mapping[str, Columns]) -> Iterator[tuple[str, _Kind]]:
        from sqlglot import exp

        if isinstance(node, exp.Star) and len(own) == 1:
            yield from chain.from_iterable(columns.items() for columns in own.values())
            return
        yield node.alias_or_name.lower(), self.kind(node.unalias())


def _column(name: str) -> exp.Column:
    from sqlglot import exp

    return exp.column(name)


def _is_aggregate(select: Expr) -> bool:
    """True for a query of one row, even over no rows."""
    from sqlglot import exp

    has_aggregate = any(one.find(exp.AggFunc) is not None for one in select.expressions)
    return has_aggregate and not select.args.get("group")


def _is_row_condition(node: Expr) -> bool:
    """True for a condition that WHERE requires, or the opposite of one: elsewhere, Sail takes NULL
    for false."""
    from sqlglot import exp

    outer = node.parent
    while isinstance(outer, exp.Paren):
        outer = outer.parent
    if isinstance(outer, exp.Not):
        outer = outer.parent
    while isinstance(outer, exp.Paren | exp.And):
        outer = outer.parent
    return isinstance(outer, exp.Where)


def _operands(node: Expr) -> list[Expr]:
    parts = [node.this, node.args.get("expression")]
    return [part for part in parts if part is not None]


def _whole_value(node: Expr) -> int | None:
    """The value of a whole number, and of one that is written as a product, as sqlglot does; None
    if it is not one, or too large."""
    from sqlglot import exp

    match node:
        case exp.Literal(is_string=False) if node.name.removeprefix("-").isdigit():
            value = int(node.name)  # with its sign before sqlglot 30
        case exp.Paren(this=inner):
            return _whole_value(inner)
        case exp.Neg(this=inner):
            positive = _whole_value(inner)
            return None if positive is None else -positive
        case exp.Mul(this=first, expression=second):
            factor, other = _whole_value(first), _whole_value(second)
            if factor is None or other is None:
                return None
            value = factor * other
        case _:
            return None
    return value if abs(value) <= _LARGEST_FACTOR else None


def _kind_of_literal(node: exp.Literal) -> _Kind:
    text = node.name
    if node.is_string:
        return replace(_STRING, text=text)
    if "e" in text.lower():
        return _Kind("double", text=text)
    whole, point, places = text.partition(".")
    if point:
        return _Kind("decimal", len(whole.lstrip("0")) + len(places), len(places), text)
    if int(text) >= 2**63:
        raise _refusal(node)
    return _Kind("integer" if int(text) < 2**31 else "bigint", text=text)


def _is_plain_date(text: str) -> bool:
    """True for a date that exists, as `2024-02-29`."""
    if not _PLAIN_DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _are_comparable(first: _Kind, second: _Kind) -> bool:
    names = {first.name, second.name}
    if "computed double" in names or names & {"array", "map", "struct", "binary", "variant"}:
        return False
    if "null" in names or (len(names) == 1 and "decimal" not in names):
        return True
    if names == {"float", "integer"}:
        texts = [kind.text for kind in (first, second) if kind.name == "integer"]
        return all(text is not None and int(text) <= _LARGEST_FACTOR for text in texts)
    if names <= {*_WHOLE} or names <= {"float", "double", "integer"}:
        return True
    if names == {"double", "bigint"}:
        return True
    if names <= {"decimal", *_WHOLE}:
        written = [kind for kind in (first, second) if kind.name == "decimal" and kind.text]
        if len(names) > 1 and any(kind.whole_digits > _DIGITS["integer"] for kind in written):
            return False
        decimals = [_as_decimal(first), _as_decimal(second)]
        scale = max(one.scale for one in decimals)
        return scale + max(one.whole_digits for one in decimals) <= _MOST_DIGITS
    if names <= {"date", "timestamp"}:
        return True
    texts = [kind.text for kind in (first, second) if kind.name == "string"]
    is_date = all(text is not None and _is_plain_date(text) for text in texts)
    return bool(texts) and is_date and bool(names & {"date", "timestamp"})


def _as_decimal(kind: _Kind) -> _Kind:
    """A number as the decimal to which it is converted; a literal has its own digits."""
    if kind.name == "decimal":
        return kind
    digits = len(kind.text) if kind.text is not None else _DIGITS[kind.name]
    return _Kind("decimal", digits, 0)


def _decimal_of(node: Expr, first: _Kind, second: _Kind) -> _Kind:
    """The decimal of an addition, a subtraction or a multiplication without rounding."""
    from sqlglot import exp

    if isinstance(node, exp.Mul):
        digits, scale = first.digits + second.digits + 1, first.scale + second.scale
    else:
        scale = max(first.scale, second.scale)
        digits = scale + max(first.whole_digits, second.whole_digits) + 1
    if digits > _MOST_DIGITS:
        raise _refusal(node, first, second)
    return _Kind("decimal", digits, scale)


def _common(node: Expr, kinds: Iterable[_Kind]) -> _Kind:
    """The one type of several values; whole numbers may be of several."""
    held = [replace(kind, text=None) for kind in kinds if kind is not _NULL]
    if not held:
        return _NULL
    if len(set(held)) == 1:
        return held[0]
    if {kind.name for kind in held} <= {"integer", "bigint"}:
        return _Kind("bigint")
    decimals = [_as_decimal(kind) for kind in held if kind.name in ("decimal", *_WHOLE)]
    if len(decimals) == len(held):
        scale = max(one.scale for one in decimals)
        digits = scale + max(one.whole_digits for one in decimals)
        if digits <= _MOST_DIGITS:
            return _Kind("decimal", digits, scale)
    raise _refusal(node, *held)


def _refusal(node: Expr, *kinds: _Kind) -> _RefusedError:
    over = " and ".join(dict.fromkeys(str(kind) for kind in kinds))
    return _RefusedError(f"`{_shown(node)}`{f' over {over}' if over else ''}")


_LONGEST = 60


def _shown(node: Expr) -> str:
    text = node.sql("spark")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
