"""The plain values that travel between the houses, each with a JSON form.

A `GateRequest` goes in, a `GateReport` comes out. Everything here is frozen, holds only text,
numbers, dates and tuples of such values, and relies on the standard library alone (the JSON
form borrows cattrs, imported when it is asked for).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any, TypeAlias, TypeVar

MetricValue: TypeAlias = int | float | str | None
"""What a metric yields: counts are int, other numbers float, dates and timestamps ISO text.
None means that there is no value. NaN and infinity never get here."""

FORMATS = ("delta", "parquet", "csv", "json", "orc", "avro", "iceberg")
"""The formats in which a dataset at a path may be stored."""

T = TypeVar("T")


class Severity(str, Enum):
    """How bad a failure is: P0 is the worst, P3 the mildest."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"

    def at_least(self, other: Severity) -> bool:
        """True where this severity is as bad as `other`, or worse."""
        return self.value <= other.value


class Status(str, Enum):
    """What became of one assertion. `ERROR`: it could not be evaluated."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


class Outcome(str, Enum):
    """What became of a gate as a whole."""

    PASSED = "passed"
    WARNED = "warned"
    BLOCKED = "blocked"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source file. Lines and columns count from 1, `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of DQL text, inlined, so that nobody needs to read it twice."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that `importer` imports by writing `path`."""

    importer: str
    path: str
    file: SourceFile


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """Where a dataset of a suite is found.

    Exactly one of `path` and `table` is given. `date_column` tells which rows belong to a date;
    without it, the whole dataset belongs to every date and metrics cannot be lagged. `filter` is
    a Spark SQL predicate. `version` pins a Delta version; without it the newest one when the
    gate starts is read, and pinned for the whole run.
    """

    name: str
    path: str | None = None
    table: str | None = None
    format: str = "delta"
    date_column: str | None = None
    filter: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    version: int | None = None

    @property
    def location(self) -> str:
        return self.path or self.table or ""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What a result is the result of: a gate, for a date of its data, in one scheduler run."""

    gate: str
    date: date
    scheduler_run: str

    def __str__(self) -> str:
        return f"{self.gate}/{self.date.isoformat()}/{self.scheduler_run}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a run key.

    `number` orders the attempts, `id` is unique for each of them: a cleared task starts a new
    attempt even where its number starts again at 1.
    """

    number: int
    id: str


@dataclass(frozen=True, slots=True)
class ParentRun:
    """The OpenLineage run that started the gate (the Airflow task), and the root run above it."""

    namespace: str
    job: str
    run_id: str
    root_namespace: str
    root_job: str
    root_run_id: str


@dataclass(frozen=True, slots=True)
class GateRequest:
    """Everything that the job needs to know. It holds no secret and no path to a source file.

    `timeout_s` is the time in seconds after which the job ends itself, since a Python driver may
    outlive the task that started it.
    """

    run_key: RunKey
    attempt: Attempt
    suite: SourceFile
    datasets: tuple[DatasetRef, ...]
    results_root: str
    fail_on: Severity = Severity.P1
    allow_empty: bool = False
    skip_dates: tuple[date, ...] = ()
    parent: ParentRun | None = None
    timeout_s: float | None = None
    imports: tuple[ImportedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one assertion, and why.

    `value` is the raw metric value, `scaled_value` that value times the `multiplier` of the
    active profiles: the number that was compared. `expected` is the condition as text and
    `threshold` its evaluated right-hand side. `metric` and `column` are set where the assertion
    is about one of them. `reason` explains every status but `passed`.
    """

    name: str
    check: str
    datasets: tuple[str, ...]
    expression: str
    expected: str
    severity: Severity
    status: Status
    value: MetricValue = None
    multiplier: float = 1.0
    scaled_value: MetricValue = None
    threshold: MetricValue = None
    reason: str | None = None
    tags: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    metric: str | None = None
    column: str | None = None
    span: Span | None = None
    source_line: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a dataset, with its type as Spark writes it (`decimal(18,2)`)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class MetricResult:
    """A metric computed for the target date. `column` is None for metrics of whole rows."""

    metric: str
    column: str | None
    value: MetricValue


@dataclass(frozen=True, slots=True)
class DatasetSnapshot:
    """The very data that was validated: where, which version, how many rows on the date."""

    name: str
    location: str
    format: str
    version: int | None = None
    rows: int | None = None
    fields: tuple[Field, ...] = ()
    metrics: tuple[MetricResult, ...] = ()


@dataclass(frozen=True, slots=True)
class GateReport:
    """The result of one attempt of a gate.

    `run_id` is a UUID of this very job run: the OpenLineage run id, and the key of its rows in
    the results store. Times are in UTC.
    """

    run_id: str
    run_key: RunKey
    attempt: Attempt
    suite: str
    fail_on: Severity
    outcome: Outcome
    verdicts: tuple[Verdict, ...]
    datasets: tuple[DatasetSnapshot, ...]
    started_at: datetime
    finished_at: datetime

    def with_status(self, status: Status) -> tuple[Verdict, ...]:
        """The verdicts of one status, worst severity first, else in the order of the suite."""
        found = [verdict for verdict in self.verdicts if verdict.status is status]
        return tuple(sorted(found, key=lambda verdict: verdict.severity.value))

    def count(self, status: Status) -> int:
        return sum(verdict.status is status for verdict in self.verdicts)


def to_json(value: Any) -> str:
    """The JSON form of any value of this module, with stable key order."""
    import json

    return json.dumps(_converter().unstructure(value), ensure_ascii=False, allow_nan=False)


def from_json(kind: type[T], text: str | bytes) -> T:
    """The value whose JSON form is `text`.

    :raises ValueError: `text` is not the JSON form of a `kind`; the message names the key.
    """
    import json

    from cattrs import transform_error
    from cattrs.errors import BaseValidationError

    try:
        value: T = _converter().structure(json.loads(text), kind)
        return value
    except BaseValidationError as error:
        raise ValueError(f"not a {kind.__name__}: {'; '.join(transform_error(error))}") from error
    except TypeError as error:  # `null` or a number where an object belongs
        raise ValueError(f"not a {kind.__name__}: {error}") from error


def _converter() -> Any:
    global _CONVERTER
    if _CONVERTER is None:
        from cattrs.preconf.json import make_converter
        from cattrs.strategies import configure_union_passthrough

        _CONVERTER = make_converter()
        configure_union_passthrough(MetricValue, _CONVERTER)
    return _CONVERTER


_CONVERTER: Any = None
