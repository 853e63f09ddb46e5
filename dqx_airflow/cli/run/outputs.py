"""What `dql run` prints and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import IO
from xml.etree import ElementTree as ET

import typer
from rich.console import Console

from dqx_airflow.cli.reports import (
    coloured,
    console_for,
    print_failures,
    print_headline,
    printable,
    verdicts_table,
)
from dqx_airflow.cli.run.call import print_calendar
from dqx_airflow.datasets.dqx_toml import Output
from dqx_airflow.diagnostics.verdicts import (
    account,
    draw_verdict,
    format_value,
    not_evaluated,
    on_call,
    partial_text,
    shadow_account,
)
from dqx_airflow.values import GateReport, Outcome, Status, Verdict, to_json


def junit_xml(reports: Iterable[GateReport]) -> str:
    """The reports as one document.

    An assertion that lacks data of other dates is skipped, unless it breaks the run. A failure that
    does not block, below `fail_on`, is not a failed test case: a build ends like `dql run`. It is
    in the output of its test case.
    """
    reports = list(reports)
    is_range = len({report.run_key.date for report in reports}) > 1
    root = ET.Element("testsuites", name="dql run")
    total = _no_cases()
    seconds = 0.0
    for report in reports:
        seconds += (report.finished_at - report.started_at).total_seconds()
        for check in dict.fromkeys(verdict.check for verdict in report.verdicts):
            verdicts = [verdict for verdict in report.verdicts if verdict.check == check]
            name = f"{report.suite} / {check}"
            if is_range:
                name += f" / {report.run_key.date.isoformat()}"
            total.update(_add_check(root, report, name, verdicts))
    _write_counts(root, total)
    root.set("time", f"{seconds:.3f}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _no_cases() -> Counter[str]:
    """The number of test cases, by kind."""
    return Counter(tests=0, failures=0, errors=0, skipped=0)


def _write_counts(element: ET.Element, counts: Counter[str]) -> None:
    for kind, number in counts.items():
        element.set(kind, str(number))


def _add_check(
    root: ET.Element, report: GateReport, name: str, verdicts: Sequence[Verdict]
) -> Counter[str]:
    suite = ET.SubElement(root, "testsuite", name=_text(name))
    suite.set("timestamp", report.started_at.strftime("%Y-%m-%dT%H:%M:%S"))
    properties = ET.SubElement(suite, "properties")
    for key, value in _facts(report).items():
        ET.SubElement(properties, "property", name=_text(key), value=_text(value))
    counts = _no_cases()
    for verdict in verdicts:
        counts["tests"] += 1
        case = ET.SubElement(suite, "testcase", classname=_text(name), name=_text(verdict.name))
        if verdict.span is not None:
            case.set("file", _text(verdict.span.file))
            case.set("line", str(verdict.span.line))
        kind = _add_outcome(case, verdict, report)
        if kind:
            counts[kind] += 1
    _write_counts(suite, counts)
    return counts


def _facts(report: GateReport) -> dict[str, str]:
    facts = {"date": report.run_key.date.isoformat(), "run": report.run_id}
    if report.partial is not None:
        facts["selection"] = partial_text(report.partial)
    for dataset in report.datasets:
        version = "" if dataset.version is None else f", version {dataset.version}"
        facts[f"dataset {dataset.name}"] = f"{dataset.location}{version}"
    return facts


def _add_outcome(case: ET.Element, verdict: Verdict, report: GateReport) -> str | None:
    """Adds the result of an assertion; returns the name of its count."""
    if verdict.status is Status.PASSED:
        return None
    if verdict.status is Status.SKIPPED:
        reason = verdict.reason or ""
        if verdict.is_not_evaluated:
            reason = f"not evaluated: {reason}"
        if report.outcome is Outcome.BROKEN and verdict in report.not_evaluated:
            kind = verdict.severity.value
            ET.SubElement(case, "error", message=_text(reason), type=kind)
            return "errors"
        ET.SubElement(case, "skipped", message=_text(reason))
        return "skipped"
    drawing = _text(draw_verdict(verdict, report, all_rows=True))
    if not verdict.can_block(report.fail_on):
        ET.SubElement(case, "system-out").text = drawing
        return None
    is_failure = verdict.status is Status.FAILED
    element = ET.SubElement(case, "failure" if is_failure else "error")
    message = f"{format_value(verdict.scaled_value)}, expected {verdict.expected}"
    element.set("message", _text(message if is_failure else verdict.reason or message))
    element.set("type", verdict.severity.value)
    element.text = drawing
    return "failures" if is_failure else "errors"


def _text(text: str) -> str:
    """The text without characters that XML does not allow."""
    return "".join(
        character if character in "\t\n" or character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def write_reports(
    reports: Iterable[GateReport],
    output: Output,
    file: IO[str] | None,
    root: str,
    *,
    dates: Sequence[date] = (),
) -> None:
    """Writes each report as soon as it is available, to stdout or into a file.

    If it is stored, under the results root `root`, only a few failing rows are displayed. For
    several dates a calendar comes last, and those that passed have one line each.

    If it goes into a file, stderr gets the headlines.
    """
    console = console_for(file)
    if file is not None:
        reports = _with_headlines(reports)
    if output is Output.JUNIT:
        typer.echo(junit_xml(reports), file=console.file, nl=False)
        return
    is_range, written_reports = len(dates) > 1, []
    for report in reports:
        written_reports.append(report)
        match output:
            case Output.JSON:
                typer.echo(to_json(report), file=console.file)
            case Output.SUMMARY:
                _print_summary(report, console)
            case Output.TABLE if is_range and report.outcome is Outcome.PASSED:
                print_headline(report, console)
            case Output.TABLE:
                _print_table(report, console, root)
    if is_range and output is not Output.JSON and written_reports:
        print_calendar(written_reports, console)


def _with_headlines(reports: Iterable[GateReport]) -> Iterable[GateReport]:
    console = Console(stderr=True, highlight=False)
    for report in reports:
        print_headline(report, console)
        yield report


def _print_table(report: GateReport, console: Console, root: str) -> None:
    """The headline is last, where it stays visible."""
    console.print(verdicts_table(report.verdicts))
    print_failures(report, console, all_rows=not root, root=root)
    console.print()
    for line in filter(None, [*account(report), *shadow_account(report), on_call(report)]):
        console.print(printable(line), soft_wrap=True, markup=False)
    print_headline(report, console)


def _print_summary(report: GateReport, console: Console) -> None:
    counts = ", ".join(f"{report.count(status)} {_NOUNS[status]}" for status in Status)
    if first := not_evaluated(report):
        counts = f"{first}; {counts}"
    if report.partial is not None:
        counts = f"{partial_text(report.partial)}; {counts}"
    suite = f"{printable(report.suite)}, {report.run_key.date.isoformat()}: {counts}"
    console.print(coloured(report.outcome), suite, soft_wrap=True, markup=False)
    for line in shadow_account(report)[:1]:
        console.print(printable(line), soft_wrap=True, markup=False)


_NOUNS = {
    Status.PASSED: "passed",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.ERROR: "could not be evaluated",
}
