"""Source texts and positions in them, the results of assertions and gates in one word each, and
the facts that a gate needs about the contract of a dataset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum


@dataclass(frozen=True, slots=True)
class Span:
    """A range in a source file. Lines and columns count from 1, `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A DQL file with its content, so that it is read only once."""

    name: str
    text: str


LONGEST_KEPT_SOURCE = 256 * 1024
"""The size in characters above which a source is not stored with the results."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that `importer` imports as `path`."""

    importer: str
    path: str
    file: SourceFile


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """The location of the file of a suite or a contract, for users.

    `url` links to the file itself. In a Git checkout, `repository` is the address of its `origin`,
    `path` the file below its root, and `version` the commit.
    """

    url: str
    repository: str | None = None
    path: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class SourceDigest:
    """A source text of a gate: the name of its file, and its SHA-256 in hexadecimal digits."""

    file: str
    digest: str


class WordEnum(str, Enum):
    """A closed set of words. A member prints as its value, on every Python."""

    __str__ = str.__str__


class Severity(WordEnum):
    """The severity of a failure, from P0, the worst, to P3."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"

    def at_least(self, other: Severity) -> bool:
        """True if this severity is as bad as `other`, or worse."""
        return self.value <= other.value


class Status(WordEnum):
    """The result of one assertion. `ERROR`: it could not be evaluated."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


class Outcome(WordEnum):
    """The result of a gate as a whole. `ACCEPTED`: it was blocked, and a person accepted its
    data."""

    PASSED = "passed"
    WARNED = "warned"
    ACCEPTED = "accepted"
    BLOCKED = "blocked"
    BROKEN = "broken"


NO_REPORT = "no report"
"""The state of a run that ended without a report, in the place of an outcome."""


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of at least one outcome."""
    ranked = tuple(Outcome)
    return max(outcomes, key=ranked.index)


@dataclass(frozen=True, slots=True)
class EnforcedClause:
    """The clause of a contract that an assertion enforces: its path, position and line; from its
    rule, the id and the tags as written, and the quality dimension. `element_ids` are the ids of
    the field and the model that it is about."""

    assertion: str
    path: str
    span: Span
    line: str
    id: str | None = None
    tags: tuple[str, ...] = ()
    dimension: str | None = None
    element_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnenforcedClause(EnforcedClause):
    """A clause of a contract that states a check and cannot be enforced: also its dataset, and the
    reason. `let_by` names who accepted it, and `is_accepted` is set if that is in the contract."""

    dataset: str
    severity: Severity
    reason: str
    let_by: str | None = None
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Responsible:
    """Who is responsible for a contract, and what to do in an incident."""

    owner: str | None = None
    contacts: tuple[str, ...] = ()
    channel: str | None = None
    runbook: str | None = None
    incident_response: str | None = None
    business_hours: str | None = None

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The known facts, each with its label."""
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

    `clauses` map each assertion to the clause that it enforces. `documented` and `unsupported` are
    the numbers of clauses of the document that no assertion enforces, `accepted` how many of the
    latter the contract accepts. `sources` are its files. `pin` is the version that the gate relies
    on (`2`, `2.3` or `2.3.0`), None for any. `unenforced` are the clauses that state a check and
    cannot be enforced: their verdicts are errors unless they are accepted. `not_understood` are
    clauses that have no meaning here and state no check. `name`, `description` and `status`
    (`active`) are copied from the document.
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
        """The part for a report: without what the verdicts and the digests of its files contain."""
        return replace(self, clauses=(), sources=(), unenforced=())


@dataclass(frozen=True, slots=True)
class FieldSource:
    """A source field from which a field is derived, in the terms of OpenLineage."""

    namespace: str
    name: str
    field: str
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool = False


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """A column as a contract describes it, for readers of the table."""

    name: str
    type: str
    description: str | None = None
    sources: tuple[FieldSource, ...] = ()


@dataclass(frozen=True, slots=True)
class ContractDescription:
    """The description of a contract that the properties of its table contain."""

    id: str
    version: str | None
    description: str | None = None
    owners: tuple[str, ...] = ()
    fields: tuple[FieldDescription, ...] = ()
