"""`dql tune backtest`: the verdicts of past days with other thresholds."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta
from functools import reduce
from io import StringIO
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer
from rich.text import Text

from dqx_airflow.cli import arguments
from dqx_airflow.cli.command import (
    FORMAT,
    ForceOption,
    OutputOption,
    QuietOption,
    VerboseOption,
    of_spark,
    print_or_write,
    require_text,
    writable,
)
from dqx_airflow.cli.days import DaysOption, FromOption, ToOption, first_and_last
from dqx_airflow.cli.json_objects import compared_assertion_object
from dqx_airflow.cli.reports import console_for, printable, table_of
from dqx_airflow.cli.stores import ResultsRootOption, results_of
from dqx_airflow.diagnostics import machine_formats
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql.check import Checked
from dqx_airflow.dql.nodes import Unit
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.measurements import Measurements, measurements_of
from dqx_airflow.plan.model import Plan
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.results.past_days import PastDay, past_days
from dqx_airflow.results.past_runs import runs_of_suite
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.comparison import BacktestComparison, ComparedAssertion, compare_judged
from dqx_airflow.tuning.proposals import proposal_from_json
from dqx_airflow.tuning.protection import HUMAN, judge_values
from dqx_airflow.tuning.suite_file import refuse
from dqx_airflow.tuning.tunables import number_text, typed_values
from dqx_airflow.values import GateRequest, Status, day_of_instance

if TYPE_CHECKING:
    from dqx_airflow.cli.spark import Spark

_MOST_NAMED = 5

BacktestFormat: TypeAlias = Literal["text", "json", "svg", "html"]


def backtest(
    suite: arguments.SuiteArgument,
    *,
    since: FromOption = None,
    until: ToOption = None,
    last_days: DaysOption = None,
    values: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE")] = None,
    proposal: Path | None = None,
    fill: bool = False,
    gate: arguments.GateOption = None,
    map_index: arguments.MapIndexOption = None,
    results_root: ResultsRootOption = None,
    dataset: arguments.DatasetOption = None,
    connection: arguments.ConnectionOption = None,
    config: arguments.ConfigOption = None,
    format: Annotated[BacktestFormat, FORMAT] = "text",
    output: OutputOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show what other limits would have passed and failed on past days.

    Reads stored metric values. By default, the days of the last 90 that have results, and those
    between them. Days without stored values are unknown; --fill measures them, by default all of
    the last 90.

    :param values: A tunable with the value to try: NAME=VALUE. Repeatable.
    :param proposal: The changed suite, or a proposal as JSON.
    :param fill: Measure the days that the store lacks, in one scan.
    :param format: Output format: text, json, svg or html.
    :param quiet: Print only the counts before and after, without the assertions.
    :param verbose: Print all days that change, and all reasons of unknown days.
    """
    require_text(format, quiet=quiet, verbose=verbose)
    checked = arguments.suite_file(suite).read()
    name = checked.valid_suite.name.value
    first, last = first_and_last(since, until, last_days, default=90)
    file = writable(output, force=force)
    stored = results_of(results_root, suite.parent)
    days = past_days(stored, name, first, last, gate=gate, map_index=map_index, as_labelled=True)
    if fill:
        given = arguments.Options((suite,), connection=connection, datasets=dataset, config=config)
        days = with_days_between(given, days, first, last)
    else:
        arguments.require_days(days, stored, runs_of_suite(name, first, last, gate, map_index))
        first = first if since else days[0].date
        last = last if until else days[-1].date
    comparison = _compared(checked, suite, _all_days(days, first, last), values or [], proposal)
    if format != "text":
        print_or_write(_written(comparison, format), file)
        return
    most = sys.maxsize if verbose else _MOST_NAMED
    if file is None:
        _print_comparison(comparison, with_assertions=not quiet, most=most)
        return
    out = StringIO()
    _print_comparison(comparison, out, with_assertions=not quiet, most=most)
    print_or_write(out.getvalue(), file)


def _all_days(days: tuple[PastDay, ...], first: date, last: date) -> list[PastDay]:
    """The days, and the days between them that have no results. For a mapped gate these are the
    days of each instance on dates on which the gate was mapped."""
    with_results = {(day.date, day.map_index): day for day in days}
    instances = sorted({day.map_index for day in days}) or [-1]
    mapped = {day.date: day.map_index >= 0 for day in days}
    dates = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return [
        with_results.get((on, index)) or PastDay(on, Measurements(), map_index=index)
        for on in dates
        for index in instances
        if (on, index) in with_results or (index >= 0) == mapped.get(on, instances[-1] >= 0)
    ]


def _compared(
    checked: Checked, path: Path, days: list[PastDay], typed: list[str], proposal: Path | None
) -> BacktestComparison:
    today = Backtest(checked.valid_suite, days)
    values = typed_values(typed)
    proposed = today
    base = checked
    if proposal is not None:
        base, proposed_values = _proposed(proposal, checked, path)
        proposed = today if base is checked else Backtest(base.valid_suite, days)
        values = {**proposed_values, **values}
    refuse(judge_values(base.valid_suite, values, HUMAN).refusals, base.sources)
    return compare_judged(today, today.judge(), proposed, proposed.judge(values))


def _proposed(proposal: Path, checked: Checked, path: Path) -> tuple[Checked, dict[str, float]]:
    """The proposed suite, and the proposed values of its tunables.

    :raises RequestError: the file is neither a suite nor a proposal.
    """
    if proposal.suffix == ".dql":
        return arguments.suite_file(proposal).read(), {}

    proposed = proposal_from_json(_text_of_file(proposal))
    if proposed.profile is None and proposed.form is None:
        return checked, proposed.values
    return arguments.suite_file(path).changed(
        checked, proposed.profile, proposed.form
    ), proposed.values


def _text_of_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot read {path}: {error}") from error


def _written(comparison: BacktestComparison, format: Literal["json", "svg", "html"]) -> str:
    from dqx_airflow.tuning.drawings import calendar_html, calendar_svg

    match format:
        case "svg":
            return calendar_svg(comparison)
        case "html":
            return calendar_html(comparison)
        case "json":
            return machine_formats.json_text(_comparison_fields(comparison)) + "\n"


def _comparison_fields(comparison: BacktestComparison) -> dict[str, Any]:
    return {
        "suite": comparison.suite,
        "from": comparison.dates[0].isoformat() if comparison.dates else None,
        "to": comparison.dates[-1].isoformat() if comparison.dates else None,
        "values": {
            "today": dict(comparison.values_before),
            "proposed": dict(comparison.values_after),
        },
        "summary": {"today": asdict(comparison.before), "proposed": asdict(comparison.after)},
        "assertions": [compared_assertion_object(assertion) for assertion in comparison.assertions],
    }


def _print_comparison(
    comparison: BacktestComparison, file: Any = None, *, with_assertions: bool, most: int
) -> None:
    """Prints the days that a change turns, and the counts before and after.

    :param most: the number of days and of reasons that are listed.
    """
    console = console_for(file)
    is_same = comparison.values_before == comparison.values_after and not comparison.changed
    columns = (*(status.value for status in Status), "unknown")
    head = ("assertion", *columns, *(() if is_same else ("days that change",)))
    rows = []
    for assertion in comparison.assertions:
        cells = []
        for status in (*Status, None):
            was = assertion.count(status, after=False)
            becomes = assertion.count(status, after=True)
            cells.append(str(was) if was == becomes else f"{was} -> {becomes}")
        last = () if is_same else (_turns(assertion, most),)
        rows.append((assertion.name, *cells, *last))
    if with_assertions:
        console.print(table_of(head, rows))
    values = []
    for name, value in comparison.values_after.items():
        own = comparison.values_before.get(name)
        unit = comparison.units.get(name, Unit.PLAIN)
        if own != value:
            old = "none" if own is None else number_text(own, unit)
            values.append((name, old, number_text(value, unit)))
    reasons = Counter(day.unknown for assertion in comparison.assertions for day in assertion.days)
    del reasons[None]
    fields = {"values": values, "is_same": is_same, "unknown": reasons.most_common(most)}
    text = filled(__package__, "comparison.txt", comparison=comparison, **fields)
    console.print(Text(printable(text, keep="\n")), end="")


def _turns(assertion: ComparedAssertion, most: int) -> str:
    """The days whose effect on the gate changes: `blocked -> warned: 2024-12-03, 2024-12-06`."""
    turns: dict[str, list[str]] = {}
    for day in assertion.days:
        if day.is_changed:
            turns.setdefault(day.turn, []).append(day_of_instance(day.date, day.map_index))
    return "; ".join(f"{turn}: {listed(days, most=most)}" for turn, days in turns.items())


def with_days_between(
    given: arguments.Options, known: Sequence[PastDay], first: date, last: date
) -> tuple[PastDay, ...]:
    """The known days, and the days between them as measured now.

    References and SQL over several datasets are not measured, since they depend on the state of
    other datasets on that day. Nothing is stored.

    :param given: the suite, and where its datasets are.
    :param known: days of one instance, if the gate is mapped.
    :raises SourceError: the suite does not fit its datasets.
    :raises RequestError: the days are of several instances of a mapped gate.
    :raises DqxError: they cannot be read.
    """
    instances = sorted({day.map_index for day in known}) or [-1]
    if len(instances) > 1:
        listed = ", ".join(map(str, instances))
        raise RequestError(
            f"--fill reads one dataset of each name, but the gate has several instances: {listed}",
            "add --map-index NUMBER, and the dataset of that instance",
        )
    measured_dates = {day.date for day in known if day.measured.values}
    count = (last - first).days + 1
    missing = [on for n in range(count) if (on := first + timedelta(days=n)) not in measured_dates]
    if not missing:
        return tuple(known)
    request, plans, spark = _opened(given, missing)

    try:
        measured_days = spark.measure(request.datasets, list(map(_of_one_dataset, plans)))
    finally:
        spark.close()
    labels = {day.date: day.labels for day in known}
    made = []
    for plan, measured_day in zip(plans, measured_days, strict=True):
        parts = (measurements_of(planned, plan, measured_day) for planned in plan.assertions)
        measured = reduce(or_, parts, Measurements())
        # The caller gives the location of the data: its name may differ from that in the gate.
        measured = replace(measured, reads={})
        own_labels = labels.get(plan.date, {})
        made.append(PastDay(plan.date, measured, labels=own_labels, map_index=instances[0]))
    kept = [day for day in known if day.date in measured_dates]
    return tuple(sorted([*kept, *made], key=lambda day: day.date))


def _opened(
    given: arguments.Options, missing: Sequence[date]
) -> tuple[GateRequest, list[Plan], Spark]:
    """The datasets of the suite, its plan for each of the days, and the measuring function."""
    from dqx_airflow.cli.calls import read_call
    from dqx_airflow.plan.selection import checked_suite, plan_of

    call = read_call(given, date.today())
    (request,) = call.valid_requests
    checked = checked_suite(request)
    quiet = replace(request, allow_empty=True)
    plans = [
        plan_of(replace(quiet, run_key=replace(request.run_key, date=on)), checked)
        for on in missing
    ]
    session = {**request.session_settings, **call.settings.session}
    made = of_spark("dqx_airflow.cli.spark").Spark(call.settings.connection, session)
    return request, plans, made


def _of_one_dataset(plan: Plan) -> Plan:
    """The plan without the requests about other datasets."""
    several = (Scan.QUERY, Scan.MATCH)
    requests = tuple(
        request
        for request in plan.requests
        if request.definition.scan not in several and not lookups_of(request)
    )
    return replace(plan, requests=requests, lookups=())
