"""What comes out of a job: a verdict for each assertion, and what became of the gate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TypeAlias

from dqx_airflow.values.contracts import EnforcedContract
from dqx_airflow.values.datasets import Field, ValidatedRows
from dqx_airflow.values.outcomes import Outcome, Severity, Status
from dqx_airflow.values.request import Attempt, Origin, PartialRun, RunKey
from dqx_airflow.values.sources import SourceDigest, Span

MetricValue: TypeAlias = int | Fraction | float | str | None
"""What a metric yields. Exact numbers are an int or a Fraction: counts, whole numbers, decimals and
what is computed of them. Where floats or a root are behind it, it is a float; dates and timestamps
are ISO text. None means that there is no value. NaN and infinity never get here."""


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
        """The number of verdicts with a status."""
        return sum(verdict.status is status for verdict in self.verdicts)
