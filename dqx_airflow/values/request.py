"""The request of a gate to its job, the locations of datasets, and selections by users:
assertions by name, tag or severity, and ranges of dates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from datetime import date, timedelta
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from dqx_airflow.errors import RequestError
from dqx_airflow.limits import (
    DEFAULT_CLOCK_SKEW_HOURS,
    DEFAULT_SAMPLE_ROWS,
    MOST_CLOCK_SKEW_HOURS,
    MOST_DATES,
)
from dqx_airflow.values.contracts import (
    EnforcedContract,
    ImportedFile,
    Severity,
    SourceFile,
    SourceLocation,
)
from dqx_airflow.values.exact import exact_text, is_finite_number
from dqx_airflow.values.redact import redact_urls
from dqx_airflow.values.typed_values import severity_of, share_of

FORMATS = ("delta", "parquet", "csv", "json", "orc", "avro", "iceberg")
"""The storage formats of a dataset at a path."""


JDBC = "jdbc"
"""The format of a database table."""


MASK = "***"
"""The display of a masked value."""


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """The location of a dataset of a suite, and how to read it.

        DatasetRef("orders", path="s3://lake/orders", date_column="ds")

    :param name: the name of the dataset in the suite.
    :param path: the path or URI of files or of a Delta table. Exactly one of `path`, `table` and
        `query` is given.
    :param table: a table of the catalog; with `conn_id`, a table of a database.
    :param query: a SELECT over catalog tables.
    :param format: the format of a path, such as `delta`, `parquet` or `csv`.
    :param date_column: the column with the date of a row: a date, a timestamp or a string. Without
        it, the whole dataset belongs to every date, and metrics cannot be lagged.
    :param date_format: the Spark pattern of dates in strings, such as `yyyyMMdd`; ISO dates by
        default.
    :param time_zone: the time zone of the days of timestamps, by default the session's.
    :param filter: a Spark SQL predicate that selects rows.
    :param options: options of Spark's reader, as pairs.
    :param schema: the columns of files with their types, `id bigint, price double`; inferred by
        default. With it, CSV and JSON are read as strings; a string that does not match its type
        becomes NULL and counts as malformed.
    :param version: the Delta version to read. By default, the newest version at the start of the
        gate, which is pinned for the whole run.
    :param timestamp: an ISO timestamp; reads the Delta version that was the newest at that time.
    :param keys: the columns that identify a row for users.
    :param masked: columns whose values never leave Spark; they are displayed as `***`.
    :param trust_log: whether the statistics in the log of a Delta table may answer metrics;
        otherwise, the rows are read.
    :param lineage_name: the path, URI or table name in lineage; by default the location without
        trailing dates, partitions and globs.
    :param conn_id: the id of an Airflow connection, or of an environment variable, with the
        credentials of a database, whose `table` is read over JDBC.
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
        """The path or the table; the name of the dataset for a query."""
        return self.path or self.table or self.name

    @property
    def is_of_texts(self) -> bool:
        """True for text files with declared columns: their values are cast."""
        return self.path is not None and self.schema is not None and self.format in ("csv", "json")

    @property
    def is_lenient(self) -> bool:
        """True if the options turn values that do not fit into NULL, or drop their lines."""
        options = {name.lower(): value.lower() for name, value in self.options}
        return options.get("mode") in ("permissive", "dropmalformed")


@dataclass(frozen=True, slots=True)
class DatasetField:
    """A column of a dataset, with its type as Spark writes it (`decimal(18,2)`)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """Rows that a gate let through: their location and version, and the condition that selects
    them."""

    location: str
    version: int
    condition: str | None = None


ANSI = "spark.sql.ansi.enabled"
"""The name of the setting of Spark for ANSI mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a run judges, whether it was started by a gate, the command line or Python.

    A field with a `help` is also a flag of commands and a key of `dqx.toml`, whose form follows
    from the type of its default.

    A failure of `fail_on` or worse blocks. `allow_empty` drops the implicit assertions that the
    datasets have rows. With `require_history` a run is broken if an assertion of `fail_on` or worse
    lacks data of other dates. `skip_dates` are dates without data, for lagged metrics. `ansi` is
    the mode of Spark in which SQL of the suite, the contract and the datasets is evaluated: in a
    session with the other one, it is an error. A timestamp that is more than
    `max_clock_skew_hours` in the future makes nothing fresh.
    """

    fail_on: Severity = field(
        default=Severity.P1, metadata={"help": "The least severe level that still blocks."}
    )
    allow_empty: bool = field(default=False, metadata={"help": "Whether an empty dataset passes."})
    require_history: bool = field(
        default=False,
        metadata={"help": "Whether missing data of other dates makes the run broken (exit 3)."},
    )
    skip_dates: tuple[date, ...] = ()
    ansi: bool = field(
        default=True,
        metadata={
            "help": "Whether SQL of the suite, the contract and the datasets is evaluated in "
            "Spark's ANSI mode."
        },
    )
    max_clock_skew_hours: float = field(
        default=DEFAULT_CLOCK_SKEW_HOURS,
        metadata={
            "help": "By how many hours a timestamp may be in the future and still make data fresh."
        },
    )

    def __post_init__(self) -> None:
        if not is_clock_skew(self.max_clock_skew_hours):
            raise RequestError(
                f"max_clock_skew_hours={self.max_clock_skew_hours!r} is not a number of hours from "
                f"0 to {MOST_CLOCK_SKEW_HOURS:,}",
                f"write it like {DEFAULT_CLOCK_SKEW_HOURS:g}",
            )

    @property
    def session_settings(self) -> dict[str, str]:
        """The settings of a Spark session that is opened for the run; settings of the user win."""
        return {} if self.ansi else {ANSI: "false"}

    @property
    def keywords(self) -> dict[str, Any]:
        """The options by name."""
        return {option.name: getattr(self, option.name) for option in fields(RunOptions)}


def is_clock_skew(given: object) -> bool:
    """True for a valid `max_clock_skew_hours`."""
    return is_finite_number(given) and 0 <= given <= MOST_CLOCK_SKEW_HOURS


SETTABLE_OPTIONS: dict[str, Field[Any]] = {
    option.name: option for option in fields(RunOptions) if "help" in option.metadata
}
"""The options of runs that `dqx.toml` and commands set in the same way, by name."""


_MAP_INDEX = re.compile(r"\[(\d{1,9})\]$")


class Origin(str, Enum):
    """The source of a metric value, the most expensive first."""

    SCAN = "scan"
    MERGED = "stored state and new files"
    STATE = "stored state"
    LOG = "transaction log"

    @classmethod
    def most_expensive(cls, origins: Iterable[Origin]) -> Origin | None:
        """The origin of a value that is computed from others; None if there are none."""
        return min(origins, key=list(cls).index, default=None)


@dataclass(frozen=True, slots=True)
class RunKey:
    """The key of a result: a gate, a date of its data, and a scheduler run.

    `scheduler_run` is the run id of the scheduler, with the map index of a mapped task: `run[3]`.
    """

    gate: str
    date: date
    scheduler_run: str

    @property
    def map_index(self) -> int:
        """The map index of the task instance, -1 if it has none."""
        return int(self._mapped[1]) if self._mapped else -1

    @property
    def gate_instance(self) -> str:
        """The gate, distinguished from other instances of the same task: `lake.gate[3]` if
        mapped."""
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


def day_of_instance(on: date, map_index: int) -> str:
    """A day with the map index of a task instance, if it has one: `2024-03-20[3]`."""
    return f"{on.isoformat()}[{map_index}]" if map_index >= 0 else on.isoformat()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a run key.

    `number` orders the attempts, `id` is unique for each of them: a cleared task starts a new
    attempt even if its number starts again at 1.
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
class GateOrigin:
    """Properties of a gate as a job in a catalog: its owner, documentation, and source.

    `job` is the enclosing job if the gate is only a part of one; None if the gate is the job.
    """

    owner: str | None = None
    documentation: str | None = None
    source: SourceLocation | None = None
    job: str | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The assertions that a gate judges: those that match every given criterion.

    `only` are names of assertions or checks, `CHECK::ASSERTION`, clauses of a contract or the ids
    of its rules; `*` and `?` are wildcards. An assertion matches if it has one of the `tags` and
    none of `exclude_tags`, has the `severity` or a worse one, and belongs to one of the quality
    `dimensions`.
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
        return "; ".join(f"{criterion} {', '.join(words)}" for criterion, words in parts if words)


@dataclass(frozen=True, slots=True)
class PartialRun:
    """The selected part of a run: it judged `selected` of `assertions`. `protected` are the
    names of excluded ones that are P0 or `@required`."""

    selection: Selection
    selected: int
    assertions: int
    protected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShadowSuite:
    """A second suite that a gate judges next to its own, under `name` in results. It never affects
    the gate.

    `problem` says why it cannot be judged; `suite` is then None.
    """

    name: str
    suite: SourceFile | None = None
    imports: tuple[ImportedFile, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class GatePart:
    """One more date, or one more suite, that a gate judges in the same scan.

    Without a `suite`, the suite of the request is judged, with its imports, contract and selection.
    """

    run_key: RunKey
    suite: SourceFile | None = None
    imports: tuple[ImportedFile, ...] = ()
    contract: EnforcedContract | None = None
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class GateRequest(RunOptions):
    """Everything that the job needs to run. It contains the sources themselves, but no secrets.

    Its `RunOptions` define how it judges.

    `results_root` is empty for a trial, which writes nothing. `timeout_s` is the time in seconds
    after which the job ends itself, since a Python driver may outlive the task that started it.
    `recompute` uses no stored states. `sample_rows` is the maximum number of failing rows of an
    assertion to keep. `quarantine` maps datasets to the paths of the Delta tables for their failing
    rows; `promote_to` to the paths or names of the tables for all their rows on a pass, and
    `promote_slice` columns to the single value, as a string, that these rows have: only such rows
    are replaced there. `contract` is the source of the suite, if it was compiled. `date_from`
    describes where the date comes from. `origin` is for lineage only: nothing is read there.
    `shadow` is judged in the same scan and changes nothing. `more` are judged with it, each with a
    report of its own. With a `selection` only the assertions that match are judged, and nothing is
    promoted unless `promote_partial` is set. With `promote_blocked` rows are promoted although the
    gate is blocked, unless the violated assertion is P0, `@required` or implicit. With
    `promote_valid` all rows but those in quarantine are promoted, unless they are more than that: a
    number of rows, or a share, such as `1%`. With
    `accept_required` a person may accept data that violates P0 and `@required`; `answered` is
    the time of the answer after which the job runs again in the same attempt.
    """

    run_key: RunKey
    attempt: Attempt
    suite: SourceFile
    datasets: tuple[DatasetRef, ...]
    results_root: str
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
    origin: GateOrigin | None = None
    shadow: ShadowSuite | None = None
    more: tuple[GatePart, ...] = ()
    selection: Selection | None = None
    promote_partial: bool = False
    promote_blocked: bool = False
    promote_valid: str | None = None
    accept_required: bool = False
    answered: str | None = None

    @property
    def parts(self) -> tuple[GateRequest, ...]:
        """A request for each report: first its own, then one for each part in `more`."""
        first = replace(self, more=())
        return (first, *(_part_of(first, part) for part in self.more))

    @property
    def job_key(self) -> RunKey:
        """The run key of the gate as a whole, if this is the request for one of its suites."""
        job = self.origin.job if self.origin is not None else None
        return replace(self.run_key, gate=job) if job else self.run_key

    @property
    def slice(self) -> str:
        """The rows that the gate is about on a date, as JSON: where it reads each dataset, and the
        values of `promote_slice`."""
        places = {ref.name: redact_urls(ref.location) for ref in self.datasets}
        content = {"read": places, "rows": dict(self.promote_slice)}
        return json.dumps({key: value for key, value in content.items() if value}, sort_keys=True)

    @property
    def run_keys(self) -> tuple[RunKey, ...]:
        """The run key of each report."""
        return (self.run_key, *(part.run_key for part in self.more))

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """All source texts of the gate: the contract, the suite, and their imports."""
        imported = (item.file for item in self.imports)
        files = (*(self.contract.sources if self.contract else ()), self.suite, *imported)
        return tuple({file.name: file for file in files}.values())


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """The requests of several gates, which one job judges in one Spark, each by itself.

    `run_key` is the key of the batch as a task. `batch` and `run` are where its gates look for
    their reports, as in `BatchReports`. `timeout_s` is the time in seconds after which the job ends
    itself; each gate has its own besides. `at_once` is the number of gates that are judged at the
    same time.
    """

    run_key: RunKey
    results_root: str
    batch: str
    run: str
    requests: tuple[GateRequest, ...]
    timeout_s: float | None = None
    at_once: int = 1

    @property
    def job_key(self) -> RunKey:
        """The run key of the batch."""
        return self.run_key

    @property
    def session_settings(self) -> dict[str, str]:
        """The settings of its Spark session, which its gates share."""
        return self.requests[0].session_settings


JobRequest: TypeAlias = "GateRequest | BatchRequest"
"""Anything that a job can be submitted for."""


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


SEPARATOR = ".."

_HINT = "write FROM..TO with both dates, such as 2026-01-01..2026-03-31"


def is_range(text: str) -> bool:
    """True for a string that is meant as a range, valid or not."""
    return SEPARATOR in text


def dates_of_range(text: str, read: Callable[[str], date | None]) -> tuple[date, ...]:
    """Every date of a range, in order.

    :param read: returns the date of a bound; None if it is invalid.
    :raises RequestError: it is not a range, ends before it begins, or is too long.
    """
    ends = text.split(SEPARATOR)
    if len(ends) != 2:
        raise RequestError(f"invalid range of dates {text!r}", _HINT)
    for end, name in zip(ends, ("first", "last"), strict=True):
        if not end.strip():
            raise RequestError(f"the range {text!r} has no {name} date", _HINT)
    first, last = (read(end.strip()) for end in ends)
    if first is None or last is None:
        wrong = ends[0] if first is None else ends[1]
        raise RequestError(f"invalid date {wrong.strip()!r} in the range {text!r}", _HINT)
    if last < first:
        raise RequestError(
            f"the range {text!r} ends before it begins",
            f"write the earlier date first: {last.isoformat()}{SEPARATOR}{first.isoformat()}",
        )
    count = (last - first).days + 1
    if count > MOST_DATES:
        message = f"the range {text!r} has {count:,} dates, at most {MOST_DATES:,} are possible"
        raise RequestError(message, "split it into shorter ranges")
    return tuple(first + timedelta(days=number) for number in range(count))


Words: TypeAlias = "str | Sequence[str] | None"
"""One or several words, also comma-separated."""


def selection_of(
    only: Words = None,
    tags: Words = None,
    exclude_tags: Words = None,
    min_severity: Severity | str | None = None,
    dimensions: Words = None,
) -> Selection | None:
    """The given selection; None if there is none, which selects everything.

    :raises RequestError: a severity is invalid, or an argument is empty or not of strings.
    """
    selection = Selection(
        _words("only", only),
        _words("tags", tags),
        _words("exclude_tags", exclude_tags),
        severity_of("min_severity", min_severity) if min_severity else None,
        tuple(map(str.lower, _words("dimensions", dimensions))),
    )
    return selection if selection != Selection() else None


def require_whole_run(
    selection: Selection | None, promote_to: Iterable[object], *, promote_partial: bool
) -> None:
    """Refuses to promote rows if only some assertions are judged.

    :raises RequestError: a selection would promote without being allowed to.
    """
    if selection is not None and tuple(promote_to) and not promote_partial:
        raise RequestError(
            f"promote_to promotes rows that satisfy all assertions, but some are selected: "
            f"{selection}",
            "remove the selection, or set promote_partial=True",
        )


_COUNT = re.compile(r"[0-9]{1,18}")


def bad_rows_limit(given: object) -> str:
    """The maximum of rows that a promotion may leave out: a number, or a share such as `1%`, which
    `0.01` is as well.

    :raises RequestError: it is neither.
    """
    share = share_of(given)
    if share:
        return f"{exact_text(100 * share)}%"
    text = "" if isinstance(given, bool) else str(given).replace(" ", "")
    if _COUNT.fullmatch(text) and int(text):
        return text
    raise RequestError(
        f"max_bad_rows={given!r}: write a number of rows, such as 100, or a share of them, such as "
        "'1%' or 0.01, of more than 0"
    )


def most_bad_rows(limit: str, rows: int) -> int:
    """The maximum number of rows that a promotion of `rows` may leave out."""
    return int(Fraction(limit[:-1]) * rows / 100) if limit.endswith("%") else int(limit)


def _words(name: str, given: Words) -> tuple[str, ...]:
    if given is None:
        return ()
    texts: tuple[object, ...] = (given,)
    if isinstance(given, Iterable) and not isinstance(given, str):
        texts = tuple(given)
    words: list[str] = []
    for text in texts:
        if not isinstance(text, str):
            raise RequestError(f"{name}={given!r}: write a string, or a list of strings")
        between_commas = [word.strip() for word in text.split(",")]
        if text.strip() and not any(between_commas):
            message = f"{name}={text!r} names nothing"
            raise RequestError(message, "write a name, or leave it out to select everything")
        words += between_commas
    return tuple(dict.fromkeys(word for word in words if word))
