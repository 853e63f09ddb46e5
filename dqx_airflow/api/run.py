"""Runs suites from Python: the keywords of a run, and its results, of one date or of several, also
as HTML for notebooks.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from dqx_airflow import values
from dqx_airflow.api.database import Database, SparkDatabase, StoredDatabase
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.diagnostics.verdicts import draw_report, headline, scaled_text
from dqx_airflow.dql.check import Checked
from dqx_airflow.errors import RequestError, UpstreamFailure
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.model import DEFAULT_COST, Cost, Plan, Scanned
from dqx_airflow.plan.selection import plan_of as plan_of_request
from dqx_airflow.results.report_rows import results_rows
from dqx_airflow.results.schema import MONTH, RESULTS_SCHEMA
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Severity, Status, Verdict
from dqx_airflow.values.exact import exact_text, is_decimal, nearest_float
from dqx_airflow.values.request import Words, dates_of_range, is_range, selection_of
from dqx_airflow.values.typed_values import day_in, severity_of

if TYPE_CHECKING:
    pass


def html_of(report: GateReport) -> str:
    """A table of the assertions, first those that did not pass, and the report below it."""
    return filled(
        __package__,
        "report.html",
        report=report,
        verdicts=sorted(report.verdicts, key=lambda verdict: verdict.status is Status.PASSED),
        headline=headline(report),
        drawn=draw_report(report),
        value_text=scaled_text,
    )


_LENIENT = {Outcome.PASSED, Outcome.WARNED, Outcome.ACCEPTED}


@dataclass(frozen=True, slots=True)
class Result(Verdict):
    """The verdict on one assertion: `f"{result.check}/{result.assertion}: {result.status}"`.

    Its attributes are also available by name, as in `result["passed"]`. `costs` come from its
    `@cost`. `ground_truth` is its label: whether there was a real issue; None without a label.
    """

    costs: Cost = DEFAULT_COST
    ground_truth: bool | None = None

    def __getitem__(self, name: str) -> Any:
        """:raises KeyError: a result has no such part."""
        if name.startswith("_") or not hasattr(self, name):
            raise KeyError(name)
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the attribute with a name, or `default`."""
        return getattr(self, name, default)

    @property
    def cost(self) -> dict[str, float]:
        """The costs of errors: `{"false_positive": 1.0, "false_negative": 10.0}`."""
        return asdict(self.costs)

    @property
    def is_fp(self) -> bool | None:
        """True if this failure is labeled as a false alarm; None without a label."""
        if self.ground_truth is None:
            return None
        return self.status is Status.FAILED and not self.ground_truth

    @property
    def raw_value(self) -> int | Decimal | float | str | None:
        """The same as `metric_value`."""
        return self.metric_value

    @property
    def assertion(self) -> str:
        """The name of the assertion."""
        return self.name

    @property
    def passed(self) -> bool:
        """True if the assertion holds: False also for skipped ones and errors."""
        return self.status is Status.PASSED

    @property
    def metric_value(self) -> int | Decimal | float | str | None:
        """The value before profiles scaled it; the compared value is `scaled_value`.

        Durations are in seconds. A decimal is a `Decimal`, a quotient without a finite decimal form
        the nearest float; `value` has both as an exact `Fraction`.
        """
        value = self.value
        if not isinstance(value, Fraction):
            return value
        return Decimal(exact_text(value)) if is_decimal(value) else nearest_float(value)


class SuiteFailedError(AssertionError):
    """A suite did not pass. `results` has its results; the message is the report of a gate."""

    def __init__(self, results: Results) -> None:
        super().__init__(f"\n{results}")
        self.results = results


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a suite in its order, after the results of the implicit assertions.

    `report` is the complete report as a value with a JSON form; `warnings` are the diagnostics of
    the suite. `costs` belong to the verdicts, in order; `labels` are by check and name. Printed,
    results look like the output of a gate.
    """

    report: GateReport
    warnings: tuple[Diagnostic, ...] = ()
    costs: tuple[Cost, ...] = ()
    labels: Mapping[tuple[str, str], bool] = field(default_factory=dict)

    @property
    def assertions(self) -> tuple[Result, ...]:
        """One result per assertion, in the order of the suite."""
        names = [item.name for item in fields(Verdict)]
        return tuple(
            Result(
                **{name: getattr(verdict, name) for name in names},
                costs=costs or DEFAULT_COST,
                ground_truth=self.labels.get((verdict.check, verdict.name)),
            )
            for verdict, costs in zip_longest(self.report.verdicts, self.costs)
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome of a gate: passed, warned, blocked, or broken."""
        return self.report.outcome

    @property
    def datasets(self) -> tuple[DatasetSnapshot, ...]:
        """The checked data: location, version, number of rows."""
        return self.report.datasets

    def __iter__(self) -> Iterator[Result]:
        return iter(self.assertions)

    def __len__(self) -> int:
        return len(self.report.verdicts)

    def __str__(self) -> str:
        return draw_report(self.report)

    def _repr_html_(self) -> str:
        """The results as displayed in a notebook."""
        return html_of(self.report)

    def raise_for_failures(self, *, allow_warnings: bool = True) -> Results:
        """Returns these results, unless a gate would stop the task.

            suite.run(db, day).raise_for_failures()

        :param allow_warnings: accepts `warned`: failures below `fail_on`, or missing history.
        :raises SuiteFailedError: the outcome is another one; the message is the report.
        """
        passes = _LENIENT if allow_warnings else {Outcome.PASSED}
        if self.outcome not in passes:
            raise SuiteFailedError(self)
        return self

    def to_pandas(self) -> Any:
        """Returns a pandas DataFrame with a row per assertion, and the columns of the table
        `results`.

        :raises ImportError: pandas is not installed.
        """
        import pandas  # type: ignore[import-untyped]

        names = [name for name in RESULTS_SCHEMA.names if name != MONTH]
        return pandas.DataFrame(results_rows(self.report), columns=names)


class DatesFailedError(AssertionError):
    """A suite did not pass on all dates.

    `results` has all dates; the message has the report of each date that did not pass.
    """

    def __init__(self, results: DatedResults) -> None:
        super().__init__(f"\n{results}")
        self.results = results


@dataclass(frozen=True, slots=True)
class DatedResults(Mapping[date, Results]):
    """The results of a suite by date, in order, each as of a run for that date alone.

        for day, results in suite.run_dates(db, "2026-01-01..2026-03-31").items():
            print(day, results.outcome)

    `not_run` has the dates for which a `StoredDatabase` has no results, with the reason.
    """

    by_date: Mapping[date, Results]
    not_run: Mapping[date, UpstreamFailure] = field(default_factory=dict)

    def __getitem__(self, on: date) -> Results:
        return self.by_date[on]

    def __iter__(self) -> Iterator[date]:
        return iter(self.by_date)

    def __len__(self) -> int:
        return len(self.by_date)

    @property
    def outcome(self) -> Outcome:
        """The worst outcome; broken if a date was not run."""
        if self.not_run or not self.by_date:
            return Outcome.BROKEN
        return values.worst_outcome(results.outcome for results in self.by_date.values())

    @property
    def outcomes(self) -> dict[date, Outcome]:
        """The outcome of each date."""
        return {on: results.outcome for on, results in self.by_date.items()}

    def raise_for_failures(self, *, allow_warnings: bool = True) -> DatedResults:
        """Returns these results, unless a gate would stop the task on one of the dates.

        :param allow_warnings: accepts `warned`: failures below `fail_on`, or missing history.
        :raises DatesFailedError: a date has another outcome.
        """
        passes = _LENIENT if allow_warnings else {Outcome.PASSED}
        if self.outcome not in passes:
            raise DatesFailedError(self)
        return self

    def to_pandas(self) -> Any:
        """Returns a pandas DataFrame with a row per date and assertion, and the columns of the
        table `results`.

        The date is in the column `dataset_date`.

        :raises ImportError: pandas is not installed.
        """
        import pandas

        frames = [results.to_pandas() for results in self.by_date.values()]
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    def __str__(self) -> str:
        lines = [f"{on.isoformat()}: {outcome.value}" for on, outcome in self.outcomes.items()]
        lines += [f"{on.isoformat()}: not run: {why.problem}" for on, why in self.not_run.items()]
        reports = [
            str(results)
            for results in self.by_date.values()
            if results.outcome is not Outcome.PASSED
        ]
        return "\n\n".join(["\n".join(sorted(lines)), *reports])

    def _repr_html_(self) -> str:
        """The outcomes as displayed in a notebook."""
        outcomes = [(on, outcome.value) for on, outcome in self.outcomes.items()]
        outcomes += [(on, "not run") for on in self.not_run]
        rows = "".join(
            f"<tr><td>{on.isoformat()}</td><td>{text}</td></tr>" for on, text in sorted(outcomes)
        )
        head = "<thead><tr><th>date</th><th>outcome</th></tr></thead>"
        return f"<table>{head}<tbody>{rows}</tbody></table>"


Function = TypeVar("Function", bound=Callable[..., Any])


class RunKeywords(TypedDict, total=False):
    """The fields of `RunOptions` in their accepted forms: `fail_on` also as `"P1"`, dates in any
    order."""

    fail_on: Severity | str
    allow_empty: bool
    require_history: bool
    skip_dates: Collection[date]
    ansi: bool
    max_clock_skew_hours: float


class SelectionKeywords(TypedDict, total=False):
    """The fields of `Selection`, in the forms accepted by `selection_of`."""

    only: Words
    tags: Words
    exclude_tags: Words
    min_severity: Severity | str | None
    dimensions: Words


class SelectedRunKeywords(RunKeywords, SelectionKeywords, total=False):
    """The keywords of a run with an optional selection."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How suites are run. `now` is the time from which ages such as `freshness` are measured, by
    default the current one; without a `selection` all assertions are run.

    :raises RequestError: `now` has no time zone.
    """

    options: values.RunOptions = field(default_factory=values.RunOptions)
    now: datetime | None = None
    selection: values.Selection | None = None

    def __post_init__(self) -> None:
        if self.now is not None and self.now.tzinfo is None:
            raise RequestError("`now` has no time zone", "write datetime.now(timezone.utc)")

    @classmethod
    def of(cls, given: RunKeywords | SelectedRunKeywords, now: datetime | None) -> RunSettings:
        """The given keywords, with defaults for the others.

        :raises RequestError: a value is invalid.
        :raises TypeError: the option does not exist.
        """
        keywords: dict[str, Any] = {**given}
        selecting = SelectionKeywords.__annotations__.keys() & keywords.keys()
        selected = {name: keywords.pop(name) for name in selecting}
        if "fail_on" in keywords:
            keywords["fail_on"] = severity_of("fail_on", keywords["fail_on"])
        if "skip_dates" in keywords:
            keywords["skip_dates"] = tuple(keywords["skip_dates"])
        return cls(values.RunOptions(**keywords), now, selection_of(**selected))


def with_keywords_of(keywords: type) -> Callable[[Function], Function]:
    """The function, with its `**options` displayed as separate keywords: in `help` and in
    notebooks."""
    defaults = {field.name: field.default for field in fields(values.RunOptions)}

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        options = (
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(name),
                annotation=annotation.__forward_arg__,
            )
            for name, annotation in keywords.__annotations__.items()
        )
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=(*own, *options)
        )
        return function

    return shown


DEFAULTS = RunSettings()
_DATES_HINT = "write a list of dates, or '2026-01-01..2026-03-31'"


def run(
    checked: Checked,
    db: Database,
    on: date,
    settings: RunSettings = DEFAULTS,
    contract: values.EnforcedContract | None = None,
) -> Results:
    """Plans, measures and evaluates a suite without errors.

    :param contract: the contract that the suite was compiled from.
    :raises SourceError: the suite requires a dataset or dates that the database does not have.
    :raises RequestError: an argument is invalid, or it selects something that does not exist.
    """
    plan = plan_of(checked, db, on, settings, contract)
    started = _clock()
    return _judged(checked, db, plan, db.measure(plan), settings, started)


def run_dates(
    checked: Checked, db: Database, dates: str | Iterable[date], settings: RunSettings
) -> DatedResults:
    """The results of `run` for each of several dates; over Spark all are measured together.

    :param dates: the dates, or a range as a string, `2026-01-01..2026-03-31`; the other
        arguments are the same as for `run`.
    :raises SourceError: the suite needs a dataset or dates that the database does not have.
    :raises RequestError: an argument is invalid, or no assertion matches the selection.
    """
    suites = dict.fromkeys(dates_of(dates), DatedSuite(checked))
    return run_each(suites, db, settings)


@dataclass(frozen=True, slots=True)
class DatedSuite:
    """A checked suite for a date, and the contract that it was compiled from, if any."""

    checked: Checked
    contract: values.EnforcedContract | None = None


def run_each(
    suites: Mapping[date, DatedSuite], db: Database, settings: RunSettings
) -> DatedResults:
    """The results of `run` for the suite of each date; over Spark all are measured together.

    :raises SourceError: a suite needs a dataset or dates that the database does not have.
    :raises RequestError: an argument is invalid, or no assertion matches the selection.
    """
    plans = [
        plan_of(suite.checked, db, on, settings, suite.contract) for on, suite in suites.items()
    ]
    started = _clock()
    results: dict[date, Results] = {}
    not_run: dict[date, UpstreamFailure] = {}
    together = db.measure_all(plans) if isinstance(db, SparkDatabase) else None
    for number, (plan, suite) in enumerate(zip(plans, suites.values(), strict=True)):
        try:
            measured = together[number] if together is not None else db.measure(plan)
            results[plan.date] = _judged(suite.checked, db, plan, measured, settings, started)
        except UpstreamFailure as failure:
            not_run[plan.date] = failure
    return DatedResults(results, not_run)


def dates_of(given: str | Iterable[date]) -> tuple[date, ...]:
    """The dates of a list, or of a range as a string: `2026-01-01..2026-03-31`.

    :raises RequestError: these are not dates.
    """
    if isinstance(given, str):
        return dates_of_range(given, day_in)
    if isinstance(given, date):
        raise RequestError("`dates` is a single date", _DATES_HINT)
    dates = tuple(dict.fromkeys(given))
    if not dates:
        raise RequestError("`dates` is empty", _DATES_HINT)
    return dates


def _judged(
    checked: Checked,
    db: Database,
    plan: Plan,
    measured: tuple[Scanned, tuple[DatasetSnapshot, ...]],
    settings: RunSettings,
    started: datetime,
) -> Results:
    """:raises UpstreamFailure: the gate has no results for the date."""
    scanned, datasets = measured
    options = settings.options
    now = settings.now
    run_id = str(uuid.uuid4())
    labels: Mapping[tuple[str, str], bool] = {}
    if isinstance(db, StoredDatabase):
        day = db.day(plan.suite, plan.date)
        now = now or day.now
        labels = day.labels
    verdicts = evaluate(plan, scanned, options.skip_dates, now=now or started)
    requires = options.require_history or plan.require_history
    report = GateReport(
        run_id=run_id,
        run_key=values.RunKey(plan.suite, plan.date, "python"),
        attempt=values.Attempt(1, run_id),
        suite=plan.suite,
        fail_on=options.fail_on,
        outcome=decide(verdicts, options.fail_on, require_history=requires),
        verdicts=verdicts,
        datasets=datasets,
        started_at=started,
        finished_at=_clock(),
        partial=plan.partial,
        **(db.engine if isinstance(db, SparkDatabase) else {}),
    )
    costs = tuple(assertion.cost for assertion in plan.assertions)
    return Results(report, checked.diagnostics, costs, labels)


def plan_of(
    checked: Checked,
    db: Database,
    on: date,
    settings: RunSettings = DEFAULTS,
    contract: values.EnforcedContract | None = None,
) -> Plan:
    """The plan of a suite without errors; arguments as for `run`.

    :raises SourceError: the suite requires a dataset or dates that the database does not have.
    :raises RequestError: the date is invalid, or it selects something that does not exist.
    """
    if not isinstance(on, date):
        hint = "write date(2024, 12, 25)"
        if isinstance(on, str) and is_range(on):
            hint = "call run_dates for a range of dates"
        raise RequestError(f"{on!r} is not a date", hint)
    suite = checked.valid_suite
    file = suite.span.file
    day = on.date() if isinstance(on, datetime) else on
    request = values.GateRequest(
        run_key=values.RunKey(suite.name.value, day, "python"),
        attempt=values.Attempt(1, ""),
        suite=values.SourceFile(file, checked.sources.get(file, "")),
        datasets=tuple(db.datasets),
        results_root="",
        selection=settings.selection,
        contract=contract,
        **settings.options.keywords,
    )
    names = suite.watched
    columns = db.watched(names, suite.name.value, day) if names else {}
    return plan_of_request(request, checked, columns)


def raise_errors(errors: tuple[Diagnostic, ...], checked: Checked) -> None:
    """Raises if there are errors; the message is their drawing.

    :raises SourceError: there is an error.
    """
    if errors:
        raise drawn_error(errors, checked.sources)


def _clock() -> datetime:
    return datetime.now(timezone.utc)
