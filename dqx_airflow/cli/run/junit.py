"""JUnit XML for CI systems: a test suite for each check, a test case for each assertion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from dqx_airflow.diagnostics.verdicts import draw_verdict, format_value, partial_text
from dqx_airflow.values import GateReport, Outcome, Status, Verdict


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
