"""The predicates of DQL for the SQL of contracts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from sqlglot import exp

from dqx_airflow.contracts.compile import sql_forms, terms
from dqx_airflow.contracts.compile.sql_trees import COMPARATORS, from_of, written_name
from dqx_airflow.dql import nodes
from dqx_airflow.dql.walk import is_about_items
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values.exact import WrittenFloat

if TYPE_CHECKING:
    from sqlglot import Expr

_OPERATORS: dict[type[Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_FUNCTIONS = (exp.Length, exp.Lower, exp.Upper, exp.Abs, exp.Year, exp.Month, exp.Day)
"""The SQL functions that have the same name in DQL."""


class NotInDqlError(NoCounterpartError):
    """A predicate has a subexpression for which DQL has no syntax."""

    def __init__(self) -> None:
        NoCounterpartError.__init__(self, "DQL has no syntax for it")


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
        op = COMPARATORS.get(type(tree))
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
