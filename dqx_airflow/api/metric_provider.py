"""The calls of the language as methods, generated from the tables of metrics and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature
from typing import Any

from dqx_airflow.api.expressions import (
    CallSite,
    MetricExpression,
    caller_site,
    expression_of,
    filter_of,
    name_of,
)
from dqx_airflow.dql import nodes
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.derived import (
    AGES,
    ARITY,
    CHANGES,
    DISTRIBUTION,
    FUNCTION_DOCS,
    MOST_COMMON,
    SHORTCUTS,
    TIMELINESS,
    WINDOW_DOCS,
    window_parameters,
)
from dqx_airflow.metrics.metric import ArgumentKind, Metric, Scan


class MetricProvider:
    """The metrics and functions of the language: `mp.average("price", lag=1)`.

    Columns and datasets are strings, as are those in `count_values` and `in_set`; several columns
    are a list. A filter is a predicate of DQL: `mp.average("price", where="paid == true")`. Unknown
    names are reported when the suite is checked.
    """

    def __getattr__(self, name: str) -> Callable[..., MetricExpression]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(_called, name)


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a call: the kinds of its arguments, of which the last may be repeated.

    The kind None is an expression over metrics.
    """

    arguments: tuple[tuple[str, ArgumentKind | None], ...]
    doc: str
    parameters: tuple[str, ...] = ()
    repeats: bool = False

    def kind(self, index: int) -> ArgumentKind | None:
        """The kind of an argument, also if there is one too many."""
        if not self.arguments:
            return None
        return self.arguments[min(index, len(self.arguments) - 1)][1]

    @property
    def signature(self) -> Signature:
        names = [name for name, _ in self.arguments]
        shown = [Parameter("self", Parameter.POSITIONAL_ONLY)]
        for number, name in enumerate(names):
            last = self.repeats and number == len(names) - 1
            kind = Parameter.VAR_POSITIONAL if last else Parameter.POSITIONAL_ONLY
            distinct = name if names.count(name) == 1 else f"{name}_{number + 1}"
            shown.append(Parameter(distinct, kind))
        for name in self.parameters:
            default = Parameter.empty if name == "n" else None
            shown.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default))
        return Signature(shown, return_annotation=MetricExpression)


def _metric_form(metric: Metric) -> _Form:
    parameters = tuple(item.name for item in metric.parameters)
    if metric.scan not in (Scan.QUERY, Scan.MATCH):
        parameters += ("lag", "dataset")
    if metric.takes_where:
        parameters += ("where",)
    arguments = tuple((argument.name, argument.kind) for argument in metric.arguments)
    doc = f"{metric.doc}\n\nUnit: {metric.unit.value}. In DQL: `{metric.example}`"
    return _Form(arguments, doc, parameters)


_METRIC = (("metric", None),)
_COLUMN = (("column", ArgumentKind.COLUMN),)
_OF_ROWS = ("dataset", "where")
_SHORTCUT_ARGUMENTS: dict[str, tuple[tuple[str, ArgumentKind | None], ...]] = {
    "in_set": (*_COLUMN, ("values", ArgumentKind.LITERALS)),
    "is_sorted": _COLUMN,
    "not_empty": (),
}


def _forms() -> Mapping[str, _Form]:
    forms = {name: _metric_form(METRICS[name]) for name in CALLABLE}
    for name, days in CHANGES.items():
        base = "the previous day" if days == 1 else f"{days} days before"
        forms[name] = _Form(
            _METRIC,
            f"The absolute change against {base}, `abs((today - base) / base)`: 0.1 for 10%.",
            ("lag",),
        )
    for name, doc in WINDOW_DOCS.items():
        sentence = f"{doc[0].upper()}{doc[1:]}."
        forms[name] = _Form(_METRIC, sentence, window_parameters(name))
    for name, (fewest, most) in ARITY.items():
        metrics = tuple(("metric", None) for _ in range(fewest))
        forms[name] = _Form(metrics, FUNCTION_DOCS[name], repeats=most is None)
    for name, meaning in AGES.items():
        forms[name] = _Form(
            _COLUMN, f"In seconds, {meaning}; compare it with a `timedelta`.", _OF_ROWS
        )
    for name, claim in SHORTCUTS.items():
        arguments = _SHORTCUT_ARGUMENTS.get(name, (("columns", ArgumentKind.COLUMN),))
        doc = f"A complete assertion, which takes no condition: {claim}."
        own = ("order_by",) if name == "is_sorted" else ()
        forms[name] = _Form(arguments, doc, (*own, *_OF_ROWS), name not in _SHORTCUT_ARGUMENTS)
    conditions = {"values": "is_in_values", TIMELINESS: "is_by", DISTRIBUTION: "matches_shares"}
    for name, condition in conditions.items():
        forms[name] = _Form(_COLUMN, f"Complete it with the condition `{condition}`.", _OF_ROWS)
    arguments = (*_COLUMN, ("n", ArgumentKind.COUNT))
    forms[MOST_COMMON] = _Form(arguments, "Complete it with the condition `is_in`.", _OF_ROWS)
    return forms


_FORMS = _forms()
_UNKNOWN = _Form((("column", ArgumentKind.COLUMN),), "")


def _called(name: str, *arguments: object, **parameters: object) -> MetricExpression:
    """The call of the language for a call in Python."""
    site = caller_site()
    form = _FORMS.get(name, _UNKNOWN)
    return MetricExpression(
        nodes.Call(
            nodes.Name(name, site.of(name)),
            tuple(_argument(given, form.kind(i), site) for i, given in enumerate(arguments)),
            tuple(
                _parameter(key, given, site)
                for key, given in parameters.items()
                if given is not None
            ),
            site.span,
        )
    )


def _argument(given: object, kind: ArgumentKind | None, site: CallSite) -> nodes.Expression:
    if isinstance(given, Sequence) and not isinstance(given, str):
        items = tuple(_argument(item, kind, site) for item in given)
        return nodes.Listing(items, site.span)
    if isinstance(given, str) and kind not in (ArgumentKind.LITERALS, ArgumentKind.SQL):
        return name_of(given, site)
    return expression_of(given, site)


def _parameter(name: str, given: object, site: CallSite) -> nodes.Parameter:
    if name == "where" and isinstance(given, str):
        value = filter_of(given, site)
    else:
        value = _argument(given, ArgumentKind.COLUMN, site)
    return nodes.Parameter(nodes.Name(name, site.of(name)), value, site.span)


def _method(name: str, form: _Form) -> Callable[..., MetricExpression]:
    def call(_: MetricProvider, *arguments: object, **parameters: object) -> MetricExpression:
        return _called(name, *arguments, **parameters)

    call.__name__ = name
    call.__qualname__ = f"{MetricProvider.__name__}.{name}"
    call.__doc__ = form.doc
    described: Any = call
    described.__signature__ = form.signature
    return call


for _name, _form in _FORMS.items():
    setattr(MetricProvider, _name, _method(_name, _form))
