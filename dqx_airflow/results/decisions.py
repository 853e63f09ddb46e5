"""Waivers and acceptances in the store. Both are append-only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import LONGEST_WAIVER
from dqx_airflow.results import schema
from dqx_airflow.results.incidents import ACCEPTED, Incident, IncidentNote, notes_from, same_slice
from dqx_airflow.results.query import RunsWanted, StoredResults, equals, is_in, opened
from dqx_airflow.results.report_rows import is_of_gate
from dqx_airflow.values import GateReport, Outcome, RunKey, Severity, Status, Verdict
from dqx_airflow.values.blank import is_blank
from dqx_airflow.values.exact import exact, exact_text
from dqx_airflow.values.report import Acceptance, AcceptedData, Decisions, Waiver, is_composed


def write_waivers(results: StoredResults, waivers: Iterable[Waiver]) -> None:
    """Appends waivers, or the early end of one: the same waiver with `ended_by`.

    :raises StoreError: the store cannot be written.
    """
    rows = {}
    for waiver in waivers:
        key = f"{waiver.id}/ended" if waiver.ended_by else waiver.id
        rows[key] = _row(waiver)
    results.write(schema.WAIVERS, rows)


def _row(waiver: Waiver) -> dict[str, Any]:
    """The row of a waiver in the table `waivers`."""
    return {
        "event_id": waiver.id,
        "gate": waiver.gate,
        "check": waiver.check,
        "name": waiver.name,
        "until": waiver.until,
        "below": waiver.below,
        "above": waiver.above,
        "reason": waiver.reason,
        "owner": waiver.owner,
        "author": waiver.author,
        "ended_by": waiver.ended_by,
        "rule": waiver.rule,
        "event_at": schema.as_utc(waiver.at),
    }


def _waiver(row: schema.Row) -> Waiver:
    """The waiver of a row of the table `waivers`."""
    return Waiver(
        gate=row["gate"],
        check=row["check"],
        name=row["name"],
        until=row["until"],
        reason=row["reason"],
        owner=row["owner"],
        author=row["author"],
        below=row.get("below"),
        above=row.get("above"),
        at=schema.as_utc(row["event_at"]),
        id=row["event_id"],
        ended_by=row.get("ended_by"),
        rule=row.get("rule"),
    )


def waivers_of(
    results: StoredResults | str, gates: Collection[str] | None = None
) -> tuple[Waiver, ...]:
    """The waivers of gates, including ended ones, oldest first.

    :raises StoreError: the store exists and cannot be read.
    """
    where = [] if gates is None else [is_in("gate", gates)]
    if gates is not None and not gates:
        return ()
    order = 'ORDER BY "event_at", "event_id"'
    found: dict[str, Waiver] = {}
    for row in opened(results).whole_rows(schema.WAIVERS, where, order):
        waiver = _waiver(row)
        earlier = found.get(waiver.id)
        by = waiver.ended_by or (earlier.ended_by if earlier else None)
        found[waiver.id] = replace(earlier or waiver, ended_by=by)
    return tuple(found.values())


def decisions_on(results: StoredResults, key: RunKey, slice: str) -> Decisions:
    """The waivers of a gate, and the data of a slice that people accepted.

    :raises StoreError: the store exists and cannot be read.
    """
    notes = [
        note
        for note in notes_from(results, [key.gate], key.date, key.date)
        if note.kind == ACCEPTED and note.map_index == key.map_index
    ]
    accepted = [
        _accepted(results, note) for note in reversed(notes) if same_slice(note.slice, slice)
    ]
    return Decisions(waivers_of(results, [key.gate]), tuple(filter(None, accepted)))


def _accepted(results: StoredResults, note: IncidentNote) -> AcceptedData | None:
    report = judged(results, note.gate, note.date, note.run_id or "")
    if report is None:
        return None
    failed = (verdict for verdict in report.with_status(Status.FAILED))
    return AcceptedData(
        Acceptance(report.run_id, note.author, note.text, note.at),
        tuple((dataset.name, dataset.fingerprint) for dataset in report.datasets),
        frozenset((verdict.check, verdict.name, verdict.rule) for verdict in failed),
    )


def judged(results: StoredResults, gate: str, on: date, run_id: str) -> GateReport | None:
    """The report of a run, without failing rows; None if the store does not have it.

    :raises StoreError: the store exists and cannot be read.
    """
    where = [equals("run_id", run_id), equals("gate", gate), equals("dataset_date", on)]
    runs = results.select(schema.RUNS, schema.RUNS_SCHEMA.names, where, "LIMIT 1")
    reports = results.reports_behind(runs, where[1:], only_verdicts=True) if runs else []
    return next((report for report in reports if isinstance(report, GateReport)), None)


def why_not_acceptable(report: GateReport) -> str:
    """The reason why the data of a report cannot be accepted; empty if it can."""
    if report.outcome is not Outcome.BLOCKED:
        return f"it is {report.outcome}: only the data of a blocked gate can be accepted"
    unknown = [dataset.name for dataset in report.datasets if dataset.fingerprint is None]
    if unknown:
        return (
            f"the rows of {', '.join(unknown)} cannot be identified: accepting takes a Delta "
            "table, or files that can be listed, and a filter of columns and literals"
        )
    protected = [
        verdict.name
        for verdict in report.with_status(Status.FAILED)
        if verdict.is_protected and verdict.can_block(report.fail_on)
    ]
    if protected and not report.accept_required:
        names = ", ".join(protected)
        return f"{names} is P0 or @required: it takes accept_required=True on the gate"
    return ""


def acceptances(
    results: StoredResults, incident: Incident, author: str, reason: str
) -> tuple[IncidentNote, ...]:
    """The notes with which a person accepts the data of an incident, one for each of its suites.

    :raises RequestError: no one can accept it, or the reason is missing.
    :raises StoreError: the store cannot be read.
    """
    reports = []
    for run in incident.last_of_each:
        report = judged(results, run.run_key.gate, run.run_key.date, run.run_id)
        if report is None:
            raise RequestError(f"run {run.run_id[:8]} cannot be read", "run the gate again first")
        reports.append(report)
    return tuple(acceptance_of(report, author, reason) for report in reports)


def acceptance_of(report: GateReport, author: str, reason: str) -> IncidentNote:
    """The note with which a person accepts the data that a run judged.

    :raises RequestError: no one can accept it, or the reason is missing.
    """
    if is_blank(reason):
        raise RequestError("accepting data needs a reason", "say why it may go on")
    key = report.run_key
    run = report.run_id[:8]
    if objection := why_not_acceptable(report):
        raise RequestError(f"the data of {key.date}, run {run}, cannot be accepted", objection)
    text = reason.strip()
    index = key.map_index
    return IncidentNote(
        key.gate, key.date, ACCEPTED, author, text, index, report.slice, report.run_id
    )


def gates_called(results: StoredResults, gate: str) -> list[str]:
    """The names under which the results of a gate are stored: a gate with several suites has one
    for each suite.

    :raises RequestError: there are none.
    :raises StoreError: the store cannot be read.
    """
    rows = results.run_rows(RunsWanted(), ("gate", "job"), 'ORDER BY "finished_at"')
    jobs = {row["gate"]: row.get("job") for row in rows}
    names = sorted(jobs)
    own = [name for name in names if name == gate or is_of_gate(name, gate, jobs[name])]
    if not own:
        hint = did_you_mean(gate, names) or f"gates: {', '.join(names[:10])}"
        raise RequestError(f"no results of gate '{gate}'", hint)
    return own


_LIMIT = re.compile(
    r"\s*(?P<number>[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))\s*(?P<unit>%|[a-z]*)\s*", re.ASCII
)
_UNITS: Mapping[str, int | Fraction] = {
    "": 1,
    "%": Fraction(1, 100),
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
}
_LONGEST_TEXT = 500


def new_waiver(
    results: StoredResults,
    gate: str,
    assertion: str,
    *,
    until: date,
    reason: str,
    owner: str,
    author: str,
    below: str | None = None,
    above: str | None = None,
    longest: timedelta = LONGEST_WAIVER,
) -> Waiver:
    """A waiver of an assertion that the last run of a gate judged.

    :param assertion: its name, `CHECK::NAME`, or the path of a contract clause.
    :param below: a limit, such as `10%` or `2 hours`: a value that reaches it is not waived.
    :raises RequestError: the gate or the assertion is unknown, no one may waive it, or the waiver
        is incomplete, over, or too long.
    :raises StoreError: the store cannot be read.
    """
    if missing := [name for name, text in (("reason", reason), ("owner", owner)) if is_blank(text)]:
        raise RequestError(f"a waiver needs {' and '.join(missing)}", "say who takes care, and why")
    today = datetime.now(timezone.utc).date()
    if until < today:
        raise RequestError(f"the waiver would have ended on {until}", "give today or a later day")
    if until > today + longest:
        raise RequestError(
            f"a waiver until {until} would last {(until - today).days} days, and may last "
            f"{longest.days}",
            f"give a day up to {today + longest}, and fix the cause or change the rule",
        )
    verdict, own_gate = _assertion(results, gate, assertion)
    if verdict.is_protected:
        protected = "P0" if verdict.severity is Severity.P0 else "@required"
        raise RequestError(
            f"{verdict.name} is {protected}, which no one can waive",
            "accept the data of one date instead: `dql incidents accept`",
        )
    least = waiver_limit("above", above)
    most = waiver_limit("below", below)
    if (least or most) and is_composed(verdict):
        raise RequestError(
            f"{verdict.name} is about several assertions, and has no value of its own",
            "leave out the limit",
        )
    if (least or most) and isinstance(verdict.scaled_value, str):
        raise RequestError(f"the value of {verdict.name} is not a number", "leave out the limit")
    return Waiver(
        own_gate,
        verdict.check,
        verdict.name,
        until,
        reason.strip()[:_LONGEST_TEXT],
        owner.strip()[:_LONGEST_TEXT],
        author,
        below=most,
        above=least,
        rule=verdict.rule,
    )


def waiver_limit(name: str, text: str | None) -> str | None:
    """A limit as the exact number that values are compared with; None without a limit.

    :raises RequestError: it is neither a number, a percentage nor a duration.
    """
    if text is None or not text.strip():
        return None
    match = _LIMIT.fullmatch(text)
    unit = _UNITS.get(match["unit"].removesuffix("s")) if match else None
    if match is None or unit is None:
        raise RequestError(f"{name} '{text}' is not a limit", "write it like 10%, 250 or 2 hours")
    return exact_text(exact(Fraction(match["number"]) * unit))


def _assertion(results: StoredResults, gate: str, assertion: str) -> tuple[Verdict, str]:
    """The last verdict on an assertion of a gate, and the name of the gate."""
    found: list[tuple[Verdict, str]] = []
    known: list[str] = []
    for name in gates_called(results, gate):
        for run in results.runs(RunsWanted([name], is_partial=False), 1):
            report = judged(results, name, run.run_key.date, run.run_id)
            for verdict in report.verdicts if report else ():
                known.append(verdict.name)
                if assertion in (verdict.name, f"{verdict.check}::{verdict.name}", verdict.clause):
                    found.append((verdict, name))
    if not found:
        hint = did_you_mean(assertion, known) or "`dql results show latest` lists them"
        raise RequestError(f"gate '{gate}' has no assertion '{assertion}'", hint)
    if len(found) > 1:
        listed = ", ".join(f"{name} {one.check}::{one.name}" for one, name in found)
        raise RequestError(f"several assertions are called '{assertion}': {listed}", "name one")
    return found[0]
