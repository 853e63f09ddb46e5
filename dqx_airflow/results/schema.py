"""The tables of the results store: one row for each column, with its name, its type, its meaning,
what fills it, and the field that it fills when it is read back; and the layout of rows in files.

The schemas, the written rows, the reports and the reference page are generated from these tables.

A table may have fewer columns than these (an older writer) or more (a newer one): missing ones are
absent, unknown ones are ignored. Every column is therefore nullable. The keys come first, since
Delta keeps statistics for the first 32 columns, which readers use to skip files.

The schemas use the Arrow of deltalake: a reader of a report, such as the process of a task, need
not load pyarrow, which takes 40 MB.
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

from arro3.core import DataType, Field, Schema

from dqx_airflow.values import (
    Difference,
    FailingRow,
    GateReport,
    MetricValue,
    Origin,
    Severity,
    Span,
    Status,
    Verdict,
    from_json,
    to_json,
)
from dqx_airflow.values.exact import exact_text, is_decimal, nearest_float, parse_exact

Row: TypeAlias = Mapping[str, Any]

TEXT = DataType.string()

TEXTS = DataType.list(Field("item", TEXT))

WHOLE = DataType.int64()

NUMBER = DataType.float64()

TRUTH = DataType.bool()

DATE = DataType.date32()

TIME = DataType.timestamp("us", tz="UTC")


class Source(NamedTuple):
    """The source of a row: a report, one of its verdicts, one of the failing rows of that; for a
    verdict of its shadow, the name of the shadow."""

    report: GateReport
    position: int = 0
    verdict: Verdict | None = None
    number: int = 0
    failing: FailingRow | None = None
    shadow: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `get` returns its value for a row of a report, or is the path of attributes to it:
    `verdict.span.line`, which is None where one of them is; None if something else writes it.

    `fills` is the field of `Verdict` that it fills when it is read, `read` returns the value of
    that field for a row: the value of the column itself if it is None.
    """

    name: str
    type: DataType
    meaning: str
    get: Callable[[Any], Any] | str | None = None
    fills: str | None = None
    read: Callable[[Row], Any] | None = None

    def value(self, source: object) -> Any:
        """Its value in the row of a source."""
        if not isinstance(self.get, str):
            return self.get(source) if self.get is not None else None
        value: Any = source
        for name in self.get.split("."):
            value = None if value is None else getattr(value, name)
        return value

    def field_value(self, row: Row) -> Any:
        """The value of the field that the column fills."""
        return row.get(self.name) if self.read is None else self.read(row)


def written(columns: tuple[Column, ...], source: object) -> dict[str, Any]:
    """A row as it is written.

    :param source: a `Source`, or what a user writes.
    """
    return {column.name: column.value(source) for column in columns if column.get is not None}


def field_column(
    name: str,
    type: DataType,
    meaning: str,
    make: Callable[[Any], Any] | None = None,
    *,
    otherwise: Any = None,
) -> Column:
    """A column for the field of `Verdict` with the same name.

    :param make: converts the column's value to the field's.
    :param otherwise: the field's value if the column is NULL or missing.
    """

    def read(row: Row) -> Any:
        value = row.get(name)
        return otherwise if value is None else make(value) if make else value

    def get(source: Source) -> Any:
        value = getattr(source.verdict, name)
        return value.value if isinstance(value, Enum) else value

    return Column(name, type, meaning, get, name, read)


def own_column(
    name: str,
    type: DataType,
    meaning: str,
    field: str | None = None,
    make: Callable[[Any], Any] | None = None,
) -> Column:
    """A column for a field of what a user writes, such as a label; by default of the same name.

    :param make: converts the column's value to the field's.
    """

    def read(row: Row) -> Any:
        return make(row.get(name)) if make else row.get(name)

    return Column(name, type, meaning, field or name, field or name, read)


def fields_of(columns: tuple[Column, ...], row: Row) -> dict[str, Any]:
    """The values of the fields that the columns of a row fill."""
    return {column.fills: column.field_value(row) for column in columns if column.fills}


def as_utc(at: datetime) -> datetime:
    """The time with `timezone.utc` itself; one without a time zone is in UTC."""
    if at.tzinfo is None:
        return at.replace(tzinfo=timezone.utc)
    return at.astimezone(timezone.utc)


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
    """The original value, from its columns of text and kind."""
    text, kind = row.get(f"{name}_text"), row.get(f"{name}_kind")
    if text is None or kind is None:
        return None
    if kind in (_INTEGER, _DECIMAL, _FRACTION):
        return parse_exact(text)
    return float(text) if kind == _FLOAT else str(text)


def value_columns(name: str, meaning: str) -> tuple[Column, ...]:
    """A value takes three columns: a double for charts, the exact value as text, and its kind.

    A double alone would lose the difference between 1 and 1.0, integers above 2**53, and dates.
    """

    def part(number: int) -> Callable[[Source], Any]:
        return lambda source: _split(getattr(source.verdict, name))[number]

    return (
        Column(name, NUMBER, meaning, part(0), name, lambda row: value_from_row(row, name)),
        Column(f"{name}_text", TEXT, f"`{name}`: exactly, as a string", part(1)),
        Column(f"{name}_kind", TEXT, f"`{name}`: {_KINDS}", part(2)),
    )


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
        "verdict.span.file",
        "span",
        _span,
    ),
    Column("span_line", WHOLE, "the line where it starts, from 1", "verdict.span.line"),
    Column("span_column", WHOLE, "the column where it starts, from 1", "verdict.span.column"),
    Column("span_end_line", WHOLE, "the line where it ends", "verdict.span.end_line"),
    Column(
        "span_end_column", WHOLE, "the column after its last character", "verdict.span.end_column"
    ),
)


def _shadow_run(report: GateReport) -> str | None:
    """The shadow of a report without its verdicts, which are rows of `results`."""
    return to_json(replace(report.shadow, verdicts=())) if report.shadow else None


def _selection(report: GateReport) -> str | None:
    """The selection of a partial run; None for a complete one."""
    return to_json(report.partial) if report.partial else None


_MONTH = Column("month", TEXT, "the month in which the row was written, as in `2024-02`")
"""Every table is partitioned by it. Writers of older versions leave it NULL, so no reader depends
on it: files are skipped by statistics."""

_KEYS = (
    Column("run_id", TEXT, "a UUID of this attempt, the same as in lineage", "report.run_id"),
    Column(
        "gate",
        TEXT,
        "the name of the gate, `dag_id.task_id` if it has no other",
        "report.run_key.gate",
    ),
    Column("dataset_date", DATE, "the date of the data", "report.run_key.date"),
    Column(
        "scheduler_run",
        TEXT,
        "the run id of Airflow, with the map index of a mapped task",
        "report.run_key.scheduler_run",
    ),
    Column("attempt", WHOLE, "the number of the attempt", "report.attempt.number"),
    Column("attempt_id", TEXT, "the id of this attempt in Airflow", "report.attempt.id"),
    Column(
        "finished_at",
        TIME,
        "when the gate reached its verdict",
        lambda source: as_utc(source.report.finished_at),
    ),
    Column("suite", TEXT, "the file of the suite", "report.suite"),
)
_CONTRACT = (
    Column("contract_id", TEXT, "the contract that was enforced", "report.contract.id"),
    Column("contract_version", TEXT, "its version", "report.contract.version"),
)
_POSITION = Column(
    "position", WHOLE, "the position of the assertion in the suite, from 0", "position"
)
_NAME = field_column("name", TEXT, "the name of the assertion")
_CHECK = field_column("check", TEXT, "the check that contains it")

_PARTIAL = Column(
    "partial",
    TRUTH,
    "whether a selection excluded assertions, so that the run does not cover all of them",
    lambda source: source.report.partial is not None,
)

RESULTS_COLUMNS = (
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
        "verdict.is_experimental",
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
        "shadow",
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
    Column(
        "required",
        TRUTH,
        "whether the assertion is `@required`",
        "verdict.is_required",
        "is_required",
        lambda row: bool(row.get("required")),
    ),
    field_column("waived_by", TEXT, "the waiver that covers the failure"),
    field_column("accepted_by", TEXT, "who accepted the data although it fails, and why"),
    field_column("rows_left_out", TRUTH, "whether the rows that violate it were left out"),
    _PARTIAL,
    _MONTH,
)
"""One row for each assertion of each attempt."""

FAILING_ROWS_COLUMNS = (
    *_KEYS,
    _POSITION,
    Column("number", WHOLE, "the position of the row in the sample, from 0", "number"),
    _NAME,
    _CHECK,
    Column("dataset", TEXT, "the dataset of the row", "failing.dataset"),
    Column("reason", TEXT, "why the row counts against the assertion", "failing.reason"),
    Column("row", TEXT, "JSON: the key columns and the columns at fault, masked", "failing.row"),
    _MONTH,
)
"""One row for each sampled row of a failed assertion."""

RUNS_COLUMNS = (
    *_KEYS,
    Column(
        "outcome",
        TEXT,
        "`passed`, `warned`, `accepted`, `blocked` or `broken`",
        "report.outcome.value",
    ),
    Column("fail_on", TEXT, "the lowest severity that blocks", "report.fail_on.value"),
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
    Column("worst", TEXT, "the assertion in the headline", "report.worst.name"),
    Column("worst_severity", TEXT, "its severity", "report.worst.severity.value"),
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
        "slice",
        TEXT,
        "JSON: the rows that the run is about: where it read each dataset, and `promote_slice`",
        "report.slice",
    ),
    Column(
        "accepted",
        TEXT,
        "JSON: who accepted the data of the run `run_id`, when and why",
        lambda source: to_json(source.report.accepted) if source.report.accepted else None,
    ),
    Column(
        "accept_required",
        TRUTH,
        "whether a person may accept data that violates P0 and `@required`",
        "report.accept_required",
    ),
    Column(
        "answered",
        TEXT,
        "when the answer came after which an attempt judged again; NULL for its first report",
        "report.answered",
    ),
    Column("spark_version", TEXT, "the version of Spark that measured", "report.spark_version"),
    Column(
        "ansi",
        TRUTH,
        "whether SQL of the suite, the contract and the datasets was evaluated in ANSI mode",
        "report.ansi",
    ),
    Column(
        "engine_proof",
        TEXT,
        "what `dql doctor --prove` found about the engine; NULL if it was not proven",
        "report.engine_proof",
    ),
    _MONTH,
)
"""One row for each attempt, written last."""

SOURCES_COLUMNS = (
    Column("run_id", TEXT, "the first run that used it"),
    Column("digest", TEXT, "the SHA-256 of the source, in hexadecimal digits"),
    Column("text", TEXT, "the source"),
    Column("stored_at", TIME, "when it was stored"),
    _MONTH,
)
"""One row for each text of a suite, a library or a contract, for any number of runs that used
it."""

STATES_COLUMNS = (
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
    _MONTH,
)
"""One row for each computed aggregate of each date."""


_GATE = own_column("gate", TEXT, "the name of the gate, `dag_id.task_id` if it has no other")


def _or_empty(value: str | None) -> str:
    return value or ""


LABELS_COLUMNS = (
    own_column("run_id", TEXT, "the run whose verdict was labelled"),
    own_column("label_id", TEXT, "a UUID of this label", "id"),
    _GATE,
    own_column("dataset_date", DATE, "the date of the data", "date"),
    own_column(
        "map_index", WHOLE, "the map index of a mapped task, -1 for others; NULL: see `run_id`"
    ),
    own_column("suite", TEXT, "the file of the suite", make=_or_empty),
    own_column("check", TEXT, "the check that contains it"),
    own_column("name", TEXT, "the name of the assertion"),
    own_column(
        "ground_truth", TRUTH, "true if there was a real issue, false if the data was correct"
    ),
    own_column("reason", TEXT, "the reason, if the author gave one"),
    own_column("author", TEXT, "the author of the label"),
    own_column("labelled_at", TIME, "when the label was set", "at", as_utc),
    _MONTH,
)
"""One row for each label of a verdict. Of several for the same assertion, gate, date and map index
the last one counts."""

INCIDENT_NOTES_COLUMNS = (
    own_column("event_id", TEXT, "a UUID of this note", "id"),
    _GATE,
    own_column("dataset_date", DATE, "the date of the data", "date"),
    own_column("map_index", WHOLE, "the map index of a mapped task, -1 for others"),
    own_column("slice", TEXT, "the `slice` of the run; NULL for a note on all of the date"),
    own_column(
        "kind",
        TEXT,
        "`acknowledged` (the author is handling it), `comment`, `closed` (the incident has ended "
        "for the author), `accepted` (the author accepts the data that was judged), `released` or "
        "`discarded` (the author returned rows from a quarantine, or deleted them)",
    ),
    own_column("text", TEXT, "the comment, or the reason", make=_or_empty),
    own_column("run_id", TEXT, "the run whose data was accepted"),
    own_column("author", TEXT, "the author of the note"),
    own_column("event_at", TIME, "when it was written", "at", as_utc),
    _MONTH,
)
"""One row for each note of a user on a gate that is blocked or broken."""

WAIVERS_COLUMNS = (
    own_column("event_id", TEXT, "a UUID of the waiver", "id"),
    _GATE,
    own_column("check", TEXT, "the check that contains the assertion"),
    own_column("name", TEXT, "the name of the assertion"),
    own_column("until", DATE, "its last day, in UTC"),
    own_column("below", TEXT, "the value has to be less; NULL for no such limit"),
    own_column("above", TEXT, "the value has to be greater; NULL for no such limit"),
    own_column("reason", TEXT, "why the assertion may fail"),
    own_column("owner", TEXT, "who takes care of the cause"),
    own_column("author", TEXT, "the author of the waiver"),
    own_column("ended_by", TEXT, "who ended it early, in a second row with the same `event_id`"),
    own_column("event_at", TIME, "when it was written", "at", as_utc),
    _MONTH,
)
"""One row for each waiver, and for each early end of one."""

PROPOSALS_COLUMNS = (
    Column("event_id", TEXT, "a UUID of this event"),
    Column("proposal_id", TEXT, "the id of the proposal, which `dql review` shows"),
    Column("event", TEXT, "what happened to the proposal"),
    Column("gate", TEXT, "the gate whose results the proposal is based on, if there is one"),
    Column("suite", TEXT, "the file of the suite"),
    Column("agent", TEXT, "the author: a person or an algorithm"),
    Column("reason", TEXT, "the reason, if one was given"),
    Column("proposal", TEXT, "the proposal as JSON, in the row that proposes it"),
    Column("event_at", TIME, "when it happened"),
    _MONTH,
)
"""One row for each event of a proposal: proposed, approved, rejected, applied."""

PROOFS_COLUMNS = (
    own_column("engine_key", TEXT, "identifies the engine", "key"),
    own_column(
        "engine",
        TEXT,
        "JSON: the version of Spark, the kind of session, the settings that may change a value, "
        "our version and the digest of the cases",
    ),
    own_column("spark_version", TEXT, "the version of Spark"),
    own_column("proven_at", TIME, "when the cases were run", "at", as_utc),
    own_column("agreeing", WHOLE, "the number of claims with the value that is due"),
    Column(
        "differences",
        TEXT,
        "JSON: the claims with other values, or errors",
        lambda proof: to_json(proof.differences),
        "differences",
        lambda row: from_json(tuple[Difference, ...], row["differences"]),
    ),
    own_column(
        "doubts",
        TEXTS,
        "the functions, types and formats that gates do not judge on this engine",
        make=lambda names: tuple(names or ()),
    ),
    Column(
        "untried",
        TEXT,
        "JSON: reasons why claims were not tried, with their number",
        lambda proof: to_json(proof.untried),
        "untried",
        lambda row: from_json(tuple[tuple[str, int], ...], row["untried"]),
    ),
    _MONTH,
)
"""One row for each proof of an engine."""


MONTH = _MONTH.name

RUNS = "runs"
RESULTS = "results"
FAILING_ROWS = "failing_rows"
SOURCES = "sources"
STATES = "states"
LABELS = "labels"
PROPOSALS = "proposals"
INCIDENT_NOTES = "incident_notes"
PROOFS = "proofs"
WAIVERS = "waivers"


def _schema(table: tuple[Column, ...]) -> Schema:
    return Schema([Field(column.name, column.type) for column in table])


RUNS_SCHEMA = _schema(RUNS_COLUMNS)
RESULTS_SCHEMA = _schema(RESULTS_COLUMNS)
FAILING_ROWS_SCHEMA = _schema(FAILING_ROWS_COLUMNS)
SOURCES_SCHEMA = _schema(SOURCES_COLUMNS)
LABELS_SCHEMA = _schema(LABELS_COLUMNS)
PROPOSALS_SCHEMA = _schema(PROPOSALS_COLUMNS)
INCIDENT_NOTES_SCHEMA = _schema(INCIDENT_NOTES_COLUMNS)
PROOFS_SCHEMA = _schema(PROOFS_COLUMNS)
WAIVERS_SCHEMA = _schema(WAIVERS_COLUMNS)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table of the store, and the layout of its rows in files.

    `clock` is the column with the time of a row: it decides the month of the row, and its age. The
    rows of a file are sorted by `order`. `keys` are the columns with statistics, by which readers
    skip files. Of the rows that are equal in `newest_of`, only the newest counts, so the others may
    be dropped; if it is empty, every row counts. A table that `is_of_people` is never pruned, and
    no gate writes it.
    """

    name: str
    columns: tuple[Column, ...]
    clock: str
    order: tuple[str, ...]
    keys: tuple[str, ...]
    newest_of: tuple[str, ...] = ()
    is_of_people: bool = False

    @property
    def schema(self) -> Schema:
        """The Arrow schema of the table."""
        return _schema(self.columns)

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the Delta table."""
        return {
            "delta.checkpointInterval": "50",
            # Opening a table lists its log, and old versions are not needed.
            "delta.logRetentionDuration": "interval 1 days",
            "delta.deletedFileRetentionDuration": "interval 7 days",
            # Every run leaves a transaction identifier; no run is written again after a month.
            "delta.setTransactionRetentionDuration": "interval 30 days",
            "delta.dataSkippingStatsColumns": ",".join(self.keys),
        }


_RUN_KEYS = ("run_id", "gate", "dataset_date", "scheduler_run", "attempt_id", "finished_at")
_BY_GATE = ("gate", "finished_at", "run_id")

TABLES: Mapping[str, TableDefinition] = {
    table.name: table
    for table in (
        TableDefinition(RUNS, RUNS_COLUMNS, "finished_at", _BY_GATE, _RUN_KEYS),
        TableDefinition(
            RESULTS, RESULTS_COLUMNS, "finished_at", (*_BY_GATE, "position"), _RUN_KEYS
        ),
        TableDefinition(
            FAILING_ROWS,
            FAILING_ROWS_COLUMNS,
            "finished_at",
            (*_BY_GATE, "position", "number"),
            _RUN_KEYS,
        ),
        TableDefinition(
            SOURCES, SOURCES_COLUMNS, "stored_at", ("digest",), ("digest", "stored_at"), ("digest",)
        ),
        TableDefinition(
            STATES,
            STATES_COLUMNS,
            "stored_at",
            ("scope", "dataset_date", "aggregate", "stored_at"),
            ("scope", "dataset_date", "stored_at"),
            ("scope", "dataset_date", "aggregate"),
        ),
        TableDefinition(
            LABELS,
            LABELS_COLUMNS,
            "labelled_at",
            ("gate", "dataset_date", "labelled_at"),
            ("gate", "dataset_date", "suite", "labelled_at"),
            is_of_people=True,
        ),
        TableDefinition(
            PROPOSALS,
            PROPOSALS_COLUMNS,
            "event_at",
            ("suite", "event_at"),
            ("suite", "proposal_id", "event_at"),
            is_of_people=True,
        ),
        TableDefinition(
            INCIDENT_NOTES,
            INCIDENT_NOTES_COLUMNS,
            "event_at",
            ("gate", "event_at"),
            ("gate", "dataset_date", "event_at"),
            is_of_people=True,
        ),
        TableDefinition(
            PROOFS,
            PROOFS_COLUMNS,
            "proven_at",
            ("engine_key", "proven_at"),
            ("engine_key", "proven_at"),
            is_of_people=True,
        ),
        TableDefinition(
            WAIVERS,
            WAIVERS_COLUMNS,
            "event_at",
            ("gate", "event_at"),
            ("gate", "event_at"),
            is_of_people=True,
        ),
    )
}
"""All tables, by name. `runs` comes first: a deletion begins with the rows that mark a run as
complete."""
