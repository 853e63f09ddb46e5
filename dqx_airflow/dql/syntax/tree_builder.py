"""Lark's parse tree to syntax tree: expressions, predicates, assertions, checks and suites."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial
from itertools import takewhile
from typing import Any, ClassVar, TypeAlias

from lark import Token, Tree

from dqx_airflow.dql import nodes
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


_EXPRESSION_OF_RULE: dict[str, Callable[..., Any]] = {
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

    node_of_rule: ClassVar[Mapping[str, Callable[..., Any]]] = _EXPRESSION_OF_RULE
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


_Setting: TypeAlias = tuple[str, Any, Span]
"""A modifier of an assertion, or a setting of a profile: its kind, its value and its place."""

_ALL = object()
"""Stands for `all` in `comparing all`."""


def build_file(tree: Tree[Token], file: str) -> nodes.File:
    """The contents of a parse tree; without a suite if an error swallowed the suite itself."""
    builder = _TreeBuilder(file)
    items = [builder.build(child) for child in tree.children]
    return nodes.File(
        tuple(item for item in items if isinstance(item, nodes.Import)),
        tuple(item for item in items if isinstance(item, nodes.Constant)),
        tuple(item for item in items if isinstance(item, nodes.Macro)),
        tuple(item for item in items if isinstance(item, nodes.Suite)),
    )


def _setting(kind: str, value: Any, span: Span) -> _Setting:
    return kind, value, span


_NODE_OF_RULE: dict[str, Callable[..., Any]] = {
    "constant": nodes.Constant,
    "measure": nodes.Measure,
    "column_type": nodes.HasColumn,
    "column_fits": partial(nodes.HasColumn, is_exact=False),
    "columns_match": nodes.ColumnsMatch,
    "between": nodes.Between,
    "is_positive": partial(nodes.Is, nodes.Keyword.POSITIVE),
    "is_negative": partial(nodes.Is, nodes.Keyword.NEGATIVE),
    "is_none": partial(nodes.Is, nodes.Keyword.NONE),
    "is_not_none": partial(nodes.Is, nodes.Keyword.NOT_NONE),
    "in_values": nodes.InValues,
    "within_stddev": nodes.WithinStddev,
    "within_usual": nodes.within_usual,
    "where": partial(_setting, "where"),
    "name_modifier": partial(_setting, "name"),
    "profile_type": partial(_setting, "type"),
    "profile_start": partial(_setting, "from"),
    "profile_end": partial(_setting, "to"),
    "disable": nodes.Disable,
    "downgrade": nodes.Downgrade,
    "assertion_selector": partial(nodes.Selector, "assertion"),
}


class _TreeBuilder(ExpressionBuilder):
    """Statements, with the expressions that are in them."""

    node_of_rule: ClassVar = {**ExpressionBuilder.node_of_rule, **_NODE_OF_RULE}
    transparent_rules: ClassVar = ExpressionBuilder.transparent_rules | {"threshold", "zone_name"}

    # Suite, checks

    def _suite(self, children: list[Any], span: Span) -> nodes.Suite:
        annotations, (name, *items) = _annotated(children)
        thresholds = [item for item in items if isinstance(item, nodes.Number)]
        return nodes.Suite(
            name,
            thresholds[0] if thresholds else None,
            tuple(item for item in items if isinstance(item, nodes.Constant)),
            tuple(item for item in items if isinstance(item, nodes.Check)),
            tuple(item for item in items if isinstance(item, nodes.Profile)),
            tuple(item for item in items if isinstance(item, nodes.Macro)),
            tuple(item for item in items if isinstance(item, nodes.Import)),
            tuple(threshold.span for threshold in thresholds[1:]),
            span,
            annotations,
        )

    def _tunable(self, children: list[Any], _: Span) -> tuple[nodes.Expression, ...]:
        return tuple(children)

    def _check(self, children: list[Any], span: Span) -> nodes.Check:
        name, *rest = children
        return nodes.Check(
            name,
            tuple(item for item in rest if isinstance(item, nodes.Name)),
            tuple(item for item in rest if isinstance(item, nodes.CheckItem)),
            span,
            next((item[1] for item in rest if isinstance(item, tuple)), None),
        )

    def _assertion(self, children: list[Any], span: Span) -> nodes.Assertion:
        modifiers, repeated = _settings_in(children)
        return nodes.Assertion(
            next(child for child in children if isinstance(child, nodes.Claim)),
            modifiers.get("name"),
            modifiers.get("severity"),
            modifiers.get("tolerance"),
            modifiers.get("tags", ()),
            tuple(child for child in children if isinstance(child, nodes.Annotation)),
            repeated,
            span,
            where=modifiers.get("where"),
            for_each=modifiers.get("for"),
        )

    _part = _clause = _assertion

    def _annotation(self, children: list[Any], span: Span) -> nodes.Annotation:
        name, *settings = (child for child in children if child is not None)
        arguments = tuple(zip(settings[::2], settings[1::2], strict=True))
        return nodes.Annotation(name, arguments, span)

    # Claims

    def _each_row(self, children: list[Any], span: Span) -> nodes.Rows:
        return nodes.Rows(children[0], None, span)

    def _share_of_rows(self, children: list[Any], span: Span) -> nodes.Rows:
        share, predicate = children
        return nodes.Rows(predicate, share, span)

    def _column_exists(self, children: list[Any], span: Span) -> nodes.HasColumn:
        return nodes.HasColumn(children[0], None, span)

    def _rows_match(self, children: list[Any], span: Span) -> nodes.RowsMatch:
        dataset, reference, keys, compared, tolerance, allowing = children
        is_all = compared is _ALL
        columns = None if is_all else compared
        return nodes.RowsMatch(dataset, reference, keys, columns, is_all, tolerance, allowing, span)

    def _compared_all(self, *_: object) -> object:
        return _ALL

    def _any_of(self, children: list[Any], span: Span) -> nodes.Composite:
        return nodes.Composite(nodes.Junctor.ANY, tuple(children), span)

    def _all_of(self, children: list[Any], span: Span) -> nodes.Composite:
        return nodes.Composite(nodes.Junctor.ALL, tuple(children), span)

    def _if_then(self, children: list[Any], span: Span) -> nodes.Composite:
        return nodes.Composite(nodes.Junctor.IF, tuple(children), span)

    # Macros and imports

    def _macro(self, children: list[Any], span: Span) -> nodes.Macro:
        name, parameters, *body = children
        names, is_variadic = parameters or ((), False)
        return nodes.Macro(name, names, is_variadic, tuple(body), span)

    def _parameters(self, children: list[Any], _: Span) -> tuple[tuple[nodes.Name, ...], bool]:
        *names, ellipsis = children
        return tuple(names), ellipsis is not None

    def _loop(self, children: list[Any], span: Span) -> nodes.Loop:
        variable, over, *body = children
        return nodes.Loop(variable, over, tuple(body), span)

    def _watch(self, children: list[Any], span: Span) -> nodes.Watch:
        dataset, known = children
        return nodes.Watch(dataset, known, span)

    def _use(self, children: list[Any], span: Span) -> nodes.Use:
        name, *arguments = (child for child in children if child is not None)
        return nodes.Use(name, tuple(arguments), span)

    def _import_all(self, children: list[Any], span: Span) -> nodes.Import:
        path, alias = children
        return nodes.Import(path, alias, (), span)

    def _import_names(self, children: list[Any], span: Span) -> nodes.Import:
        *names, path = children
        return nodes.Import(path, None, tuple(names), span)

    def _exported(self, children: list[Any], _: Span) -> Any:
        return replace(children[0], is_exported=True)

    # Conditions and modifiers

    def _comparison(self, children: list[Any], span: Span) -> nodes.Comparison:
        op, bound = children
        return nodes.Comparison(str(op), bound, span)

    def _by_time(self, children: list[Any], span: Span) -> nodes.ByTime:
        clock, zone = children
        return nodes.ByTime(nodes.Text(str(clock), span_of(clock, self.file)), zone, span)

    def _matches_shares(self, children: list[Any], span: Span) -> nodes.MatchesShares:
        shares = tuple(zip(children[::2], children[1::2], strict=True))
        return nodes.MatchesShares(shares, span)

    def _severity_modifier(self, children: list[Any], span: Span) -> _Setting:
        return "severity", _word(children[0]), span

    def _tolerance_modifier(self, children: list[Any], span: Span) -> _Setting:
        return "tolerance", children[-1], span

    def _tags_modifier(self, children: list[Any], span: Span) -> _Setting:
        return "tags", tuple(map(_word, children)), span

    def _for_each(self, children: list[Any], span: Span) -> _Setting:
        _, columns, groups = children
        return "for", nodes.ForEach(columns, groups, None, span), span

    def _for_share(self, children: list[Any], span: Span) -> _Setting:
        _, share, columns, groups = children
        return "for", nodes.ForEach(columns, groups, share, span), span

    _group_columns = _tunable

    # Profiles

    def _profile(self, children: list[Any], span: Span) -> nodes.Profile:
        annotations, (name, *items) = _annotated(children)
        settings, repeated = _settings_in(items)
        return nodes.Profile(
            name,
            settings.get("type"),
            settings.get("from"),
            settings.get("to"),
            tuple(item for item in items if not isinstance(item, tuple)),
            repeated,
            span,
            annotations,
        )

    def _scale(self, children: list[Any], span: Span) -> nodes.Scale:
        selector, factor = children
        return nodes.Scale(selector, Fraction(number_in(factor[:-1])), span)

    def _check_selector(self, children: list[Any], span: Span) -> nodes.Selector:
        return nodes.Selector("check", children[0], None, span)

    def _tag_selector(self, children: list[Any], span: Span) -> nodes.Selector:
        return nodes.Selector("tag", children[0], None, span)


def _settings_in(items: list[Any]) -> tuple[dict[str, Any], tuple[Span, ...]]:
    """The first value of each setting, by its kind, and the places of the repeated ones."""
    settings: dict[str, Any] = {}
    repeated = []
    for kind, value, place in (item for item in items if isinstance(item, tuple)):
        if kind in settings:
            repeated.append(place)
        settings.setdefault(kind, value)
    return settings, tuple(repeated)


def _word(child: nodes.Name | nodes.Placeholder) -> nodes.Name:
    """A word of a modifier; a parameter of a macro keeps its braces, which no word has."""
    if isinstance(child, nodes.Placeholder):
        return nodes.Name(f"{{{child.name}}}", child.span)
    return child


def _annotated(children: list[Any]) -> tuple[tuple[nodes.Annotation, ...], list[Any]]:
    """The annotations before a block, and the rest."""
    annotations = tuple(takewhile(lambda child: isinstance(child, nodes.Annotation), children))
    return annotations, children[len(annotations) :]
