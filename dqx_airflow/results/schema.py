"""The tables of the results store, from `columns.md`: one row for each column, with its name, its
type, what fills it and its meaning; the layout of rows in files; and a report as rows and back,
losing nothing. The texts of its suites and contracts are stored once for any number of runs.

The schemas, the written rows, the reports and the reference page are generated from these tables.

A table may have fewer columns than these (an older writer) or more (a newer one): missing ones are
absent, unknown ones are ignored. Every column is therefore nullable. The keys come first, since
Delta keeps statistics for the first 32 columns, which readers use to skip files.

The schemas use the Arrow of deltalake: a reader of a report, such as the process of a task, need
not load pyarrow, which takes 40 MB.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from fractions import Fraction
from importlib.resources import files
from operator import methodcaller
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from arro3.core import DataType, Field, Schema

from dqx_airflow import values
from dqx_airflow.limits import LONGEST_KEPT_SOURCE
from dqx_airflow.values.exact import exact_text, is_decimal, nearest_float, parse_exact
from dqx_airflow.values.report import Acceptance

Row: TypeAlias = Mapping[str, Any]


class Source(NamedTuple):
    """The source of a row: a report, one of its verdicts, one failing row of the verdict; for a
    verdict of a shadow, the name of the shadow."""

    report: values.GateReport
    position: int = 0
    verdict: values.Verdict | None = None
    number: int = 0
    failing: values.FailingRow | None = None
    shadow: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `get` returns its value for the source of a row, or is the path of attributes to the value, such
    as `verdict.span.line` (None if one of the attributes is None); None if the column is written
    elsewhere. `fills` is the field of `Verdict`, or of an entry by a user, that the column fills
    when it is read; `read` returns the value of that field for a row.
    """

    name: str
    type: DataType
    meaning: str
    get: Callable[[Any], Any] | str | None
    fills: str | None
    read: Callable[[Row], Any]

    def value(self, source: object) -> Any:
        """The value of the column in the row of a source."""
        if not isinstance(self.get, str):
            return self.get(source) if self.get is not None else None
        value: Any = source
        for name in self.get.split("."):
            value = None if value is None else getattr(value, name)
        if isinstance(value, Enum):
            return value.value
        return as_utc(value) if isinstance(value, datetime) else value


def written(columns: tuple[Column, ...], source: object) -> dict[str, Any]:
    """The row of a source, by the names of columns.

    :param source: a `Source`, or an entry by a user, such as a label.
    """
    return {column.name: column.value(source) for column in columns if column.get is not None}


def fields_of(columns: tuple[Column, ...], row: Row) -> dict[str, Any]:
    """The values of the fields that the columns of a row fill."""
    return {column.fills: column.read(row) for column in columns if column.fills}


def as_utc(at: datetime) -> datetime:
    """The time with `timezone.utc` itself; a time without a time zone is in UTC."""
    if at.tzinfo is None:
        return at.replace(tzinfo=timezone.utc)
    return at.astimezone(timezone.utc)


_INTEGER, _DECIMAL, _FRACTION = "integer", "decimal", "fraction"

_FLOAT, _STRING = "number", "text"

_KINDS = "`integer`, `decimal`, `fraction` (such as `1/3`), `number` (a float) or `text`"


def _split(value: values.MetricValue) -> tuple[float | None, str | None, str | None]:
    """The value as a double, the value as a string, and its type (see `_KINDS`)."""
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


def value_from_row(row: Row, name: str) -> values.MetricValue:
    """The original value, from its columns of text and kind."""
    text, kind = row.get(f"{name}_text"), row.get(f"{name}_kind")
    if text is None or kind is None:
        return None
    if kind in (_INTEGER, _DECIMAL, _FRACTION):
        return parse_exact(text)
    return float(text) if kind == _FLOAT else str(text)


def _disabled_by(row: Row) -> str | None:
    """The profile that disabled an assertion, also for a row written without the column."""
    if name := row.get("disabled_by"):
        return str(name)
    match = re.fullmatch(r"disabled by profile '(.*)'", row.get("reason") or "", re.DOTALL)
    return match[1] if match and row["status"] == values.Status.SKIPPED else None


def _span(row: Row) -> values.Span | None:
    if row.get("span_file") is None:
        return None
    return values.Span(*(row[name] for name in _SPAN))


_SPAN = ("span_file", "span_line", "span_column", "span_end_line", "span_end_column")


def _counted(status: values.Status) -> Callable[[Source], int]:
    return lambda source: source.report.count(status)


def _is_partial(source: Source) -> bool:
    return source.report.partial is not None


def _shadow_run(source: Source) -> str | None:
    """The shadow of a report without its verdicts, which are rows of `results`."""
    shadow = source.report.shadow
    return values.to_json(replace(shadow, verdicts=())) if shadow else None


_COMPUTED: Mapping[str, Callable[[Source], Any]] = {
    "runs.assertions": lambda source: len(source.report.verdicts),
    "runs.passed": _counted(values.Status.PASSED),
    "runs.failed": _counted(values.Status.FAILED),
    "runs.skipped": _counted(values.Status.SKIPPED),
    "runs.errors": _counted(values.Status.ERROR),
    "runs.failing_rows": lambda source: sum(
        len(verdict.failing_rows) for verdict in source.report.verdicts
    ),
    "runs.shadow_run": _shadow_run,
    "runs.partial": _is_partial,
    "results.partial": _is_partial,
}
"""The values of columns without a path, by table and column."""

_MADE: Mapping[str, Callable[[Any], Any]] = {
    "results.status": values.Status,
    "results.severity": values.Severity,
    "results.origin": lambda value: None if value is None else values.Origin(value),
    "results.multiplier": lambda value: 1.0 if value is None else value,
    "labels.suite": lambda value: value or "",
    "incident_notes.text": lambda value: value or "",
    "proofs.differences": lambda value: values.from_json(tuple[values.Difference, ...], value),
    "proofs.untried": lambda value: values.from_json(tuple[tuple[str, int], ...], value),
}
"""Functions that convert values of some columns to values of fields."""

_READ: Mapping[str, Callable[[Row], Any]] = {
    "results.span_file": _span,
    "results.disabled_by": _disabled_by,
}
"""Functions that read fields which more than one column fills."""

_TYPES: Mapping[str, tuple[DataType, Callable[[Any], Any] | None]] = {
    "text": (DataType.string(), None),
    "json": (DataType.string(), None),
    "strings": (DataType.list(Field("item", DataType.string())), lambda value: tuple(value or ())),
    "integer": (DataType.int64(), None),
    "number": (DataType.float64(), None),
    "boolean": (DataType.bool(), bool),
    "date": (DataType.date32(), None),
    "time": (DataType.timestamp("us", tz="UTC"), as_utc),
}
"""The types of columns, and functions that convert their values to values of fields."""


def _column(table: str, name: str, kind: str, path: str, meaning: str) -> Column:
    place, (type_, make) = f"{table}.{name}", _TYPES[kind]
    get: Any = path or _COMPUTED.get(place)
    if kind == "json" and path:
        get = _as_json(Column(name, type_, meaning, path, None, dict))
    field = path.removeprefix("verdict.")
    is_field = field and "." not in field and field not in Source._fields
    make = _MADE.get(place, make)
    found: Callable[[Row], Any] = methodcaller("get", name)

    def made(row: Row) -> Any:
        assert make is not None
        return make(row.get(name))

    read = made if make else found
    fills = "span" if name == _SPAN[0] else field if is_field else None
    return Column(name, type_, meaning, get, fills, _READ.get(place, read))


def _as_json(column: Column) -> Callable[[Any], str | None]:
    def get(source: object) -> str | None:
        value = column.value(source)
        return None if value is None else values.to_json(value)

    return get


def _value_columns(name: str, path: str, meaning: str) -> Iterator[Column]:
    """A value takes three columns: a double for charts, the exact value as text, and its kind.

    A double alone would lose the difference between 1 and 1.0, integers above 2**53, and dates.
    """
    meanings = {
        "": ("number", meaning),
        "_text": ("text", f"`{name}`: exactly, as a string"),
        "_kind": ("text", f"`{name}`: {_KINDS}"),
    }
    for part, (ending, (kind, meant)) in enumerate(meanings.items()):
        column = _column("results", f"{name}{ending}", kind, "" if ending else path, meant)
        yield replace(column, get=_part(name, part), read=lambda row: value_from_row(row, name))


def _part(name: str, number: int) -> Callable[[Source], Any]:
    return lambda source: _split(getattr(source.verdict, name))[number]


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table of the store, and the layout of its rows in files.

    `clock` is the column with the time of a row: it decides the month of the row, and its age. The
    rows of a file are sorted by `order`. `keys` are the columns with statistics, by which readers
    skip files. Of the rows that are equal in `newest_of`, only the newest counts, so the others may
    be dropped; if it is empty, every row counts. A table that `is_of_people` is written by no gate;
    it is never pruned, nor is one that `is_kept`.
    """

    name: str
    columns: tuple[Column, ...]
    clock: str
    order: tuple[str, ...]
    keys: tuple[str, ...]
    newest_of: tuple[str, ...] = ()
    is_of_people: bool = False
    is_kept: bool = False

    @property
    def schema(self) -> Schema:
        """The Arrow schema of the table."""
        return Schema([Field(column.name, column.type) for column in self.columns])

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


MONTH = "month"
"""Every table is partitioned by it. Writers of older versions leave it NULL, so no reader depends
on it: files are skipped by statistics."""

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
RECEIPTS = "receipts"


def _tables() -> Iterator[TableDefinition]:
    """The tables of `columns.md`."""
    page = files(__package__).joinpath("columns.md").read_text("utf-8")
    opening, *sections = page.split("\n## ")
    rows = {text.partition("\n")[0]: [*_rows(text)] for text in sections}
    for name, clock, order, keys, newest_of, people in _rows(opening):
        columns = [
            column
            for first, *cells in rows[name]
            for own in (rows["keys"] if first == "(keys)" else [[first, *cells]])
            for column in _columns(name, *own)
        ]
        month = "the month in which the row was written, as in `2024-02`"
        columns.append(_column(name, MONTH, "text", "", month))
        sorted_by, with_statistics, unique = (
            tuple(cell.split()) for cell in (order, keys, newest_of)
        )
        yield TableDefinition(
            name,
            tuple(columns),
            clock,
            sorted_by,
            with_statistics,
            unique,
            people == "yes",
            people == "kept",
        )


def _rows(section: str) -> Iterator[list[str]]:
    """The cells of the rows of a table; only meanings keep their backquotes."""
    for line in section.split("\n"):
        if line.startswith(("| `", "| (")):
            *cells, last = (cell.strip() for cell in line.strip("|").split("|"))
            yield [*(cell.replace("`", "") for cell in cells), last]


def _columns(table: str, name: str, kind: str, path: str, meaning: str) -> Iterable[Column]:
    if kind == "value":
        return _value_columns(name, path, meaning)
    return [_column(table, name, kind, path, meaning)]


TABLES: Mapping[str, TableDefinition] = {table.name: table for table in _tables()}
"""All tables, by name. `runs` comes first: a deletion begins with the rows that mark a run as
complete."""

RESULTS_COLUMNS = TABLES[RESULTS].columns
FAILING_ROWS_COLUMNS = TABLES[FAILING_ROWS].columns
RUNS_COLUMNS = TABLES[RUNS].columns
LABELS_COLUMNS = TABLES[LABELS].columns

RUNS_SCHEMA = TABLES[RUNS].schema
RESULTS_SCHEMA = TABLES[RESULTS].schema
FAILING_ROWS_SCHEMA = TABLES[FAILING_ROWS].schema
SOURCES_SCHEMA = TABLES[SOURCES].schema
LABELS_SCHEMA = TABLES[LABELS].schema
PROPOSALS_SCHEMA = TABLES[PROPOSALS].schema


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list of runs. `assertions` counts all of them, `errors` those that could not be
    evaluated; `worst` is None if everything passed or was skipped. `partial` describes the
    selection, None if nothing was left out. `slice` is the slice in the report."""

    run_id: str
    run_key: values.RunKey
    attempt: values.Attempt
    suite: str
    outcome: values.Outcome
    fail_on: values.Severity
    assertions: int
    passed: int
    failed: int
    skipped: int
    errors: int
    worst: str | None
    worst_severity: values.Severity | None
    started_at: datetime
    finished_at: datetime
    partial: values.PartialRun | None = None
    slice: str | None = None


def results_rows(report: values.GateReport) -> list[Row]:
    """The rows of the table `results`, in the order of the suite."""
    return [
        written(RESULTS_COLUMNS, Source(report, position, verdict))
        for position, verdict in enumerate(report.verdicts)
    ]


def shadow_rows(report: values.GateReport) -> list[Row]:
    """The rows of the table `results` for the verdicts of the shadow, in the order of its suite."""
    shadow = report.shadow
    if shadow is None:
        return []
    return [
        written(RESULTS_COLUMNS, Source(report, position, verdict, shadow=shadow.name))
        for position, verdict in enumerate(shadow.verdicts)
    ]


def failing_rows(report: values.GateReport) -> list[Row]:
    """The rows of the table `failing_rows`, in the order of the suite."""
    return [
        written(FAILING_ROWS_COLUMNS, Source(report, position, verdict, number, failing))
        for position, verdict in enumerate(report.verdicts)
        for number, failing in enumerate(verdict.failing_rows)
    ]


def run_row(report: values.GateReport) -> Row:
    """The row of a report in the table `runs`."""
    return written(RUNS_COLUMNS, Source(report))


def report_from_rows(
    run: Row, results: Iterable[Row], failing: Iterable[Row] = (), shadow: Iterable[Row] = ()
) -> values.GateReport:
    """Builds a report from its row in `runs` and its rows in the other tables, in any order.

    A repeated row counts once.

    :param shadow: the rows of its shadow, if requested.

    :raises ValueError: rows are missing, or contain what no report contains.
    """
    by_position = {row["position"]: row for row in results}
    expected = run["assertions"]
    if set(by_position) != set(range(expected)):
        raise ValueError(f"{len(by_position)} of its {expected} result rows were found")
    samples: dict[int, dict[int, values.FailingRow]] = {}
    for row in failing:
        sample = samples.setdefault(row["position"], {})
        sample[row["number"]] = values.FailingRow(row["dataset"], row["reason"], row["row"])
    found, sampled = sum(map(len, samples.values())), run.get("failing_rows") or 0
    if found != sampled:
        raise ValueError(f"{found} of its {sampled} failing rows were found")
    snapshots: tuple[values.DatasetSnapshot, ...] = values.from_json(
        tuple[values.DatasetSnapshot, ...], run.get("datasets") or "[]"
    )
    contract, accepted = run.get("contract"), run.get("accepted")
    return values.GateReport(
        **_of_run(run),
        verdicts=tuple(
            verdict_from_row(by_position[position], samples.get(position, {}))
            for position in range(expected)
        ),
        datasets=snapshots,
        contract=values.from_json(values.EnforcedContract, contract) if contract else None,
        sources=values.from_json(tuple[values.SourceDigest, ...], run.get("sources") or "[]"),
        shadow=_shadow(run, shadow),
        accepted=values.from_json(Acceptance, accepted) if accepted else None,
        answered=run.get("answered"),
        accept_required=bool(run.get("accept_required")),
        spark_version=run.get("spark_version"),
        ansi=run.get("ansi"),
        engine_proof=run.get("engine_proof"),
    )


def _shadow(run: Row, rows: Iterable[Row]) -> values.ShadowReport | None:
    text = run.get("shadow_run")
    if not text:
        return None
    by_position = {row["position"]: row for row in rows}
    verdicts = tuple(verdict_from_row(row) for _, row in sorted(by_position.items()))
    return replace(values.from_json(values.ShadowReport, text), verdicts=verdicts)


def run_from_row(run: Row) -> RunRow:
    """The row of a list of runs.

    :raises ValueError: the row contains what no report contains.
    """
    severity = run.get("worst_severity")
    return RunRow(
        **_of_run(run),
        **{name: run[name] for name in ("assertions", "passed", "failed", "skipped", "errors")},
        worst=run.get("worst"),
        worst_severity=values.Severity(severity) if severity else None,
    )


def _of_run(run: Row) -> dict[str, Any]:
    """The fields that a report and its row in a list have in common."""
    selection = run.get("selection")
    return {
        "run_id": run["run_id"],
        "run_key": values.RunKey(run["gate"], run["dataset_date"], run["scheduler_run"]),
        "attempt": values.Attempt(run["attempt"], run["attempt_id"]),
        "suite": run["suite"],
        "outcome": values.Outcome(run["outcome"]),
        "fail_on": values.Severity(run["fail_on"]),
        "started_at": as_utc(run["started_at"]),
        "finished_at": as_utc(run["finished_at"]),
        "partial": values.from_json(values.PartialRun, selection) if selection else None,
        "slice": run.get("slice"),
    }


def verdict_from_row(
    row: Row, sample: Mapping[int, values.FailingRow] = MappingProxyType({})
) -> values.Verdict:
    """The verdict of a row of `results`.

    :param sample: its failing rows, by number.
    """
    failing = tuple(sample[number] for number in sorted(sample))
    return values.Verdict(failing_rows=failing, **fields_of(RESULTS_COLUMNS, row))


def digest_of(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()


def digests_of(sources: Iterable[values.SourceFile]) -> tuple[values.SourceDigest, ...]:
    """The digests of a gate's source texts in its report."""
    return tuple(values.SourceDigest(source.name, digest_of(source.text)) for source in sources)


def source_rows(report: values.GateReport, sources: Iterable[values.SourceFile]) -> dict[str, Row]:
    """A row of the table `sources` for each distinct text to store, by its digest."""
    texts = {digest_of(source.text): source.text for source in sources}
    return {
        digest: {
            "run_id": report.run_id,
            "digest": digest,
            "text": text,
            "stored_at": report.finished_at,
        }
        for digest, text in texts.items()
        if len(text) <= LONGEST_KEPT_SOURCE
    }
