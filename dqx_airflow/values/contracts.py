"""What a gate has to know of the contract that it holds a dataset to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dqx_airflow.values.outcomes import Severity
from dqx_airflow.values.sources import SourceFile, Span


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
