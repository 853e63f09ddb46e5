"""The report of a gate as HTML for a notebook: without scripts and style sheets."""

from __future__ import annotations

from html import escape

from dqx_airflow.diagnostics.verdicts import draw_report, format_value, headline
from dqx_airflow.values import GateReport, Outcome, Status, Verdict

_COLOURS = {
    Status.PASSED: "#1a7f37",
    Status.FAILED: "#c62828",
    Status.ERROR: "#c62828",
    Status.SKIPPED: "#8a6100",
}
_HEADS = ("status", "severity", "check", "assertion", "value", "expected")


def html_of(report: GateReport) -> str:
    """A table of the assertions, first those that did not pass, and the report below it."""
    verdicts = sorted(report.verdicts, key=lambda verdict: verdict.status is Status.PASSED)
    rows = "".join(map(_row, verdicts))
    heads = "".join(f"<th style='text-align:left'>{head}</th>" for head in _HEADS)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    title = f"<p><b>{escape(headline(report))}</b></p>"
    is_open = "" if report.outcome is Outcome.PASSED else " open"
    details = f"<details{is_open}><summary>Report</summary><pre>{escape(draw_report(report))}</pre>"
    return f"<div>{title}{table}{details}</details></div>"


def _row(verdict: Verdict) -> str:
    colour = _COLOURS.get(verdict.status, "inherit")
    value = "" if verdict.value is None else format_value(verdict.value)
    cells = (verdict.severity.value, verdict.check, verdict.name, value, verdict.expected)
    shown = "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in cells)
    status = f"<td style='color:{colour}'>{escape(verdict.status.value)}</td>"
    return f"<tr>{status}{shown}</tr>"
