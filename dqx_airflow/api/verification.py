"""Suites written in Python: functions with assertions,
`ctx.assert_that(...).where(...).is_lt(...)`, collected into the tree of a DQL suite.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dqx_airflow.api import expressions
from dqx_airflow.api import run as runs
from dqx_airflow.api.database import Database
from dqx_airflow.api.expressions import Bound, CallSite, caller_site, expression_of, number_node
from dqx_airflow.api.run import DatedResults, Results, RunKeywords
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked
from dqx_airflow.dql.checks.suite import check_suite
from dqx_airflow.dql.printer import show_suite
from dqx_airflow.dql.walk import joined
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.model import Plan
from dqx_airflow.tuning.protection import DEFAULT_AGENT, is_algorithm, weakened
from dqx_airflow.tuning.suite_file import refuse
from dqx_airflow.tuning.suite_history import TunableChange
from dqx_airflow.tuning.tunables import Tunable, Tunables
from dqx_airflow.values import RunOptions, Severity, Span
from dqx_airflow.values.blank import require_no_blank

if TYPE_CHECKING:
    from typing_extensions import Unpack


D = TypeVar("D", bound="AssertionDraft")

_COSTS = {"fp": "false_positive", "fn": "false_negative"}
_TAG = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*(-[a-zA-Z0-9_]+)*\Z")


@dataclass(slots=True)
class _Entry:
    """The result of one `ctx.assert_...`: an assertion for each condition that was given.

    A draft that still waits for a condition is an assertion without one: a shortcut, or an error.
    One that is not kept has been reported.
    """

    assertions: list[nodes.Assertion] = field(default_factory=list)
    is_kept: bool = True

    def take(self, assertion: nodes.Assertion) -> bool:
        """Removes exactly this assertion, which got its condition, became another draft or a part
        of another assertion; False if it does not exist any more."""
        before = self.assertions
        self.assertions = [item for item in before if item is not assertion]
        return len(self.assertions) < len(before)


class Claim:
    """A complete assertion, for `ctx.assert_any`, `assert_all` and `assert_if`."""

    def __init__(self, assertion: nodes.Assertion, entry: _Entry) -> None:
        self._assertion = assertion
        self._entry = entry


class AssertionDraft(Claim):
    """An assertion that can get a name and other modifiers by `where`."""

    def __init__(self, assertion: nodes.Assertion, entry: _Entry) -> None:
        super().__init__(assertion, entry)
        entry.assertions.append(assertion)

    def where(
        self: D,
        *,
        name: str | None = None,
        severity: Severity | str | None = None,
        tags: Iterable[str] = (),
        experimental: bool = False,
        required: bool = False,
        cost: Mapping[str, float] | None = None,
        rows: str | None = None,
    ) -> D:
        """The assertion with a name, a severity, tags and annotations, in addition to those it
        has.

        :param name: its name in results; two assertions of a check cannot have the same name.
        :param severity: P0 (worst) to P3, by default P1.
        :param tags: tags, by which profiles and runs select assertions.
        :param experimental: marks it as proposed by an algorithm and not yet validated; it never
            blocks.
        :param required: marks it as one that must not be removed, weakened or disabled.
        :param cost: the costs of a false positive and a false negative: `{"fp": 1, "fn": 100}`.
        :param rows: selects its rows by a predicate of DQL: `'status == "paid"'`.
        :raises RequestError: `rows` is not a valid predicate.
        """
        site = caller_site()
        marks = {
            "experimental": {} if experimental else None,
            "required": {} if required else None,
            "cost": cost,
        }
        before = self._assertion
        assertion = replace(
            before,
            name=before.name if name is None else nodes.Text(name, span=site.of(name)),
            severity=before.severity if severity is None else _severity(severity, site),
            tags=(*before.tags, *(_tag(tag, site) for tag in _listed(tags))),
            annotations=(
                *before.annotations,
                *(_annotation(mark, of, site) for mark, of in marks.items() if of is not None),
            ),
            where=joined(
                before.where, expressions.filter_of(rows, site) if rows is not None else None
            ),
        )
        self._entry.take(before)
        return type(self)(assertion, self._entry)

    def for_each(
        self: D,
        *columns: str,
        groups: Sequence[object] | None = None,
        share: float | Decimal | None = None,
    ) -> D:
        """`for each (country, channel)`: the assertion is evaluated for each group of rows.

        The `failing_rows` of its result are the failed groups, worst first, with value and limit.

        :param groups: the required groups: values, or tuples of them for several columns. By
            default, the groups that have rows.
        :param share: the share of groups that must pass, such as 0.95; by default all of them.
        :raises RequestError: there is no column.
        """
        site = caller_site()
        if not columns:
            message = "for_each needs a column"
            raise RequestError(message, 'write .for_each("country")')
        for_each = nodes.ForEach(
            tuple(expressions.name_of(column, site) for column in columns),
            None if groups is None else _group_list(groups, site),
            None if share is None else number_node(share, nodes.Unit.PERCENT, site.of(str(share))),
            span=site.span,
        )
        before = self._assertion
        self._entry.take(before)
        return type(self)(replace(before, for_each=for_each), self._entry)


class MetricDraft(AssertionDraft):
    """An assertion over metrics that waits for its condition.

    A bound is a number, a string, a date, a `timedelta` for durations, or an expression over
    metrics. A metric without a value fails every condition but `is_none`.
    """

    def is_lt(self, bound: Bound) -> Claim:
        """`< bound`: below the bound."""
        return self._compare("<", bound)

    def is_leq(self, bound: Bound) -> Claim:
        """`<= bound`: at most the bound."""
        return self._compare("<=", bound)

    def is_gt(self, bound: Bound) -> Claim:
        """`> bound`: above the bound."""
        return self._compare(">", bound)

    def is_geq(self, bound: Bound) -> Claim:
        """`>= bound`: at least the bound."""
        return self._compare(">=", bound)

    def is_eq(self, bound: Bound, *, tolerance: float | None = None) -> Claim:
        """`== bound`, or at most `tolerance` away from it."""
        return self._compare("==", bound, tolerance)

    def is_neq(self, bound: Bound, *, tolerance: float | None = None) -> Claim:
        """`!= bound`, and more than `tolerance` away from it."""
        return self._compare("!=", bound, tolerance)

    def is_between(self, low: Bound, high: Bound) -> Claim:
        """`between low and high`, both ends included."""
        site = caller_site()
        bounds = expression_of(low, site), expression_of(high, site)
        return self._finish(nodes.Between(*bounds, span=site.span), site)

    def is_not_between(self, low: Bound, high: Bound) -> Claim:
        """`not between low and high`: below `low`, or above `high`."""
        site = caller_site()
        bounds = expression_of(low, site), expression_of(high, site)
        return self._finish(nodes.NotBetween(*bounds, span=site.span), site)

    def is_positive(self) -> Claim:
        """`is positive`: above 0."""
        return self._is(nodes.Keyword.POSITIVE)

    def is_negative(self) -> Claim:
        """`is negative`: below 0."""
        return self._is(nodes.Keyword.NEGATIVE)

    def is_none(self) -> Claim:
        """`is None`: the metric has no value."""
        return self._is(nodes.Keyword.NONE)

    def is_not_none(self) -> Claim:
        """`is not None`: the metric has a value."""
        return self._is(nodes.Keyword.NOT_NONE)

    def is_within_stddev(self, count: Bound, *, days: int | None = None) -> Claim:
        """`within count stddev of days`: near the mean of the previous days.

        :param count: the maximum distance, in sample standard deviations of these days.
        :param days: the number of days before the date, without the date itself.
        """
        site = caller_site()
        window = None
        if days is not None:
            window = number_node(days * 86_400, nodes.Unit.DURATION, site.of(str(days)))
        near = nodes.WithinStddev(expression_of(count, site), window, span=site.span)
        return self._finish(near, site)

    def is_in_values(self, column: str, *, dataset: str) -> Claim:
        """`in values(column, dataset other)`, for `mp.values(column)`."""
        site = caller_site()
        key = nodes.Name("dataset", span=site.span)
        other = nodes.Parameter(key, expressions.name_of(dataset, site), span=site.span)
        columns = (expressions.name_of(column, site),)
        choices = nodes.Call(
            nodes.Name("values", span=site.span), columns, (other,), span=site.span
        )
        return self._finish(nodes.InValues(choices, span=site.span), site)

    def is_in(self, values: Sequence[object]) -> Claim:
        """`in ["A", "B"]`, for `mp.most_common(column, n)`."""
        site = caller_site()
        choices = nodes.Listing(
            tuple(expression_of(value, site) for value in values), span=site.span
        )
        return self._finish(nodes.InValues(choices, span=site.span), site)

    def is_by(self, time: str, *, zone: str | None = None) -> Claim:
        """`by 06:00 UTC`, for `mp.timeliness(column)`.

        :param time: the time of day, `HH:MM`.
        :param zone: the time zone, UTC by default.
        """
        site = caller_site()
        where = None if zone is None else nodes.Text(zone, span=site.of(zone))
        punctual = nodes.ByTime(nodes.Text(time, span=site.of(time)), where, span=site.span)
        return self._finish(punctual, site)

    def matches_shares(
        self, shares: Mapping[str | float | bool, float], *, tolerance: float | None = None
    ) -> Claim:
        """`matches {"A": 50%}`, for `mp.distribution(column)`.

        :param shares: the expected share of rows with each value, from 0 to 1.
        :param tolerance: the maximum deviation of a share, from 0 to 1.
        :raises RequestError: a value is neither a string, a number nor a boolean.
        """
        site = caller_site()
        due = []
        for value, share in shares.items():
            node = expression_of(value, site)
            if not isinstance(node, nodes.Text | nodes.Number | nodes.Truth):
                raise RequestError(
                    f"no row has the value {value!r}", "give strings, numbers or booleans"
                )
            due.append((node, number_node(share, nodes.Unit.PERCENT, site.of(str(share)))))
        return self._finish(nodes.MatchesShares(tuple(due), span=site.span), site, tolerance)

    def _compare(self, op: str, bound: Bound, tolerance: float | None = None) -> Claim:
        site = caller_site()
        comparison = nodes.Comparison(op, expression_of(bound, site), span=site.span)
        return self._finish(comparison, site, tolerance)

    def _is(self, keyword: nodes.Keyword) -> Claim:
        site = caller_site()
        return self._finish(nodes.Is(keyword, span=site.span), site)

    def _finish(
        self, condition: nodes.Condition, site: CallSite, tolerance: float | None = None
    ) -> Claim:
        claim = self._assertion.claim
        assert isinstance(claim, nodes.Measure)
        margin = None
        if tolerance is not None:
            margin = number_node(tolerance, nodes.Unit.PLAIN, site.of(str(tolerance)))
        self._entry.take(self._assertion)
        claim = replace(claim, condition=condition)
        finished = replace(self._assertion, claim=claim, tolerance=margin)
        self._entry.assertions.append(finished)
        return Claim(finished, self._entry)


class Context:
    """Collects the assertions of a check function, in order.

    ctx.assert_that(mp.average("price")).where(name="orders.price").is_between(10, 500)
    ctx.assert_each_row("price > 0").where(name="orders.price.positive")
    """

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self.diagnostics: list[Diagnostic] = []

    @property
    def assertions(self) -> tuple[nodes.Assertion, ...]:
        """The assertions so far, in order."""
        return tuple(assertion for entry in self._entries for assertion in entry.assertions)

    def assert_that(self, expression: expressions.MetricExpression | Bound) -> MetricDraft:
        """Returns an assertion over metrics, which a condition must complete: `.is_lt(5)`.

        Shortcuts such as `mp.unique("id")` and `mp.not_empty()` are complete without one. An
        assertion without a condition is reported as an error when the suite is run.
        """
        site = caller_site()
        claim = nodes.Measure(expression_of(expression, site), None, span=site.span)
        return MetricDraft(*self._begin(claim, site))

    def assert_each_row(self, predicate: str) -> AssertionDraft:
        """`each row: predicate`; the predicate is DQL: `'price > 0 and status in ["new",
        "paid"]'`.
        """
        return self._rows(predicate, None, caller_site())

    def assert_share_of_rows(self, share: float | Decimal, predicate: str) -> AssertionDraft:
        """`95% of rows: predicate`.

        :param share: the minimum share of rows, above 0 and at most 1: 0.95 for 95%.
        :param predicate: a predicate of DQL.
        """
        site = caller_site()
        least = number_node(share, nodes.Unit.PERCENT, site.of(str(share)))
        return self._rows(predicate, least, site)

    def assert_column(
        self, column: str, *, type: str | None = None, fits: str | None = None
    ) -> AssertionDraft:
        """`column name exists`, `column name type decimal(18,2)` or `column name fits number`.

        :param type: the exact type, in Spark's notation.
        :param fits: a type that must be able to hold the values, such as `bigint` or `number`.
        :raises RequestError: both `type` and `fits` are given.
        """
        if type is not None and fits is not None:
            raise RequestError("give either `type` or `fits`", "remove one of them")
        site = caller_site()
        text = type if fits is None else fits
        kind = None if text is None else nodes.Text(text, span=site.of(text))
        claim = nodes.HasColumn(
            expressions.name_of(column, site), kind, span=site.span, is_exact=fits is None
        )
        return AssertionDraft(*self._begin(claim, site))

    def assert_any(self, *assertions: Claim) -> AssertionDraft:
        """`any { assert ... assert ... }`: one verdict, which passes if one of them is true.

        They are assertions of this context without names and severities of their own:

            ctx.assert_any(
                ctx.assert_that(mp.num_rows()).is_gt(1000),
                ctx.assert_that(mp.sum("amount")).is_gt(50_000),
            ).where(name="orders.large")

        :raises RequestError: none is given, or one that cannot be a part.
        """
        return self._composite(nodes.Junctor.ANY, assertions, caller_site())

    def assert_all(self, *assertions: Claim) -> AssertionDraft:
        """`all { assert ... assert ... }`: one verdict, which passes if all are true.

        :param assertions: as for `assert_any`.
        :raises RequestError: none is given, or one that cannot be a part.
        """
        return self._composite(nodes.Junctor.ALL, assertions, caller_site())

    def assert_if(self, assertion: Claim, then: Claim) -> AssertionDraft:
        """`if ... then ...`: passes if the first assertion is false or the second one is true.

        :param assertion: as for `assert_any`.
        :param then: the assertion that must be true if the first one is.
        :raises RequestError: one of them cannot be a part.
        """
        return self._composite(nodes.Junctor.IF, (assertion, then), caller_site())

    def _composite(
        self, junctor: nodes.Junctor, claims: tuple[Claim, ...], site: CallSite
    ) -> AssertionDraft:
        if not claims:
            raise RequestError(
                f"assert_{junctor.value} needs an assertion",
                f"write ctx.assert_{junctor.value}(ctx.assert_that(mp.num_rows()).is_gt(0))",
            )
        parts = tuple(_part(claim, junctor) for claim in claims)
        if junctor is nodes.Junctor.IF:
            parts = tuple(_without_modifiers(part) for part in parts)
        composite = nodes.Composite(junctor, parts, span=site.span)
        is_kept = all(claim._entry.is_kept for claim in claims)
        return AssertionDraft(*self._begin(composite, site, is_kept=is_kept))

    def _rows(self, text: str, share: nodes.Number | None, site: CallSite) -> AssertionDraft:
        predicate = expressions.parse_predicate(text, site, self.diagnostics.append)
        claim = nodes.Rows(predicate or nodes.Null(span=site.span), share, span=site.span)
        return AssertionDraft(*self._begin(claim, site, is_kept=predicate is not None))

    def _begin(
        self, claim: nodes.Claim, site: CallSite, *, is_kept: bool = True
    ) -> tuple[nodes.Assertion, _Entry]:
        assertion = nodes.Assertion(claim, span=site.span)
        entry = _Entry(is_kept=is_kept)
        if is_kept:
            self._entries.append(entry)
        return assertion, entry


def _part(claim: Claim, junctor: nodes.Junctor) -> nodes.Assertion:
    """The assertion in DQL of a part, which is removed from its check.

    :raises RequestError: it cannot be a part of others.
    """
    caller = f"assert_{junctor.value}"
    if not isinstance(claim, Claim):
        raise RequestError(
            f"{claim!r} is not an assertion", f"give {caller} some, such as ctx.assert_that(...)"
        )
    assertion = claim._assertion
    of_its_own = {
        "a name": assertion.name,
        "a severity": assertion.severity,
        "tags": assertion.tags,
        "annotations": assertion.annotations,
        "groups": assertion.for_each,
    }
    for description, value in of_its_own.items():
        if value:
            raise RequestError(
                f"an assertion in {caller} cannot have {description}",
                "groups need a separate assertion"
                if description == "groups"
                else f"put it after the whole: ctx.{caller}(...).where(...)",
            )
    if not claim._entry.take(assertion):
        raise RequestError(
            f"an assertion in {caller} already belongs to another one, or has changed since",
            "create it again",
        )
    return assertion


def _without_modifiers(part: nodes.Assertion) -> nodes.Assertion:
    """The part in DQL after `if` and `then`: with a tolerance or a filter, within `all`."""
    if part.tolerance is None and part.where is None:
        return part
    claim = nodes.Composite(nodes.Junctor.ALL, (part,), span=part.span)
    return nodes.Assertion(claim, span=part.span)


def _severity(given: Severity | str, site: CallSite) -> nodes.Name:
    text = str(given)
    return nodes.Name(text, span=site.of(text))


def _listed(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags as a tuple: a single string is one tag, not a list of characters."""
    return (tags,) if isinstance(tags, str) else tuple(tags)


def _group_list(groups: Sequence[object], site: CallSite) -> nodes.Listing:
    items = tuple(
        _group_list(group, site)
        if isinstance(group, Sequence) and not isinstance(group, str)
        else expression_of(group, site)
        for group in groups
    )
    return nodes.Listing(items, span=site.span)


def _tag(tag: str, site: CallSite) -> nodes.Name:
    if not _TAG.match(tag):
        raise RequestError(
            f"{tag!r} is not a valid tag", "a tag consists of letters, digits, `_` and `-`"
        )
    return nodes.Name(tag, span=site.of(tag))


def _annotation(mark: str, given: Mapping[str, float], site: CallSite) -> nodes.Annotation:
    arguments = tuple(
        (nodes.Name(_COSTS.get(key, key), span=site.of(key)), expression_of(value, site))
        for key, value in given.items()
    )
    return nodes.Annotation(nodes.Name(mark, span=site.of(mark)), arguments, span=site.span)


CheckFunction: TypeAlias = Callable[[expressions.MetricProvider, Context], None]


@dataclass(frozen=True, slots=True)
class PythonCheck:
    """A function with assertions, and the name and the datasets of its check.

    Without `datasets` it is about all datasets of the suite's database, with `where` about some
    rows.
    """

    name: str
    datasets: tuple[str, ...]
    function: CheckFunction
    site: CallSite
    where: nodes.Expression | None = None

    def __call__(self, mp: expressions.MetricProvider, ctx: Context) -> None:
        self.function(mp, ctx)


def check(
    *, name: str, datasets: str | Iterable[str] = (), where: str | None = None
) -> Callable[[CheckFunction], PythonCheck]:
    """Makes a check from a function of a `MetricProvider` and a `Context`.

        @check(name="Volume", datasets=["orders"])
        def volume(mp: MetricProvider, ctx: Context) -> None:
            ctx.assert_that(mp.num_rows()).where(name="orders.rows").is_gt(1000)

    :param name: the name of the check in results.
    :param datasets: its datasets; by default all datasets of the suite's database.
    :param where: selects its rows by a predicate of DQL: `'status == "paid"'`.
    :raises RequestError: `where` is not a valid predicate.
    """
    site = caller_site()
    names = (datasets,) if isinstance(datasets, str) else tuple(datasets)
    rows = None if where is None else expressions.filter_of(where, site)
    return lambda function: PythonCheck(name, names, function, site, rows)


class VerificationSuite:
    """A suite of check functions, which runs as the equivalent DQL suite.

        suite = VerificationSuite(checks=[volume], db=db, name="Orders")
        suite.run(date(2026, 1, 1)).raise_for_failures()

    :param checks: functions under `@check`.
    :param db: the data.
    :param name: the name of the suite in results.
    :param tunables: values to tune. In a condition, a tunable shows its name in results; its
        `.value` is a plain number.
    :param availability_threshold: the required share of dates with data for a lagged metric, from 0
        to 1.
    :param profiles: profiles in DQL.
    :raises RequestError: two tunables have the same name, or an argument is invalid.
    """

    def __init__(
        self,
        checks: Sequence[PythonCheck],
        db: Database,
        name: str,
        *,
        tunables: Iterable[Tunable[Any]] = (),
        availability_threshold: float | None = None,
        profiles: str = "",
    ) -> None:
        for item in checks:
            if not isinstance(item, PythonCheck):
                raise RequestError(f"{item!r} is not a check", 'put @check(name="...") before it')
        self.name = name
        self.checks = tuple(checks)
        self.db = db
        self._tunables = Tunables(tunables)
        self._threshold = availability_threshold
        self._profiles = profiles
        self._site = caller_site()
        self._of_people = {tunable.name: tunable.value for tunable in self._tunables}
        self._changes: list[TunableChange] = []

    def get_tunable_params(self) -> tuple[Tunable[Any], ...]:
        """Returns the tunables, in the given order."""
        return tuple(self._tunables)

    def get_param(self, name: str) -> Any:
        """Returns the current value of a tunable.

        :raises RequestError: the suite has no tunable with this name.
        """
        return self._tunables[name].value

    def set_param(
        self, name: str, value: Any, *, agent: str = DEFAULT_AGENT, reason: str | None = None
    ) -> None:
        """Sets a tunable for later runs.

        :param name: the name of the tunable.
        :param value: the new value.
        :param agent: who sets it: `human`, or the name of an algorithm, which cannot weaken a
            required assertion.
        :param reason: the reason, for the history.
        :raises ChangeRefusedError: the agent may not set it.
        :raises RequestError: the suite has no such tunable, or the value is outside of its bounds.
        """
        require_no_blank({"agent": agent, "reason": reason})
        tunable = self._tunables[name]
        before = tunable.value
        tunable.value = value
        if is_algorithm(agent):
            try:
                self._require_allowed(agent)
            except Exception:
                tunable.value = before
                raise
        else:
            self._of_people[name] = tunable.value
        timestamp = datetime.now(timezone.utc)
        self._changes.append(TunableChange(timestamp, name, before, tunable.value, agent, reason))

    def get_param_history(self, name: str) -> tuple[TunableChange, ...]:
        """Returns the changes of a tunable by `set_param`, oldest first.

        :raises RequestError: the suite has no tunable with this name.
        """
        name = self._tunables[name].name
        return tuple(change for change in self._changes if change.param == name)

    def _require_allowed(self, agent: str) -> None:
        """:raises ChangeRefusedError: a required assertion would be weakened."""
        after = self._checked()
        values = {tunable.name: tunable.value for tunable in self._tunables}
        try:
            for name, value in self._of_people.items():
                self._tunables[name].value = value
            before = self._checked()
        finally:
            for name, value in values.items():
                self._tunables[name].value = value
        refuse(weakened(before.valid_suite, after.valid_suite, agent), after.sources)

    @runs.with_keywords_of(RunKeywords)
    def run(
        self, date: date, *, now: datetime | None = None, **options: Unpack[RunKeywords]
    ) -> Results:
        """Returns the results for a date. The check functions are called each time.

        :param date: the date of the data.
        :param fail_on: failures of this severity or a worse one block.
        :param allow_empty: leaves out the implicit assertions that the datasets have rows.
        :param require_history: a blocking assertion that could not be evaluated because earlier
            dates have no data makes the outcome broken; by default, it makes it warned.
        :param skip_dates: dates without data, for lagged metrics.
        :param ansi: the mode of Spark in which SQL of the suite and the datasets is evaluated; in a
            session with the other one, it is an error.
        :param max_clock_skew_hours: by how many hours a timestamp may be in the future and still
            make data fresh.
        :param now: the time from which ages such as `freshness` are measured, with a time zone; by
            default the current time.
        :raises SourceError: an assertion of the check functions has errors.
        :raises RequestError: an argument is invalid.
        """
        return runs.run(self._checked(), self.db, date, runs.RunSettings.of(options, now))

    @runs.with_keywords_of(RunKeywords)
    def run_dates(
        self,
        dates: str | Iterable[date],
        *,
        now: datetime | None = None,
        **options: Unpack[RunKeywords],
    ) -> DatedResults:
        """Returns the results for each of several dates, each as of a `run` for that date alone.

        Over Spark, all dates are measured in one scan of each dataset. The check functions are
        called once.

        :param dates: the dates, or a range as a string, `2026-01-01..2026-03-31`, both ends
            included; the other arguments are the same as for `run`.
        :raises SourceError: an assertion of the check functions has errors.
        :raises RequestError: the dates or another argument are invalid.
        """
        return runs.run_dates(self._checked(), self.db, dates, runs.RunSettings.of(options, now))

    def plan(self, date: date, *, allow_empty: bool = False) -> Plan:
        """Returns the plan of a run: the metrics to measure and the assertions to evaluate. Nothing
        is read.

        :raises SourceError: an assertion of the check functions has errors.
        """
        settings = runs.RunSettings(RunOptions(allow_empty=allow_empty))
        return runs.plan_of(self._checked(), self.db, date, settings)

    def to_dql(self) -> str:
        """Returns the source of the equivalent DQL suite.

        :raises SourceError: an assertion of the check functions has errors.
        """
        suite = self._checked().valid_suite
        return show_suite(suite)

    def _checked(self) -> Checked:
        """The suite that the check functions create now, without errors.

        :raises SourceError: there are errors.
        """
        diagnostics: list[Diagnostic] = []
        suite = self._suite(diagnostics)
        # A value used by a check leaves no trace.
        diagnostics += check_suite(suite, used={tunable.name for tunable in self._tunables})
        files = dict.fromkeys(span.file for span in _spans(suite, diagnostics))
        order = {file: number for number, file in enumerate(files)}
        diagnostics.sort(key=lambda item: (order[item.span.file], item.span.line, item.span.column))
        checked = Checked(
            suite, tuple(diagnostics), {file: expressions.source_of(file) for file in files}
        )
        runs.raise_errors(checked.errors, checked)
        return checked

    def _suite(self, diagnostics: list[Diagnostic]) -> nodes.Suite:
        span = self._site.span
        threshold = None
        if self._threshold is not None:
            site = self._site.of(str(self._threshold))
            threshold = number_node(self._threshold, nodes.Unit.PERCENT, site)
        return nodes.Suite(
            nodes.Text(self.name, span=self._site.of(self.name)),
            threshold,
            tuple(tunable.constant(span) for tunable in self._tunables),
            tuple(self._check(item, diagnostics) for item in self.checks),
            expressions.parse_profiles(self._profiles, self._site, diagnostics.append),
            span=span,
        )

    def _check(self, item: PythonCheck, diagnostics: list[Diagnostic]) -> nodes.Check:
        site = item.site
        context = Context()
        item(expressions.MetricProvider(), context)
        diagnostics += context.diagnostics
        datasets = item.datasets or tuple(ref.name for ref in self.db.datasets)
        if not datasets:
            hint = f'write @check(name="{item.name}", datasets=["orders"])'
            raise RequestError(f"check '{item.name}' has no dataset", hint)
        names = tuple(expressions.name_of(dataset, site) for dataset in datasets)
        name = nodes.Text(item.name, span=site.of(item.name))
        return nodes.Check(name, names, context.assertions, span=site.span, where=item.where)


def _spans(suite: nodes.Suite, diagnostics: Iterable[Diagnostic]) -> Iterator[Span]:
    """The positions of a suite and of its findings; its checks may be in several files."""
    yield suite.span
    for made in suite.checks:
        yield made.span
        yield from (assertion.span for assertion in made.assertions)
    for item in diagnostics:
        yield item.span
        yield from (related.span for related in item.related)
