"""The columns of the tables of a results store: one row for each of them.

A row has the name, the type, what the column holds, where its value comes from, and what it fills
when it is read back. The schemas, the rows that are written, the reports that are read and the
reference page are made of these tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from arro3.core import DataType, Field

from dqx_airflow.exact import exact_text, is_decimal, nearest_float, parse_exact
from dqx_airflow.values import (
    FailingRow,
    GateReport,
    MetricValue,
    Origin,
    Severity,
    Span,
    Status,
    Verdict,
    to_json,
)

Row: TypeAlias = Mapping[str, Any]

_TEXT = DataType.string()
_TEXTS = DataType.list(Field("item", _TEXT))
_WHOLE = DataType.int64()
_NUMBER = DataType.float64()
_TRUTH = DataType.bool()
_DATE = DataType.date32()
_TIME = DataType.timestamp("us", tz="UTC")


class Source(NamedTuple):
    """What a row is made of: a report, one of its verdicts, one of the failing rows of that; of a
    verdict of its shadow, the name of the shadow."""

    report: GateReport
    position: int = 0
    verdict: Verdict | None = None
    number: int = 0
    failing: FailingRow | None = None
    shadow: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `get` gives its value for a row of a report; None where others write it.

    `fills` is the field of `Verdict` that it becomes when it is read, `read` gives the value of
    that field for a row: the value of the column itself where it is None.
    """

    name: str
    type: DataType
    meaning: str
    get: Callable[[Source], Any] | None = None
    fills: str | None = None
    read: Callable[[Row], Any] | None = None

    def field_value(self, row: Row) -> Any:
        """The value of the field that the column fills."""
        return row.get(self.name) if self.read is None else self.read(row)


def written(columns: tuple[Column, ...], source: Source) -> dict[str, Any]:
    """A row as it is written."""
    return {column.name: column.get(source) for column in columns if column.get is not None}


def _at(path: str) -> Callable[[Source], Any]:
    """What is at a path of attributes, `verdict.span.line`; None where one of them is None."""
    names = path.split(".")

    def get(source: Source) -> Any:
        value: Any = source
        for name in names:
            if value is None:
                return None
            value = getattr(value, name)
        return value

    return get


def _own(
    name: str,
    type: DataType,
    meaning: str,
    make: Callable[[Any], Any] | None = None,
    *,
    otherwise: Any = None,
) -> Column:
    """A column for the field of `Verdict` of the same name.

    :param make: makes the field's value of the column's.
    :param otherwise: the field's value where the column is NULL or missing.
    """

    def read(row: Row) -> Any:
        value = row.get(name)
        return otherwise if value is None else make(value) if make else value

    def get(source: Source) -> Any:
        value = getattr(source.verdict, name)
        return value.value if isinstance(value, Enum) else value

    return Column(name, type, meaning, get, name, read)


def _count(status: Status) -> Callable[[Source], int]:
    return lambda source: source.report.count(status)


def as_utc(at: datetime) -> datetime:
    """The time with `timezone.utc` itself; one without a time zone is taken as UTC."""
    if at.tzinfo is None:
        return at.replace(tzinfo=timezone.utc)
    return at.astimezone(timezone.utc)


# Values, spans


_INTEGER, _DECIMAL, _FRACTION = "integer", "decimal", "fraction"
_FLOAT, _STRING = "number", "text"
_KINDS = "`integer`, `decimal`, `fraction` (such as `1/3`), `number` (a float) or `text`"


def _split(value: MetricValue) -> tuple[float | None, str | None, str | None]:
    """A value as a double, as text, and its kind."""
    if value is None:
        return None, None, None
    if isinstance(value, str):
        return None, value, _STRING
    if isinstance(value, float):
        return value, repr(value), _FLOAT
    near = nearest_float(value)
    number = near if math.isfinite(near) else None
    if isinstance(value, Fraction):
        return number, exact_text(value), _DECIMAL if is_decimal(value) else _FRACTION
    return number, str(int(value)), _INTEGER


def value_from_row(row: Row, name: str) -> MetricValue:
    """A value as it was, of its columns of text and kind."""
    text, kind = row.get(f"{name}_text"), row.get(f"{name}_kind")
    if text is None or kind is None:
        return None
    if kind in (_INTEGER, _DECIMAL, _FRACTION):
        return parse_exact(text)
    return float(text) if kind == _FLOAT else str(text)


def _value(name: str, meaning: str) -> tuple[Column, ...]:
    """A value takes three columns: a double to be charted, the exact value as text, and its kind.

    A double alone would lose the difference between 1 and 1.0, integers above 2**53, and dates.
    """

    def part(number: int) -> Callable[[Source], Any]:
        return lambda source: _split(getattr(source.verdict, name))[number]

    return (
        Column(name, _NUMBER, meaning, part(0), name, lambda row: value_from_row(row, name)),
        Column(f"{name}_text", _TEXT, f"`{name}`: exactly, as a string", part(1)),
        Column(f"{name}_kind", _TEXT, f"`{name}`: {_KINDS}", part(2)),
    )


def _disabled_by(row: Row) -> str | None:
    """The profile that disabled an assertion, also of a row that was written without the column."""
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
        _TEXT,
        "the file that contains the assertion or the clause of the contract",
        _at("verdict.span.file"),
        "span",
        _span,
    ),
    Column("span_line", _WHOLE, "the line where it begins, from 1", _at("verdict.span.line")),
    Column("span_column", _WHOLE, "the column where it begins, from 1", _at("verdict.span.column")),
    Column("span_end_line", _WHOLE, "the line where it ends", _at("verdict.span.end_line")),
    Column(
        "span_end_column",
        _WHOLE,
        "the column after its last character",
        _at("verdict.span.end_column"),
    ),
)


def _shadow_run(report: GateReport) -> str | None:
    """The shadow of a report without its verdicts, which are rows of `results`."""
    return to_json(replace(report.shadow, verdicts=())) if report.shadow else None


def _selection(report: GateReport) -> str | None:
    """What a partial run selected; None for a whole one."""
    return to_json(report.partial) if report.partial else None


# The tables

MONTH = Column("month", _TEXT, "the month in which the row was written, as in `2024-02`")
"""Every table is partitioned by it. Writers of older versions leave it NULL, so no reader relies on
it: files are skipped by statistics."""

_KEYS = (
    Column("run_id", _TEXT, "a UUID of this attempt, the same as in lineage", _at("report.run_id")),
    Column(
        "gate",
        _TEXT,
        "the name of the gate, `dag_id.task_id` if it has no other",
        _at("report.run_key.gate"),
    ),
    Column("dataset_date", _DATE, "the date of the data", _at("report.run_key.date")),
    Column(
        "scheduler_run",
        _TEXT,
        "the run id of Airflow, with the map index of a mapped task",
        _at("report.run_key.scheduler_run"),
    ),
    Column("attempt", _WHOLE, "the number of the attempt", _at("report.attempt.number")),
    Column("attempt_id", _TEXT, "the id of this attempt in Airflow", _at("report.attempt.id")),
    Column(
        "finished_at",
        _TIME,
        "when the gate reached its verdict",
        lambda source: as_utc(source.report.finished_at),
    ),
    Column("suite", _TEXT, "the file of the suite", _at("report.suite")),
)
_CONTRACT = (
    Column("contract_id", _TEXT, "the contract that was enforced", _at("report.contract.id")),
    Column("contract_version", _TEXT, "its version", _at("report.contract.version")),
)
_POSITION = Column(
    "position", _WHOLE, "the position of the assertion in the suite, from 0", _at("position")
)
_NAME = _own("name", _TEXT, "the name of the assertion")
_CHECK = _own("check", _TEXT, "the check that contains it")

_PARTIAL = Column(
    "partial",
    _TRUTH,
    "whether a selection left assertions out, so that the run says nothing about the rest",
    lambda source: source.report.partial is not None,
)

RESULTS = (
    *_KEYS,
    _POSITION,
    _NAME,
    _CHECK,
    _own(
        "status", _TEXT, "`passed`, `failed`, `skipped` or `error` (could not be evaluated)", Status
    ),
    _own("severity", _TEXT, "`P0` (the worst) to `P3`", Severity),
    _own("datasets", _TEXTS, "the datasets that the assertion is about", tuple),
    _own("expression", _TEXT, "what was measured"),
    _own("expected", _TEXT, "the condition, as a string"),
    *_value("value", "the value as a number, for charts"),
    _own("multiplier", _NUMBER, "the factor of the active profiles", otherwise=1.0),
    *_value("scaled_value", "the value times the multiplier: what was compared"),
    *_value("threshold", "the limit as a number"),
    _own("reason", _TEXT, "why it did not pass"),
    _own("tags", _TEXTS, "its tags", tuple, otherwise=()),
    _own("profiles", _TEXTS, "the profiles that were active", tuple, otherwise=()),
    _own("metric", _TEXT, "the metric, if the assertion is about a single one"),
    _own("column", _TEXT, "the column, if the assertion is about a single one"),
    *_SPAN,
    _own("source_line", _TEXT, "its first line"),
    _own(
        "origin",
        _TEXT,
        "the origin of the value: `scan`, `stored state`, `stored state and new files` or "
        "`transaction log`",
        Origin,
    ),
    _own("note", _TEXT, "why a sample of failing rows is missing"),
    *_CONTRACT,
    _own("clause", _TEXT, "the path of the clause that the assertion enforces"),
    replace(
        _own("disabled_by", _TEXT, "the profile that disabled the assertion, if one did"),
        read=_disabled_by,
    ),
    Column(
        "experimental",
        _TRUTH,
        "whether the assertion is `@experimental`, and never blocks",
        _at("verdict.is_experimental"),
        "is_experimental",
        lambda row: bool(row.get("experimental")),
    ),
    _own(
        "let_by",
        _TEXT,
        "who lets a clause through that cannot be enforced: an acceptance, or a setting",
    ),
    _own(
        "measured",
        _TEXT,
        "the metric values behind the verdict as JSON, by which it can be judged again with other "
        "limits. A key is the dataset, the metric, its arguments, the lag in days, and the columns "
        "of groups; of these, the values of all groups are kept",
    ),
    Column(
        "shadow",
        _TEXT,
        "the name of the shadow suite whose verdict this is; NULL for verdicts of the gate. "
        "A verdict of a shadow counts for nothing: leave such rows out",
        _at("shadow"),
    ),
    _own("groups", _WHOLE, "how many groups the assertion was judged for, if it is per group"),
    _own("failed_groups", _WHOLE, "how many of them failed"),
    _own("worst_group", _TEXT, "the group with the worst value: `value` and the rest are its"),
    _PARTIAL,
    MONTH,
)
"""One row for each assertion of each attempt."""

FAILING_ROWS = (
    *_KEYS,
    _POSITION,
    Column("number", _WHOLE, "the position of the row in the sample, from 0", _at("number")),
    _NAME,
    _CHECK,
    Column("dataset", _TEXT, "the dataset of the row", _at("failing.dataset")),
    Column("reason", _TEXT, "why the row counts against the assertion", _at("failing.reason")),
    Column(
        "row", _TEXT, "JSON: the key columns and the columns at fault, masked", _at("failing.row")
    ),
    MONTH,
)
"""One row for each sampled row of a failed assertion."""

RUNS = (
    *_KEYS,
    Column(
        "outcome",
        _TEXT,
        "`passed`, `warned`, `blocked` or `broken`",
        _at("report.outcome.value"),
    ),
    Column("fail_on", _TEXT, "the lowest severity that blocks", _at("report.fail_on.value")),
    Column(
        "started_at",
        _TIME,
        "when the job began",
        lambda source: as_utc(source.report.started_at),
    ),
    Column(
        "assertions",
        _WHOLE,
        "the number of assertions",
        lambda source: len(source.report.verdicts),
    ),
    Column("passed", _WHOLE, "the number of passed assertions", _count(Status.PASSED)),
    Column("failed", _WHOLE, "the number of failed assertions", _count(Status.FAILED)),
    Column("skipped", _WHOLE, "the number of skipped assertions", _count(Status.SKIPPED)),
    Column(
        "errors",
        _WHOLE,
        "the number of assertions that could not be evaluated",
        _count(Status.ERROR),
    ),
    Column("worst", _TEXT, "the assertion in the headline", _at("report.worst.name")),
    Column("worst_severity", _TEXT, "its severity", _at("report.worst.severity.value")),
    Column(
        "datasets",
        _TEXT,
        "JSON: each dataset with its location, version, rows, columns and metrics",
        lambda source: to_json(source.report.datasets),
    ),
    Column(
        "failing_rows",
        _WHOLE,
        "the number of rows of this run in the table `failing_rows`",
        lambda source: sum(len(verdict.failing_rows) for verdict in source.report.verdicts),
    ),
    *_CONTRACT,
    Column(
        "contract",
        _TEXT,
        "JSON: the contract with its dialect, the version that the gate pins, and how many of its "
        "clauses were checked",
        lambda source: to_json(source.report.contract) if source.report.contract else None,
    ),
    Column(
        "sources",
        _TEXT,
        "JSON: the source files of the gate, each with the SHA-256 of its content",
        lambda source: to_json(source.report.sources),
    ),
    Column(
        "shadow_run",
        _TEXT,
        "JSON: the shadow suite of the run with its outcome, or why it could not be judged",
        lambda source: _shadow_run(source.report),
    ),
    _PARTIAL,
    Column(
        "selection",
        _TEXT,
        "JSON: what a partial run selected, how many of how many assertions that were, and the "
        "names of those that it left out although they are P0 or `@required`",
        lambda source: _selection(source.report),
    ),
    MONTH,
)
"""One row for each attempt, written last."""

SOURCES = (
    Column("run_id", _TEXT, "the first run that used it"),
    Column("digest", _TEXT, "the SHA-256 of the source, in hexadecimal digits"),
    Column("text", _TEXT, "the source"),
    Column("stored_at", _TIME, "when it was stored"),
    MONTH,
)
"""One row for each text of a suite, a library or a contract, however many runs went by it."""

STATES = (
    Column("run_id", _TEXT, "the run that computed it"),
    Column(
        "scope", _TEXT, "the dataset, with how, by which versions and in which session it was read"
    ),
    Column("dataset_date", _DATE, "the date that was aggregated"),
    Column("aggregate", _TEXT, "what was computed"),
    Column("result", _TEXT, "JSON: its value; NULL if the date had no rows"),
    Column(
        "fingerprint",
        _TEXT,
        "the files that it was computed from, in order, and the state of looked-up datasets",
    ),
    Column("stored_at", _TIME, "when it was stored"),
    MONTH,
)
"""One row for each aggregate of each date that was computed."""

LABELS = (
    Column("run_id", _TEXT, "the run whose verdict was labelled"),
    Column("label_id", _TEXT, "a UUID of this label"),
    Column("gate", _TEXT, "the name of the gate, `dag_id.task_id` if it has no other"),
    Column("dataset_date", _DATE, "the date of the data"),
    Column("suite", _TEXT, "the file of the suite"),
    Column("check", _TEXT, "the check that contains it"),
    Column("name", _TEXT, "the name of the assertion"),
    Column("ground_truth", _TRUTH, "true if there was a real issue, false if the data was correct"),
    Column("reason", _TEXT, "the reason, if the author gave one"),
    Column("author", _TEXT, "the author of the label"),
    Column("labelled_at", _TIME, "when the label was set"),
    MONTH,
)
"""One row for each time that a person said what a verdict was worth. Of several about the same
assertion, gate and date the last one counts."""

INCIDENT_NOTES = (
    Column("event_id", _TEXT, "a UUID of this note"),
    Column("gate", _TEXT, "the name of the gate, `dag_id.task_id` if it has no other"),
    Column("dataset_date", _DATE, "the date of the data"),
    Column("map_index", _WHOLE, "the map index of a mapped task, -1 for others"),
    Column("kind", _TEXT, "`acknowledged` (the author takes care of it) or `comment`"),
    Column("text", _TEXT, "the comment"),
    Column("author", _TEXT, "the author of the note"),
    Column("event_at", _TIME, "when it was written"),
    MONTH,
)
"""One row for each note of a person about a gate that is blocked or broken."""

PROPOSALS = (
    Column("event_id", _TEXT, "a UUID of this event"),
    Column("proposal_id", _TEXT, "the id of the proposal, which `dql review` shows"),
    Column("event", _TEXT, "what happened to the proposal"),
    Column("gate", _TEXT, "the gate whose results the proposal is based on, if there is one"),
    Column("suite", _TEXT, "the file of the suite"),
    Column("agent", _TEXT, "who did it: a person or an algorithm"),
    Column("reason", _TEXT, "the reason, if one was given"),
    Column("proposal", _TEXT, "the proposal as JSON, in the row that proposes it"),
    Column("event_at", _TIME, "when it happened"),
    MONTH,
)
"""One row for each thing that happened to a proposal: it was proposed, approved, rejected, applied.
"""
