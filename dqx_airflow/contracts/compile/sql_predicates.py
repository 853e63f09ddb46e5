"""Predicates in SQL as DQL, where DQL has the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.model import Contract, Field, Model, Rule
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number, show_text
from dqx_airflow.dql.walk import is_about_items
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.exact import WrittenFloat

if TYPE_CHECKING:
    from sqlglot import Expr


_OF_ONE_DATABASE = ("postgres", "postgresql")
_FIRST_SCHEMAS = ("public", "dbo", "main")
"""The default schemas of databases."""


@dataclass(frozen=True, slots=True)
class CompiledClaim:
    """The claim of an assertion, in DQL; `others` are the datasets that it reads besides its
    own."""

    text: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnforcedByType:
    """The assertion about the type of a field also enforces this rule."""

    column: Field


@dataclass(frozen=True, slots=True)
class RuleContext:
    """A rule in its context. `way` leads from the column to the field; empty without a field. `ref`
    is the dataset of the model and `on` the date of its data, if known. If it `is_filtered`, it is
    about some of the rows, which SQL with a query of its own cannot express."""

    contract: Contract
    model: Model
    way: tuple[Field, ...]
    rule: Rule
    ref: DatasetRef | None = None
    on: date | None = None
    is_filtered: bool = False

    @property
    def item(self) -> Field | None:
        return self.way[-1] if self.way else None

    @property
    def reachable(self) -> tuple[Field, ...]:
        """The part of the path that DQL can express: up to the first array or map."""
        for number, (outer, inner) in enumerate(pairwise(self.way)):
            if all(inner is not part for part in outer.fields):
                return self.way[: number + 1]
        return self.way

    @property
    def is_reachable(self) -> bool:
        return len(self.reachable) == len(self.way)

    def field_at(self, path: str) -> Field | None:
        """The field of the model at a path; None for a column that the contract does not have."""
        return self.model.field_at(path)

    def dataset(self, written: str) -> str:
        """The dataset of a table: a model of the contract by its name, its location, or its place
        on a server (`public.orders`), or else the name as written.

        Without a server that names a schema, the default schemas of databases are assumed.
        """
        wanted = written.replace("`", "").lower()
        for model in self.contract.models:
            if model.name == written:
                return model.name
        for model in self.contract.models:
            table = (model.location or model.name).lower()
            if wanted in (model.name.lower(), table):
                return model.name
            for server in self.contract.servers:
                located = (server.location or "").lower().replace("{model}", table)
                if f".{located}".endswith(f".{wanted}"):
                    return model.name
                # A Postgres query cannot name another database than its own.
                if (
                    located
                    and server.type in _OF_ONE_DATABASE
                    and f".{wanted}".endswith(f".{located}")
                ):
                    return model.name
            schema, _, name = wanted.rpartition(".")
            if name == table and schema in _FIRST_SCHEMAS and not self._has_schemas:
                return model.name
        return written.replace("`", "")

    def fields_of(self, dataset: str) -> tuple[Field, ...]:
        """The fields of a dataset; none if no model describes it."""
        model = self.contract.model(dataset)
        return model.fields if model is not None else ()

    @property
    def _has_schemas(self) -> bool:
        """True if a server names the schema of its tables."""
        places = (server.location or "" for server in self.contract.servers)
        return any(place.endswith(".{model}") and "/" not in place for place in places)


def each_row(predicate: nodes.Expression, share: float = 1.0) -> CompiledClaim:
    """`each row: predicate`, or `N% of rows: predicate`."""
    if share >= 1:
        return CompiledClaim(f"each row: {show(predicate)}")
    return CompiledClaim(f"{show_number(terms.share(share))} of rows: {show(predicate)}")


def sql(expression: str) -> str:
    """`sql("...")`

    :raises NoCounterpartError: a text file cannot contain it.
    """
    return f"sql({show_text(terms.text(expression).value)})"


def query(text: str) -> str:
    """`query("...")`

    :raises NoCounterpartError: a text file cannot contain it.
    """
    return f"query({show_text(terms.text(text).value)})"


def no_rows(expression: str, share: float = 1.0, of: str = "num_rows()") -> CompiledClaim:
    """A number of rows is 0, or at most what a share of the evaluated ones allows."""
    if share >= 1:
        return CompiledClaim(f"{expression} == 0")
    rest = show_number(terms.share(round(1 - share, 12)))
    return CompiledClaim(f"coalesce({expression} / {of}, 0) <= {rest}")


DatasetNamer: TypeAlias = Callable[[str], str]
"""Returns the dataset of a table in the SQL."""


class NotInDqlError(NoCounterpartError):
    """DQL has no syntax for a part of a predicate."""

    def __init__(self) -> None:
        NoCounterpartError.__init__(self, "DQL has no syntax for it")


_COMPARATORS = {"EQ": "==", "NEQ": "!=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}
_OPERATORS = {"Add": "+", "Sub": "-", "Mul": "*"}
_FUNCTIONS = {
    "Length": "length",
    "Lower": "lower",
    "Upper": "upper",
    "Abs": "abs",
    "Year": "year",
    "Month": "month",
    "Day": "day",
}


def predicate_of(tree: Expr, dataset_of: DatasetNamer) -> nodes.Expression:
    """:raises NotInDqlError: DQL has no syntax for a part of it."""
    return _Predicate(dataset_of).predicate(tree)


@dataclass(frozen=True, slots=True)
class _Predicate:
    """Translates an SQL predicate to DQL. `parameter` is that of the enclosing lambda function."""

    dataset_of: DatasetNamer
    parameter: str | None = None

    def predicate(self, tree: Expr) -> nodes.Expression:
        match tree:
            case _ if tree.args.get("negate"):  # how newer versions of sqlglot write `is not null`
                plain = tree.copy()
                plain.set("negate", None)
                return terms.negation(self.predicate(plain))
            case exp.Paren():
                return self.predicate(tree.this)
            case exp.And():
                return terms.both(self.predicate(tree.this), self.predicate(tree.expression))
            case exp.Or():
                return terms.either(self.predicate(tree.this), self.predicate(tree.expression))
            case exp.Not():
                return terms.negation(self.predicate(tree.this))
            case exp.Between():
                low, high = self._value(tree.args["low"]), self._value(tree.args["high"])
                return nodes.Within(self._value(tree.this), low, high, terms.NOWHERE)
            case exp.In() if tree.args.get("query") is not None:
                return self._lookup(tree)
            case exp.In() if tree.expressions:
                choices = tuple(map(self._literal, tree.expressions))
                return terms.member(self._value(tree.this), *choices)
            case exp.Is() if isinstance(tree.expression, exp.Null):
                return terms.is_null(self._value(tree.this))
            case exp.Like() if _is_text(tree.expression) and "\\" not in tree.expression.name:
                pattern = terms.text(tree.expression.name)
                return nodes.Like(self._value(tree.this), pattern, terms.NOWHERE)
            case exp.Column():
                return terms.compare(self._value(tree), "==", nodes.Truth(True, terms.NOWHERE))
            case exp.ArrayContains():
                return self._contains(tree.this, tree.expression)
            case exp.EQ() if isinstance(tree.expression, exp.Any):
                return self._contains(tree.expression.this, tree.this)
            case exp.Exists() if isinstance(tree.expression, exp.Lambda):
                return self._of_items(terms.some, tree.this, tree.expression)
            case exp.Anonymous(expressions=[array, exp.Lambda() as function]):
                if tree.name.lower() == "forall":
                    return self._of_items(terms.every, array, function)
        op = _COMPARATORS.get(type(tree).__name__)
        if op is None:
            raise NotInDqlError
        return terms.compare(self._value(tree.this), op, self._value(tree.expression))

    def _contains(self, array: Expr, value: Expr) -> nodes.Expression:
        equal = terms.compare(terms.item(), "==", self._literal(value))
        return terms.some(self._value(array), equal)

    def _of_items(
        self,
        quantifier: Callable[[nodes.Expression, nodes.Expression], nodes.Quantified],
        array: Expr,
        function: exp.Lambda,
    ) -> nodes.Expression:
        """A lambda function, `item -> predicate`, as a predicate over the items of an array."""
        if len(function.expressions) != 1:
            raise NotInDqlError
        within = replace(self, parameter=function.expressions[0].name)
        expression = quantifier(self._value(array), within.predicate(function.this))
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
        is_simple = used <= {"expressions", "from", "from_", "distinct", "kind"}
        if not is_simple or not isinstance(table, exp.Table):
            raise NotInDqlError
        if len(query.selects) != 1 or not isinstance(query.selects[0], exp.Column):
            raise NotInDqlError
        dataset = self.dataset_of(written_name(table))
        other = terms.values_of(query.selects[0].name, dataset)
        return nodes.Member(self._value(tree.this), other, terms.NOWHERE)

    def _value(self, tree: Expr) -> nodes.Expression:
        match tree:
            case exp.Paren():
                return self._value(tree.this)
            case exp.Column() if not isinstance(tree.this, exp.Star):
                return terms.column_named(*(part.name for part in tree.parts))
            case exp.Identifier() if tree.name == self.parameter:
                return terms.item()
            case exp.Dot() if "." not in tree.name:
                outer = self._value(tree.this)
                if not isinstance(outer, nodes.Item):
                    raise NotInDqlError
                return terms.item(*outer.path, tree.name)
            case exp.Neg():
                inner = self._value(tree.this)
                if isinstance(inner, nodes.Number):
                    return terms.number(-inner.value)
                return nodes.Negative(inner, terms.NOWHERE)
            case exp.Div():
                left, right = self._value(tree.this), self._value(tree.expression)
                return terms.arithmetic(left, "/", right)
            case exp.Add() | exp.Sub() | exp.Mul():
                op = _OPERATORS[type(tree).__name__]
                return terms.arithmetic(self._value(tree.this), op, self._value(tree.expression))
            case exp.TsOrDsToDate() if isinstance(tree.parent, exp.Year | exp.Month | exp.Day):
                return self._value(tree.this)
            case exp.Coalesce():
                given = (tree.this, *tree.expressions)
                return terms.call("coalesce", *map(self._value, given))
            case exp.Trim() if not (tree.expression or tree.args.get("position")):
                return terms.call("trim", self._value(tree.this))
        function = _FUNCTIONS.get(type(tree).__name__)
        if function is not None:
            return terms.call(function, self._value(tree.this))
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
                return nodes.Truth(bool(tree.this), terms.NOWHERE)
            case exp.Cast() if _is_text(tree.this) and tree.to.is_type("date"):
                try:
                    return nodes.Day(date.fromisoformat(tree.this.this), terms.NOWHERE)
                except ValueError:
                    raise NotInDqlError from None
        raise NotInDqlError


def _is_text(tree: Expr) -> bool:
    return isinstance(tree, exp.Literal) and tree.is_string


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return WrittenFloat(text)


def from_of(query: exp.Query) -> Expr | None:
    """What a query reads; older versions of sqlglot name its FROM differently."""
    clause = query.args.get("from_") or query.args.get("from")
    return clause.this if clause is not None else None


def written_name(table: exp.Table) -> str:
    """A table as the SQL names it, with its schema and catalog."""
    return ".".join(part.name for part in table.parts)
