"""Lark's parse tree to expressions and predicates: one small function a grammar rule."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from lark import Token, Tree

from dqx_airflow.dql import nodes
from dqx_airflow.dql.items import quantified
from dqx_airflow.dql.syntax.grammar import unquoted
from dqx_airflow.values import Span

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}

_MOST_DIGITS = 300
"""Numbers with more digits, or zeros, become floating point: no data contains them."""
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


def span_of(token: Token, file: str) -> Span:
    line, column = token.line or 1, token.column or 1
    return Span(file, line, column, token.end_line or line, token.end_column or column + 1)


_NODE_OF_RULE: dict[str, Callable[..., Any]] = {
    "disjunction": partial(nodes.Junction, "or"),
    "conjunction": partial(nodes.Junction, "and"),
    "negation": nodes.Not,
    "within": nodes.Within,
    "member": nodes.Member,
    "matches": nodes.Matches,
    "like": nodes.Like,
    "has_format": nodes.HasFormat,
    "is_null": nodes.IsNull,
    "is_nan": nodes.IsNan,
    "true": partial(nodes.Truth, True),
    "false": partial(nodes.Truth, False),
    "null": nodes.Null,
    "parameter": nodes.Parameter,
}
"""Rules whose children are the fields of their node."""
_POSITIVE_RULE = {
    "not_within": "within",
    "not_member": "member",
    "not_matches": "matches",
    "not_like": "like",
    "has_not_format": "has_format",
    "is_not_null": "is_null",
    "is_not_nan": "is_nan",
}
_TRANSPARENT_RULES = frozenset(
    {"number", "percent", "text", "truth", "parenthesis", "parameter_number", "parameter_text"}
)
"""Rules that are nothing but their only child."""


class ExpressionBuilder:
    """Holds the file name for every span, and dispatches on the name of the rule."""

    node_of_rule: ClassVar[Mapping[str, Callable[..., Any]]] = _NODE_OF_RULE
    transparent_rules: ClassVar[frozenset[str]] = _TRANSPARENT_RULES

    def __init__(self, file: str) -> None:
        self.file = file

    def build(self, item: Any) -> Any:
        """The node of a tree or a token; a token that is neither a name, a string nor a number
        stays one."""
        if isinstance(item, Token):
            return self._of_token(item)
        if not isinstance(item, Tree):
            return item
        rule, span = str(item.data), self._span(item)
        if rule == "spark_type":
            return nodes.Text(_type_as_written(item.children), span)
        children = [self.build(child) for child in item.children]
        if rule in self.transparent_rules:
            return children[0]
        if rule in self.node_of_rule:
            return self.node_of_rule[rule](*children, span)
        if rule in _POSITIVE_RULE:
            return nodes.Not(self.node_of_rule[_POSITIVE_RULE[rule]](*children, span), span)
        build_rule: Callable[[list[Any], Span], Any] = getattr(self, f"_{rule}")
        return build_rule(children, span)

    def _span(self, tree: Tree[Token]) -> Span:
        meta = tree.meta
        if meta.empty:
            return Span(self.file, 1, 1, 1, 1)
        return Span(self.file, meta.line, meta.column, meta.end_line, meta.end_column)

    def _of_token(self, token: Token) -> nodes.Expression | Token:
        span = span_of(token, self.file)
        match token.type:
            case "IDENT" | "BACKTICKED" | "TAG":
                return nodes.Name(unquoted(str(token)), span)
            case "STRING":
                body = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), token[1:-1])
                return nodes.Text(body, span)
            case "NUMBER":
                return nodes.Number(number_in(token), nodes.Unit.PLAIN, span)
            case "PERCENT":
                share = Fraction(number_in(token[:-1])) / 100
                return nodes.Number(share, nodes.Unit.PERCENT, span)
            case _:
                return token

    def _compare(self, children: list[Any], span: Span) -> nodes.Compare:
        left, op, right = children
        return nodes.Compare(str(op), left, right, span)

    def _arithmetic(self, children: list[Any], span: Span) -> nodes.Arithmetic:
        left, op, right = children
        return nodes.Arithmetic(str(op), left, right, span)

    def _negative(self, children: list[Any], span: Span) -> nodes.Negative | nodes.Number:
        operand = children[1]
        if isinstance(operand, nodes.Number):
            return nodes.Number(-operand.value, operand.unit, span)
        return nodes.Negative(operand, span)

    def _duration(self, children: list[Any], span: Span) -> nodes.Number:
        number, unit = children
        seconds = number.value * SECONDS[str(unit).rstrip("s")]
        return nodes.Number(seconds, nodes.Unit.DURATION, span)

    _parameter_duration = _duration

    def _day(self, children: list[Any], span: Span) -> nodes.Day | nodes.Text:
        try:
            return nodes.Day(date.fromisoformat(children[0]), span)
        except ValueError:
            # 2024-02-30 is not a date: it becomes a string, which no context for a date accepts.
            return nodes.Text(str(children[0]), span)

    def _name(self, children: list[Any], span: Span) -> nodes.Name:
        return nodes.Name(".".join(child.text for child in children), span)

    _qualified = _name

    def _placeholder(self, children: list[Any], span: Span) -> nodes.Placeholder:
        return nodes.Placeholder(children[0].text, span)

    _parameter_placeholder = _placeholder

    def _call(self, children: list[Any], span: Span) -> nodes.Call | nodes.Quantified:
        name, *arguments = (child for child in children if child is not None)
        call = nodes.Call(
            name,
            tuple(child for child in arguments if not isinstance(child, nodes.Parameter)),
            tuple(child for child in arguments if isinstance(child, nodes.Parameter)),
            span,
        )
        return quantified(call)

    def _where_parameter(self, children: list[Any], span: Span) -> nodes.Parameter:
        word, predicate, _ = children[0]
        keyword = replace(span, end_line=span.line, end_column=span.column + len(word))
        return nodes.Parameter(nodes.Name(word, keyword), predicate, span)

    def _listing(self, children: list[Any], span: Span) -> nodes.Listing:
        return nodes.Listing(tuple(child for child in children if child is not None), span)


def _type_as_written(children: list[Any]) -> str:
    name, *sizes = (str(child) for child in children if child is not None)
    return f"{name}({','.join(sizes)})" if sizes else name


def number_in(text: str) -> int | Fraction | float:
    """The exact number in a text."""
    bare = text.replace("_", "").lower()
    digits, _, exponent = bare.partition("e")
    if len(bare) > _MOST_DIGITS or abs(int(exponent or 0)) > _MOST_DIGITS:
        # The parser has reported what is too large; here it only must not become infinite.
        return min(float(bare), sys.float_info.max)
    if digits.isdigit() and not exponent:
        return int(digits)
    return Fraction(digits) * Fraction(10) ** int(exponent or 0)
