"""The plain values that travel between the houses, each with a JSON form.

A `GateRequest` goes in, a `GateReport` comes out. Everything here is frozen, holds only text,
numbers, dates and tuples of such values, and relies on the standard library alone (the JSON
form borrows cattrs, imported when it is asked for).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from dqx_airflow.exact import exact_text, nearest_float, parse_exact
from dqx_airflow.limits import DEFAULT_SAMPLE_ROWS

MetricValue: TypeAlias = int | Fraction | float | str | None
"""What a metric yields. Exact numbers are an int or a Fraction: counts, whole numbers, decimals and
what is computed of them. Where floats or a root are behind it, it is a float; dates and timestamps
are ISO text. None means that there is no value. NaN and infinity never get here."""

FORMATS = ("delta", "parquet", "csv", "json", "orc", "avro", "iceberg")
"""The formats in which a dataset at a path may be stored."""

JDBC = "jdbc"
"""The format of a table of a database."""

MASK = "***"
"""What is shown of a value that must not be seen."""

_MAP_INDEX = re.compile(r"\[(\d{1,9})\]$")

T = TypeVar("T")


class Severity(str, Enum):
    """How bad a failure is: P0 is the worst, P3 the mildest."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"

    __str__ = str.__str__  # prints as its value, on every Python

    def at_least(self, other: Severity) -> bool:
        """True where this severity is as bad as `other`, or worse."""
        return self.value <= other.value


class Status(str, Enum):
    """What became of one assertion. `ERROR`: it could not be evaluated."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"

    __str__ = str.__str__  # prints as its value, on every Python


class Origin(str, Enum):
    """Where the value of a metric comes from, what takes most first."""

    SCAN = "scan"
    MERGED = "stored state and new files"
    STATE = "stored state"
    LOG = "transaction log"


class Outcome(str, Enum):
    """What became of a gate as a whole."""

    PASSED = "passed"
    WARNED = "warned"
    BLOCKED = "blocked"
    BROKEN = "broken"

    __str__ = str.__str__  # prints as its value, on every Python


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of some outcomes, of which there is one at least."""
    ranked = tuple(Outcome)
    return max(outcomes, key=ranked.index)


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

    Exactly one of `path`, `table` and `query` is given; a query is one SELECT over tables of the
    catalog. `date_column` tells which rows belong to a date; without it, the whole dataset belongs
    to every date and metrics cannot be lagged. It holds dates, timestamps, or text that
    `date_format` describes (a pattern of Spark, `yyyyMMdd`; ISO dates without it). `time_zone` is
    the zone in which the days of timestamps are meant, that of the session without it.

    `filter` is a Spark SQL predicate, `schema` the columns of files with their types
    (`id bigint, price double`), where these should not be guessed. Then csv and json are read as
    text, and a text that is no value of its type is NULL and counted as malformed. `version` pins
    a Delta version, `timestamp` the one that was the newest at an ISO moment; without them the
    newest one when the gate starts is read, and pinned for the whole run. `keys` are the columns
    by which people know a row. What `masked` columns hold never leaves Spark: `***` stands for it.
    Without `trust_log`, nothing is taken from the statistics in the transaction log of a Delta
    table: its rows are read. `lineage_name` is the path, URI or table by which lineage knows the
    data; without it, that is its location without dates, partitions and globs at the end.

    With `conn_id` the `table` is one of a database, read over JDBC: it is the id of a connection
    of Airflow, or of an environment variable, which holds the credentials.
    """

    name: str
    path: str | None = None
    table: str | None = None
    format: str = "delta"
    date_column: str | None = None
    filter: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    version: int | None = None
    keys: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    timestamp: str | None = None
    query: str | None = None
    schema: str | None = None
    date_format: str | None = None
    time_zone: str | None = None
    trust_log: bool = True
    lineage_name: str | None = None
    conn_id: str | None = None

    @property
    def location(self) -> str:
        """The path or the table; a query is known by the name of the dataset."""
        return self.path or self.table or self.name

    @property
    def is_of_texts(self) -> bool:
        """True for files of text whose columns are declared: their values are cast."""
        return self.path is not None and self.schema is not None and self.format in ("csv", "json")

    @property
    def is_lenient(self) -> bool:
        """True where the options say that values are NULL, or lines left out, that do not fit."""
        options = {name.lower(): value.lower() for name, value in self.options}
        return options.get("mode") in ("permissive", "dropmalformed")


@dataclass(frozen=True, slots=True)
class RunKey:
    """What a result is the result of: a gate, for a date of its data, in one scheduler run.

    `scheduler_run` is the run id of the scheduler, with the map index of a mapped task: `run[3]`.
    """

    gate: str
    date: date
    scheduler_run: str

    @property
    def map_index(self) -> int:
        """The map index of the task instance, -1 where it has none."""
        return int(self._mapped[1]) if self._mapped else -1

    @property
    def gate_instance(self) -> str:
        """The gate as people tell it from others of the same task: `lake.gate[3]` if mapped."""
        return f"{self.gate}[{self.map_index}]" if self._mapped else self.gate

    @property
    def dag_run_id(self) -> str:
        """The run id of the scheduler, without the map index."""
        return self.scheduler_run[: self._mapped.start()] if self._mapped else self.scheduler_run

    @property
    def _mapped(self) -> re.Match[str] | None:
        return _MAP_INDEX.search(self.scheduler_run)

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
class SourceLocation:
    """Where people find the file of a suite or a contract.

    `url` leads to the file itself. In a checkout of Git, `repository` is the address of its
    `origin`, `path` the file below its root, and `version` the commit.
    """

    url: str
    repository: str | None = None
    path: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class GateOrigin:
    """What a catalog says of a gate as a job: its owner, its documentation, and its source.

    `job` is the job where it is only a part of one; None where the gate is the job.
    """

    owner: str | None = None
    documentation: str | None = None
    source: SourceLocation | None = None
    job: str | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which assertions a gate judges: those that meet each criterion that is given.

    `only` are names of assertions or checks, `CHECK::ASSERTION`, clauses of a contract or the ids
    of its rules; `*` and `?` are wildcards. An assertion has one of the `tags` and none
    of `exclude_tags`, is of the `severity` or worse, and about one of the quality `dimensions`.
    """

    only: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    severity: Severity | None = None
    dimensions: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (
            ("only", self.only),
            ("tag", self.tags),
            ("without tag", self.exclude_tags),
            ("severity", (f"{self.severity} or worse",) if self.severity else ()),
            ("dimension", self.dimensions),
        )
        return "; ".join(f"{what} {', '.join(words)}" for what, words in parts if words)


@dataclass(frozen=True, slots=True)
class PartialRun:
    """What a run judged of its suite or contract: `selected` of `assertions`. `protected` are the
    names of those that it left out and that are P0 or `@required`."""

    selection: Selection
    selected: int
    assertions: int
    protected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnforcedClause:
    """The clause of a contract that an assertion enforces: its path, its place, and its line; of
    its rule, the id and the tags as written, and the quality dimension."""

    assertion: str
    path: str
    span: Span
    line: str
    id: str | None = None
    tags: tuple[str, ...] = ()
    dimension: str | None = None


@dataclass(frozen=True, slots=True)
class UnenforcedClause:
    """A clause of a contract that states a check and cannot be enforced: the name of its
    assertion, its path, its place, and its line, the dataset that it is about, and why. `let_by`
    names who lets it through, and `is_accepted` is true where that is somebody in the contract. The
    last fields are as of `EnforcedClause`."""

    assertion: str
    path: str
    span: Span
    line: str
    dataset: str
    severity: Severity
    reason: str
    let_by: str | None = None
    is_accepted: bool = False
    id: str | None = None
    tags: tuple[str, ...] = ()
    dimension: str | None = None


@dataclass(frozen=True, slots=True)
class Responsible:
    """Who answers for a contract, and what they want to be done in an incident."""

    owner: str | None = None
    contacts: tuple[str, ...] = ()
    channel: str | None = None
    runbook: str | None = None
    incident_response: str | None = None
    business_hours: str | None = None

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What is known, each with its name for people."""
        named = (
            ("owner", self.owner),
            ("contacts", ", ".join(self.contacts) or None),
            ("channel", self.channel),
            ("incident response", self.incident_response),
            ("runbook", self.runbook),
            ("business hours", self.business_hours),
        )
        return tuple((name, text) for name, text in named if text)


@dataclass(frozen=True, slots=True)
class EnforcedContract:
    """The contract that a suite was compiled from.

    `clauses` tell for each assertion which clause it enforces. `documented` and `unsupported` are
    how many clauses of the document no assertion enforces, `accepted` how many of the latter
    somebody accepts in the contract. `sources` are its files. `pin` is the version that the gate
    relies on (`2`, `2.3` or `2.3.0`), None where any one will do. `unenforced` are the clauses that
    state a check and cannot be enforced: their verdicts are errors, unless they are let through.
    `not_understood` tells of clauses that mean nothing here and state no check. `name`,
    `description` and `status` (`active`) are as the document has them.
    """

    id: str
    version: str | None
    dialect: str
    clauses: tuple[EnforcedClause, ...] = ()
    checked: int = 0
    documented: int = 0
    unsupported: int = 0
    sources: tuple[SourceFile, ...] = ()
    pin: str | None = None
    unenforced: tuple[UnenforcedClause, ...] = ()
    accepted: int = 0
    responsible: Responsible | None = None
    not_understood: tuple[str, ...] = ()
    name: str | None = None
    description: str | None = None
    status: str | None = None

    @property
    def in_report(self) -> EnforcedContract:
        """As a report tells it: without what the verdicts and the digests of its files tell."""
        return replace(self, clauses=(), sources=(), unenforced=())


@dataclass(frozen=True, slots=True)
class FieldSource:
    """A field elsewhere that a field is made of, in the words of OpenLineage."""

    namespace: str
    name: str
    field: str
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool = False


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """A column as a contract describes it to those who look a table up."""

    name: str
    type: str
    description: str | None = None
    sources: tuple[FieldSource, ...] = ()


@dataclass(frozen=True, slots=True)
class ContractDescription:
    """What a table tells of the contract that it is under."""

    id: str
    version: str | None
    description: str | None = None
    owners: tuple[str, ...] = ()
    fields: tuple[FieldDescription, ...] = ()


@dataclass(frozen=True, slots=True)
class ShadowSuite:
    """A suite that is judged beside that of a gate, by `name` in results. It is never acted on.

    `problem` says why it cannot be judged; `suite` is then None.
    """

    name: str
    suite: SourceFile | None = None
    imports: tuple[ImportedFile, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class GatePart:
    """One more date, or one more suite, that a gate judges in the same scan.

    Without a `suite` it is that of the request, with what it imports, the contract it is of, and
    what is selected.
    """

    run_key: RunKey
    suite: SourceFile | None = None
    imports: tuple[ImportedFile, ...] = ()
    contract: EnforcedContract | None = None
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class GateRequest:
    """Everything that the job needs to know. It holds no secret, and its sources themselves.

    `results_root` is empty for a trial, of which nothing is to be written.
    `timeout_s` is the time in seconds after which the job ends itself, since a Python driver may
    outlive the task that started it. `recompute` uses no stored states. `sample_rows` is how many
    failing rows of an assertion are kept at most. `quarantine` pairs datasets with the paths of
    the Delta tables into which their failing rows go; `promote_to` with the paths or names of those
    into which all their rows go on a pass, and `promote_slice` columns with the one value, as text,
    that these rows have: only such rows are replaced there. `contract` is where the suite comes
    from, if it was compiled. `date_from` says in words where the date comes from. With
    `require_history` a gate is broken where an assertion of `fail_on` or worse lacks data of other
    dates. `origin` is for lineage alone: nothing is read there. `shadow` is judged in the same scan
    and changes nothing. `more` are judged beside it, each with a report of its own. With a
    `selection` only the assertions that it selects are judged, and nothing is promoted unless
    `promote_partial` says so.
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
    recompute: bool = False
    sample_rows: int = DEFAULT_SAMPLE_ROWS
    quarantine: tuple[tuple[str, str], ...] = ()
    contract: EnforcedContract | None = None
    promote_to: tuple[tuple[str, str], ...] = ()
    date_from: str = ""
    promote_slice: tuple[tuple[str, str], ...] = ()
    require_history: bool = False
    origin: GateOrigin | None = None
    shadow: ShadowSuite | None = None
    more: tuple[GatePart, ...] = ()
    selection: Selection | None = None
    promote_partial: bool = False

    @property
    def parts(self) -> tuple[GateRequest, ...]:
        """A request for each report that is asked for: its own first, then those of `more`."""
        own = replace(self, more=())
        return (own, *(_part_of(own, part) for part in self.more))

    @property
    def job_key(self) -> RunKey:
        """The run key of the gate as a whole, where this is the request for one of its suites."""
        job = self.origin.job if self.origin is not None else None
        return replace(self.run_key, gate=job) if job else self.run_key

    @property
    def run_keys(self) -> tuple[RunKey, ...]:
        """The run key of each report that is asked for."""
        return (self.run_key, *(part.run_key for part in self.more))

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """All texts that the gate goes by: the contract, the suite, and what these draw in."""
        imported = (item.file for item in self.imports)
        files = (*(self.contract.sources if self.contract else ()), self.suite, *imported)
        return tuple({file.name: file for file in files}.values())


def _part_of(request: GateRequest, part: GatePart) -> GateRequest:
    if part.suite is None:
        return replace(request, run_key=part.run_key)
    return replace(
        request,
        run_key=part.run_key,
        suite=part.suite,
        imports=part.imports,
        contract=part.contract,
        shadow=None,
        selection=part.selection,
    )


@dataclass(frozen=True, slots=True)
class FailingRow:
    """A row that counts against an assertion, and why.

    `row` is a JSON object: the key columns first, then those at fault; all columns where the
    dataset has no keys. Of rows that repeat each other it is what they have in common.
    """

    dataset: str
    reason: str
    row: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one assertion, and why.

    `value` is the raw metric value, `scaled_value` that value times the `multiplier` of the
    active profiles: the number that was compared. `expected` is the condition as text and
    `threshold` its evaluated right-hand side. `metric` and `column` are set where the assertion
    is about one of them. `reason` explains every status but `passed`. `origin` tells where the
    value comes from; of several metrics, the one that took most. `failing_rows` is a sample, and
    `note` says why there is none where there should be one. `clause` is the path of the clause of
    a contract that the assertion enforces; `span` and `source_line` are then its place there.
    `disabled_by` is the profile that disabled it. What `is_experimental` never blocks. `measured`
    are the metric values behind it as JSON (see `plan.measured`), to judge it again by. `let_by`
    names who lets an assertion through that cannot be evaluated: an error is then a warning, and
    what is skipped for it is not even that. An assertion that is judged for each group tells how
    many `groups` there were, how many of them failed, and which is the worst: the values are its.
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
    origin: Origin | None = None
    failing_rows: tuple[FailingRow, ...] = ()
    note: str | None = None
    clause: str | None = None
    disabled_by: str | None = None
    is_experimental: bool = False
    measured: str | None = None
    let_by: str | None = None
    groups: int | None = None
    failed_groups: int | None = None
    worst_group: str | None = None

    def can_block(self, fail_on: Severity) -> bool:
        """True where a gate is blocked if this fails, and broken if it cannot be evaluated."""
        is_let = self.is_experimental or self.let_by is not None
        return self.severity.at_least(fail_on) and not is_let

    @property
    def is_not_evaluated(self) -> bool:
        """True where the data that it needs was missing: it was skipped, and nobody chose that."""
        is_chosen = self.disabled_by is not None or self.let_by is not None
        return self.status is Status.SKIPPED and not is_chosen


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
class Promotion:
    """Where the rows of a dataset went on a pass: a path or a table, its version, how many."""

    location: str
    version: int
    rows: int


@dataclass(frozen=True, slots=True)
class DatasetSnapshot:
    """The very data that was validated: where, which version, how many rows on the date.

    `quarantined` is how many of them went into quarantine, `quarantine` the place of that; None
    where none was asked for.
    `condition` tells the rows that were validated from the others of the version, as Spark SQL;
    None where it was all of them. `promote_to` is the place to which they were to be promoted on a
    pass, `promotion` what became of that; both None where there was no such place, the latter also
    where the gate did not pass. `lineage_name` is the path, URI or table by which lineage knows the
    data, None where that is its location.
    """

    name: str
    location: str
    format: str
    version: int | None = None
    rows: int | None = None
    fields: tuple[Field, ...] = ()
    metrics: tuple[MetricResult, ...] = ()
    quarantined: int | None = None
    condition: str | None = None
    promotion: Promotion | None = None
    promote_to: str | None = None
    quarantine: str | None = None
    lineage_name: str | None = None


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """Rows that a gate let through: where they are, in which version, told by which condition."""

    location: str
    version: int
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class SourceDigest:
    """A text that a gate went by: the name of its file, and its SHA-256 in hexadecimal digits."""

    file: str
    digest: str


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What the shadow of a gate would have said. `problem` says why it said nothing; `outcome` is
    then None, as there are no verdicts."""

    name: str
    suite: str | None = None
    outcome: Outcome | None = None
    verdicts: tuple[Verdict, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class GateReport:
    """The result of one attempt of a gate.

    `run_id` is a UUID of this very job run: the OpenLineage run id, and the key of its rows in
    the results store. Times are in UTC. `contract` is the one that was enforced, its clauses left
    to the verdicts and its files to `sources`, which tell the texts that the store keeps. `shadow`
    tells what another suite would have said: nothing depends on it. `partial` tells what was
    selected where assertions were left out; None where all of them were judged. What tells several
    dates together, and is never stored, has the last of them in `until`.
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
    contract: EnforcedContract | None = None
    sources: tuple[SourceDigest, ...] = ()
    shadow: ShadowReport | None = None
    partial: PartialRun | None = None
    until: date | None = None

    @property
    def dates(self) -> str:
        """The date of the data: `2026-01-01`; of several the range: `2026-01-01..2026-03-31`."""
        first = self.run_key.date.isoformat()
        return first if self.until is None else f"{first}..{self.until.isoformat()}"

    @property
    def validated(self) -> dict[str, ValidatedRows]:
        """The rows of each dataset that the gate let through, where they were promoted to, else
        where they were read; of a dataset without versions nobody can tell them."""
        if self.outcome not in (Outcome.PASSED, Outcome.WARNED):
            return {}
        return {
            item.name: ValidatedRows(place.location, place.version, item.condition)
            for item in self.datasets
            if (place := item.promotion or item).version is not None
        }

    def with_status(self, status: Status) -> tuple[Verdict, ...]:
        """The verdicts of one status, worst severity first, else in the order of the suite."""
        found = [verdict for verdict in self.verdicts if verdict.status is status]
        return tuple(sorted(found, key=lambda verdict: verdict.severity.value))

    @property
    def not_evaluated(self) -> tuple[Verdict, ...]:
        """The verdicts of `fail_on` or worse that lack data of other dates, worst severity first:
        none of them has passed."""
        return tuple(
            verdict
            for verdict in self.with_status(Status.SKIPPED)
            if verdict.is_not_evaluated and verdict.can_block(self.fail_on)
        )

    @property
    def let_through(self) -> tuple[Verdict, ...]:
        """The verdicts on clauses of a contract that cannot be enforced, and are let through."""
        return tuple(verdict for verdict in self.verdicts if verdict.let_by is not None)

    @property
    def worst(self) -> Verdict | None:
        """The first of the verdicts that decided the outcome: worst severity, then suite order."""
        failed, errors = self.with_status(Status.FAILED), self.with_status(Status.ERROR)
        match self.outcome:
            case Outcome.BROKEN:
                decisive = tuple(one for one in errors if one.can_block(self.fail_on))
                ranked = decisive + self.not_evaluated + errors + failed
            case Outcome.BLOCKED:
                decisive = tuple(one for one in failed if one.can_block(self.fail_on))
                ranked = decisive + failed + errors
            case _:
                ranked = self.not_evaluated + failed + errors
        return ranked[0] if ranked else None

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


_EXACTLY = "_exactly"
"""What follows the name of a value in JSON where a number of JSON does not say all of it."""


def _converter() -> Any:
    global _CONVERTER
    if _CONVERTER is None:
        from cattrs.preconf.json import make_converter

        _CONVERTER = make_converter()
        _CONVERTER.register_unstructure_hook_func(_is_metric_value, _number_of_json)
        _CONVERTER.register_structure_hook_func(_is_metric_value, _checked_value)
        for kind, names in _VALUES.items():
            _tell_exactly(_CONVERTER, kind, names)
    return _CONVERTER


def _tell_exactly(converter: Any, kind: type, names: tuple[str, ...]) -> None:
    """A fraction is a number in JSON, which may be rounded, and a text beside it, which is not."""
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

    unstructure: Any = make_dict_unstructure_fn(kind, converter)
    structure: Any = make_dict_structure_fn(kind, converter)

    def told(value: Any) -> dict[str, Any]:
        found: dict[str, Any] = unstructure(value)
        for name in names:
            if isinstance(number := getattr(value, name), Fraction):
                found[f"{name}{_EXACTLY}"] = exact_text(number)
        return found

    def read(given: Any, _: Any) -> Any:
        if isinstance(given, dict):
            exactly = {name: given[key] for name in names if (key := f"{name}{_EXACTLY}") in given}
            given = {**given, **{name: parse_exact(str(text)) for name, text in exactly.items()}}
        return structure(given, kind)

    converter.register_unstructure_hook(kind, told)
    converter.register_structure_hook(kind, read)


def _number_of_json(value: MetricValue) -> MetricValue:
    if not isinstance(value, Fraction):
        return value
    near = nearest_float(value)
    return near if math.isfinite(near) else exact_text(value)


def _is_metric_value(kind: Any) -> bool:
    return bool(kind == MetricValue)


def _checked_value(value: Any, _: Any) -> MetricValue:
    if isinstance(value, int | float | Fraction | str | None):
        return value
    raise TypeError(f"not a metric value: {value!r}")


_VALUES = {Verdict: ("value", "scaled_value", "threshold"), MetricResult: ("value",)}


_CONVERTER: Any = None
