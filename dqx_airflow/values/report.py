"""The result of a job: a verdict for each assertion, and the outcome of the gate; what people
decide about verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias
from uuid import uuid4

from dqx_airflow.values.contracts import (
    EnforcedContract,
    Outcome,
    Severity,
    SourceDigest,
    Span,
    Status,
)
from dqx_airflow.values.redact import holds_credentials, redact_urls
from dqx_airflow.values.request import (
    Attempt,
    DatasetField,
    Origin,
    PartialRun,
    RunKey,
    ValidatedRows,
)


@dataclass(frozen=True, slots=True)
class Waiver:
    """A failing assertion that does not block until the end of a day, in UTC.

    `below` and `above` are the exact limits of the value, as strings: a value that reaches them is
    not waived. `owner` takes care of the cause, `author` wrote the waiver. `ended_by` is who ended
    it early. `rule` is the `Verdict.rule` that it waives: another rule of this name is not waived.
    It is None in waivers of version 0.2.
    """

    gate: str
    check: str
    name: str
    until: date
    reason: str
    owner: str
    author: str
    below: str | None = None
    above: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    id: str = field(default_factory=lambda: str(uuid4()))
    ended_by: str | None = None
    rule: str | None = None

    def is_active(self, now: datetime) -> bool:
        """Whether it has begun and has not ended."""
        return self.ended_by is None and self.at <= now and now.date() <= self.until

    def covers(self, value: object) -> bool:
        """Whether a value is within its limits."""
        if self.below is None and self.above is None:
            return True
        if not isinstance(value, int | float | Fraction) or isinstance(value, bool):
            return False
        is_below = self.below is None or value < Fraction(self.below)
        return is_below and (self.above is None or value > Fraction(self.above))

    @property
    def terms(self) -> str:
        """The end and the limits of the waiver: `waived until 2026-11-27, below 0.1`."""
        limits = [f"below {self.below}"] if self.below else []
        limits += [f"above {self.above}"] if self.above else []
        return ", ".join([f"waived until {self.until}", *limits])

    def __str__(self) -> str:
        return f"{self.terms}; owner {self.owner}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A person has accepted the data that a run judged. `run_id` is that run."""

    run_id: str
    author: str
    reason: str
    at: datetime

    def __str__(self) -> str:
        return f"accepted by {self.author}: {self.reason}"


@dataclass(frozen=True, slots=True)
class AcceptedData:
    """The data that an acceptance is about: the fingerprint of each dataset, and the assertions, by
    check, name and rule, that did not hold."""

    acceptance: Acceptance
    fingerprints: tuple[tuple[str, str | None], ...]
    failed: frozenset[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Decisions:
    """All decisions about a gate and a slice."""

    waivers: tuple[Waiver, ...] = ()
    accepted: tuple[AcceptedData, ...] = ()


NOT_SHOWN: Mapping[str, bool] = MappingProxyType({"not shown": True})
"""The metadata of a field that is in no JSON for users."""

MetricValue: TypeAlias = int | Fraction | float | str | None
"""The value of a metric. Exact numbers are an int or a Fraction: counts, integers, decimals and
what is computed from them. With floats or a root involved, it is a float; dates and timestamps are
ISO strings. None means that there is no value. NaN and infinity never occur here."""


@dataclass(frozen=True, slots=True)
class FailingRow:
    """A row that violates an assertion, and why.

    `row` is a JSON object: the key columns first, then those at fault; all columns if the dataset
    has no keys. For rows that repeat each other it is what they have in common.
    """

    dataset: str
    reason: str
    row: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one assertion, and the reason.

    :param expected: the condition as a string, with the values that a day has for its metrics.
    :param condition: the condition as written; None if `expected` is it.
    :param value: the metric value; durations are in seconds.
    :param multiplier: the factor of the active profiles.
    :param scaled_value: the value times the multiplier, which is compared.
    :param threshold: the value of the right-hand side of the condition.
    :param reason: why it did not pass; None for `passed`.
    :param metric: the metric, and `column` its column, if the assertion is about a single one.
    :param origin: the source of the value; for several metrics, the most expensive one.
    :param failing_rows: a sample of the rows that violate it.
    :param note: a remark, such as why there is no sample.
    :param clause: the path of the contract clause that it enforces; `span` and `source_line` are
        then its position there.
    :param disabled_by: the profile that disabled it.
    :param is_experimental: True if it never blocks.
    :param measured: the metric values behind it as JSON, to judge it again (`plan.measurements`).
    :param let_by: who accepted that it cannot be evaluated: an error is then a warning, and a
        skipped assertion is not even that.
    :param groups: the number of groups, if it is judged for each group.
    :param failed_groups: the number of groups that failed.
    :param worst_group: the group whose value this is.
    :param is_required: True if it is `@required`.
    :param waived_by: the waiver that covers the failure, so that it does not block.
    :param accepted_by: who accepted the data although it fails, and why.
    :param failed_values: of failed groups, the lowest and the highest value; neither stored nor
        shown.
    :param rows_left_out: True if only rows without its violations were promoted, and it holds for
        them, so that it does not block (`promote_valid`).
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
    is_required: bool = False
    waived_by: str | None = None
    accepted_by: str | None = None
    rows_left_out: bool = False
    condition: str | None = None
    failed_values: tuple[MetricValue, ...] = field(default=(), compare=False, metadata=NOT_SHOWN)

    @property
    def rule(self) -> str:
        """The metric and the condition as written, without the values of a day.

        Who waives a failure, or accepts data despite it, decides about this rule: a name may stand
        for another one later.
        """
        return f"{self.expression} {self.condition or self.expected}"

    def can_block(self, fail_on: Severity) -> bool:
        """True if a gate is blocked when this fails, and broken when it cannot be evaluated."""
        decisions = self.let_by, self.waived_by, self.accepted_by
        is_let = self.is_experimental or decisions != (None, None, None)
        return self.severity.at_least(fail_on) and not is_let and not self.rows_left_out

    @property
    def is_protected(self) -> bool:
        """True for P0 and `@required`, which no one can waive."""
        return self.severity is Severity.P0 or self.is_required

    @property
    def is_not_evaluated(self) -> bool:
        """True if it was skipped because of missing data, not because a user disabled or accepted
        it.
        """
        is_chosen = self.disabled_by is not None or self.let_by is not None
        return self.status is Status.SKIPPED and not is_chosen


def is_composed(verdict: Verdict) -> bool:
    """Whether it is about `any`, `all` or `if`: its value is the number of claims that hold."""
    return _COMPOSED.match(verdict.expression) is not None


_COMPOSED = re.compile(r"(any|all) \{|if ")


@dataclass(frozen=True, slots=True)
class MetricResult:
    """A metric computed for the target date. `column` is None for metrics of whole rows."""

    metric: str
    column: str | None
    value: MetricValue


@dataclass(frozen=True, slots=True)
class Promotion:
    """Where the rows of a dataset were promoted: a path or a table, its version, their number.

    `is_blocked`: the gate was blocked, and promotes all the same (`promote_blocked`). `left_out` is
    the number of the other rows, in quarantine (`promote_valid`).
    """

    location: str
    version: int
    rows: int
    is_blocked: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Arrival:
    """A commit of a Delta table, or a file, that added rows to a slice or changed its dataset.

    `name` is the version of the commit, or the path of the file, and `at` its time. `by` is what
    the log records about the writer: the operation, the user, the job or the run. `files` and
    `rows` are the numbers of files and rows that it added to the slice and that are still there; a
    commit without such files changed other rows. `removed` is the number of all files that it
    removed, `size` the size of a file in bytes.
    """

    name: str
    at: datetime | None = None
    by: str = ""
    files: int = 0
    rows: int | None = None
    size: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class DatasetSnapshot:
    """The exact data that was validated: location, version, and number of rows on the date. Of a
    blocked gate, `fingerprint` identifies these rows; None if they cannot be identified. Of a
    blocked or broken one, `arrivals` are the newest commits or files, the last one first. Of an
    Iceberg table, `snapshot` is the id of the one that was read, and `branch` the branch or the tag
    that led to it; None if they are not known.

    A location never contains credentials: a gate refuses one that does, and its report names it.
    """

    name: str
    location: str
    format: str
    version: int | None = None
    rows: int | None = None
    fields: tuple[DatasetField, ...] = ()
    metrics: tuple[MetricResult, ...] = ()
    quarantined: int | None = None
    condition: str | None = None
    promotion: Promotion | None = None
    promote_to: str | None = None
    quarantine: str | None = None
    lineage_name: str | None = None
    fingerprint: str | None = None
    arrivals: tuple[Arrival, ...] = ()
    snapshot: int | None = None
    branch: str | None = None

    def __post_init__(self) -> None:
        for name in ("location", "promote_to", "quarantine", "lineage_name"):
            place = getattr(self, name)
            if place is not None and holds_credentials(place):
                object.__setattr__(self, name, redact_urls(place))


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """The verdicts of the shadow of a gate. With a `problem` it has none, and no outcome."""

    name: str
    suite: str | None = None
    outcome: Outcome | None = None
    verdicts: tuple[Verdict, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class GateReport:
    """The result of one attempt of a gate. Times are in UTC.

    :param run_id: a UUID for this run of the job: its OpenLineage run id, and the key of its rows
        in the results store.
    :param contract: the enforced contract; its clauses are in the verdicts, its files in `sources`.
    :param sources: the digests of the sources, whose content is in the results store.
    :param shadow: the verdicts of another suite, on which nothing depends.
    :param partial: the selection, if not all assertions were judged.
    :param until: the last date, in a summary of several dates, which is never stored.
    :param unpromoted: as `not_promoted`, in such a summary.
    :param slice: the rows that the run is about, as JSON: where it read each dataset, and the
        values of `promote_slice`. None from an earlier version.
    :param accepted: who accepted the data of a gate that would be blocked.
    :param accept_required: whether a person may accept data that violates P0 and `@required`.
    :param answered: the time of the answer that the run follows, if the task had requested one.
    :param spark_version: the version of Spark in the session; None without Spark.
    :param ansi: whether SQL was evaluated in Spark's ANSI mode; None if unknown.
    :param engine_proof: what `dql doctor --prove` found about the engine; None without.
    :param job: the name of the gate without a suite; None from an earlier version.
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
    unpromoted: tuple[str, ...] = ()
    slice: str | None = None
    accepted: Acceptance | None = None
    answered: str | None = None
    accept_required: bool = False
    spark_version: str | None = None
    ansi: bool | None = None
    engine_proof: str | None = None
    job: str | None = None

    @property
    def dates(self) -> str:
        """The date of the data, `2026-01-01`, or for several dates the range,
        `2026-01-01..2026-03-31`.
        """
        first = self.run_key.date.isoformat()
        return first if self.until is None else f"{first}..{self.until.isoformat()}"

    @property
    def not_promoted(self) -> tuple[str, ...]:
        """The datasets of which rows were to be promoted, and none were."""
        missing = (
            dataset.name
            for dataset in self.datasets
            if dataset.promote_to and not (dataset.promotion and dataset.promotion.rows)
        )
        return self.unpromoted or tuple(missing)

    @property
    def promoted_blocked(self) -> tuple[str, ...]:
        """The datasets that were promoted although the gate was blocked."""
        return tuple(
            dataset.name
            for dataset in self.datasets
            if dataset.promotion is not None and dataset.promotion.is_blocked
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """The number of rows left out, for each dataset promoted without its bad rows: `3 of 97
        rows of orders`."""
        return tuple(
            f"{done.left_out} of {done.left_out + done.rows} rows of {dataset.name}"
            for dataset in self.datasets
            if (done := dataset.promotion) is not None and done.left_out
        )

    @property
    def is_released(self) -> bool:
        """True if the next tasks may read the data: the gate passed or warned, or everything was
        promoted although it was blocked."""
        if self.outcome is Outcome.BLOCKED:
            return bool(self.promoted_blocked) and not self.not_promoted
        return self.outcome is not Outcome.BROKEN

    @property
    def validated(self) -> dict[str, ValidatedRows]:
        """By dataset, the rows that the gate let through: where they were promoted to, or else
        read from.

        Datasets without versions are missing.
        """
        if not self.is_released:
            return {}
        return {
            dataset.name: ValidatedRows(place.location, place.version, dataset.condition)
            for dataset in self.datasets
            if (place := dataset.promotion or dataset).version is not None
        }

    def with_status(self, status: Status) -> tuple[Verdict, ...]:
        """The verdicts with a status, worst severity first, then in the order of the suite."""
        verdicts = [verdict for verdict in self.verdicts if verdict.status is status]
        return tuple(sorted(verdicts, key=lambda verdict: verdict.severity.value))

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
    def waived(self) -> tuple[Verdict, ...]:
        """The verdicts of assertions that failed and were waived."""
        return tuple(verdict for verdict in self.verdicts if verdict.waived_by is not None)

    @property
    def nothing_checked(self) -> str:
        """The reason why a report has no verdicts: `nothing was checked`, and what is missing."""
        text = "nothing was checked"
        if self.contract is None or self.contract.checked:
            return text
        promised = f"the contract {self.contract.id} promises nothing that data can break"
        return f"{text}: {promised}; `dql contract lint` says what to add"

    @property
    def let_through(self) -> tuple[Verdict, ...]:
        """The verdicts on contract clauses that cannot be enforced, and were accepted."""
        return tuple(verdict for verdict in self.verdicts if verdict.let_by is not None)

    @property
    def worst(self) -> Verdict | None:
        """The first of the verdicts that decided the outcome: by severity, then suite order."""
        failed = self.with_status(Status.FAILED)
        errors = self.with_status(Status.ERROR)
        match self.outcome:
            case Outcome.BROKEN:
                decisive = tuple(verdict for verdict in errors if verdict.can_block(self.fail_on))
                ranked = decisive + self.not_evaluated + errors + failed
            case Outcome.BLOCKED:
                decisive = tuple(verdict for verdict in failed if verdict.can_block(self.fail_on))
                ranked = decisive + failed + errors
            case _:
                ranked = self.not_evaluated + failed + errors
        return ranked[0] if ranked else None

    @property
    def failed_severity(self) -> Severity | None:
        """The severity of the worst failure or error, whatever lets it through; None without any.

        Experimental assertions are left out: what they find has never stopped the gate.
        """
        bad = *self.with_status(Status.FAILED), *self.with_status(Status.ERROR)
        severities = (verdict.severity for verdict in bad if not verdict.is_experimental)
        return min(severities, key=lambda severity: severity.value, default=None)  # P0 is the worst

    def count(self, status: Status) -> int:
        """The number of verdicts with a status."""
        return len(self.with_status(status))
