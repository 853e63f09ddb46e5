"""`dql tune alerts` and `dql tune label`: the failures of the last days, and their labels by
whether there was a real issue, also from a CSV file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli import arguments
from dqx_airflow.cli.command import FORMAT, SheetFormat, print_list
from dqx_airflow.cli.days import DayOption, DaysOption, FromOption, ToOption, first_and_last
from dqx_airflow.cli.decisions import (
    AuthorOption,
    DryRunOption,
    ReasonOption,
    YesOption,
    author_of,
    may_go_on,
)
from dqx_airflow.cli.json_objects import alert_object
from dqx_airflow.cli.stores import ResultsRootOption, results_of
from dqx_airflow.cli.suites import count_text
from dqx_airflow.diagnostics import diagnostic
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.errors import RequestError
from dqx_airflow.values import day_of_instance
from dqx_airflow.values.typed_values import day_in, days_before

if TYPE_CHECKING:
    from dqx_airflow.results.alerts import Alert, NewLabel
    from dqx_airflow.results.query import RunsWanted, StoredResults
    from dqx_airflow.results.stored_labels import Label
    from dqx_airflow.values import MetricValue, Verdict


_MOST_NAMED = 8


def alerts(
    suite: arguments.SuiteArgument,
    *,
    unlabeled: bool = False,
    since: FromOption = None,
    until: ToOption = None,
    last_days: DaysOption = None,
    gate: arguments.GateOption = None,
    map_index: arguments.MapIndexOption = None,
    results_root: ResultsRootOption = None,
    format: Annotated[SheetFormat, FORMAT] = "text",
) -> None:
    """List the failures of the last days and their labels, oldest first.

    By default, the last 7 days.

    :param unlabeled: Only failures without a label.
    :param format: Output format: text, json, or csv to fill in for `dql tune label`.
    """
    from dqx_airflow.results.alerts import alerts as find_alerts
    from dqx_airflow.results.past_runs import runs_of_suite

    stored = results_of(results_root, suite.parent)
    name = arguments.suite_name(suite)
    first, last = first_and_last(since, until, last_days, default=7)
    days = (last - first).days + 1
    listed = find_alerts(
        stored, name, first, last, unlabelled=unlabeled, gate=gate, map_index=map_index
    )
    newest = None
    if not listed:
        newest = _newest_before(stored, runs_of_suite(name, first, last, gate, map_index))
    noun = "unlabeled alerts" if unlabeled else "alerts"
    nothing = f"no {noun} in the {days} days up to {last}"
    if newest is not None:
        nothing = f"no results in the {days} days up to {last}: the newest are of {newest}"
        if format != "text":
            typer.echo(nothing, err=True)
    text = None
    if format == "json":
        text = json_text([alert_object(alert) for alert in listed])
    elif format == "csv":
        text = _alerts_csv(listed)
    print_list(text, *_alerts_table(listed), nothing)
    if text is None:
        for line in _causes_of(listed):
            typer.echo(line)


def _causes_of(listed: Sequence[Alert]) -> Iterator[str]:
    """Yields a line with the number of causes, if these are fewer than the failures, and one for
    each cause of several failures."""
    from dqx_airflow.cli.reports import printable

    by_cause: dict[int, list[Alert]] = {}
    for alert in listed:
        if alert.cause:
            by_cause.setdefault(alert.cause, []).append(alert)
    failures = sum(map(len, by_cause.values()))
    if failures == len(by_cause):
        return
    yield f"\n{failures} failures have {count_text(len(by_cause), 'cause')}:"
    for together in by_cause.values():
        first, last = together[0].since or together[0].date, together[-1].date
        days = f"{first}" if first == last else f"{first} to {last}"
        names = dict.fromkeys(alert.verdict.name for alert in together)
        yield f"  {days}: {printable(diagnostic.listed([*names], most=_MOST_NAMED))}"


def _newest_before(results: StoredResults, wanted: RunsWanted) -> date | None:
    """The newest date with results; None if the wanted days have some.

    :raises RequestError: the suite has no results at all.
    """
    from dqx_airflow.results.past_runs import newest_date

    newest = newest_date(results, wanted)
    return None if results.newest_date(wanted) is not None else newest


def _shown_fields(alert: Alert) -> dict[str, str]:
    """The fields of an alert for people; empty if there are none."""
    fields = {name: str(value or "") for name, value in alert_object(alert).items()}
    label = alert.label
    fields["label"] = "" if alert.label_kind is None else alert.label_kind.value
    fields["label_author"] = "" if label is None else label.author
    fields["label_reason"] = "" if label is None else label.reason or ""
    instance = str(alert.map_index) if alert.map_index >= 0 else ""
    verdict = alert.verdict
    numbers = {
        "value": _value_text(verdict, verdict.value),
        "scaled_value": _value_text(verdict, verdict.scaled_value),
        "compared": _compared_text(verdict),
    }
    return {**fields, **numbers, "map_index": instance, "instance": instance}


def _alerts_csv(listed: tuple[Alert, ...]) -> str:
    numbers = ("value", "scaled_value", "expected")
    head = ["date", "map_index", "check", "assertion", *numbers, "label", "reason"]
    if all(alert.map_index < 0 for alert in listed):
        head.remove("map_index")
    rows = []
    for fields in map(_shown_fields, listed):
        label = fields["label"].replace(" ", "_")
        reason = fields["label_reason"]
        cells = {**fields, "label": label, "reason": reason}
        rows.append([cells[name] for name in head])
    return arguments.csv_text(head, rows)


def _alerts_table(listed: tuple[Alert, ...]) -> tuple[list[str], list[list[str]]]:
    head = ["date", "gate", "instance", "assertion", "value", "expected", "status", "label"]
    if len({alert.gate for alert in listed}) == 1:
        head.remove("gate")
    if all(alert.map_index < 0 for alert in listed):
        head.remove("instance")
    rows = []
    for fields in map(_shown_fields, listed):
        by = f" ({fields['label_author']})" if fields["label"] else ""
        cells = {**fields, "label": fields["label"] + by, "value": fields["compared"]}
        rows.append([cells[name] for name in head])
    return head, rows


def _compared_text(verdict: Verdict) -> str:
    """The compared value, with its factor if a profile scaled it: `900 (500 x 1.8)`."""
    scaled = _value_text(verdict, verdict.scaled_value)
    if verdict.multiplier == 1.0 or verdict.scaled_value is None:
        return scaled
    return f"{scaled} ({_value_text(verdict, verdict.value)} x {verdict.multiplier:g})"


def _value_text(verdict: Verdict, value: MetricValue) -> str:
    """A value as text, as a percentage if its limit is one."""
    from dqx_airflow.diagnostics.verdicts import format_in_unit, format_value

    if "%" in verdict.expected and value is not None and not isinstance(value, str):
        return f"{format_value(round(float(value) * 100, 4))}%"
    return format_in_unit(value, verdict)


_COLUMNS = ("date", "assertion", "label")


def read_new_labels(path: Path) -> list[NewLabel]:
    """The labels in a file; rows with an empty label are left out.

    :raises RequestError: the file cannot be read, or has mistakes: all of them at once.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise RequestError(
                    f"{path} has no column {', '.join(missing)}",
                    "write a header line: date,assertion,label,reason",
                )
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"cannot read {path}: {error}") from error
    new_labels = []
    problems = []
    for line, row in rows:
        try:
            new = _new_label(row)
        except ValueError as error:
            problems.append(f"line {line}: {error}")
        else:
            new_labels += [new] if new else []
    if problems:
        raise RequestError(f"{path} has errors:\n  " + "\n  ".join(problems))
    return new_labels


def _new_label(row: Mapping[str, str | None]) -> NewLabel | None:
    """The label of a row; None if it has none.

    :raises ValueError: a cell of the row is wrong.
    """

    from dqx_airflow.results.alerts import LabelKind, NewLabel

    kinds = {kind.value: kind for kind in LabelKind}

    def cell(column: str) -> str:
        return (row.get(column) or "").strip()

    label = cell("label").lower().replace("_", " ").replace("-", " ")
    if not label:
        return None
    if label not in kinds:
        listed = ", ".join(kind.replace(" ", "_") for kind in kinds)
        raise ValueError(f"'{row['label']}' is not a label: write {listed}")
    on = day_in(cell("date"))
    if on is None:
        raise ValueError(f"'{row['date']}' is not a date: write 2024-12-20")
    index = cell("map_index")
    if index and not (index.isascii() and index.isdigit()):
        raise ValueError(f"'{index}' is not a map index: write 0, 1, 2 or more")
    reason = cell("reason") or None
    check = cell("check") or None
    map_index = int(index) if index else None
    return NewLabel(on, cell("assertion"), kinds[label], reason, check, map_index)


def label(
    suite: arguments.SuiteArgument,
    *,
    on: DayOption = None,
    assertion: str | None = None,
    false_positive: bool = False,
    true_positive: bool = False,
    missed: bool = False,
    true_negative: bool = False,
    reason: ReasonOption = None,
    check: arguments.CheckOption = None,
    from_csv: Path | None = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    author: AuthorOption = None,
    gate: arguments.GateOption = None,
    map_index: arguments.MapIndexOption = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Label a failure as a false alarm, or a pass as a missed issue.

    The last label counts. Without a label, it lists the five failures whose labels would help `dql
    tune propose` most.

    :param on: The date of the data.
    :param assertion: The name of the assertion.
    :param false_positive: The assertion failed, but the data was correct.
    :param true_positive: The assertion failed because of a real issue.
    :param missed: The assertion passed, but there was an issue.
    :param true_negative: The assertion passed, and the data was correct.
    :param from_csv: Set many labels at once from a CSV file with the columns date, assertion and
        label, and optionally check, map_index and reason. `dql tune alerts --format csv` writes
        one to fill in.
    """
    from dqx_airflow.results.alerts import LabelKind, NewLabel

    stored = results_of(results_root, suite.parent)
    kind_options = {
        LabelKind.FALSE_POSITIVE: false_positive,
        LabelKind.TRUE_POSITIVE: true_positive,
        LabelKind.MISSED: missed,
        LabelKind.TRUE_NEGATIVE: true_negative,
    }
    kinds = [kind for kind, is_given in kind_options.items() if is_given]
    if not (kinds or assertion or on or from_csv):
        _offer_labels(stored, suite, gate, map_index)
        return
    if from_csv is not None:
        if kinds or assertion or on or map_index is not None:
            raise RequestError(
                "--from-csv cannot be combined with other labels", "remove the other options"
            )
        new_labels = read_new_labels(from_csv)
        effect = f"set {len(new_labels)} labels from {from_csv}"
        if not may_go_on(effect, dry_run=dry_run, yes=yes):
            return
    elif len(kinds) > 1:
        given = " and ".join(f"--{kind.value.replace(' ', '-')}" for kind in kinds)
        raise RequestError(f"{given} contradict each other", "give one of them")
    elif len(kinds) != 1 or assertion is None or on is None:
        raise RequestError(
            "the label, the date or the assertion is missing",
            "give --date, --assertion, and one of --false-positive, --true-positive, "
            "--missed and --true-negative; or --from-csv FILE",
        )
    else:
        new_labels = [NewLabel(on, assertion, kinds[0], reason, check, map_index)]
    _write_labels(stored, arguments.suite_name(suite), new_labels, author, gate)


def _write_labels(
    stored: StoredResults,
    suite: str,
    new_labels: Sequence[NewLabel],
    author: str | None,
    gate: str | None,
) -> None:
    """Writes labels, and prints how many are new, and which contradict labels of other people.

    :raises RequestError: one of them is about no verdict.
    """
    from dqx_airflow.results.alerts import labels_for
    from dqx_airflow.results.stored_labels import contradictions, write_labels

    labels, problems = labels_for(stored, suite, new_labels, author_of(author), gate=gate)
    if problems:
        raise RequestError("no label was set:\n  " + "\n  ".join(problems))
    written = write_labels(stored, labels)
    unchanged = len(labels) - len(written)
    summary = f"{len(written)} labeled"
    typer.echo(f"{summary}, {unchanged} already had the label" if unchanged else summary)
    if not written:
        return
    new = {label.id for label in written}
    opposite = contradictions(stored, {label.gate for label in written})
    if about := contradictions_text([pair for pair in opposite if pair[0].id in new]):
        typer.echo(about, err=True)


def _offer_labels(
    stored: StoredResults, suite: Path, gate: str | None, map_index: int | None
) -> None:
    """Lists the failures whose labels would help most, of 180 days up to the newest."""
    from dqx_airflow.cli.reports import print_table
    from dqx_airflow.results.past_days import past_days
    from dqx_airflow.results.past_runs import newest_date, runs_of_suite
    from dqx_airflow.tuning.backtest import Backtest
    from dqx_airflow.tuning.costs import truths, wanted_labels

    node = arguments.suite_file(suite).read().valid_suite
    name = node.name.value
    last = newest_date(stored, runs_of_suite(name, None, None, gate, map_index))
    first = days_before(last, 179)
    days = past_days(stored, name, first, last, gate=gate, map_index=map_index, as_labelled=True)
    backtest = Backtest(node, days)
    wanted = wanted_labels(backtest, truths(backtest))
    if not wanted:
        typer.echo(f"no failure without a label in the 180 days up to {last}")
        return
    rows = []
    for one in wanted:
        day = day_of_instance(one.date, one.map_index)
        cost = f"{one.expected_cost:.3g}"
        rows.append((day, one.name, str(one.failures), cost))
    print_table(("date", "assertion", "failures that day", "expected cost"), rows)
    instance = " --map-index NUMBER" if any(one.map_index >= 0 for one in wanted) else ""
    typer.echo(
        f"to label: dql tune label {suite} --date DATE --assertion NAME{instance} "
        "--false-positive, or --true-positive"
    )


def contradictions_text(pairs: Sequence[tuple[Label, Label]]) -> str:
    """A sentence about labels of several people that contradict each other; empty without any."""
    if not pairs:
        return ""
    people = diagnostic.listed(sorted({other.author for _, other in pairs}))
    named = [f"{label.name} on {label.date} ({label.author})" for label, _ in pairs]
    verb = "label says" if len(pairs) == 1 else "labels say"
    return (
        f"{len(pairs)} {verb} the opposite of what {people} said; the last one counts: "
        f"{diagnostic.listed(named, most=5)}"
    )
