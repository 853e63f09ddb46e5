"""The columns of the tables of a results store: one row for each of them.

A row has the name, the type, the meaning and the source of a column, and the field that it fills
when it is read back. The schemas, the written rows, the reports and the reference page are
generated from these tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from dqx_airflow.results.column import (
    DATE,
    NUMBER,
    TEXT,
    TEXTS,
    TIME,
    TRUTH,
    WHOLE,
    Column,
    Row,
    Source,
    as_utc,
    at_path,
    field_column,
    value_columns,
)
from dqx_airflow.values import GateReport, Origin, Severity, Span, Status, to_json


def _count(status: Status) -> Callable[[Source], int]:
    return lambda source: source.report.count(status)


def _disabled_by(row: Row) -> str | None:
    """The profile that disabled an assertion, also for a row written without the column."""
    if name := row.get("disabled_by"):
        return str(name)
    match = re.fullmatch(r"disabled by profile '(.*)'", row.get("reason") or "", re.DOTALL)
    return match[1] if match and row["status"] == Status.SKIPPED else None


def _span(row: Row) -> Span | None:
    if row.get("span_file") is None:
        return None
    return Span(*(row[column.name] for column in _SPAN))


_SPAN = (
    Column(
        "span_file",
        TEXT,
        "the file that contains the assertion or the clause of the contract",
        at_path("verdict.span.file"),
        "span",
        _span,
    ),
    Column("span_line", WHOLE, "the line where it starts, from 1", at_path("verdict.span.line")),
    Column(
        "span_column", WHOLE, "the column where it starts, from 1", at_path("verdict.span.column")
    ),
    Column("span_end_line", WHOLE, "the line where it ends", at_path("verdict.span.end_line")),
    Column(
        "span_end_column",
        WHOLE,
        "the column after its last character",
        at_path("verdict.span.end_column"),
    ),
)


def _shadow_run(report: GateReport) -> str | None:
    """The shadow of a report without its verdicts, which are rows of `results`."""
    return to_json(replace(report.shadow, verdicts=())) if report.shadow else None


def _selection(report: GateReport) -> str | None:
    """The selection of a partial run; None for a complete one."""
    return to_json(report.partial) if report.partial else None


MONTH = Column("month", TEXT, "the month in which the row was written, as in `2024-02`")
"""Every table is partitioned by it. Writers of older versions leave it NULL, so no reader depends
on it: files are skipped by statistics."""

_KEYS = (
    Column(
        "run_id", TEXT, "a UUID of this attempt, the same as in lineage", at_path("report.run_id")
    ),
    Column(
        "gate",
        TEXT,
        "the name of the gate, `dag_id.task_id` if it has no other",
        at_path("report.run_key.gate"),
    ),
    Column("dataset_date", DATE, "the date of the data", at_path("report.run_key.date")),
    Column(
        "scheduler_run",
        TEXT,
        "the run id of Airflow, with the map index of a mapped task",
        at_path("report.run_key.scheduler_run"),
    ),
    Column("attempt", WHOLE, "the number of the attempt", at_path("report.attempt.number")),
    Column("attempt_id", TEXT, "the id of this attempt in Airflow", at_path("report.attempt.id")),
    Column(
        "finished_at",
        TIME,
        "when the gate reached its verdict",
        lambda source: as_utc(source.report.finished_at),
    ),
    Column("suite", TEXT, "the file of the suite", at_path("report.suite")),
)
_CONTRACT = (
    Column("contract_id", TEXT, "the contract that was enforced", at_path("report.contract.id")),
    Column("contract_version", TEXT, "its version", at_path("report.contract.version")),
)
_POSITION = Column(
    "position", WHOLE, "the position of the assertion in the suite, from 0", at_path("position")
)
_NAME = field_column("name", TEXT, "the name of the assertion")
_CHECK = field_column("check", TEXT, "the check that contains it")

_PARTIAL = Column(
    "partial",
    TRUTH,
    "whether a selection excluded assertions, so that the run does not cover all of them",
    lambda source: source.report.partial is not None,
)

RESULTS = (
    *_KEYS,
    _POSITION,
    _NAME,
    _CHECK,
    field_column(
        "status", TEXT, "`passed`, `failed`, `skipped` or `error` (could not be evaluated)", Status
    ),
    field_column("severity", TEXT, "`P0` (the worst) to `P3`", Severity),
    field_column("datasets", TEXTS, "the datasets that the assertion is about", tuple),
    field_column("expression", TEXT, "the metric that was measured"),
    field_column("expected", TEXT, "the condition, as a string"),
    *value_columns("value", "the value as a number, for charts"),
    field_column("multiplier", NUMBER, "the factor of the active profiles", otherwise=1.0),
    *value_columns("scaled_value", "the value times the multiplier: what was compared"),
    *value_columns("threshold", "the limit as a number"),
    field_column("reason", TEXT, "why it did not pass"),
    field_column("tags", TEXTS, "its tags", tuple, otherwise=()),
    field_column("profiles", TEXTS, "the profiles that were active", tuple, otherwise=()),
    field_column("metric", TEXT, "the metric, if the assertion is about a single one"),
    field_column("column", TEXT, "the column, if the assertion is about a single one"),
    *_SPAN,
    field_column("source_line", TEXT, "its first line"),
    field_column(
        "origin",
        TEXT,
        "the origin of the value: `scan`, `stored state`, `stored state and new files` or "
        "`transaction log`",
        Origin,
    ),
    field_column("note", TEXT, "why a sample of failing rows is missing"),
    *_CONTRACT,
    field_column("clause", TEXT, "the path of the clause that the assertion enforces"),
    replace(
        field_column("disabled_by", TEXT, "the profile that disabled the assertion, if one did"),
        read=_disabled_by,
    ),
    Column(
        "experimental",
        TRUTH,
        "whether the assertion is `@experimental`, and never blocks",
        at_path("verdict.is_experimental"),
        "is_experimental",
        lambda row: bool(row.get("experimental")),
    ),
    field_column(
        "let_by",
        TEXT,
        "why a clause that cannot be enforced does not fail the gate: an acceptance, or a setting",
    ),
    field_column(
        "measured",
        TEXT,
        "the metric values behind the verdict as JSON, so that it can be judged again with "
        "other limits. A key consists of the dataset, the metric, its arguments, the lag in "
        "days, and the columns of the groups; for groups, the values of all groups are stored",
    ),
    Column(
        "shadow",
        TEXT,
        "the name of the shadow suite whose verdict this is; NULL for verdicts of the gate. "
        "Verdicts of a shadow have no effect: exclude these rows",
        at_path("shadow"),
    ),
    field_column(
        "groups", WHOLE, "how many groups the assertion was judged for, if it is per group"
    ),
    field_column("failed_groups", WHOLE, "how many of them failed"),
    field_column(
        "worst_group",
        TEXT,
        "the group with the worst value; `value` and the other columns describe this group",
    ),
    _PARTIAL,
    MONTH,
)
"""One row for each assertion of each attempt."""

FAILING_ROWS = (
    *_KEYS,
    _POSITION,
    Column("number", WHOLE, "the position of the row in the sample, from 0", at_path("number")),
    _NAME,
    _CHECK,
    Column("dataset", TEXT, "the dataset of the row", at_path("failing.dataset")),
    Column("reason", TEXT, "why the row counts against the assertion", at_path("failing.reason")),
    Column(
        "row",
        TEXT,
        "JSON: the key columns and the columns at fault, masked",
        at_path("failing.row"),
    ),
    MONTH,
)
"""One row for each sampled row of a failed assertion."""

RUNS = (
    *_KEYS,
    Column(
        "outcome",
        TEXT,
        "`passed`, `warned`, `blocked` or `broken`",
        at_path("report.outcome.value"),
    ),
    Column("fail_on", TEXT, "the lowest severity that blocks", at_path("report.fail_on.value")),
    Column(
        "started_at", TIME, "when the job started", lambda source: as_utc(source.report.started_at)
    ),
    Column(
        "assertions", WHOLE, "the number of assertions", lambda source: len(source.report.verdicts)
    ),
    Column("passed", WHOLE, "the number of passed assertions", _count(Status.PASSED)),
    Column("failed", WHOLE, "the number of failed assertions", _count(Status.FAILED)),
    Column("skipped", WHOLE, "the number of skipped assertions", _count(Status.SKIPPED)),
    Column(
        "errors",
        WHOLE,
        "the number of assertions that could not be evaluated",
        _count(Status.ERROR),
    ),
    Column("worst", TEXT, "the assertion in the headline", at_path("report.worst.name")),
    Column("worst_severity", TEXT, "its severity", at_path("report.worst.severity.value")),
    Column(
        "datasets",
        TEXT,
        "JSON: each dataset with its location, version, rows, columns and metrics",
        lambda source: to_json(source.report.datasets),
    ),
    Column(
        "failing_rows",
        WHOLE,
        "the number of rows of this run in the table `failing_rows`",
        lambda source: sum(len(verdict.failing_rows) for verdict in source.report.verdicts),
    ),
    *_CONTRACT,
    Column(
        "contract",
        TEXT,
        "JSON: the contract with its dialect, the version that the gate pins, and the number "
        "of checked clauses",
        lambda source: to_json(source.report.contract) if source.report.contract else None,
    ),
    Column(
        "sources",
        TEXT,
        "JSON: the source files of the gate, each with the SHA-256 of its content",
        lambda source: to_json(source.report.sources),
    ),
    Column(
        "shadow_run",
        TEXT,
        "JSON: the shadow suite of the run with its outcome, or why it could not be judged",
        lambda source: _shadow_run(source.report),
    ),
    _PARTIAL,
    Column(
        "selection",
        TEXT,
        "JSON: what a partial run selected, how many of all assertions it ran, and the names "
        "of the excluded ones that are P0 or `@required`",
        lambda source: _selection(source.report),
    ),
    Column(
        "spark_version", TEXT, "the version of Spark that measured", at_path("report.spark_version")
    ),
    Column(
        "ansi",
        TRUTH,
        "whether SQL of the suite, the contract and the datasets was evaluated in ANSI mode",
        at_path("report.ansi"),
    ),
    MONTH,
)
"""One row for each attempt, written last."""

SOURCES = (
    Column("run_id", TEXT, "the first run that used it"),
    Column("digest", TEXT, "the SHA-256 of the source, in hexadecimal digits"),
    Column("text", TEXT, "the source"),
    Column("stored_at", TIME, "when it was stored"),
    MONTH,
)
"""One row for each text of a suite, a library or a contract, for any number of runs that used
it."""

STATES = (
    Column("run_id", TEXT, "the run that computed it"),
    Column("scope", TEXT, "the dataset, and how it was read: settings, versions and session"),
    Column("dataset_date", DATE, "the date that was aggregated"),
    Column("aggregate", TEXT, "what was computed"),
    Column("result", TEXT, "JSON: its value; NULL if the date had no rows"),
    Column(
        "fingerprint",
        TEXT,
        "the files that it was computed from, in order, and the state of looked-up datasets",
    ),
    Column("stored_at", TIME, "when it was stored"),
    MONTH,
)
"""One row for each computed aggregate of each date."""

LABELS = (
    Column("run_id", TEXT, "the run whose verdict was labelled"),
    Column("label_id", TEXT, "a UUID of this label"),
    Column("gate", TEXT, "the name of the gate, `dag_id.task_id` if it has no other"),
    Column("dataset_date", DATE, "the date of the data"),
    Column("map_index", WHOLE, "the map index of a mapped task, -1 for others; NULL: see `run_id`"),
    Column("suite", TEXT, "the file of the suite"),
    Column("check", TEXT, "the check that contains it"),
    Column("name", TEXT, "the name of the assertion"),
    Column("ground_truth", TRUTH, "true if there was a real issue, false if the data was correct"),
    Column("reason", TEXT, "the reason, if the author gave one"),
    Column("author", TEXT, "the author of the label"),
    Column("labelled_at", TIME, "when the label was set"),
    MONTH,
)
"""One row for each label of a verdict. Of several for the same assertion, gate, date and map index
the last one counts."""

INCIDENT_NOTES = (
    Column("event_id", TEXT, "a UUID of this note"),
    Column("gate", TEXT, "the name of the gate, `dag_id.task_id` if it has no other"),
    Column("dataset_date", DATE, "the date of the data"),
    Column("map_index", WHOLE, "the map index of a mapped task, -1 for others"),
    Column("kind", TEXT, "`acknowledged` (the author is handling it) or `comment`"),
    Column("text", TEXT, "the comment"),
    Column("author", TEXT, "the author of the note"),
    Column("event_at", TIME, "when it was written"),
    MONTH,
)
"""One row for each note of a user on a gate that is blocked or broken."""

PROPOSALS = (
    Column("event_id", TEXT, "a UUID of this event"),
    Column("proposal_id", TEXT, "the id of the proposal, which `dql review` shows"),
    Column("event", TEXT, "what happened to the proposal"),
    Column("gate", TEXT, "the gate whose results the proposal is based on, if there is one"),
    Column("suite", TEXT, "the file of the suite"),
    Column("agent", TEXT, "the author: a person or an algorithm"),
    Column("reason", TEXT, "the reason, if one was given"),
    Column("proposal", TEXT, "the proposal as JSON, in the row that proposes it"),
    Column("event_at", TIME, "when it happened"),
    MONTH,
)
"""One row for each event of a proposal: proposed, approved, rejected, applied."""
