"""Runs suites from Python, and the keywords of a run."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime, timezone
from typing import Any, TypedDict, TypeVar

from dqx_airflow.api.database import Database, SparkDatabase, StoredDatabase
from dqx_airflow.api.results import DatedResults, Results
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.renderers import draw
from dqx_airflow.dql.check import Checked
from dqx_airflow.errors import RequestError, SourceError, UpstreamFailure
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.selection import plan_of as plan_of_request
from dqx_airflow.values import (
    Attempt,
    DatasetSnapshot,
    EnforcedContract,
    GateReport,
    GateRequest,
    RunKey,
    RunOptions,
    Selection,
    Severity,
    SourceFile,
)
from dqx_airflow.values.selection import Words, dates_of_range, is_range, selection_of

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
    severity: Severity | str | None
    dimensions: Words


class SelectedRunKeywords(RunKeywords, SelectionKeywords, total=False):
    """The keywords of a run with an optional selection."""


def options_of(given: RunKeywords) -> RunOptions:
    """The given options, with defaults for the others; a selection is ignored.

    :raises RequestError: a value is invalid.
    :raises TypeError: the option does not exist.
    """
    selecting = SelectionKeywords.__annotations__
    keywords: dict[str, Any] = {
        name: value for name, value in given.items() if name not in selecting
    }
    if "fail_on" in keywords:
        keywords["fail_on"] = _severity(keywords["fail_on"])
    if "skip_dates" in keywords:
        keywords["skip_dates"] = tuple(keywords["skip_dates"])
    return RunOptions(**keywords)


def selection_in(given: SelectionKeywords) -> Selection | None:
    """The given selection; None if everything is selected.

    :raises RequestError: a value is invalid.
    """
    selecting = SelectionKeywords.__annotations__
    keywords: dict[str, Any] = {name: value for name, value in given.items() if name in selecting}
    return selection_of(**keywords)


def with_keywords_of(keywords: type) -> Callable[[Function], Function]:
    """The function, with its `**options` displayed as separate keywords: in `help` and in
    notebooks."""
    defaults = {field.name: field.default for field in fields(RunOptions)}

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


def _severity(given: Severity | str) -> Severity:
    try:
        return Severity(given)
    except ValueError:
        raise RequestError(f"fail_on={given!r}: write P0, P1, P2 or P3") from None


DEFAULTS = RunOptions()
_DATES_HINT = "write a list of dates, or '2026-01-01..2026-03-31'"


def run(
    checked: Checked,
    db: Database,
    on: date,
    options: RunOptions = DEFAULTS,
    *,
    now: datetime | None = None,
    selection: Selection | None = None,
    contract: EnforcedContract | None = None,
) -> Results:
    """Plans, measures and judges a suite without errors.

    :param now: the time from which ages such as `freshness` are measured; by default the current
        time.
    :param selection: the assertions to run; by default all of them.
    :param contract: the contract that the suite was compiled from.
    :raises SourceError: the suite requires a dataset or dates that the database does not have.
    :raises RequestError: an argument is invalid, or it selects something that does not exist.
    """
    _require_zone(now)
    plan = plan_of(checked, db, on, options, selection=selection, contract=contract)
    started = _clock()
    return _judged(checked, db, plan, db.measure(plan), options, now, started)


def run_dates(
    checked: Checked,
    db: Database,
    dates: str | Iterable[date],
    options: RunOptions = DEFAULTS,
    *,
    now: datetime | None = None,
    selection: Selection | None = None,
) -> DatedResults:
    """The results of `run` for each of several dates; over Spark all are measured together.

    :param dates: the dates, or a range as a string, `2026-01-01..2026-03-31`; the other
        arguments are those of `run`.
    :raises SourceError: the suite needs a dataset or dates that the database does not have.
    :raises RequestError: an argument is invalid, or no assertion matches the selection.
    """
    suites = dict.fromkeys(dates_of(dates), DatedSuite(checked))
    return run_each(suites, db, options, now=now, selection=selection)


@dataclass(frozen=True, slots=True)
class DatedSuite:
    """A checked suite for a date, and the contract that it was compiled from, if any."""

    checked: Checked
    contract: EnforcedContract | None = None


def run_each(
    suites: Mapping[date, DatedSuite],
    db: Database,
    options: RunOptions = DEFAULTS,
    *,
    now: datetime | None = None,
    selection: Selection | None = None,
) -> DatedResults:
    """The results of `run` for the suite of each date; over Spark all are measured together.

    :raises SourceError: a suite needs a dataset or dates that the database does not have.
    :raises RequestError: an argument is invalid, or no assertion matches the selection.
    """
    _require_zone(now)
    plans = [
        plan_of(suite.checked, db, on, options, selection=selection, contract=suite.contract)
        for on, suite in suites.items()
    ]
    started = _clock()
    results: dict[date, Results] = {}
    not_run: dict[date, UpstreamFailure] = {}
    together = db.measure_all(plans) if isinstance(db, SparkDatabase) else None
    for number, (plan, suite) in enumerate(zip(plans, suites.values(), strict=True)):
        try:
            measured = together[number] if together is not None else db.measure(plan)
            results[plan.date] = _judged(suite.checked, db, plan, measured, options, now, started)
        except UpstreamFailure as failure:
            not_run[plan.date] = failure
    return DatedResults(results, not_run)


def dates_of(given: str | Iterable[date]) -> tuple[date, ...]:
    """The dates of a list, or of a range as a string: `2026-01-01..2026-03-31`.

    :raises RequestError: these are not dates.
    """
    if isinstance(given, str):
        return dates_of_range(given, _day_in)
    if isinstance(given, date):
        raise RequestError("`dates` is a single date", _DATES_HINT)
    dates = tuple(dict.fromkeys(given))
    if not dates:
        raise RequestError("`dates` is empty", _DATES_HINT)
    return dates


def _day_in(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _require_zone(now: datetime | None) -> None:
    """:raises RequestError: it has no time zone."""
    if now is not None and now.tzinfo is None:
        raise RequestError("`now` has no time zone", "write datetime.now(timezone.utc)")


def _judged(
    checked: Checked,
    db: Database,
    plan: Plan,
    measured: tuple[Scanned, tuple[DatasetSnapshot, ...]],
    options: RunOptions,
    now: datetime | None,
    started: datetime,
) -> Results:
    """:raises UpstreamFailure: the gate has no results for the date."""
    scanned, datasets = measured
    run_id = str(uuid.uuid4())
    labels: Mapping[tuple[str, str], bool] = {}
    if isinstance(db, StoredDatabase):
        day = db.day(plan.suite, plan.date)
        now, labels = now or day.now, day.labels
    verdicts = evaluate(plan, scanned, options.skip_dates, now=now or started)
    requires = options.require_history or plan.require_history
    report = GateReport(
        run_id=run_id,
        run_key=RunKey(plan.suite, plan.date, "python"),
        attempt=Attempt(1, run_id),
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
    options: RunOptions = DEFAULTS,
    *,
    selection: Selection | None = None,
    contract: EnforcedContract | None = None,
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
    request = GateRequest(
        run_key=RunKey(suite.name.value, day, "python"),
        attempt=Attempt(1, ""),
        suite=SourceFile(file, checked.sources.get(file, "")),
        datasets=tuple(db.datasets),
        results_root="",
        selection=selection,
        contract=contract,
        **options.keywords,
    )
    return plan_of_request(request, checked)


def raise_errors(errors: tuple[Diagnostic, ...], checked: Checked) -> None:
    """Raises if there are errors; the message is their drawing.

    :raises SourceError: there is an error.
    """
    if errors:
        raise SourceError(draw(errors, checked.sources), diagnostics=errors)


def _clock() -> datetime:
    return datetime.now(timezone.utc)
