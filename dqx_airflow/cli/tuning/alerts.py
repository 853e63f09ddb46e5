"""`dql alerts`: the failures of the last days, and their labels."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.formats import SheetFormat
from dqx_airflow.cli.results_root import storage_options
from dqx_airflow.cli.tuning.call import (
    GateOption,
    MapIndexOption,
    ResultsOption,
    SuiteArgument,
    results_root,
    suite_name,
)
from dqx_airflow.diagnostics.machine_formats import json_text

if TYPE_CHECKING:
    from dqx_airflow.results.alerts import Alert


def alerts(
    suite: SuiteArgument,
    *,
    unlabeled: Annotated[
        bool, typer.Option("--unlabeled", help="Only failures without a label.")
    ] = False,
    days: Annotated[
        int, typer.Option("--days", min=1, help="The number of days, up to the last one.")
    ] = 7,
    until: Annotated[
        datetime | None,
        typer.Option("--until", formats=["%Y-%m-%d"], help="The last day; default: today."),
    ] = None,
    gate: GateOption = None,
    map_index: MapIndexOption = None,
    results: ResultsOption = None,
    output: Annotated[
        SheetFormat,
        typer.Option(
            "--format", help="Output format: table, json, or csv to fill in for `dql label`."
        ),
    ] = SheetFormat.TABLE,
) -> None:
    """List the failed assertions of the last days, oldest first, with their labels."""
    from dqx_airflow.results.alerts import alerts as find_alerts

    root = results_root(suite, results)
    last = until.date() if until else date.today()
    first = last - timedelta(days=days - 1)
    listed = find_alerts(
        root,
        suite_name(suite),
        first,
        last,
        gate=gate,
        map_index=map_index,
        unlabelled=unlabeled,
        storage_options=storage_options(),
    )
    newest = None if listed else _newest_before(root, suite, first, last, gate, map_index)
    noun = "unlabelled alerts" if unlabeled else "alerts"
    nothing = f"no {noun} in the {days} days up to {last}"
    if newest is not None:
        nothing = f"no results in the {days} days up to {last}: the newest are of {newest}"
        if output is not SheetFormat.TABLE:
            typer.echo(nothing, err=True)
    match output:
        case SheetFormat.JSON:
            typer.echo(json_text([_plain(alert) for alert in listed]))
        case SheetFormat.CSV:
            typer.echo(_as_csv(listed), nl=False)
        case SheetFormat.TABLE if listed:
            _print_table(listed)
        case SheetFormat.TABLE:
            typer.echo(nothing)


def _newest_before(
    root: str, suite: Path, first: date, last: date, gate: str | None, map_index: int | None
) -> date | None:
    """The newest date with results; None if the days from the first to the last have some.

    :raises RequestError: the suite has no results at all.
    """
    from dqx_airflow.results.past import newest_date, past_runs

    name, options = suite_name(suite), storage_options()
    newest = newest_date(root, name, gate=gate, map_index=map_index, storage_options=options)
    if first <= newest <= last:
        return None
    runs = past_runs(
        root, name, first, last, (), gate=gate, map_index=map_index, storage_options=options
    )
    return None if runs else newest


def _plain(alert: Alert) -> dict[str, object]:
    from fractions import Fraction

    from dqx_airflow.exact import nearest_float

    verdict, label = alert.verdict, alert.label
    value = verdict.scaled_value
    return {
        "date": alert.date.isoformat(),
        "gate": alert.gate,
        "map_index": alert.map_index,
        "check": verdict.check,
        "assertion": verdict.name,
        "severity": verdict.severity.value,
        "value": nearest_float(value) if isinstance(value, Fraction) else value,
        "expected": verdict.expected,
        "status": verdict.status.value,
        "reason": verdict.reason,
        "run_id": alert.run_id,
        "label": alert.label_kind.value if alert.label_kind else None,
        "labelled_by": label.author if label else None,
        "label_reason": label.reason if label else None,
    }


def _as_csv(listed: tuple[Alert, ...]) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    is_mapped = any(alert.map_index >= 0 for alert in listed)
    instance = ("map_index",) if is_mapped else ()
    head = ("check", "assertion", "value", "expected", "label", "reason")
    writer.writerow(("date", *instance, *head))
    for alert in listed:
        verdict = alert.verdict
        shown_label = alert.label_kind.value.replace(" ", "_") if alert.label_kind else ""
        reason = (alert.label.reason if alert.label else None) or ""
        value = shown_value(alert)
        index = (alert.map_index if alert.map_index >= 0 else "",) if is_mapped else ()
        cells = verdict.check, verdict.name, value, verdict.expected, shown_label, reason
        writer.writerow((alert.date, *index, *cells))
    return out.getvalue()


def _print_table(listed: tuple[Alert, ...]) -> None:
    from dqx_airflow.cli.reports import print_table

    several = len({alert.gate for alert in listed}) > 1
    is_mapped = any(alert.map_index >= 0 for alert in listed)
    head = ("date", *(("gate",) if several else ()), *(("instance",) if is_mapped else ()))
    rows = []
    for alert in listed:
        verdict, label = alert.verdict, alert.label
        shown_label = (
            f"{alert.label_kind.value} ({label.author})" if alert.label_kind and label else ""
        )
        row = (
            alert.date.isoformat(),
            *((alert.gate,) if several else ()),
            *((str(alert.map_index) if alert.map_index >= 0 else "",) if is_mapped else ()),
            verdict.name,
            shown_value(alert),
            verdict.expected,
            verdict.status.value,
            shown_label,
        )
        rows.append(row)
    print_table((*head, "assertion", "value", "expected", "status", "label"), rows)


def shown_value(alert: Alert) -> str:
    """The compared value, as a percentage if its limit is one."""
    from dqx_airflow.diagnostics.verdicts import format_value, scaled_text

    verdict = alert.verdict
    value = verdict.scaled_value
    if "%" in verdict.expected and value is not None and not isinstance(value, str):
        return f"{format_value(round(float(value) * 100, 4))}%"
    return scaled_text(verdict)
