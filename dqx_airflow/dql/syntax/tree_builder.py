"""Lark's parse tree to syntax tree: expressions, predicates, assertions, checks and suites."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from lark import Token, Tree

from dqx_airflow.dql import nodes
from dqx_airflow.dql.moments import nearest_day
from dqx_airflow.dql.syntax.grammar import unquoted
from dqx_airflow.dql.walk import quantified
from dqx_airflow.values import Span

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}

_MOST_DIGITS = 300
"""Numbers with more digits, or zeros, become floating point: no data contains them."""
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


def span_of(token: Token, file: str) -> Span:
    line, column = token.line or 1, token.column or 1
    return Span(file, line, column, token.end_line or line, token.end_column or column + 1)


_Setting: TypeAlias = tuple[str, Any, Span]
"""A modifier of an assertion, or a setting of a profile: its kind, its value and its place."""

_ALL = object()
"""The marker for `all` in `comparing all`."""


def build_file(tree: Tree[Token], file: str) -> nodes.File:
    """The contents of a parse tree; without a suite if an error swallowed the suite itself."""
    builder = _TreeBuilder(file)
    items = [builder.build(child) for child in tree.children]
    return nodes.File(
        _of_kind(nodes.Import, items),
        _of_kind(nodes.Constant, items),
        _of_kind(nodes.Macro, items),
        _of_kind(nodes.Suite, items),
    )


class _TreeBuilder:
    """Holds the file name for every span, and dispatches on the name of the rule."""

    def __init__(self, file: str) -> None:
        self.file = file

    def build(self, item: Any) -> Any:
        """The node of a tree or a token; a token that is neither a name, a string nor a number
        stays one."""
        if isinstance(item, Token):
            return self._of_token(item)
        if not isinstance(item, Tree):
            return item
        rule = str(item.data)
        span = self._span(item)
        if rule == "spark_type":
            return nodes.Text(_type_as_written(item.children), span=span)
        children = [self.build(child) for child in item.children]
        if rule in _TRANSPARENT_RULES:
            return children[0]
        if rule in _NODE_OF_LIST:
            return _NODE_OF_LIST[rule](children, span)
        if rule in _NODE_OF_RULE:
            return _NODE_OF_RULE[rule](*children, span=span)
        positive = rule.replace("not_", "", 1)  # `not_within`, `is_not_null`
        return nodes.Not(_NODE_OF_RULE[positive](*children, span=span), span=span)

    def _span(self, tree: Tree[Token]) -> Span:
        meta = tree.meta
        if meta.empty:
            return Span(self.file, 1, 1, 1, 1)
        return Span(self.file, meta.line, meta.column, meta.end_line, meta.end_column)

    def _of_token(self, token: Token) -> nodes.Expression | Token:
        span = span_of(token, self.file)
        match token.type:
            case "IDENT" | "BACKTICKED" | "TAG":
                return nodes.Name(unquoted(str(token)), span=span)
            case "STRING":
                body = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), token[1:-1])
                return nodes.Text(body, span=span)
            case "NUMBER":
                return nodes.Number(number_in(token), nodes.Unit.PLAIN, span=span)
            case "PERCENT":
                share = Fraction(number_in(token[:-1])) / 100
                return nodes.Number(share, nodes.Unit.PERCENT, span=span)
            case "TIME":
                return nodes.Text(str(token), span=span)
            case _:
                return token


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


def _of_kind(kind: Any, children: list[Any]) -> tuple[Any, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def _given(children: list[Any]) -> list[Any]:
    """The children without None, which lark adds for each optional part that is missing."""
    return [child for child in children if child is not None]


# Expressions


def _negative(_: Token, operand: nodes.Expression, span: Span) -> nodes.Negative | nodes.Number:
    if isinstance(operand, nodes.Number):
        return nodes.Number(-operand.value, operand.unit, span=span)
    return nodes.Negative(operand, span=span)


def _duration(number: nodes.Number, unit: Token, span: Span) -> nodes.Number:
    seconds = number.value * SECONDS[str(unit).rstrip("s")]
    return nodes.Number(seconds, nodes.Unit.DURATION, span=span)


def _day(text: Token, span: Span) -> nodes.Day:
    # The parser has reported a day that does not exist. Another one in its place draws no errors.
    return nodes.Day(nearest_day(text), span=span)


def _call(children: list[Any], span: Span) -> nodes.Call | nodes.Quantified:
    name, *arguments = _given(children)
    positional = tuple(item for item in arguments if not isinstance(item, nodes.Parameter))
    return quantified(nodes.Call(name, positional, _of_kind(nodes.Parameter, arguments), span=span))


def _where_parameter(where: _Setting, span: Span) -> nodes.Parameter:
    word, predicate, _ = where
    keyword = replace(span, end_line=span.line, end_column=span.column + len(word))
    return nodes.Parameter(nodes.Name(word, span=keyword), predicate, span=span)


# Statements


def _setting(kind: str, value: Any, span: Span) -> _Setting:
    return kind, value, span


def _settings_in(items: list[Any]) -> tuple[dict[str, Any], tuple[Span, ...]]:
    """The first value of each setting, by its kind, and the places of the repeated ones."""
    settings: dict[str, Any] = {}
    repeated = []
    for kind, value, place in _of_kind(tuple, items):
        if kind in settings:
            repeated.append(place)
        settings.setdefault(kind, value)
    return settings, tuple(repeated)


def _word(child: nodes.Name | nodes.Placeholder) -> nodes.Name:
    """A word of a modifier; a parameter of a macro keeps its braces, which no word has."""
    if isinstance(child, nodes.Placeholder):
        return nodes.Name(f"{{{child.name}}}", span=child.span)
    return child


def _annotated(children: list[Any]) -> tuple[tuple[nodes.Annotation, ...], list[Any]]:
    """The annotations before a block, and the rest."""
    annotations = _of_kind(nodes.Annotation, children)
    return annotations, children[len(annotations) :]


def _suite(children: list[Any], span: Span) -> nodes.Suite:
    annotations, (name, *items) = _annotated(children)
    threshold, *others = (*_of_kind(nodes.Number, items), None)
    return nodes.Suite(
        name,
        threshold,
        _of_kind(nodes.Constant, items),
        _of_kind(nodes.Check, items),
        _of_kind(nodes.Profile, items),
        _of_kind(nodes.Macro, items),
        _of_kind(nodes.Import, items),
        tuple(other.span for other in _given(others)),
        span=span,
        annotations=annotations,
    )


def _check(children: list[Any], span: Span) -> nodes.Check:
    name, *rest = children
    settings, _ = _settings_in(rest)
    names = _of_kind(nodes.Name, rest)
    body = _of_kind(nodes.CheckItem, rest)
    return nodes.Check(name, names, body, span=span, where=settings.get("where"))


def _assertion(children: list[Any], span: Span) -> nodes.Assertion:
    modifiers, repeated = _settings_in(children)
    return nodes.Assertion(
        _of_kind(nodes.Claim, children)[0],
        modifiers.get("name"),
        modifiers.get("severity"),
        modifiers.get("tolerance"),
        modifiers.get("tags", ()),
        _of_kind(nodes.Annotation, children),
        repeated,
        span=span,
        where=modifiers.get("where"),
        for_each=modifiers.get("for"),
    )


def _annotation(children: list[Any], span: Span) -> nodes.Annotation:
    name, *settings = _given(children)
    return nodes.Annotation(name, tuple(zip(settings[::2], settings[1::2], strict=True)), span=span)


def _rows_match(
    dataset: Any,
    reference: Any,
    keys: Any,
    compared: Any,
    tolerance: Any,
    allowing: Any,
    span: Span,
) -> nodes.RowsMatch:
    is_all = compared is _ALL
    columns = None if is_all else compared
    return nodes.RowsMatch(
        dataset, reference, keys, columns, is_all, tolerance, allowing, span=span
    )


def _macro(children: list[Any], span: Span) -> nodes.Macro:
    name, parameters, *body = children
    names, is_variadic = parameters or ((), False)
    return nodes.Macro(name, names, is_variadic, tuple(body), span=span)


def _use(children: list[Any], span: Span) -> nodes.Use:
    name, *arguments = _given(children)
    return nodes.Use(name, tuple(arguments), span=span)


def _for_groups(_: Token, *parts: Any, span: Span) -> _Setting:
    *share, columns, groups = parts
    return "for", nodes.ForEach(columns, groups, share[0] if share else None, span=span), span


def _profile(children: list[Any], span: Span) -> nodes.Profile:
    annotations, (name, *items) = _annotated(children)
    settings, repeated = _settings_in(items)
    kind, start, end = map(settings.get, ("type", "from", "to"))
    rules = tuple(item for item in items if not isinstance(item, tuple))
    return nodes.Profile(
        name, kind, start, end, rules, repeated, span=span, annotations=annotations
    )


_NODES = {name: kind for name, kind in vars(nodes).items() if isinstance(kind, type)}
_NODE_OF_RULE: dict[str, Callable[..., Any]] = {
    **{re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): kind for name, kind in _NODES.items()},
    "disjunction": partial(nodes.Junction, "or"),
    "conjunction": partial(nodes.Junction, "and"),
    "negation": nodes.Not,
    "compare": lambda left, op, right, span: nodes.Compare(str(op), left, right, span=span),
    "arithmetic": lambda left, op, right, span: nodes.Arithmetic(str(op), left, right, span=span),
    "negative": _negative,
    "duration": _duration,
    "parameter_duration": _duration,
    "day": _day,
    "true": partial(nodes.Truth, True),
    "false": partial(nodes.Truth, False),
    "placeholder": lambda name, span: nodes.Placeholder(name.text, span=span),
    "parameter_placeholder": lambda name, span: nodes.Placeholder(name.text, span=span),
    "parameter_of_two_words": lambda first, second, value, span: nodes.Parameter(
        replace(first, text=f"{first.text} {second.text}"), value, span=span
    ),
    "where_parameter": _where_parameter,
    "tunable": lambda low, high, span: (low, high),
    "import_all": partial(nodes.Import, names=()),
    "exported": lambda definition, span: replace(definition, is_exported=True),
    "each_row": partial(nodes.Rows, share=None),
    "share_of_rows": lambda share, predicate, span: nodes.Rows(predicate, share, span=span),
    "column_exists": partial(nodes.HasColumn, type=None),
    "column_type": nodes.HasColumn,
    "column_fits": partial(nodes.HasColumn, is_exact=False),
    "rows_match": _rows_match,
    "compared_all": lambda span: _ALL,
    "comparison": lambda op, bound, span: nodes.Comparison(str(op), bound, span=span),
    "is_positive": partial(nodes.Is, nodes.Keyword.POSITIVE),
    "is_negative": partial(nodes.Is, nodes.Keyword.NEGATIVE),
    "is_none": partial(nodes.Is, nodes.Keyword.NONE),
    "is_not_none": partial(nodes.Is, nodes.Keyword.NOT_NONE),
    "within_usual": nodes.within_usual,
    "where": partial(_setting, "where"),
    "name_modifier": partial(_setting, "name"),
    "severity_modifier": lambda word, span: ("severity", _word(word), span),
    "tolerance_modifier": partial(_setting, "tolerance"),
    "for_each": _for_groups,
    "for_share": _for_groups,
    "profile_type": partial(_setting, "type"),
    "profile_start": partial(_setting, "from"),
    "profile_end": partial(_setting, "to"),
    "scale": lambda chosen, factor, span: nodes.Scale(
        chosen, Fraction(number_in(factor[:-1])), span=span
    ),
    "assertion_selector": partial(nodes.Selector, "assertion"),
    "check_selector": partial(nodes.Selector, "check", check=None),
    "tag_selector": partial(nodes.Selector, "tag", check=None),
}
"""Rules with a certain number of children: for those named like a node, they are its fields."""

_NODE_OF_LIST: dict[str, Callable[[list[Any], Span], Any]] = {
    "name": lambda parts, span: nodes.Name(".".join(part.text for part in parts), span=span),
    "qualified": lambda parts, span: nodes.Name(".".join(part.text for part in parts), span=span),
    "call": _call,
    "listing": lambda items, span: nodes.Listing(tuple(_given(items)), span=span),
    "suite": _suite,
    "check": _check,
    "assertion": _assertion,
    "part": _assertion,
    "clause": _assertion,
    "annotation": _annotation,
    "any_of": lambda parts, span: nodes.Composite(nodes.Junctor.ANY, tuple(parts), span=span),
    "all_of": lambda parts, span: nodes.Composite(nodes.Junctor.ALL, tuple(parts), span=span),
    "if_then": lambda parts, span: nodes.Composite(nodes.Junctor.IF, tuple(parts), span=span),
    "macro": _macro,
    "parameters": lambda parts, _: (tuple(parts[:-1]), parts[-1] is not None),
    "loop": lambda parts, span: nodes.Loop(parts[0], parts[1], tuple(parts[2:]), span=span),
    "use": _use,
    "import_names": lambda parts, span: nodes.Import(parts[-1], None, tuple(parts[:-1]), span=span),
    "matches_shares": lambda parts, span: nodes.MatchesShares(
        tuple(zip(parts[::2], parts[1::2], strict=True)), span=span
    ),
    "tags_modifier": lambda tags, span: ("tags", tuple(map(_word, tags)), span),
    "group_columns": lambda columns, _: tuple(columns),
    "profile": _profile,
}
"""Rules with any number of children."""

_TRANSPARENT_RULES = frozenset(
    {"number", "percent", "text", "truth", "parenthesis", "parameter_number", "parameter_text"}
    | {"threshold", "zone_name"}
)
"""Rules that are nothing but their only child."""
