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
from dataclasses import dataclass, replace
from fractions import Fraction
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


def is_named_like_a_row_key(column: str) -> bool:
    """True for the name of a key, but not of a code, which is the key of few rows elsewhere."""
    return _ROW_KEY_NAME.search(column) is not None


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
    claim = _WatchClaim(check, watch, kind, column)
    span = watch.span
    name = f"{watch.dataset.text}{_MARK}{kind}" + (f".{column}" if column else "")
    return nodes.Assertion(
        nodes.Measure(claim.measured, claim.condition, span=span),
        nodes.Text(name, span=span),
        annotations=(nodes.Annotation(nodes.Name("experimental", span=span), (), span=span),),
        span=span,
    )


@dataclass(frozen=True, slots=True)
class _WatchClaim:
    """The parts of a claim; `column` is empty for the claim about the number of rows."""

    check: nodes.Check
    watch: nodes.Watch
    kind: Kind
    column: str

    @property
    def measured(self) -> nodes.Expression:
        """The measured value: of NULLs and of keys of rows, their share of the rows."""
        if self.kind == ROWS:
            return self._rows
        more = []
        if self.kind == "drift":
            days = nodes.Name(EARLIER_DAYS, span=self.watch.span)
            more.append(nodes.Parameter(days, self._number(28), span=self.watch.span))
        measured = self._of_dataset(KINDS[self.kind], self._column_name, *more)
        if self.kind == "nulls" or self._is_row_key:
            return self._calculated("/", measured, self._rows)
        return measured

    @property
    def condition(self) -> nodes.Condition:
        """The usual range of the value, or the end of it that claims something."""
        span = self.watch.span
        lowest, highest = (self._of_past_days(limit) for limit in USUAL_LIMITS)
        if self._is_row_key:
            return nodes.Comparison(">=", lowest, span=span)
        if self.kind == "drift":
            most = self._call("max", self._number(Fraction(1, 4)), self._noise, highest)
            return nodes.Comparison("<=", most, span=span)
        if self.kind in _ABOVE_ONLY:
            return nodes.Comparison("<=", highest, span=span)
        return nodes.within_usual(self._of_past_days(USUAL), span)

    @property
    def _is_row_key(self) -> bool:
        return self.kind == "distinct" and _ROW_KEY_NAME.search(self.column) is not None

    @property
    def _rows(self) -> nodes.Call:
        return self._of_dataset("num_rows", None)

    @property
    def _noise(self) -> nodes.Expression:
        """The drift that counting alone makes: the number of categories, divided by the rows."""
        categories = self._of_dataset("unique_count", self._column_name)
        return self._calculated(
            "/", self._calculated("*", self._number(20), categories), self._rows
        )

    @property
    def _column_name(self) -> nodes.Name:
        return nodes.Name(self.column, span=self.watch.span)

    def _of_dataset(
        self, metric: str, column: nodes.Name | None, *parameters: nodes.Parameter
    ) -> nodes.Call:
        """A metric of the watched dataset, which is named unless the check is about it alone."""
        dataset = self.watch.dataset
        if self.check.datasets != (dataset,):
            word = nodes.Name("dataset", span=dataset.span)
            parameters = (*parameters, nodes.Parameter(word, dataset, span=dataset.span))
        arguments = () if column is None else (column,)
        return self._call(metric, *arguments, parameters=parameters)

    def _of_past_days(self, limit: str) -> nodes.Call:
        """A usual value, or a limit of usual values, from days with their known causes."""
        known = () if self.watch.known is None else (self.watch.known,)
        return self._call(limit, self.measured, parameters=known)

    def _call(
        self,
        function: str,
        *arguments: nodes.Expression,
        parameters: tuple[nodes.Parameter, ...] = (),
    ) -> nodes.Call:
        span = self.watch.span
        return nodes.Call(nodes.Name(function, span=span), arguments, parameters, span=span)

    def _calculated(
        self, op: str, left: nodes.Expression, right: nodes.Expression
    ) -> nodes.Arithmetic:
        return nodes.Arithmetic(op, left, right, span=self.watch.span)

    def _number(self, value: int | Fraction) -> nodes.Number:
        return nodes.Number(value, unit=nodes.Unit.PLAIN, span=self.watch.span)
