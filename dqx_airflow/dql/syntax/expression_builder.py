"""Lark's parse tree to expressions and predicates: one small function a grammar rule."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any, cast

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


class ExpressionBuilder:
    """Holds the file name for every span, and dispatches on the name of the rule."""

    def __init__(self, file: str) -> None:
        self.file = file

    def build(self, item: Any) -> Any:
        if not isinstance(item, Tree):
            return item
        children = [self.build(child) for child in item.children]
        rule: Callable[[list[Any], Span], Any] = getattr(self, f"_{item.data}")
        return rule(children, self._span(item))

    def _span(self, tree: Tree[Token]) -> Span:
        meta = tree.meta
        if meta.empty:
            return Span(self.file, 1, 1, 1, 1)
        return Span(self.file, meta.line, meta.column, meta.end_line, meta.end_column)

    def _name_token(self, token: Token) -> nodes.Name:
        return nodes.Name(unquoted(str(token)), span_of(token, self.file))

    def _text_token(self, token: Token) -> nodes.Text:
        body = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), token[1:-1])
        return nodes.Text(body, span_of(token, self.file))

    def _number_token(self, token: Token) -> nodes.Number:
        span = span_of(token, self.file)
        if token.endswith("%"):
            return nodes.Number(_hundredth(token[:-1]), nodes.Unit.PERCENT, span)
        return nodes.Number(number_in(token), nodes.Unit.PLAIN, span)

    # Predicates

    def _disjunction(self, children: list[Any], span: Span) -> nodes.Junction:
        return nodes.Junction("or", children[0], children[1], span)

    def _conjunction(self, children: list[Any], span: Span) -> nodes.Junction:
        return nodes.Junction("and", children[0], children[1], span)

    def _negation(self, children: list[Any], span: Span) -> nodes.Not:
        return nodes.Not(children[0], span)

    def _compare(self, children: list[Any], span: Span) -> nodes.Compare:
        return nodes.Compare(str(children[1]), children[0], children[2], span)

    def _within(self, children: list[Any], span: Span) -> nodes.Within:
        return nodes.Within(children[0], children[1], children[2], span)

    def _member(self, children: list[Any], span: Span) -> nodes.Member:
        return nodes.Member(children[0], children[1], span)

    def _not_member(self, children: list[Any], span: Span) -> nodes.Not:
        return nodes.Not(nodes.Member(children[0], children[1], span), span)

    def _matches(self, children: list[Any], span: Span) -> nodes.Matches:
        return nodes.Matches(children[0], self._text_token(children[1]), span)

    def _not_within(self, children: list[Any], span: Span) -> nodes.Not:
        return nodes.Not(self._within(children, span), span)

    def _not_matches(self, children: list[Any], span: Span) -> nodes.Not:
        return nodes.Not(self._matches(children, span), span)

    def _like(self, children: list[Any], span: Span) -> nodes.Like:
        return nodes.Like(children[0], self._text_token(children[1]), span)

    def _not_like(self, children: list[Any], span: Span) -> nodes.Not:
        return nodes.Not(self._like(children, span), span)

    def _has_format(self, children: list[Any], span: Span) -> nodes.HasFormat:
        return nodes.HasFormat(children[0], self._name_token(children[1]), span)

    def _has_not_format(self, children: list[Any], span: Span) -> nodes.Not:
        return nodes.Not(self._has_format(children, span), span)

    def _is_null(self, children: list[Any], span: Span) -> nodes.IsNull:
        return nodes.IsNull(children[0], span)

    def _is_not_null(self, children: list[Any], span: Span) -> nodes.Not:
        return nodes.Not(nodes.IsNull(children[0], span), span)

    def _is_nan(self, children: list[Any], span: Span) -> nodes.IsNan:
        return nodes.IsNan(children[0], span)

    def _is_not_nan(self, children: list[Any], span: Span) -> nodes.Not:
        return nodes.Not(nodes.IsNan(children[0], span), span)

    # Expressions

    def _arithmetic(self, children: list[Any], span: Span) -> nodes.Arithmetic:
        return nodes.Arithmetic(str(children[1]), children[0], children[2], span)

    def _negative(self, children: list[Any], span: Span) -> nodes.Negative | nodes.Number:
        operand = children[1]
        if isinstance(operand, nodes.Number):
            return nodes.Number(-operand.value, operand.unit, span)
        return nodes.Negative(operand, span)

    def _number(self, children: list[Any], span: Span) -> nodes.Number:
        return self._number_token(children[0])

    _percent = _number
    _parameter_number = _number

    def _duration(self, children: list[Any], span: Span) -> nodes.Number:
        seconds = number_in(children[0]) * SECONDS[str(children[1]).rstrip("s")]
        return nodes.Number(seconds, nodes.Unit.DURATION, span)

    _parameter_duration = _duration

    def _day(self, children: list[Any], span: Span) -> nodes.Day | nodes.Text:
        try:
            return nodes.Day(date.fromisoformat(children[0]), span)
        except ValueError:
            # 2024-02-30 is not a date: it becomes a string, which no context for a date accepts.
            return nodes.Text(str(children[0]), span)

    def _text(self, children: list[Any], span: Span) -> nodes.Text:
        return self._text_token(children[0])

    _parameter_text = _text

    def _true(self, children: list[Any], span: Span) -> nodes.Truth:
        return nodes.Truth(True, span)

    def _false(self, children: list[Any], span: Span) -> nodes.Truth:
        return nodes.Truth(False, span)

    def _truth(self, children: list[Any], span: Span) -> nodes.Truth:
        return cast(nodes.Truth, children[0])

    def _null(self, children: list[Any], span: Span) -> nodes.Null:
        return nodes.Null(span)

    def _name(self, children: list[Any], span: Span) -> nodes.Name:
        if len(children) == 1:
            return self._name_token(children[0])
        return nodes.Name(".".join(children), span)

    _qualified = _name

    def _placeholder(self, children: list[Any], span: Span) -> nodes.Placeholder:
        return nodes.Placeholder(str(children[0]), span)

    _parameter_placeholder = _placeholder

    def _parenthesis(self, children: list[Any], span: Span) -> nodes.Expression:
        return cast(nodes.Expression, children[0])

    def _call(self, children: list[Any], span: Span) -> nodes.Call | nodes.Quantified:
        given = [child for child in children[1:] if child is not None]
        call = nodes.Call(
            self._name_token(children[0]),
            tuple(child for child in given if not isinstance(child, nodes.Parameter)),
            tuple(child for child in given if isinstance(child, nodes.Parameter)),
            span,
        )
        return quantified(call)

    def _parameter(self, children: list[Any], span: Span) -> nodes.Parameter:
        return nodes.Parameter(self._name_token(children[0]), children[1], span)

    def _where_parameter(self, children: list[Any], span: Span) -> nodes.Parameter:
        word, predicate, _ = children[0]
        keyword = replace(span, end_line=span.line, end_column=span.column + len(word))
        return nodes.Parameter(nodes.Name(word, keyword), predicate, span)

    def _listing(self, children: list[Any], span: Span) -> nodes.Listing:
        return nodes.Listing(tuple(child for child in children if child is not None), span)


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


def _hundredth(text: str) -> Fraction:
    return Fraction(number_in(text)) / 100
