"""`dql backtest`: what past days would have been with other thresholds."""

from __future__ import annotations

import json
from datetime import date, timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqx_airflow.cli.output_file import print_or_write
from dqx_airflow.cli.results_root import storage_options
from dqx_airflow.cli.run.options import (
    ConfigOption,
    ConnectionOption,
    DatasetOption,
    OutputFileOption,
)
from dqx_airflow.cli.tuning.call import (
    GateOption,
    MapIndexOption,
    ResultsOption,
    SinceOption,
    SuiteArgument,
    UntilOption,
    first_and_last,
    require_days,
    results_root,
    suite_file,
)
from dqx_airflow.diagnostics.listing import listed
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Status, day_of_instance

if TYPE_CHECKING:
    from dqx_airflow.dql.check import Checked
    from dqx_airflow.tuning.comparison import BacktestComparison
    from dqx_airflow.tuning.past_days import PastDay

_MOST_NAMED = 5
_MOST_REASONS = 3


class BacktestFormat(str, Enum):
    TABLE = "table"
    JSON = "json"
    SVG = "svg"
    HTML = "html"


def backtest(
    suite: SuiteArgument,
    *,
    since: SinceOption = None,
    until: UntilOption = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A tunable with the value to try: NAME=VALUE. Repeatable.",
        ),
    ] = None,
    proposal: Annotated[
        Path | None,
        typer.Option("--proposal", help="The changed suite, or a proposal as JSON."),
    ] = None,
    fill: Annotated[
        bool, typer.Option("--fill", help="Measure the days that the store lacks, in one scan.")
    ] = False,
    gate: GateOption = None,
    map_index: MapIndexOption = None,
    results: ResultsOption = None,
    dataset: DatasetOption = None,
    connection: ConnectionOption = None,
    config: ConfigOption = None,
    output: Annotated[
        BacktestFormat, typer.Option("--format", help="Output format: table, json, svg or html.")
    ] = BacktestFormat.TABLE,
    output_file: OutputFileOption = None,
) -> None:
    """Show what would have passed and failed on past days, from stored metric values.

    By default, the days of the last 90 that have results, and those between them. Days without
    stored values are unknown; --fill measures them, by default all of the last 90.
    """
    from dqx_airflow.results.past_days import past_days

    checked = suite_file(suite).read()
    first, last = first_and_last(since, until, default=90)
    root = results_root(suite, results)
    days = past_days(
        root,
        checked.valid_suite.name.value,
        first,
        last,
        gate=gate,
        map_index=map_index,
        storage_options=storage_options(),
    )
    if fill:
        from dqx_airflow.cli.tuning.fill import filled

        days = filled(suite, days, first, last, dataset, connection, config)
    else:
        require_days(days, root, checked.valid_suite.name.value, (first, last), gate, map_index)
        first = first if since else days[0].date
        last = last if until else days[-1].date
    comparison = _compared(checked, suite, _all_days(days, first, last), values or [], proposal)
    if output is BacktestFormat.TABLE and output_file is None:
        _print_table(comparison)
    else:
        print_or_write(_written(comparison, output), output_file)


def _all_days(days: tuple[PastDay, ...], first: date, last: date) -> list[PastDay]:
    """The days, and the days between them that have no results. For a mapped gate these are the
    days of each instance on dates on which the gate was mapped."""
    from dqx_airflow.plan.measured import Measurements
    from dqx_airflow.tuning.past_days import PastDay

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
    checked: Checked, path: Path, days: list[PastDay], arguments: list[str], proposal: Path | None
) -> BacktestComparison:
    from dqx_airflow.tuning.backtest import Backtest
    from dqx_airflow.tuning.comparison import compare_judged
    from dqx_airflow.tuning.protection import HUMAN, judge_values
    from dqx_airflow.tuning.suite_file import refuse
    from dqx_airflow.tuning.tunables import typed_values

    today = Backtest(checked.valid_suite, days)
    values = typed_values(arguments)
    proposed, base = today, checked
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
        return suite_file(proposal).read(), {}
    from dqx_airflow.tuning.proposals import proposal_from_json

    proposed = proposal_from_json(_read(proposal))
    if proposed.profile is None and proposed.form is None:
        return checked, proposed.values
    return suite_file(path).changed(checked, proposed.profile, proposed.form), proposed.values


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot read {path}: {error}") from error


def _written(comparison: BacktestComparison, output: BacktestFormat) -> str:
    from dqx_airflow.tuning.drawings import calendar_html, calendar_svg

    match output:
        case BacktestFormat.SVG:
            return calendar_svg(comparison)
        case BacktestFormat.HTML:
            return calendar_html(comparison)
        case BacktestFormat.JSON:
            return json.dumps(_plain(comparison), ensure_ascii=False, indent=1) + "\n"
        case BacktestFormat.TABLE:
            from io import StringIO

            out = StringIO()
            _print_table(comparison, out)
            return out.getvalue()


def _plain(comparison: BacktestComparison) -> dict[str, Any]:
    from dataclasses import asdict
    from fractions import Fraction

    from dqx_airflow.exact import nearest_float

    return {
        "suite": comparison.suite,
        "from": comparison.dates[0].isoformat() if comparison.dates else None,
        "to": comparison.dates[-1].isoformat() if comparison.dates else None,
        "values": {
            "today": dict(comparison.values_before),
            "proposed": dict(comparison.values_after),
        },
        "summary": {"today": asdict(comparison.before), "proposed": asdict(comparison.after)},
        "assertions": [
            {
                "check": assertion.check,
                "assertion": assertion.name,
                "severity": assertion.severity.value,
                "days": [
                    {
                        "date": day.date.isoformat(),
                        "map_index": day.map_index,
                        "today": day.before.value if day.before else "unknown",
                        "proposed": day.after.value if day.after else "unknown",
                        "label": day.label,
                        "value": nearest_float(day.value)
                        if isinstance(day.value, Fraction)
                        else day.value,
                        "unknown": day.unknown,
                    }
                    for day in assertion.days
                ],
            }
            for assertion in comparison.assertions
        ],
    }


def _print_table(comparison: BacktestComparison, file: Any = None) -> None:
    from rich.text import Text

    from dqx_airflow.cli.reports import console_for, printable, table_of
    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.tuning.tunables import number_text

    console = console_for(file)
    is_same = comparison.values_before == comparison.values_after and not comparison.changed
    columns = ("passed", "failed", "skipped", "error", "unknown")
    table = table_of("assertion", *columns, *(() if is_same else ("changes side on",)))
    for assertion in comparison.assertions:
        cells = []
        for status in (*Status, None):
            was, becomes = assertion.count(status, after=False), assertion.count(status, after=True)
            cells.append(str(was) if was == becomes else f"{was} -> {becomes}")
        days = [
            day_of_instance(day.date, day.map_index) for day in assertion.days if day.changes_side
        ]
        last = () if is_same else (listed(days, most=_MOST_NAMED),)
        table.add_row(*(Text(printable(cell)) for cell in (assertion.name, *cells, *last)))
    console.print(table)
    before, after = comparison.before, comparison.after
    lines = [f"{len(comparison.dates)} days, {len(comparison.assertions)} assertions"]
    if (instances := comparison.instances) > 1:
        lines[0] += f", {instances} instances of a mapped gate"
    for name, value in comparison.values_after.items():
        if comparison.values_before.get(name) != value:
            own, unit = comparison.values_before.get(name), comparison.units.get(name, Unit.PLAIN)
            old = "none" if own is None else number_text(own, unit)
            lines.append(f"{name}: {old} -> {number_text(value, unit)}")
    for label, name in (
        ("alarms", "failed"),
        ("labelled false", "false_alarms"),
        ("missed issues, by label", "missed"),
        ("unknown", "unknown"),
    ):
        was, becomes = getattr(before, name), getattr(after, name)
        lines.append(f"{label}: {was}" if is_same else f"{label}: {was} -> {becomes}")
    lines += _why_unknown(comparison)
    console.print(Text(printable("\n".join(lines), keep="\n")))


def _why_unknown(comparison: BacktestComparison) -> list[str]:
    """A line for each of the most frequent reasons."""
    from collections import Counter

    reasons = Counter(day.unknown for assertion in comparison.assertions for day in assertion.days)
    del reasons[None]
    most = reasons.most_common(_MOST_REASONS)
    return [f"  {count} of them: {reason}" for reason, count in most]
