"""`dql mutate`: which faults in its data a suite would miss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from dqx_airflow.cli import arguments, command
from dqx_airflow.cli.command import print_or_write
from dqx_airflow.cli.days import DayOption, MinShareOption
from dqx_airflow.cli.exit_codes import EXIT_FAILED
from dqx_airflow.cli.reports import printable
from dqx_airflow.cli.stores import ResultsRootOption, storage_options
from dqx_airflow.diagnostics.junit import Case, CaseSuite, junit_xml
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import LARGEST_ID, MOST_LISTED
from dqx_airflow.values import DatasetRef, GateReport, GateRequest, Outcome
from dqx_airflow.values.output_form import output_form

if TYPE_CHECKING:
    from dqx_airflow.tuning.day_rows import DayRows
    from dqx_airflow.tuning.mutation import MemoryJudge, Mutation
    from dqx_airflow.tuning.planted_faults import Fault

MutationFormat: TypeAlias = Literal["text", "json", "summary", "junit"]

MOST_ROWS = 100_000
"""The most rows that are evaluated in memory."""
_LEAST_DAYS = 37
"""The days before the fine one that are read: those on which lines are tried, and a week before."""


def mutate(
    suite: arguments.SuiteArgument,
    *,
    on: DayOption = None,
    results_root: ResultsRootOption = None,
    dataset: arguments.DatasetOption = None,
    config: arguments.ConfigOption = None,
    least: MinShareOption = 0.0,
    rows: Annotated[int, typer.Option(min=1, max=MOST_LISTED)] = MOST_ROWS,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_ID)] = 0,
    connection: arguments.ConnectionOption = None,
    format: Annotated[MutationFormat, command.FORMAT] = "text",
    output: command.OutputOption = None,
    force: command.ForceOption = False,
    quiet: command.QuietOption = False,
    verbose: command.VerboseOption = False,
) -> None:
    """Plant faults in the data of a day, and list those that block nothing.

    The faults are planted one at a time. The day is the last one on which the suite passed or
    warned, in the version that was checked then. Everything is evaluated in memory, without Spark,
    of a large day a sample; what needs Spark notices nothing, and is listed. With --connection,
    Spark evaluates all, and all rows of the day. Each missed fault comes with an assertion that
    would notice it, if one was found that holds on the good day and on up to 30 days before it.
    Exit code 1 if fewer faults than --min block.

    :param on: Another good day: 2024-12-25, yesterday or -3d.
    :param least: The share of faults that must block, such as 80%.
    :param rows: The most rows to read into memory; of a larger day a sample.
    :param seed: Another number hits other rows.
    :param format: Output format: text, json, summary or junit.
    :param quiet: Print only the number of faults that block.
    :param verbose: Print the faults that block, too, with what notices them.
    """
    from dqx_airflow.plan.selection import checked_suite, plan_of
    from dqx_airflow.tuning.day_rows import read_days
    from dqx_airflow.tuning.mutation import MemoryJudge, mutate

    file = command.writable(output, force=force)
    command.require_text(format, quiet=quiet, verbose=verbose)
    options = arguments.Options(
        (suite,),
        date=None if on is None else on.isoformat(),
        datasets=dataset,
        config=config,
        results_root=results_root,
    )
    request, now = _fine_day(options)
    checked = checked_suite(request)
    day = request.run_key.date
    needed = [(day - one.date).days for one in plan_of(request, checked).requests if one.date]
    days = max(_LEAST_DAYS, *needed, 0)
    with ExitStack() as opened:
        read: Callable[..., DayRows] = read_days
        judging: Callable[..., MemoryJudge] = MemoryJudge
        if connection is not None:
            faults = command.of_spark("dqx_airflow.engine.faults")
            settings = command.settings_here()
            reached = command.connection_in(settings, connection)
            conf = {**request.session_settings, **settings.session}
            session = command.of_spark("dqx_airflow.cli.spark").session_over
            spark = opened.enter_context(session(reached, conf, "dql mutate"))
            read = partial(faults.read_days, spark)
            judging = partial(faults.SparkJudge, spark=spark)
        data = {
            ref.name: read(ref, day, days=days, most=rows, seed=seed) for ref in request.datasets
        }
        done = mutate(judging(request, data, now), checked, seed)
    print_or_write(_written(done, "summary" if quiet else format, is_verbose=verbose), file)
    if done.score < least:
        raise typer.Exit(EXIT_FAILED)


def _written(done: Mutation, format: MutationFormat, *, is_verbose: bool) -> str:
    match format:
        case "json":
            return _json(done)
        case "junit":
            return _junit(done)
        case "summary":
            return _summary(done)
        case "text":
            return _table(done, is_verbose=is_verbose)


def _fine_day(options: arguments.Options) -> tuple[GateRequest, datetime]:
    """The request of the last run on the good day, with the versions that it read, and its time."""
    from dqx_airflow.results.query import RunsWanted, StoredResults
    from dqx_airflow.results.runs import find_report

    request = request_of(options)
    key = request.run_key
    root = request.results_root
    day = key.date if options.date else None
    wanted = RunsWanted(suite=key.gate, since=day, until=day, is_partial=False)
    stored = StoredResults(root, storage_options())
    for run in stored.runs(wanted) if root else ():
        report = find_report(stored, run.run_id)
        if report is not None and run.outcome in (Outcome.PASSED, Outcome.WARNED):
            refs = as_read(request.datasets, report)
            key = replace(key, date=run.run_key.date)
            return replace(request, run_key=key, datasets=refs), report.started_at
    if day is None:
        raise RequestError(
            f"no run of {key.gate} that passed or warned is known",
            "add --date with a good day, or --results-root with the store of its gate",
        )
    night = datetime.combine(day + timedelta(days=1), time(), timezone.utc)
    return request, min(night, datetime.now(timezone.utc))


def as_read(refs: Iterable[DatasetRef], report: GateReport) -> tuple[DatasetRef, ...]:
    """The datasets in the versions that a run read, where they are the same tables."""
    from dqx_airflow.engine.sources.listing import absolute

    read = {(one.name, absolute(one.location)): one.version for one in report.datasets}
    return tuple(
        replace(ref, version=read.get((ref.name, absolute(ref.location)), ref.version))
        for ref in refs
    )


def request_of(options: arguments.Options) -> GateRequest:
    """The request of one suite for one date."""
    from dqx_airflow.cli.calls import read_call

    requests = read_call(options, date.today()).valid_requests
    if len(requests) > 1:
        raise RequestError("several suites or dates", "give one suite, and one --date")
    return requests[0]


def _table(done: Mutation, *, is_verbose: bool) -> str:
    shown = [fault for fault in done.faults if fault.noticed_by] if is_verbose else []
    text = filled(__package__, "mutation.txt", done=done, noticed=shown, advice=_advice)
    return printable(text + _summary(done), keep="\n")


def _summary(done: Mutation) -> str:
    noticed = f"{len(done.faults) - len(done.missed)} of {len(done.faults)}"
    return printable(f"{done.suite}: {noticed} faults block ({float(done.score):.0%})") + "\n"


def _advice(fault: Fault) -> str:
    if fault.line is None:
        return "no line was found that notices it and holds on the good days"
    before = f" and on {fault.days} days before" if fault.days else ""
    where = "sample of the good day" if fault.is_of_sample else f"good day{before}"
    return f"{fault.line}  # holds on the {where}"


def _json(done: Mutation) -> str:
    facts = {**output_form(done), "score": float(done.score)}
    return json_text(facts) + "\n"


def _junit(done: Mutation) -> str:
    cases = tuple(map(_case, done.faults))
    return junit_xml("dql mutate", [CaseSuite(f"dql mutate {done.suite}", cases)])


def _case(fault: Fault) -> Case:
    passed = Case(printable(f"{fault.dataset}: {fault.text}"), group=fault.kind)
    if fault.noticed_by:
        return passed
    return replace(passed, kind="failure", message="nothing blocks", text=printable(_advice(fault)))
