"""Suites written in Python: functions with assertions, collected into the tree of a DQL suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias

from dqx_airflow.api.assertions import Context
from dqx_airflow.api.database import Database
from dqx_airflow.api.expressions import (
    CallSite,
    caller_site,
    filter_of,
    name_of,
    number,
    parse_profiles,
    source_of,
)
from dqx_airflow.api.metric_provider import MetricProvider
from dqx_airflow.api.results import DatedResults, Results
from dqx_airflow.api.run import (
    RunKeywords,
    options_of,
    plan_of,
    raise_errors,
    run,
    run_dates,
    with_keywords_of,
)
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked
from dqx_airflow.dql.checks.suite import check_suite
from dqx_airflow.dql.printer import show_suite
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.model import Plan
from dqx_airflow.tuning.protection import DEFAULT_AGENT, is_algorithm, weakened
from dqx_airflow.tuning.suite_file import refuse
from dqx_airflow.tuning.suite_history import TunableChange
from dqx_airflow.tuning.tunables import Tunable, Tunables
from dqx_airflow.values import RunOptions, Span

if TYPE_CHECKING:
    from typing_extensions import Unpack

CheckFunction: TypeAlias = Callable[[MetricProvider, Context], None]


@dataclass(frozen=True, slots=True)
class PythonCheck:
    """A function with assertions, and the name and the datasets of its check.

    Without `datasets` it is about those of the suite's database, with `where` about some rows.
    """

    name: str
    datasets: tuple[str, ...]
    function: CheckFunction
    site: CallSite
    where: nodes.Expression | None = None

    def __call__(self, mp: MetricProvider, ctx: Context) -> None:
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
    rows = None if where is None else filter_of(where, site)
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
        """The tunables, in the given order."""
        return tuple(self._tunables)

    def get_param(self, name: str) -> Any:
        """The current value of a tunable.

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
        """The changes of a tunable by `set_param`, oldest first.

        :raises RequestError: the suite has no tunable with this name.
        """
        name = self._tunables[name].name
        return tuple(change for change in self._changes if change.param == name)

    def _require_allowed(self, agent: str) -> None:
        """:raises ChangeRefusedError: a required assertion would be weakened."""
        after, values = self._checked(), {tunable.name: tunable.value for tunable in self._tunables}
        try:
            for name, value in self._of_people.items():
                self._tunables[name].value = value
            before = self._checked()
        finally:
            for name, value in values.items():
                self._tunables[name].value = value
        refuse(weakened(before.valid_suite, after.valid_suite, agent), after.sources)

    @with_keywords_of(RunKeywords)
    def run(
        self, date: date, *, now: datetime | None = None, **options: Unpack[RunKeywords]
    ) -> Results:
        """The results for a date. The check functions are called each time.

        :param date: the date of the data.
        :param fail_on: failures of this severity or a worse one block.
        :param allow_empty: leaves out the implicit assertions that the datasets have rows.
        :param require_history: an assertion of `fail_on` or worse that lacks data of other dates
            makes the outcome broken; by default, it makes it warned.
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
        return run(self._checked(), self.db, date, options_of(options), now=now)

    @with_keywords_of(RunKeywords)
    def run_dates(
        self,
        dates: str | Iterable[date],
        *,
        now: datetime | None = None,
        **options: Unpack[RunKeywords],
    ) -> DatedResults:
        """The results for each of several dates, each as of a `run` for that date alone.

        Over Spark, all dates are measured in one scan of each dataset. The check functions are
        called once.

        :param dates: the dates, or a range as a string, `2026-01-01..2026-03-31`, both ends
            included; the other arguments are those of `run`.
        :raises SourceError: an assertion of the check functions has errors.
        :raises RequestError: the dates or another argument are invalid.
        """
        return run_dates(self._checked(), self.db, dates, options_of(options), now=now)

    def plan(self, date: date, *, allow_empty: bool = False) -> Plan:
        """The plan of a run: the metrics to measure and the assertions to judge. Nothing is read.

        :raises SourceError: an assertion of the check functions has errors.
        """
        return plan_of(self._checked(), self.db, date, RunOptions(allow_empty=allow_empty))

    def to_dql(self) -> str:
        """The source of the equivalent DQL suite.

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
        checked = Checked(suite, tuple(diagnostics), {file: source_of(file) for file in files})
        raise_errors(checked.errors, checked)
        return checked

    def _suite(self, diagnostics: list[Diagnostic]) -> nodes.Suite:
        span, threshold = self._site.span, None
        if self._threshold is not None:
            site = self._site.of(str(self._threshold))
            threshold = number(self._threshold, nodes.Unit.PERCENT, site)
        return nodes.Suite(
            nodes.Text(self.name, self._site.of(self.name)),
            threshold,
            tuple(tunable.constant(span) for tunable in self._tunables),
            tuple(self._check(item, diagnostics) for item in self.checks),
            parse_profiles(self._profiles, self._site, diagnostics.append)
            if self._profiles
            else (),
            (),
            (),
            (),
            span,
        )

    def _check(self, item: PythonCheck, diagnostics: list[Diagnostic]) -> nodes.Check:
        site, context = item.site, Context()
        item(MetricProvider(), context)
        diagnostics += context.diagnostics
        datasets = item.datasets or tuple(ref.name for ref in self.db.datasets)
        if not datasets:
            hint = f'write @check(name="{item.name}", datasets=["orders"])'
            raise RequestError(f"check '{item.name}' has no dataset", hint)
        names = tuple(name_of(dataset, site) for dataset in datasets)
        name = nodes.Text(item.name, site.of(item.name))
        return nodes.Check(name, names, context.assertions, site.span, item.where)


def _spans(suite: nodes.Suite, diagnostics: Iterable[Diagnostic]) -> Iterator[Span]:
    """The positions of a suite and of its findings; its checks may be in several files."""
    yield suite.span
    for made in suite.checks:
        yield made.span
        yield from (assertion.span for assertion in made.assertions)
    for item in diagnostics:
        yield item.span
        yield from (related.span for related in item.related)
