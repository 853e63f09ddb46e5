"""The claims behind `watch orders`: that everything about a dataset is usual.

    watch orders
    watch orders drift holidays "US"

The number of rows is claimed as soon as the line is read. The claims about columns follow from
their types, which are known once the data was opened, or from the names of stored verdicts. All
claims are `@experimental`. An assertion that the check states under the same name replaces the
claim: this is how a claim is promoted.

One cause alarms once: what follows from other claims is not claimed again. A sum is the number of
rows, less the NULLs, times the mean; the distinct values of a key are a share of the rows.

Drift is claimed on request, since its groups are read in a pass for each column. Its limit is far
above the noise of counting, which is about the number of categories divided by the number of rows,
and above the usual drift of the column: there are columns whose values are new every day, or week.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.calls import USUAL, USUAL_LIMITS
from dqx_airflow.metrics.drift import EARLIER_DAYS
from dqx_airflow.metrics.types import WHOLE_SIZES, Family, family_of
from dqx_airflow.values import DatasetRef

Kind: TypeAlias = str
Watched: TypeAlias = tuple[Kind, str]
"""A claim about a column: its kind, a key of `KINDS`, and the column."""

ROWS = "rows"
KINDS: Mapping[Kind, str] = {
    "nulls": "null_count",
    "mean": "average",
    "distinct": "unique_count",
    "fresh": "freshness",
    "drift": "psi",
}
"""The kinds of claims about columns, with the metric of each."""

_MARK = ".watch."
_CATEGORIES = frozenset({Family.TEXT, Family.BOOLEAN})
_ABOVE_ONLY = frozenset({"nulls", "fresh"})
_ROW_KEY_NAME = re.compile(r"(?i)(^|_)(id|uuid|key|number|no)$")
_KEY_NAME = re.compile(rf"{_ROW_KEY_NAME.pattern}|(^|_)code$")
"""A code, such as of a country, is the key of few rows elsewhere: it does not grow with these."""
_DATE_PART = re.compile(r"(?i)(^|_)(year|quarter|month|week|weekday|day|hour|minute)$")
_CLOCK_NAMES = (
    *("ingested", "loaded", "updated", "modified", "changed", "created", "event", "_ts"),
    *("time", "_at", "date"),
)
"""Parts of the name of a column with the creation time of a row, most likely ones first."""


def is_named_like_a_key(column: str) -> bool:
    return _KEY_NAME.search(column) is not None


def clock_among(times: Collection[str]) -> str | None:
    """The column, of those with times, that probably has the creation time of a row."""
    for word in _CLOCK_NAMES:
        for name in times:
            if word in name.lower():
                return name
    return next(iter(times)) if len(times) == 1 else None


def claims_on(types: Mapping[str, str], ref: DatasetRef) -> tuple[Watched, ...]:
    """The claims about the columns of a dataset, derived from their types in Spark."""
    masked = frozenset(map(str.lower, ref.masked))
    return tuple(_claims_on(types, (ref.date_column or "").lower(), masked))


def _claims_on(
    types: Mapping[str, str], date_column: str, masked: Collection[str]
) -> Iterator[Watched]:
    for name, kind in types.items():
        if name.lower() == date_column:
            continue
        yield "nulls", name
        family = family_of(kind)
        is_key = is_named_like_a_key(name)
        if family is Family.TEXT or (is_key and kind in WHOLE_SIZES):
            yield "distinct", name
        elif family is Family.NUMBER and not is_key and not _DATE_PART.search(name):
            yield "mean", name
        # Of masked columns nothing is kept, so that each run would read all earlier days.
        if family in _CATEGORIES and not is_key and name.lower() not in masked:
            yield "drift", name
    clock = clock_among([name for name, kind in types.items() if kind.startswith("timestamp")])
    if clock is not None:
        yield "fresh", clock


def claims_named(names: Iterable[str]) -> dict[str, tuple[Watched, ...]]:
    """The claims by dataset, recovered from the names of their assertions."""
    found: dict[str, dict[Watched, None]] = {}
    for name in names:
        dataset, mark, rest = name.partition(_MARK)
        kind, _, column = rest.partition(".")
        if mark and kind in KINDS and column:
            found.setdefault(dataset, {})[kind, column] = None
    return {dataset: tuple(claims) for dataset, claims in found.items()}


def with_columns(suite: nodes.Suite, known: Mapping[str, Iterable[Watched]]) -> nodes.Suite:
    """The suite with the claims about the columns of watched datasets.

    :param known: the claims about columns by dataset; other datasets stay watched.
    """
    checks = []
    for check in suite.checks:
        body: list[nodes.CheckItem] = []
        for item in check.body:
            if isinstance(item, nodes.Watch) and item.dataset.text in known:
                body += unstated(check, item, known[item.dataset.text])
            else:
                body.append(item)
        checks.append(replace(check, body=tuple(body)))
    return replace(suite, checks=tuple(checks))


def unstated(
    check: nodes.Check, watch: nodes.Watch, columns: Iterable[Watched] = ()
) -> Iterator[nodes.Assertion]:
    """The claims of a watch that its check does not state itself: about its rows, and columns."""
    stated = {item.name.value for item in check.assertions if item.name is not None}
    for kind, column in ((ROWS, ""), *columns):
        if kind == "drift" and watch.drift is None:
            continue
        claim = _claim(check, watch, kind, column)
        if claim.name is not None and claim.name.value not in stated:
            yield claim


def watch_behind(
    checks: Iterable[nodes.Check], name: str
) -> tuple[nodes.Check, nodes.Watch, nodes.Assertion] | None:
    """The claim of a watch by its name, with the watch and its check; None if none makes it."""
    for check in checks:
        for watch in check.watches:
            if any(
                item.name is not None and item.name.value == name and item.span != watch.span
                for item in check.assertions
            ):
                continue
            claims = claims_named([name]).get(watch.dataset.text, ())
            for assertion in unstated(replace(check, body=()), watch, claims):
                if assertion.name is not None and assertion.name.value == name:
                    return check, watch, assertion
    return None


def _claim(check: nodes.Check, watch: nodes.Watch, kind: Kind, column: str) -> nodes.Assertion:
    """The assertion that a watch claims of a dataset or of one of its columns."""
    span = watch.span
    dataset = watch.dataset
    named = nodes.Parameter(nodes.Name("dataset", span=dataset.span), dataset, span=dataset.span)
    own: tuple[nodes.Parameter, ...] = () if check.datasets == (dataset,) else (named,)

    def call(
        metric: str, *arguments: nodes.Expression, given: tuple[nodes.Parameter, ...] = own
    ) -> nodes.Call:
        return nodes.Call(nodes.Name(metric, span=span), arguments, given, span=span)

    number = partial(nodes.Number, unit=nodes.Unit.PLAIN, span=span)
    rows = call("num_rows")
    measured: nodes.Expression = rows
    if kind != ROWS:
        given = own
        if kind == "drift":
            days = nodes.Parameter(nodes.Name(EARLIER_DAYS, span=span), number(28), span=span)
            given = (days, *own)
        measured = call(KINDS[kind], nodes.Name(column, span=span), given=given)
    is_row_key = kind == "distinct" and _ROW_KEY_NAME.search(column) is not None
    if kind == "nulls" or is_row_key:
        measured = nodes.Arithmetic("/", measured, rows, span=span)
    known = () if watch.known is None else (watch.known,)
    condition: nodes.Condition
    lowest, highest = (call(limit, measured, given=known) for limit in USUAL_LIMITS)
    if is_row_key:
        condition = nodes.Comparison(">=", lowest, span=span)
    elif kind == "drift":
        categories = call("unique_count", nodes.Name(column, span=span))
        noise = nodes.Arithmetic("*", number(20), categories, span=span)
        share = nodes.Arithmetic("/", noise, rows, span=span)
        most = call("max", number(Fraction(1, 4)), share, highest, given=())
        condition = nodes.Comparison("<=", most, span=span)
    elif kind in _ABOVE_ONLY:
        condition = nodes.Comparison("<=", highest, span=span)
    else:
        condition = nodes.within_usual(call(USUAL, measured, given=known), span)
    name = f"{dataset.text}{_MARK}{kind}" + (f".{column}" if column else "")
    return nodes.Assertion(
        nodes.Measure(measured, condition, span=span),
        nodes.Text(name, span=span),
        annotations=(nodes.Annotation(nodes.Name("experimental", span=span), (), span=span),),
        span=span,
    )
