"""`dql mutate`: which faults in its data a suite would miss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli import arguments, command
from dqx_airflow.cli.command import print_or_write
from dqx_airflow.cli.days import DayOption, MinShareOption
from dqx_airflow.cli.exit_codes import EXIT_FAILED
from dqx_airflow.cli.reports import printable, xml_attribute
from dqx_airflow.cli.stores import ResultsRootOption, storage_options
from dqx_airflow.datasets.dqx_toml import RunFormat
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import LARGEST_ID, MOST_LISTED
from dqx_airflow.values import DatasetRef, GateReport, GateRequest, Outcome
from dqx_airflow.values.output_form import output_form

if TYPE_CHECKING:
    from dqx_airflow.tuning.mutation import DayRows, Fault, MemoryJudge, Mutation

MOST_ROWS = 100_000
"""The most rows that are judged in memory."""
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
    format: Annotated[RunFormat, command.FORMAT] = RunFormat.TEXT,
    output: command.OutputOption = None,
    force: command.ForceOption = False,
) -> None:
    """Plant faults in the data of a day, and list those that block nothing.

    The faults are planted one at a time. The day is the last one on which the suite passed or
    warned, in the version that was judged then. Everything is judged in memory, without Spark, of a
    large day a sample; what needs Spark notices nothing, and is listed. With --connection, Spark
    judges all, and all rows of the day. Each missed fault comes with an assertion that would notice
    it, if one was found that holds on the good day and on up to 30 days before it. Exit code 1 if
    fewer faults than --min block.

    :param on: Another good day: 2024-12-25, yesterday or -3d.
    :param least: The share of faults that must block, such as 80%.
    :param rows: The most rows to read into memory; of a larger day a sample.
    :param seed: Another number hits other rows.
    :param format: Output format: text, json, summary or junit.
    """
    from dqx_airflow.plan.selection import checked_suite, plan_of
    from dqx_airflow.tuning.mutation import MemoryJudge, mutate, read_days

    file = command.writable(output, force=force)
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
    write = {RunFormat.JSON: _json, RunFormat.SUMMARY: _summary, RunFormat.JUNIT: _junit}
    print_or_write(write.get(format, _table)(done), file)
    if done.score < least:
        raise typer.Exit(EXIT_FAILED)


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


def _table(done: Mutation) -> str:
    text = filled(__package__, "mutation.txt", done=done, advice=_advice)
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
    shown = {"printable": printable, "quoted": lambda text: xml_attribute(printable(text))}
    return filled(__package__, "mutation.xml", done=done, advice=_advice, **shown)
