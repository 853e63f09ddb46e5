"""How verdicts and reports read: the drawing of a failure, the one-line headline."""

from __future__ import annotations

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.text import draw, printable
from dqx_airflow.values import GateReport, MetricValue, Outcome, Status, Verdict

_MESSAGE = {Status.FAILED: "assertion failed", Status.ERROR: "assertion could not be evaluated"}


def format_value(value: MetricValue) -> str:
    """A metric value for people: counts whole, other numbers with six significant digits."""
    if value is None:
        return "None"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def draw_verdict(verdict: Verdict, report: GateReport, *, colour: bool = False) -> str:
    """A failed or unevaluated assertion as seed 001 draws it; a warning below `fail_on`."""
    is_mild = not verdict.severity.at_least(report.fail_on)
    notes = [("metric value", format_value(verdict.value))]
    if verdict.multiplier != 1.0:
        scaled = f"{format_value(verdict.scaled_value)} (multiplier {verdict.multiplier:g})"
        notes.append(("scaled value", scaled))
    notes.append(("expected", verdict.expected))
    notes.append(("dataset", ", ".join(verdict.datasets)))
    notes.append(("date", report.run_key.date.isoformat()))
    notes.append(("severity", verdict.severity.value))
    if verdict.profiles:
        notes.append(("profiles", ", ".join(verdict.profiles)))
    if verdict.reason:
        notes.append(("reason", verdict.reason))
    message = f"{_MESSAGE.get(verdict.status, verdict.status.value)}: {verdict.name}"
    if verdict.span is None or verdict.source_line is None:
        first = f"{'warning' if is_mild else 'error'}: {printable(message)}"
        return "\n".join([first, *(f"   = {name}: {printable(text)}" for name, text in notes)])
    diagnostic = Diagnostic(message, verdict.span, notes=tuple(notes), is_mild=is_mild)
    source = "\n" * (verdict.span.line - 1) + verdict.source_line
    return draw([diagnostic], {verdict.span.file: source}, colour=colour)


def worst(report: GateReport) -> Verdict | None:
    """The first of the verdicts that decided the outcome: worst severity, then suite order."""
    failed, errors = report.with_status(Status.FAILED), report.with_status(Status.ERROR)
    ranked = errors + failed if report.outcome is Outcome.BROKEN else failed + errors
    return ranked[0] if ranked else None


def headline(report: GateReport) -> str:
    """One line: outcome, gate, dataset, date, how many of how many failed, and the worst."""
    key = report.run_key
    # The dataset that the gate is about: the first, reference tables come after it.
    dataset = report.datasets[0].name if report.datasets else "no dataset"
    line = (
        f"{report.outcome.value}: gate {key.gate}, dataset {dataset}, date {key.date.isoformat()}: "
    )
    line += f"{report.count(Status.FAILED)} of {len(report.verdicts)} assertions failed"
    if errors := report.count(Status.ERROR):
        line += f", {errors} could not be evaluated"
    if skipped := report.count(Status.SKIPPED):
        line += f", {skipped} skipped"
    found = worst(report)
    if found is None:
        return line + ("; nothing was checked" if report.outcome is Outcome.BROKEN else "")
    line += f"; worst: {found.name} ({found.severity.value})"
    if found.status is Status.ERROR:
        return printable(f"{line}: {found.reason}")
    return printable(f"{line} is {format_value(found.scaled_value)}, expected {found.expected}")
