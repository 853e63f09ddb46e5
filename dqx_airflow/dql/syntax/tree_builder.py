"""Lark's parse tree to suites, checks and assertions: one small function a grammar rule."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import takewhile
from typing import Any

from lark import Token, Tree

from dqx_airflow.dql import nodes
from dqx_airflow.dql.syntax.expression_builder import ExpressionBuilder, number_in, span_of
from dqx_airflow.values import Span

_CLAIMS = (
    nodes.Measure,
    nodes.Rows,
    nodes.HasColumn,
    nodes.RowsMatch,
    nodes.ColumnsMatch,
    nodes.Composite,
)
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


class _TreeBuilder(ExpressionBuilder):
    """Statements, with the expressions that are in them."""

    # Suite, constants, checks

    def _suite(self, children: list[Any], span: Span) -> nodes.Suite:
        annotations, (name, *items) = _annotated(children)
        thresholds = [item for item in items if isinstance(item, nodes.Number)]
        repeated = tuple(threshold.span for threshold in thresholds[1:])
        return nodes.Suite(
            self._text_token(name),
            thresholds[0] if thresholds else None,
            tuple(item for item in items if isinstance(item, nodes.Constant)),
            tuple(item for item in items if isinstance(item, nodes.Check)),
            tuple(item for item in items if isinstance(item, nodes.Profile)),
            tuple(item for item in items if isinstance(item, nodes.Macro)),
            tuple(item for item in items if isinstance(item, nodes.Import)),
            repeated,
            span,
            annotations,
        )

    def _threshold(self, children: list[Any], span: Span) -> nodes.Number:
        return self._number_token(children[0])

    def _constant(self, children: list[Any], span: Span) -> nodes.Constant:
        name, value, bounds = children
        return nodes.Constant(self._name_token(name), value, bounds, span)

    def _tunable(self, children: list[Any], span: Span) -> tuple[Any, Any]:
        return children[0], children[1]

    def _check(self, children: list[Any], span: Span) -> nodes.Check:
        rest = children[1:]
        return nodes.Check(
            self._text_token(children[0]),
            tuple(item for item in rest if isinstance(item, nodes.Name)),
            tuple(item for item in rest if isinstance(item, nodes.Assertion | nodes.Use)),
            span,
            next((item[1] for item in rest if isinstance(item, tuple)), None),
        )

    def _where(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        return "where", children[0], span

    def _assertion(self, children: list[Any], span: Span) -> nodes.Assertion:
        modifiers: dict[str, Any] = {}
        repeated = []
        for item in children:
            if isinstance(item, tuple):
                kind, value, place = item
                if kind in modifiers:
                    repeated.append(place)
                modifiers.setdefault(kind, value)
        return nodes.Assertion(
            next(item for item in children if isinstance(item, _CLAIMS)),
            modifiers.get("name"),
            modifiers.get("severity"),
            modifiers.get("tolerance"),
            modifiers.get("tags", ()),
            tuple(item for item in children if isinstance(item, nodes.Annotation)),
            tuple(repeated),
            span,
            where=modifiers.get("where"),
            for_each=modifiers.get("for"),
        )

    def _annotation(self, children: list[Any], span: Span) -> nodes.Annotation:
        settings = [child for child in children[1:] if child is not None]
        pairs = zip(settings[::2], settings[1::2], strict=True)
        arguments = tuple((self._name_token(name), value) for name, value in pairs)
        return nodes.Annotation(self._name_token(children[0]), arguments, span)

    def _measure(self, children: list[Any], span: Span) -> nodes.Measure:
        return nodes.Measure(children[0], children[1], span)

    def _each_row(self, children: list[Any], span: Span) -> nodes.Rows:
        return nodes.Rows(children[0], None, span)

    def _share_of_rows(self, children: list[Any], span: Span) -> nodes.Rows:
        return nodes.Rows(children[1], self._number_token(children[0]), span)

    def _column_exists(self, children: list[Any], span: Span) -> nodes.HasColumn:
        return nodes.HasColumn(children[0], None, span)

    def _column_type(self, children: list[Any], span: Span) -> nodes.HasColumn:
        return nodes.HasColumn(children[0], children[1], span)

    def _column_fits(self, children: list[Any], span: Span) -> nodes.HasColumn:
        return nodes.HasColumn(children[0], children[1], span, is_exact=False)

    def _rows_match(self, children: list[Any], span: Span) -> nodes.RowsMatch:
        dataset, reference, keys, compared, tolerance, allowing = children
        compares_all = compared is _ALL
        return nodes.RowsMatch(
            dataset,
            reference,
            keys,
            None if compares_all else compared,
            compares_all,
            None if tolerance is None else self._number_token(tolerance),
            None if allowing is None else self._number_token(allowing),
            span,
        )

    def _compared_all(self, children: list[Any], span: Span) -> object:
        return _ALL

    def _columns_match(self, children: list[Any], span: Span) -> nodes.ColumnsMatch:
        return nodes.ColumnsMatch(children[0], children[1], span)

    def _any_of(self, children: list[Any], span: Span) -> nodes.Composite:
        return nodes.Composite(nodes.Junctor.ANY, tuple(children), span)

    def _all_of(self, children: list[Any], span: Span) -> nodes.Composite:
        return nodes.Composite(nodes.Junctor.ALL, tuple(children), span)

    def _if_then(self, children: list[Any], span: Span) -> nodes.Composite:
        return nodes.Composite(nodes.Junctor.IF, tuple(children), span)

    def _part(self, children: list[Any], span: Span) -> nodes.Assertion:
        return self._assertion(children, span)

    def _clause(self, children: list[Any], span: Span) -> nodes.Assertion:
        return self._assertion(children, span)

    def _spark_type(self, children: list[Any], span: Span) -> nodes.Text:
        name, *sizes = (str(child) for child in children if child is not None)
        return nodes.Text(f"{name}({','.join(sizes)})" if sizes else name, span)

    # Macros and imports

    def _macro(self, children: list[Any], span: Span) -> nodes.Macro:
        name, parameters, *body = children
        names, is_variadic = parameters or ((), False)
        return nodes.Macro(self._name_token(name), names, is_variadic, tuple(body), span)

    def _parameters(self, children: list[Any], span: Span) -> tuple[tuple[nodes.Name, ...], bool]:
        *names, ellipsis = children
        return tuple(self._name_token(name) for name in names), ellipsis is not None

    def _loop(self, children: list[Any], span: Span) -> nodes.Loop:
        variable, over, *body = children
        return nodes.Loop(self._name_token(variable), self._name_token(over), tuple(body), span)

    def _use(self, children: list[Any], span: Span) -> nodes.Use:
        name, *arguments = children
        given = tuple(argument for argument in arguments if argument is not None)
        return nodes.Use(name, given, span)

    def _import_all(self, children: list[Any], span: Span) -> nodes.Import:
        path, alias = children
        name = None if alias is None else self._name_token(alias)
        return nodes.Import(self._text_token(path), name, (), span)

    def _import_names(self, children: list[Any], span: Span) -> nodes.Import:
        *names, path = children
        tokens = tuple(self._name_token(name) for name in names)
        return nodes.Import(self._text_token(path), None, tokens, span)

    def _exported(self, children: list[Any], span: Span) -> Any:
        return replace(children[0], is_exported=True)

    # Conditions and modifiers

    def _comparison(self, children: list[Any], span: Span) -> nodes.Comparison:
        return nodes.Comparison(str(children[0]), children[1], span)

    def _between(self, children: list[Any], span: Span) -> nodes.Between:
        return nodes.Between(children[0], children[1], span)

    def _is_positive(self, children: list[Any], span: Span) -> nodes.Is:
        return nodes.Is(nodes.Keyword.POSITIVE, span)

    def _is_negative(self, children: list[Any], span: Span) -> nodes.Is:
        return nodes.Is(nodes.Keyword.NEGATIVE, span)

    def _is_none(self, children: list[Any], span: Span) -> nodes.Is:
        return nodes.Is(nodes.Keyword.NONE, span)

    def _is_not_none(self, children: list[Any], span: Span) -> nodes.Is:
        return nodes.Is(nodes.Keyword.NOT_NONE, span)

    def _in_values(self, children: list[Any], span: Span) -> nodes.InValues:
        return nodes.InValues(children[0], span)

    def _within_stddev(self, children: list[Any], span: Span) -> nodes.WithinStddev:
        return nodes.WithinStddev(children[0], children[1], span)

    def _by_time(self, children: list[Any], span: Span) -> nodes.ByTime:
        clock, zone = children
        return nodes.ByTime(nodes.Text(str(clock), span_of(clock, self.file)), zone, span)

    def _zone_name(self, children: list[Any], span: Span) -> nodes.Name:
        return self._name_token(children[0])

    def _matches_shares(self, children: list[Any], span: Span) -> nodes.MatchesShares:
        shares = [self._number_token(share) for share in children[1::2]]
        return nodes.MatchesShares(tuple(zip(children[::2], shares, strict=True)), span)

    def _name_modifier(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        return "name", self._text_token(children[0]), span

    def _severity_modifier(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        return "severity", self._word(children[0]), span

    def _tolerance_modifier(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        return "tolerance", self._number_token(children[-1]), span

    def _tags_modifier(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        return "tags", tuple(self._word(child) for child in children), span

    def _word(self, child: Any) -> nodes.Name:
        """A word of a modifier; a parameter of a macro keeps its braces, which no word has."""
        if isinstance(child, nodes.Placeholder):
            return nodes.Name(f"{{{child.name}}}", child.span)
        return self._name_token(child)

    def _for_each(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        _, columns, groups = children
        return "for", nodes.ForEach(columns, groups, None, span), span

    def _for_share(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        _, share, columns, groups = children
        return "for", nodes.ForEach(columns, groups, self._number_token(share), span), span

    def _group_columns(self, children: list[Any], span: Span) -> tuple[nodes.Expression, ...]:
        return tuple(children)

    # Profiles

    def _profile(self, children: list[Any], span: Span) -> nodes.Profile:
        settings: dict[str, Any] = {}
        rules, repeated = [], []
        annotations, (name, *items) = _annotated(children)
        for item in items:
            if not isinstance(item, tuple):
                rules.append(item)
                continue
            kind, value, place = item
            if kind in settings:
                repeated.append(place)
            settings.setdefault(kind, value)
        return nodes.Profile(
            self._text_token(name),
            settings.get("type"),
            settings.get("from"),
            settings.get("to"),
            tuple(rules),
            tuple(repeated),
            span,
            annotations,
        )

    def _profile_type(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        return "type", self._name_token(children[0]), span

    def _profile_start(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        return "from", children[0], span

    def _profile_end(self, children: list[Any], span: Span) -> tuple[str, Any, Span]:
        return "to", children[0], span

    def _disable(self, children: list[Any], span: Span) -> nodes.Disable:
        return nodes.Disable(children[0], span)

    def _scale(self, children: list[Any], span: Span) -> nodes.Scale:
        return nodes.Scale(children[0], Fraction(number_in(children[1][:-1])), span)

    def _downgrade(self, children: list[Any], span: Span) -> nodes.Downgrade:
        return nodes.Downgrade(children[0], self._name_token(children[1]), span)

    def _check_selector(self, children: list[Any], span: Span) -> nodes.Selector:
        return nodes.Selector("check", self._text_token(children[0]), None, span)

    def _tag_selector(self, children: list[Any], span: Span) -> nodes.Selector:
        return nodes.Selector("tag", self._text_token(children[0]), None, span)

    def _assertion_selector(self, children: list[Any], span: Span) -> nodes.Selector:
        name, check = children
        return nodes.Selector("assertion", self._text_token(name), self._text_token(check), span)


def _annotated(children: list[Any]) -> tuple[tuple[nodes.Annotation, ...], list[Any]]:
    """The annotations before a block, and the rest."""
    annotations = tuple(takewhile(lambda child: isinstance(child, nodes.Annotation), children))
    return annotations, children[len(annotations) :]
